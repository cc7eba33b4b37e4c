// Every list at four widths, in both languages, with the widest and the narrowest font of the machine: rows are seen at once,
// money and progress without scrolling, no number is cut, no row is tall, and where more is to the right an edge says so.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { extremeFonts, setFont } from "../support/fonts.ts";
import type { ExtremeFonts } from "../support/fonts.ts";
import { CONTEXT_OF, LOCALE_OF } from "../support/hands.ts";
import type { JourneyLanguage } from "../support/hands.ts";
import { PLAIN_WORDS, signIn, standInForPictures, startSample } from "../support/sample.ts";
import type { Sample, SampleRole } from "../support/sample.ts";

/** What people look for in each list: these columns are in sight at every width of a desk. */
const LISTS: readonly { path: string; role: SampleRole; inSight: readonly string[] }[] = [
  { path: "/channel", role: "root", inSight: ["name", "status", "used_quota", "balance"] },
  { path: "/token", role: "user", inSight: ["name", "status", "quota"] },
  { path: "/user", role: "root", inSight: ["name", "status", "quota", "requests"] },
  { path: "/redemption", role: "root", inSight: ["name", "status", "quota"] },
  { path: "/log", role: "root", inSight: ["time", "model", "duration", "cost"] },
  { path: "/log", role: "user", inSight: ["time", "model", "duration", "cost"] },
  { path: "/topup", role: "user", inSight: ["time", "content", "quota"] },
  { path: "/midjourney", role: "root", inSight: ["submit", "status", "progress", "image"] },
  { path: "/midjourney", role: "user", inSight: ["submit", "progress", "image"] },
  { path: "/task?range=7d", role: "root", inSight: ["submit", "progress", "status"] },
];
const WIDTHS = [1440, 1366, 1280, 1152, 1024];
/** The narrowest in both languages, the others in turn; under WEIR_LONG each in both. */
const widthsOf = (language: JourneyLanguage): number[] =>
  WIDTHS.filter(
    (width, at) =>
      Bun.env["WEIR_LONG"] === "1" || width === WIDTHS.at(-1) || at % 2 === (language === "en" ? 0 : 1),
  );
const ICONS_BELOW = 1280;
const PHONE_ROWS = 4;
/** A name or a reason of two lines, and no more. */
const ROW_PX = 64;
/** Two lines; what broke has one more for its reason. */
const CARD_PX = 72;
const BROKEN_CARD_PX = 100;

const REASON =
  "The upstream answered 429 after 20 s: rate limit reached for organisation org-abcdefghijklmnop on tokens per min " +
  "(TPM): limit 30000, used 29874, requested 1540; please try again in 2.8 s, request req_0123456789abcdef0123456789abcdef";

let sample: Sample;
let browser: Browser;
let fonts: ExtremeFonts;

beforeAll(async () => {
  [sample, browser] = await Promise.all([
    startSample({
      ...PLAIN_WORDS,
      sentence: (index) => (index % 3 === 1 ? REASON : PLAIN_WORDS.sentence(index)),
    }),
    launchBrowser(),
  ]);
  const { orm, t } = sample.app.deps.db;
  // Sums of a busy year: $123,456.78 and more.
  await orm.update(t.channels).set({ usedQuota: 61_728_390_123, balance: 12_345.67 });
  await orm.update(t.users).set({ usedQuota: 61_728_390_123, requestCount: 1_234_567 });
  await orm.update(t.tokens).set({ remainQuota: 6_172_839_012 });
  await orm.update(t.redemptions).set({ quota: 6_172_839_012 });
  const visit = await openVisit(browser, { baseURL: sample.app.url });
  fonts = await extremeFonts(visit.page);
  await visit.close();
}, 60_000);
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

async function open(path: string, role: SampleRole, isPhone: boolean, language: JourneyLanguage) {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    locale: LOCALE_OF[language],
    reducedMotion: "reduce",
    ...CONTEXT_OF[isPhone ? "finger" : "mouse"],
  });
  await signIn(visit.context, sample, role);
  await standInForPictures(visit.context);
  await visit.page.goto(path);
  await visit.page.waitForSelector("#island[data-mounted]", { state: "attached" });
  return visit;
}

interface Seen {
  /** How far the page scrolls sideways. */
  sideways: number;
  rows: number;
  heights: number[];
  /** Heights of rows that say why something broke. */
  brokenHeights: number[];
  /** Numbers that are cut, broken into lines, or beyond the edge of what holds them. */
  cutNumbers: string[];
  /** Columns whose head is wholly in sight. */
  inSight: string[];
  isScrolling: boolean;
  hasEdge: boolean;
  sidebar: number;
}

/** Reads the list as it lies on the screen now. */
async function look(page: Page): Promise<Seen> {
  return page.evaluate(() => {
    const box = document.querySelector<HTMLElement>(".table-box");
    if (!box) throw new Error("no table");
    const dock = document.querySelector(".dock")?.getBoundingClientRect();
    const floor = dock && dock.height > 0 ? dock.top : innerHeight;
    const rows = [...box.querySelectorAll<HTMLElement>("tr[data-index]")];
    const isCards = innerWidth < 640;
    const frame = box.getBoundingClientRect();
    const menu =
      box.querySelector(".data-table thead .cell-menu")?.getBoundingClientRect().left ?? frame.right;
    const isBroken = (row: HTMLElement) => row.querySelector(".status-reason") !== null;

    const cutNumbers: string[] = [];
    const range = document.createRange();
    for (const row of rows) {
      const edge = isCards ? row.getBoundingClientRect().right - 44 : Number.POSITIVE_INFINITY;
      for (const cell of row.querySelectorAll<HTMLElement>("[data-align=end], [data-card=fact]")) {
        if (cell.getClientRects().length === 0) continue;
        for (const part of [cell, ...cell.querySelectorAll<HTMLElement>("*:not(.sr-only, .sr-only *)")]) {
          const isInline = getComputedStyle(part).display === "inline";
          if (!isInline && part.scrollWidth > part.clientWidth + 1) cutNumbers.push(`cut: ${part.outerHTML}`);
          for (const text of part.childNodes) {
            if (!(text instanceof Text) || !/\d/.test(text.data)) continue;
            range.selectNodeContents(text);
            const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
            if (lines.size > 1) cutNumbers.push(`broken: ${text.data}`);
            if (range.getBoundingClientRect().right > edge + 1) cutNumbers.push(`beyond: ${text.data}`);
          }
        }
      }
    }
    const heads = [...box.querySelectorAll<HTMLElement>("th[data-column]")];
    return {
      sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      rows: rows.filter((row) => row.getBoundingClientRect().bottom <= floor + 1).length,
      heights: rows.filter((row) => !isBroken(row)).map((row) => row.offsetHeight),
      brokenHeights: rows.filter(isBroken).map((row) => row.offsetHeight),
      cutNumbers: cutNumbers.slice(0, 5),
      inSight: heads
        .filter((head) => {
          const { left, right, width } = head.getBoundingClientRect();
          return width > 1 && left >= frame.left && right <= menu + 1;
        })
        .map((head) => head.dataset["column"] ?? ""),
      isScrolling: box.scrollWidth > box.clientWidth + 1,
      hasEdge: getComputedStyle(box.querySelector("tbody .cell-menu") ?? box, "::after").content !== "none",
      sidebar: document.querySelector<HTMLElement>(".sidebar")?.offsetWidth ?? 0,
    };
  });
}

/** The same page at a width, in each font. */
async function inEachFont(visit: Visit, check: (seen: Seen, font: string) => void): Promise<void> {
  for (const font of new Set([fonts.widest, fonts.narrowest])) {
    await setFont(visit.page, font);
    check(await look(visit.page), font);
  }
}

describe("every list", () => {
  for (const { path, role, inSight } of LISTS) {
    test(`${path} as ${role}: what counts is in sight at every width, whole, and rows stay low`, async () => {
      for (const language of ["en", "zh"] as const) {
        const visit = await open(path, role, false, language);
        for (const width of widthsOf(language)) {
          await visit.page.setViewportSize({ width, height: 900 });
          await inEachFont(visit, (seen, font) => {
            const at = { language, width, font };
            expect({ ...at, missing: inSight.filter((id) => !seen.inSight.includes(id)) }).toEqual({
              ...at,
              missing: [],
            });
            expect({ ...at, sideways: seen.sideways, cut: seen.cutNumbers }).toEqual({
              ...at,
              sideways: 0,
              cut: [],
            });
            const tallest = Math.max(...seen.heights, ...seen.brokenHeights);
            expect({ ...at, tallest, isLow: tallest <= ROW_PX }).toMatchObject({ isLow: true });
            // An edge where the table goes on, none where it ends.
            expect({ ...at, hasEdge: seen.hasEdge }).toEqual({ ...at, hasEdge: seen.isScrolling });
            const { sidebar } = seen;
            expect({ ...at, sidebar }).toEqual({ ...at, sidebar: width < ICONS_BELOW ? 56 : 232 });
          });
        }
        expect(visit.problems).toEqual([]);
        await visit.close();
      }
    });

    test(`${path} as ${role}: a phone shows at least ${PHONE_ROWS} rows at once, in two lines each`, async () => {
      for (const language of ["en", "zh"] as const) {
        const visit = await open(path, role, true, language);
        await inEachFont(visit, (seen, font) => {
          const at = { language, font };
          expect({ ...at, rows: seen.rows, isEnough: seen.rows >= PHONE_ROWS }).toMatchObject({
            isEnough: true,
          });
          expect({ ...at, sideways: seen.sideways, cut: seen.cutNumbers }).toEqual({
            ...at,
            sideways: 0,
            cut: [],
          });
          expect({ ...at, tall: seen.heights.filter((height) => height > CARD_PX) }).toEqual({
            ...at,
            tall: [],
          });
          expect(Math.max(0, ...seen.brokenHeights)).toBeLessThanOrEqual(BROKEN_CARD_PX);
        });
        expect(visit.problems).toEqual([]);
        await visit.close();
      }
    });
  }
});

/** Shows or hides a column by the menu in the head of the table; the tick is part of a name. */
async function choose(page: Page, column: string, isOn: boolean): Promise<void> {
  await page.getByRole("button", { name: "Columns" }).click();
  const item = page.getByRole("menuitemcheckbox", { name: column });
  expect(await item.getAttribute("aria-checked")).toBe(String(!isOn));
  await item.click();
  expect(await item.getAttribute("aria-checked")).toBe(String(isOn));
  await page.keyboard.press("Escape");
}

describe("a table without room for everything", () => {
  test("says which columns stand back, and shows them to whoever asks, for good", async () => {
    const visit = await open("/channel", "root", false, "en");
    const { page } = visit;
    await page.setViewportSize({ width: 1024, height: 900 });
    expect(await page.getByRole("columnheader", { name: "Weight" }).count()).toBe(0);
    await choose(page, "Weight", true);
    await page.getByRole("columnheader", { name: "Weight" }).waitFor();
    // The others stand back as before, and come by themselves where there is room.
    expect(await page.getByRole("columnheader", { name: "Groups" }).count()).toBe(0);
    await page.reload();
    await page.getByRole("columnheader", { name: "Weight" }).waitFor();
    expect(await page.getByRole("columnheader", { name: "Groups" }).count()).toBe(0);
    await page.setViewportSize({ width: 1600, height: 900 });
    await page.getByRole("columnheader", { name: "Groups" }).waitFor();
    await choose(page, "Groups", false);
    expect(await page.getByRole("columnheader", { name: "Groups" }).count()).toBe(0);
    await visit.close();
  });

  test("draws an edge on the side where more is, and keeps names and menus in sight while it scrolls", async () => {
    const visit = await open("/channel", "root", false, "en");
    const { page } = visit;
    await page.setViewportSize({ width: 700, height: 900 });
    for (const column of ["Models", "Groups", "Weight"]) await choose(page, column, true);
    const box = page.locator(".table-box");
    await page.waitForSelector(".table-box[data-more-right]:not([data-more-left])");
    /** Where the edge lies, from the left of its cell: before the menu, behind the name. */
    const edges = () =>
      box.evaluate((element) =>
        [".cell-menu", "[data-identity]"].map((selector) => {
          const cell = element.querySelector<HTMLElement>(`tbody ${selector}`);
          const { content, left } = getComputedStyle(cell ?? element, "::after");
          if (!cell || content === "none") return "none";
          return Number.parseInt(left, 10) < 0 ? "before" : "behind";
        }),
      );
    expect(await edges()).toEqual(["before", "none"]);
    await box.evaluate((element) => element.scrollTo({ left: 40 }));
    await page.waitForSelector(".table-box[data-more-right][data-more-left]");
    expect(await edges()).toEqual(["before", "behind"]);
    await box.evaluate((element) => element.scrollTo({ left: element.scrollWidth }));
    await page.waitForSelector(".table-box[data-more-left]:not([data-more-right])");
    expect(await edges()).toEqual(["none", "behind"]);
    for (const pinned of ["[data-identity]", ".cell-menu"]) {
      const inside = await box.evaluate((element, cell) => {
        const [outer, inner] = [element, element.querySelector(`tbody ${cell}`) ?? element].map((each) =>
          each.getBoundingClientRect(),
        );
        return outer && inner && inner.left >= outer.left && inner.right <= outer.right + 1;
      }, pinned);
      expect([pinned, inside]).toEqual([pinned, true]);
    }
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});

describe("on a phone", () => {
  test("filters, views and figures are a line each; what is folded says how much of it is set", async () => {
    const visit = await open("/log?group=vip", "root", true, "en");
    const { page } = visit;
    const filters = page.locator("[role=search] > button[aria-expanded]");
    const bar = page.getByRole("search");
    const low = (await bar.boundingBox())?.height ?? 0;
    expect(low).toBeGreaterThan(0);
    expect(low).toBeLessThanOrEqual(48);
    expect(await filters.textContent()).toBe("Filter1");
    expect(await page.getByRole("combobox", { name: "Time range" }).count()).toBe(0);
    await filters.tap();
    await page.getByRole("combobox", { name: "Time range" }).first().waitFor();
    await page.getByRole("button", { name: "Remove filter: Group" }).waitFor();
    expect(await filters.getAttribute("aria-expanded")).toBe("true");
    await filters.tap();
    expect(await page.getByRole("combobox", { name: "Time range" }).count()).toBe(0);
    expect((await page.locator(".figure-row").boundingBox())?.height ?? 99).toBeLessThanOrEqual(48);
    await visit.close();
  });

  test("a card's box and menu are wide enough for a thumb, its menu holds every action, and a tap opens it", async () => {
    const visit = await open("/token", "user", true, "en");
    const { page } = visit;
    const row = page.locator("tr[data-index]").first();
    for (const cell of [".cell-check", ".cell-menu"]) {
      const target = await row.locator(cell).boundingBox();
      expect([cell, (target?.width ?? 0) >= 44, (target?.height ?? 0) >= 44]).toEqual([cell, true, true]);
    }
    const selected = page.locator("tr[aria-selected=true]");
    await row.locator(".cell-check").tap({ position: { x: 4, y: 4 } });
    await selected.waitFor();
    await row.locator(".cell-check").tap({ position: { x: 4, y: 4 } });
    await selected.waitFor({ state: "detached" });
    await row.locator(".cell-menu button").tap();
    for (const action of ["Copy key", "Edit", "Disable", "Delete"])
      await page.getByRole("menuitem", { name: action, exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await row.tap({ position: { x: 150, y: 50 } });
    await page.locator("dialog[open]").waitFor();
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});
