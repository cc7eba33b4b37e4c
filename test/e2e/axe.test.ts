// Every page of the page table as people meet it: it arrives with its rows, nothing moves, nothing is asked for, and
// axe finds nothing; then in the other theme, then in the other language. Also its dialogs, 320 px and reduced motion.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright";
import {
  addressOf,
  badArrivals,
  isAllowed,
  visitorsOf,
  watchArrival,
  watchedPages,
} from "../../scripts/budgets.ts";
import type { Visitor } from "../../scripts/budgets.ts";
import { startTestApp } from "../support/app.ts";
import { NARROW_LOOK, violationsOf, WIDE_LOOK } from "../support/axe.ts";
import type { Look } from "../support/axe.ts";
import { PAGE_IS_UP, launchBrowser, openVisit, pageRests } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { openPayments, signIn, standInForPictures, startSample } from "../support/sample.ts";
import type { Sample, SampleRole } from "../support/sample.ts";

const DESKTOP = { width: 1440, height: 900 };
/** A 1280 px window at 400 %, or the narrowest phone: the width that WCAG's reflow names. */
const NARROWEST = { width: 320, height: 640 };

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

async function switchTheme(visit: Visit, to: "light" | "dark"): Promise<void> {
  await visit.page.evaluate((mode) => {
    document.querySelector<HTMLElement>(`[data-set-theme="${mode}"]`)?.click();
  }, to);
  await visit.page.waitForSelector(`html[data-theme="${to === "dark" ? "ink" : "paper"}"]`);
  // Even a transition of no length takes a frame.
  await visit.page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

async function switchLanguage(visit: Visit, to: "zh" | "en"): Promise<void> {
  await visit.page.evaluate((code) => {
    document.querySelector<HTMLElement>(`[data-set-language="${code}"]`)?.click();
  }, to);
  await visit.page.waitForSelector(`html[lang^="${to}"]`);
}

async function sidewaysOf(visit: Visit): Promise<number> {
  return await visit.page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
}

/** What scrolls sideways at the narrowest width, which the page is brought to and left at, as it is and in wide letters. */
async function narrowestOf(visit: Visit): Promise<string[]> {
  await visit.page.setViewportSize(NARROWEST);
  const asItIs = await sidewaysOf(visit);
  await visit.page.evaluate(wideLetters);
  const inWideLetters = await sidewaysOf(visit);
  return [
    ...(asItIs > 0 ? [`at ${NARROWEST.width} px the page scrolls sideways by ${asItIs}`] : []),
    ...(inWideLetters > 0 ? [`and in wide letters by ${inWideLetters}`] : []),
  ];
}

async function open(
  path: string,
  role: SampleRole,
  viewport = DESKTOP,
  language: "zh" | "en" = "en",
): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    viewport,
    locale: language === "zh" ? "zh-CN" : "en-US",
    reducedMotion: "reduce",
  });
  await signIn(visit.context, sample, role);
  await standInForPictures(visit.context);
  await visit.page.goto(path);
  if ((await visit.page.locator("#island").count()) > 0)
    await visit.page.waitForSelector(PAGE_IS_UP, { state: "attached" });
  return visit;
}

/**
 * Usually each page is looked at wide in one language and theme, narrow in the others; a layer is opened at one of the widths,
 * in its language, and brought to the other, in the other theme. With WEIR_LONG each page in both themes and languages at each
 * width, each layer in both themes at each width, on a page of its own.
 */
const IS_LONG = Bun.env["WEIR_LONG"] === "1";

/** Root has seen each page wide; what others see narrow is looked at in nothing else. */
function lookOf({ role, width }: Visitor): Look {
  if (width >= 640) return WIDE_LOOK;
  return role === "root" ? NARROW_LOOK : {};
}

describe("every page", () => {
  for (const page of watchedPages) {
    test(`${page.path} comes up still, and axe finds nothing in either theme or language`, async () => {
      for (const visitor of visitorsOf(page)) {
        const found: string[] = [];
        const arrival = await watchArrival(browser, sample, page, visitor, async (visit) => {
          found.push(...(await violationsOf(visit.page, lookOf(visitor))));
          await switchTheme(visit, visitor.theme === "light" ? "dark" : "light");
          if (IS_LONG) found.push(...(await violationsOf(visit.page, { only: ["color-contrast"] })));
          await switchLanguage(visit, visitor.language === "zh" ? "en" : "zh");
          if (IS_LONG) found.push(...(await violationsOf(visit.page, { without: ["color-contrast"] })));
          if ((await sidewaysOf(visit)) > 0) found.push("the page scrolls sideways");
          found.push(...(await narrowestOf(visit)));
        });
        expect({ ...visitor, found }).toEqual({ ...visitor, found: [] });
        expect(badArrivals([arrival])).toEqual([]);
      }
    });
  }

  test("the setup of a fresh product as well", async () => {
    const bare = await startTestApp();
    const visit = await openVisit(browser, {
      baseURL: bare.url,
      viewport: NARROWEST,
      reducedMotion: "reduce",
    });
    await visit.page.goto("/");
    await visit.page.waitForSelector(PAGE_IS_UP, { state: "attached" });
    expect(new URL(visit.page.url()).pathname).toBe("/setup");
    expect(await violationsOf(visit.page)).toEqual([]);
    expect(await sidewaysOf(visit)).toBe(0);
    await switchTheme(visit, "dark");
    await switchLanguage(visit, "zh");
    expect(await violationsOf(visit.page)).toEqual([]);
    expect(visit.problems).toEqual([]);
    await visit.close();
    await bare.close();
  });
});

describe("where payments are open", () => {
  const paths: readonly [path: string, role: SampleRole][] = [
    ["/topup", "user"],
    ["/topup?order=1", "user"],
    ["/order?order=1", "root"],
    ["/setting?tab=payment", "root"],
  ];
  beforeAll(() => openPayments(sample));
  afterAll(() => sample.app.deps.options.set("SelfUseModeEnabled", "true"));

  test.each(paths)(
    "%s of a %s is sound, wide and narrow, in both themes and languages",
    async (path, role) => {
      for (const widths of IS_LONG ? ([["wide"], ["narrow"]] as const) : ([["wide", "narrow"]] as const)) {
        const visit = await open(path, role, widths[0] === "wide" ? DESKTOP : NARROWEST);
        await pageRests(visit.page);
        for (const width of widths) {
          await visit.page.setViewportSize(width === "wide" ? DESKTOP : NARROWEST);
          const isSecond = width === "narrow";
          await switchLanguage(visit, isSecond ? "zh" : "en");
          await switchTheme(visit, isSecond ? "dark" : "light");
          const found = await violationsOf(visit.page, isSecond ? NARROW_LOOK : WIDE_LOOK);
          if (IS_LONG) {
            await switchTheme(visit, isSecond ? "light" : "dark");
            found.push(...(await violationsOf(visit.page, { only: ["color-contrast"] })));
          }
          if ((await sidewaysOf(visit)) > 0) found.push("the page scrolls sideways");
          if (path === "/topup") await visit.page.getByTestId("payable").waitFor();
          const { problems } = visit;
          expect({ width, found, problems }).toEqual({ width, found: [], problems: [] });
        }
        await visit.close();
      }
    },
  );
});

/** What opens over a page: how, and what then has to be there. */
const LAYERS: readonly {
  name: string;
  path: string;
  role: SampleRole;
  keys?: string;
  button?: string;
  /** Its folded sections are looked at, too. */
  isUnfolded?: boolean;
  /** What is pressed one after another. */
  presses?: readonly string[];
  /** One width does for what has no layout of its own. */
  only?: "wide" | "narrow";
}[] = [
  { name: "the palette", path: "/topup", role: "user", keys: "Control+k" },
  { name: "the sheet of shortcuts", path: "/log", role: "user", keys: "?" },
  { name: "a new channel", path: "/channel?new=1", role: "admin" },
  { name: "a channel's editor", path: "/channel", role: "admin", button: "edit" },
  { name: "a new key", path: "/token?new=1", role: "user", isUnfolded: true },
  { name: "a new redemption code", path: "/redemption?new=1", role: "admin" },
  { name: "a user's editor", path: "/user", role: "root", button: "edit", isUnfolded: true },
  { name: "a log row's detail", path: "/log", role: "admin", button: "row" },
  { name: "a drawing's detail", path: "/midjourney", role: "user", button: "row" },
  { name: "a task's detail", path: "/task?range=7d", role: "admin", button: "row" },
  {
    name: "what is done to many users",
    path: "/user",
    role: "root",
    presses: ["tr[data-index] input[type=checkbox]", ".bulk-bar .btn-default"],
    only: "narrow",
  },
  { name: "a file of users", path: "/user?import=1", role: "root", only: "narrow" },
  { name: "runs over many users", path: "/user?run=all", role: "root", only: "wide" },
  {
    name: "one's own email address",
    path: "/personal",
    role: "user",
    presses: ["#bindings li:first-child button"],
    only: "narrow",
  },
  {
    name: "a sign-in provider",
    path: "/setting?tab=system",
    role: "root",
    presses: [":has(> #providers-name) > button"],
    only: "wide",
  },
];

const LAYER_LOOKS = {
  wide: { viewport: DESKTOP, language: "zh", theme: "dark", look: WIDE_LOOK },
  narrow: { viewport: { width: 360, height: 740 }, language: "en", theme: "light", look: NARROW_LOOK },
} as const;

/** In the language of that width; not every layer outlasts a change of it. */
async function openLayer(layer: (typeof LAYERS)[number], width: keyof typeof LAYER_LOOKS): Promise<Visit> {
  const { viewport, language } = LAYER_LOOKS[width];
  const visit = await open(layer.path, layer.role, viewport, language);
  const { page } = visit;
  if (layer.keys) await page.keyboard.press(layer.keys);
  if (layer.button) await page.locator("tr[data-index] .row-link").first().click();
  for (const each of layer.presses ?? []) await page.locator(each).first().click();
  const dialog = page.locator("dialog[open]");
  await dialog.waitFor();
  if (layer.isUnfolded)
    await dialog.evaluate((box) => {
      for (const part of box.querySelectorAll("details")) part.open = true;
    });
  return visit;
}

async function expectSound(
  visit: Visit,
  layer: (typeof LAYERS)[number],
  width: keyof typeof LAYER_LOOKS,
): Promise<void> {
  const { viewport, theme, look: halfLook } = LAYER_LOOKS[width];
  // What is opened at one width has no other look for the rest of the rules.
  const look: Look = layer.only ? {} : halfLook;
  const { page } = visit;
  await page.setViewportSize(viewport);
  await switchTheme(visit, theme);
  const within = "dialog[open]";
  const found = await violationsOf(page, { within, ...look });
  if (IS_LONG) {
    await switchTheme(visit, theme === "dark" ? "light" : "dark");
    found.push(...(await violationsOf(page, { within, only: ["color-contrast"] })));
  }
  expect({ width, found }).toEqual({ width, found: [] });
  expect(await sidewaysOf(visit)).toBe(0);
  const isInside = await page.evaluate(() => document.activeElement?.closest("dialog") !== null);
  expect(isInside).toBe(true);
  await page.evaluate(wideLetters);
  const pushed = await page
    .locator(within)
    .evaluate(
      (box) =>
        [box, ...box.querySelectorAll(".modal-box, .drawer-body")].filter(
          (each) => each.scrollWidth > each.clientWidth,
        ).length,
    );
  expect({ width, pushed }).toEqual({ width, pushed: 0 });
  await page.evaluate(() => {
    document.adoptedStyleSheets = [];
  });
}

describe("layers over a page", () => {
  for (const [at, layer] of LAYERS.entries()) {
    test(`${layer.name}: axe finds nothing wide or narrow, and Escape gives the focus back`, async () => {
      const both = at % 2 === 0 ? (["wide", "narrow"] as const) : (["narrow", "wide"] as const);
      const widths = layer.only ? [layer.only] : both;
      for (const looks of IS_LONG ? widths.map((width) => [width]) : [widths]) {
        const visit = await openLayer(layer, looks[0] ?? "wide");
        for (const width of looks) await expectSound(visit, layer, width);
        await visit.page.keyboard.press("Escape");
        await visit.page.locator("dialog[open]").waitFor({ state: "detached" });
        expect(await visit.page.evaluate(() => document.activeElement?.closest("dialog") ?? null)).toBeNull();
        expect(visit.problems).toEqual([]);
        await visit.close();
      }
    });
  }
});

/** No machine's fonts are known: letters wider than most proportional ones must push neither page nor dialog. */
function wideLetters(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { font-family: monospace !important; letter-spacing: 0.02em !important }");
  document.adoptedStyleSheets = [sheet];
}

describe("reflow, motion, language", () => {
  // Usually each page is brought to this width after it was looked at: every page above.
  for (const role of IS_LONG ? (["root", "guest"] as const) : []) {
    test(`at 320 px, which is 400 % zoom, every page of a ${role} fits, whatever the font`, async () => {
      const visit = await open("/about", role, NARROWEST);
      for (const page of watchedPages) {
        if (!isAllowed(page, role)) continue;
        const path = addressOf(page);
        await visit.page.goto(path);
        if ((await visit.page.locator("#island").count()) > 0)
          await visit.page.waitForSelector(PAGE_IS_UP, { state: "attached" });
        expect([path, await sidewaysOf(visit)]).toEqual([path, 0]);
        await visit.page.evaluate(wideLetters);
        expect([path, "wide letters", await sidewaysOf(visit)]).toEqual([path, "wide letters", 0]);
      }
      expect(visit.problems).toEqual([]);
      await visit.close();
    });
  }

  test("at 200 % zoom of a common laptop nothing is cut off and dialogs stay usable", async () => {
    // 1366 × 768 at 200 %.
    const visit = await open("/token?new=1", "user", { width: 683, height: 384 });
    const { page } = visit;
    await page.locator("dialog[open]").waitFor();
    expect(await sidewaysOf(visit)).toBe(0);
    const save = page.locator("dialog[open] button[type=submit]");
    await save.scrollIntoViewIfNeeded();
    const box = await save.boundingBox();
    expect(box !== null && box.y >= 0 && box.y + box.height <= 384 && box.x + box.width <= 683).toBe(true);
    await visit.close();
  });

  test("reduced motion: nothing is animated, neither on the page nor as a drawer opens", async () => {
    const visit = await open("/token", "user");
    const { page } = visit;
    const longest = () =>
      page.evaluate(() =>
        Math.max(
          0,
          ...[...document.querySelectorAll("*")].flatMap((element) => {
            const style = getComputedStyle(element);
            const longestOf = (list: string) =>
              Math.max(...list.split(",").map((each) => Number.parseFloat(each)));
            return [
              longestOf(style.transitionDuration),
              style.animationName === "none" ? 0 : longestOf(style.animationDuration),
            ];
          }),
        ),
      );
    expect(await longest()).toBeLessThan(0.011);
    await page.keyboard.press("c");
    await page.locator("dialog[open]").waitFor();
    expect(await longest()).toBeLessThan(0.011);
    await visit.close();
  });

  test("switching the language keeps what was typed into an open drawer", async () => {
    const visit = await open("/token?new=1", "user");
    const { page } = visit;
    const name = page.locator("dialog[open] input").first();
    await name.fill("half a name 半个");
    const before = await page.locator("dialog[open] h2").first().textContent();
    await switchLanguage(visit, "zh");
    await page.waitForFunction(
      (old) => document.querySelector("dialog[open] h2")?.textContent !== old,
      before,
    );
    expect(await name.inputValue()).toBe("half a name 半个");
    expect(await page.locator("dialog[open]").count()).toBe(1);
    expect(visit.problems).toEqual([]);
    await visit.close();
  });

  test.each([
    ["/midjourney", "user", "/api/mj/self"],
    ["/task?range=7d", "admin", "/api/task/"],
  ] as const)(
    "and on %s the page's rows and the open one, which are asked for anew",
    async (path, role, call) => {
      const visit = await open(path, role);
      const { page } = visit;
      const rows = page.locator("tr[data-index] .row-link");
      // What opens a row is its id, the same in every language.
      const before = await rows.allTextContents();
      expect(before.length).toBe(10);
      await rows.first().click();
      await page.locator("dialog[open]").waitFor();
      const answered = page.waitForResponse((answer) => new URL(answer.url()).pathname === call);
      await switchLanguage(visit, "zh");
      await answered;
      await pageRests(page);
      expect(await page.locator("dialog[open]").count()).toBe(1);
      expect(await rows.allTextContents()).toEqual(before);
      expect(visit.problems).toEqual([]);
      await visit.close();
    },
  );
});
