// A site that shows money in a currency of its own: every screen is walked, and none of them names a dollar. What is the books', an
// export's, a log text's or the price desk's stays in dollars (money.md 7); its full-width sign is the log's.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { PAGE_IS_UP, launchBrowser, openVisit, pageRests } from "../support/browser.ts";
import { openPayments, signIn, startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";

/** Address, and what is opened over it. */
const WALK: readonly (readonly [string, string?])[] = [
  ["/detail"],
  ["/token"],
  ["/token?new=1", "dialog[open]"],
  ["/log"],
  ["/log", "tr[data-index] .row-link"],
  ["/topup"],
  ["/topup?view=payments"],
  ["/topup/statement"],
  ["/topup/receipt/1"],
  ["/personal"],
  ["/playground"],
  ["/pricing"],
  ["/pricing?input=1000000&output=200000"],
  ["/pricing?model=gpt-4o"],
  ["/user"],
  ["/user", "tr[data-index] .row-link"],
  ["/redemption"],
  ["/redemption?new=1", "dialog[open]"],
  ["/order"],
  ["/order?order=1", "dialog[open]"],
  ["/channel"],
  ["/inbox"],
];
const SYMBOL = "◎";

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
  const { options } = sample.app.deps;
  await options.set("CustomCurrencySymbol", SYMBOL);
  await options.set("CustomCurrencyExchangeRate", "100");
  await options.set("QuotaDisplayType", "CUSTOM");
  // What is paid has a currency of its own, which is not dollars here.
  await openPayments(sample);
  await options.set("StripeCurrency", "eur");
}, 120_000);
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

/** Everything that can be read or heard on the page: texts, titles, labels, what stands in fields. */
async function wordsOf(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const words: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (!node.parentElement?.closest("script, style, pre, code")) words.push(node.textContent ?? "");
    for (const element of document.querySelectorAll("[title], [aria-label], [placeholder], input"))
      words.push(
        element.getAttribute("title") ?? "",
        element.getAttribute("aria-label") ?? "",
        element.getAttribute("placeholder") ?? "",
        element instanceof HTMLInputElement ? element.value : "",
      );
    return words;
  });
}

test("no screen names a dollar", async () => {
  const visit = await openVisit(browser, { baseURL: sample.app.url, reducedMotion: "reduce" });
  await signIn(visit.context, sample, "root");
  const { page } = visit;
  const stray: string[] = [];
  let shown = 0;
  for (const [path, opened] of WALK) {
    await page.goto(path);
    if ((await page.locator("#island").count()) > 0)
      await page.waitForSelector(PAGE_IS_UP, { state: "attached" });
    if (opened !== undefined && opened !== "dialog[open]") await page.locator(opened).first().click();
    if (opened !== undefined) await page.locator("dialog[open]").first().waitFor();
    await pageRests(page);
    const words = await wordsOf(page);
    stray.push(...words.filter((each) => each.includes("$")).map((each) => `${path}: ${each.slice(0, 80)}`));
    shown += words.filter((each) => each.includes(SYMBOL)).length;
  }
  expect(stray).toEqual([]);
  // It is there where money is.
  expect(shown).toBeGreaterThan(WALK.length);
  expect(visit.problems).toEqual([]);
  await visit.close();
}, 120_000);
