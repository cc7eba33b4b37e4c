// The bell and the inbox in a browser: what waits is one press away on every page, and putting it off lowers the number
// there and then. By mouse and by keyboard, wide and narrow.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
}, 60_000);
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

async function open(path: string, width: number, locale: "en-US" | "zh-CN"): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    viewport: { width, height: 800 },
    locale,
    reducedMotion: "reduce",
  });
  await signIn(visit.context, sample, "admin");
  await visit.page.goto(path);
  await visit.page.waitForSelector("#island[data-mounted]", { state: "attached" });
  return visit;
}

const count = () => sample.app.deps.inbox.summary().count;

describe.each([
  [1440, "en-US"],
  [360, "zh-CN"],
] as const)("at %d px in %s", (width, locale) => {
  test("the bell shows the newest eight by keyboard, and axe finds nothing in it", async () => {
    const visit = await open("/token", width, locale);
    const { page } = visit;
    const bell = page.locator("[popovertarget=menu-inbox]");
    expect(await bell.locator(".bell-count").textContent()).toBe(String(count()));
    await bell.focus();
    await page.keyboard.press("Enter");
    const menu = page.locator("#menu-inbox");
    await menu.waitFor();
    // The items, and the way to all of them.
    expect(await menu.getByRole("link").count()).toBe(Math.min(count(), 8) + 1);
    expect(await violationsOf(page)).toEqual([]);
    const box = await menu.boundingBox();
    expect(box !== null && box.x >= 0 && box.x + box.width <= width).toBe(true);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/channel?edit=*");
    await page.locator("dialog[open]").waitFor();
    expect(visit.problems).toEqual([]);
    await visit.close();
  });

  test("an item that is put off leaves the list, and the bell follows without a reload", async () => {
    const visit = await open("/inbox", width, locale);
    const { page } = visit;
    const rows = page.locator("tr[data-index]");
    const before = count();
    expect(await rows.count()).toBe(before);
    await page.evaluate(() => Object.assign(window, { isSamePage: true }));
    await rows.last().locator(".cell-menu button").click();
    await page.getByRole("menuitem", { name: locale === "en-US" ? "Snooze for 1 day" : "推迟 1 天" }).click();
    await page.locator(".bell-count", { hasText: String(before - 1) }).waitFor();
    await rows.nth(before - 1).waitFor({ state: "detached" });
    expect(await page.evaluate(() => "isSamePage" in window)).toBe(true);
    expect(count()).toBe(before - 1);
    await page.getByRole("link", { name: locale === "en-US" ? "Snoozed" : "已推迟" }).click();
    await rows.first().waitFor();
    await rows.first().locator(".cell-menu button").click();
    await page.getByRole("menuitem", { name: locale === "en-US" ? "End the snooze" : "取消推迟" }).click();
    await page.locator(".bell-count", { hasText: String(before) }).waitFor();
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});
