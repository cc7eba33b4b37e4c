// The three manners in which a journey is walked: with a mouse, with a finger at 360 px, by keyboard alone.
// Refuses shortcuts around the page: the keyboard reaches a control by Tab or arrows, and a pointer beside it is a problem.
import type { BrowserContextOptions, Locator, Page } from "playwright";

export type Manner = "mouse" | "finger" | "keyboard";
export type JourneyLanguage = "en" | "zh";

export interface Hand {
  /** Gets ready to use something: by keyboard the focus goes there. */
  walkTo(at: Locator): Promise<void>;
  /** Presses a button, link, menu item, switch or box. */
  press(at: Locator): Promise<void>;
  /** Replaces what stands in a field; text with line breaks is pasted. */
  fill(at: Locator, text: string): Promise<void>;
  /** Takes the last change back while its message offers that. */
  undo(button: Locator): Promise<void>;
}

/**
 * Of the walks of a journey those of the ordinary run: without the mouse's, with WEIR_LONG all. Who walks by finger presses
 * what a mouse does, on less room; by keyboard on a wide screen. Each walk names its manner in a field or place of its own.
 */
export function walkedNow<Walk extends object>(walks: readonly Walk[]): Walk[] {
  const isLong = Bun.env["WEIR_LONG"] === "1";
  return walks.filter((walk) => isLong || !Object.values(walk).includes("mouse"));
}

/** What a browser context needs for each manner. */
export const CONTEXT_OF: Record<Manner, BrowserContextOptions> = {
  mouse: { viewport: { width: 1440, height: 900 } },
  finger: { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
  keyboard: { viewport: { width: 1280, height: 800 } },
};

export const LOCALE_OF: Record<JourneyLanguage, string> = { en: "en-US", zh: "zh-CN" };

/** Nobody walks further than this through one page. */
const MOST_STEPS = 120;

type Place = "here" | "before" | "after";

/**
 * Where an element lies, seen from the focus, and half of the stops on the way, at least one: what a stop is to the browser is
 * not known for sure, so nobody goes further before looking again. Remembers that somebody walks this page.
 */
function wayTo(element: Element): { place: Place; steps: number } {
  document.documentElement.dataset["walked"] = "";
  const { activeElement } = document;
  if (activeElement === element) return { place: "here", steps: 0 };
  const isBefore =
    activeElement !== null &&
    activeElement !== document.body &&
    (activeElement.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING) !== 0;
  const within = document.querySelector("dialog:modal") ?? document;
  const stops = [
    ...within.querySelectorAll<HTMLElement>("a[href], button, input, select, textarea, [tabindex]"),
  ].filter((each) => each.tabIndex >= 0 && !each.matches(":disabled") && each.getClientRects().length > 0);
  const [from, to] = [activeElement, element].map((each) => stops.findIndex((stop) => stop === each));
  const between = from === undefined || to === undefined || from < 0 || to < 0 ? 0 : Math.abs(to - from);
  return { place: isBefore ? "before" : "after", steps: Math.max(1, Math.floor(between / 2)) };
}

async function walk(page: Page, at: Locator, forward: string, back: string): Promise<void> {
  // Once somebody walks a page, the focus is always somewhere: whoever lost it would start over.
  await page
    .waitForFunction(
      () => !("walked" in document.documentElement.dataset) || document.activeElement !== document.body,
    )
    .catch(() => {
      throw new Error(`the focus was lost on the way to ${at.toString()}`);
    });
  for (let taken = 0; taken < MOST_STEPS;) {
    const { place, steps } = await at.evaluate(wayTo);
    if (place === "here") return;
    for (let step = 0; step < steps; step++, taken++)
      await page.keyboard.press(place === "before" ? back : forward);
  }
  throw new Error(`not reached by keyboard within ${MOST_STEPS} steps: ${at.toString()}`);
}

/** Kinds of control that the space bar works, and those of a menu, which arrows walk. */
async function kindOf(at: Locator): Promise<string> {
  return at.evaluate(
    (element) => element.getAttribute("role") ?? (element instanceof HTMLInputElement ? element.type : ""),
  );
}

/** The hand of one page. For the keyboard, call it before the first page is opened. */
export async function handOf(page: Page, manner: Manner): Promise<Hand> {
  if (manner === "mouse")
    return {
      walkTo: (at) => at.hover(),
      press: (at) => at.click(),
      fill: (at, text) => at.fill(text),
      undo: (at) => at.click(),
    };
  if (manner === "finger") {
    return {
      walkTo: (at) => at.scrollIntoViewIfNeeded(),
      press: (at) => at.tap(),
      undo: (at) => at.tap(),
      async fill(at, text) {
        await at.tap();
        await at.fill(text);
      },
    };
  }
  await page.addInitScript(() => {
    addEventListener("pointerdown", () => console.error("a pointer was used beside the keyboard"), true);
  });
  const { keyboard } = page;
  const walkTo = async (at: Locator) => {
    await at.waitFor();
    await walk(page, at, "Tab", "Shift+Tab");
  };
  return {
    walkTo,
    async press(at) {
      await at.waitFor();
      const kind = await kindOf(at);
      const isInMenu = kind.startsWith("menuitem");
      await (isInMenu ? walk(page, at, "ArrowDown", "ArrowUp") : walkTo(at));
      await keyboard.press(["checkbox", "radio", "switch"].includes(kind) ? "Space" : "Enter");
    },
    async fill(at, text) {
      await walkTo(at);
      await keyboard.press("Control+a");
      if (text.includes("\n")) await keyboard.insertText(text);
      else await keyboard.type(text);
    },
    async undo(at) {
      await at.waitFor();
      await keyboard.press("Control+z");
    },
  };
}

/** On a phone nothing lies beyond the right edge. */
export async function isAsWideAsTheScreen(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
}

/** Reloads tried before a row is called missing. */
const MOST_LOADS = 40;

/**
 * Opens a page until its server render holds so many of something: on PostgreSQL the rows of a call follow its answer.
 */
export async function openUntil(page: Page, path: string, rows: Locator, count = 1): Promise<void> {
  for (let load = 0; load < MOST_LOADS; load++) {
    await page.goto(path);
    await page.locator("[data-mounted]").waitFor();
    if ((await rows.count()) === count) return;
  }
  throw new Error(`${path} never showed ${count} of ${rows.toString()}`);
}
