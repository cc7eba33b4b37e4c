// States that can be seen: what is chosen stands out from its neighbours by 3 : 1 in both themes (axe looks at texts only),
// forms keep their width, buttons their place while saving, and a log row's detail leaves the list usable. Some of the widths and
// fonts; all of them under WEIR_LONG.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { SEEN_AT_LEAST, useFont } from "../support/fonts.ts";
import type { FontName } from "../support/fonts.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample, SampleRole } from "../support/sample.ts";

/** WCAG 1.4.11 for parts of controls that tell their state. */
const LEAST_CONTRAST = 3;

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

interface Opening {
  path: string;
  role: SampleRole;
  width?: number;
  height?: number;
  font?: FontName;
  theme?: "light" | "dark";
}

async function open({
  path,
  role,
  width = 1440,
  height = 900,
  font,
  theme = "light",
}: Opening): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: "reduce",
  });
  await signIn(visit.context, sample, role);
  if (font) await useFont(visit.context, font);
  await visit.page.goto(path);
  await visit.page.locator("#island[data-mounted]").waitFor({ state: "attached" });
  return visit;
}

/** Chosen ones whose ground, border and mark all lie under 3 : 1 against a neighbour that is not chosen. */
function faintStates(least: number): { seen: number; faint: string[] } {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  /** What stands at the end when colours are laid over one another, the lowest first. */
  const laid = (colours: readonly string[]): number[] => {
    if (!pen) return [0, 0, 0];
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) {
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb: readonly number[]) => {
    const [r = 0, g = 0, b = 0] = rgb.map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one: readonly number[], other: readonly number[]) => {
    const [light = 0, dark = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const grounds = (element: Element | null): string[] => {
    const found: string[] = [];
    for (let at = element; at; at = at.parentElement) found.unshift(getComputedStyle(at).backgroundColor);
    return found;
  };
  const around = (element: Element) => grounds(element.parentElement);
  const borderOf = (element: Element) => {
    const { borderTopColor, borderTopWidth } = getComputedStyle(element);
    return Number.parseFloat(borderTopWidth) > 0 ? laid([...around(element), borderTopColor]) : undefined;
  };
  const isShown = (element: Element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const chosen = [
    ...document.querySelectorAll(
      ":is(.btn, .badge):is([aria-pressed=true], [aria-selected=true]), input.btn:checked, :is(.checkbox, .radio, .toggle):checked",
    ),
  ].filter(isShown);
  const faint = chosen.filter((element) => {
    // The border of a neighbour, or the ground that both lie on.
    const ground = laid(grounds(element));
    const border = borderOf(element);
    const beside = [...(element.parentElement?.children ?? [])].find(
      (each) => each !== element && each.className === element.className && isShown(each),
    );
    const plain = beside ? laid(grounds(beside)) : laid(around(element));
    const plainBorder = beside ? borderOf(beside) : undefined;
    const byGround = contrast(ground, plain);
    // A border tells only where the neighbours' is another one.
    const byBorder =
      border && (!plainBorder || contrast(border, plainBorder) > 1.2) ? contrast(border, plain) : 1;
    return Math.max(byGround, byBorder) < least;
  });
  const nameOf = (element: Element) =>
    `${element.tagName} ${element.getAttribute("aria-label") ?? element.textContent ?? ""}`.slice(0, 60);
  return { seen: chosen.length, faint: faint.map(nameOf) };
}

const CHOSEN: readonly { name: string; path: string; role: SampleRole; ready: string }[] = [
  { name: "figures of the dashboard", path: "/detail", role: "admin", ready: ".join [aria-pressed=true]" },
  { name: "views of drawings", path: "/midjourney", role: "user", ready: ".join [aria-pressed=true]" },
  {
    name: "tabs and switches of the channel editor",
    path: "/channel?new=1",
    role: "admin",
    ready: "dialog .toggle:checked",
  },
  {
    name: "ways to change a balance",
    path: "/user?quota=3",
    role: "root",
    ready: "dialog input.btn:checked",
  },
  {
    name: "an amount of a code",
    path: "/redemption?new=1",
    role: "admin",
    ready: "dialog .btn[aria-pressed]",
  },
  { name: "kinds of notice", path: "/personal", role: "user", ready: "input.btn:checked" },
];

describe.each(["light", "dark"] as const)("what is chosen, %s", (theme) => {
  test.each(CHOSEN)("$name stands out from its neighbours", async ({ path, role, ready }) => {
    const { page, close } = await open({ path, role, theme });
    await page.locator(ready).first().waitFor();
    // One of the offered amounts is only chosen when somebody presses it.
    const offered = page.locator("dialog .btn[aria-pressed=false]").first();
    if (path.startsWith("/redemption")) await offered.click();
    await page.mouse.move(0, 0);
    const { seen, faint } = await page.evaluate(faintStates, LEAST_CONTRAST);
    expect(seen).toBeGreaterThan(0);
    expect(faint).toEqual([]);
    await close();
  });
});

describe("forms keep their shape", () => {
  const fonts: FontName[] = ["widest", "narrowest"];
  test.each(SEEN_AT_LEAST.flatMap((seen) => fonts.map((font) => ({ ...seen, font }))))(
    "the card of signing in is 360 px wide at $width px with the $font face, or as wide as the screen lets it",
    async (seen) => {
      const { page, close } = await open({ path: "/login", role: "guest", ...seen });
      const box = await page.locator("form").first().boundingBox();
      expect(box?.width).toBe(Math.min(360, seen.width - 32));
      expect(Math.abs((box?.x ?? 0) * 2 + (box?.width ?? 0) - seen.width)).toBeLessThan(16);
      await close();
    },
  );

  test.each(SEEN_AT_LEAST)(
    "nothing in a drawer's foot moves while it saves, at $width px with the $font face",
    async (seen) => {
      const { page, close } = await open({ path: "/token?new=1", role: "user", ...seen });
      const foot = page.locator("dialog[open] footer");
      await page.locator("dialog [name=name]").fill("laptop");
      const boxes = () =>
        foot
          .locator("button:visible")
          .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().toJSON()));
      const before = await boxes();
      let release = () => undefined as void;
      const held = new Promise<void>((resolve) => (release = resolve));
      await page.route(/\/api\/token/, async (route) => {
        await held;
        await route.abort();
      });
      await foot.locator("[type=submit]").click();
      await foot.locator("[aria-busy=true]").waitFor();
      expect(await boxes()).toEqual(before);
      release();
      await close();
    },
  );
});

/** The model and the time that the open detail names. */
const shownIn = (page: Page) => page.locator("dialog[open] .facts-dense").innerText();

describe.each(SEEN_AT_LEAST.filter(({ width }) => width >= 1024))(
  "a log row's detail at $width px",
  (seen) => {
    test("stands beside the list, which goes on to work; keys walk the rows from wherever one opened them", async () => {
      const { page, problems, close } = await open({ path: "/log", role: "admin", ...seen });
      const rows = page.locator("tbody tr:has(a)");
      await rows.nth(1).locator("a").first().click();
      const detail = page.locator("dialog[open]");
      await detail.waitFor();
      expect(await detail.evaluate((element) => element.matches(":modal"))).toBe(false);
      const second = await shownIn(page);
      await page.keyboard.press("j");
      await page.waitForFunction(
        (old) => document.querySelector<HTMLElement>("dialog .facts-dense")?.innerText !== old,
        second,
      );
      const third = await shownIn(page);
      await page.keyboard.press("k");
      await page.waitForFunction(
        (old) => document.querySelector<HTMLElement>("dialog .facts-dense")?.innerText !== old,
        third,
      );
      expect(await shownIn(page)).toBe(second);

      // Another row by the mouse, though the detail is open; the keys go on from that one.
      await rows.nth(2).locator("a").first().click();
      await page.waitForFunction(
        (old) => document.querySelector<HTMLElement>("dialog .facts-dense")?.innerText === old,
        third,
      );
      await page.keyboard.press("k");
      await page.waitForFunction(
        (old) => document.querySelector<HTMLElement>("dialog .facts-dense")?.innerText === old,
        second,
      );

      // The page's own search as well; Escape closes the detail from wherever the focus is.
      await page.getByRole("searchbox").first().focus();
      await page.keyboard.press("Escape");
      await detail.waitFor({ state: "detached" });
      expect(problems).toEqual([]);
      await close();
    });
  },
);
