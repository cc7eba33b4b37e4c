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
        for (const width of WIDTHS) {
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
