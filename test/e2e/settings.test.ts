// The settings in a real browser: found by a word on a phone and changed; by keyboard alone through the palette; every tab
// clean for assistive technology and no wider than the screen; long tables come when they are near.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { OPTION_TABS } from "../../src/core/options/groups.ts";
import { NARROW_LOOK, violationsOf, WIDE_LOOK } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit, VisitOptions } from "../support/browser.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF } from "../support/hands.ts";
import type { JourneyLanguage } from "../support/hands.ts";
import { signIn, startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([startSample(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

async function visitAsRoot(options: Partial<VisitOptions> = {}): Promise<Visit> {
  const visit = await openVisit(browser, { baseURL: sample.app.url, reducedMotion: "reduce", ...options });
  await signIn(visit.context, sample, "root");
  return visit;
}

async function open(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await page.locator("[data-mounted]").waitFor();
}

const stored = (key: OptionKey): string => sample.app.deps.options.text(key);

const WORDS = {
  en: { question: "password mail", save: "Save", saved: "2 changes saved", retries: "retries" },
  zh: { question: "youjian", save: "保存", saved: "已保存 2 项更改", retries: "失败重试" },
} as const;

describe.each<JourneyLanguage>(["en", "zh"])("on a phone in %s", (language) => {
  test("settings of two tabs are found by words, changed, and saved together", async () => {
    const visit = await visitAsRoot({ ...CONTEXT_OF.finger, locale: LOCALE_OF[language] });
    const { page } = visit;
    const hand = await handOf(page, "finger");
    const words = WORDS[language];
    const port = language === "en" ? "465" : "2525";
    await open(page, "/setting");
    await hand.fill(page.getByRole("searchbox"), "smtp");
    await hand.fill(page.locator("#SMTPPort input"), port);
    await hand.fill(page.getByRole("searchbox"), words.retries);
    await page.locator("#SMTPPort").waitFor({ state: "detached" });
    await hand.fill(page.locator("#RetryTimes input"), language === "en" ? "4" : "5");
    expect(await isAsWideAsTheScreen(page)).toBe(true);
    await hand.press(page.locator(".setting-bar").getByRole("button", { name: words.save }));
    await page.getByText(words.saved).waitFor();
    await page.locator(".setting-bar").waitFor({ state: "detached" });
    expect([stored("SMTPPort"), stored("RetryTimes")]).toEqual([port, language === "en" ? "4" : "5"]);
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});

test("by keyboard alone: the palette opens a setting at its place, Ctrl Enter saves it", async () => {
  const visit = await visitAsRoot({ ...CONTEXT_OF.keyboard });
  const { page } = visit;
  const hand = await handOf(page, "keyboard");
  await open(page, "/topup");
  await page.keyboard.press("Control+k");
  await hand.fill(page.getByRole("combobox", { name: "Search or jump" }), "shiqu");
  await page.waitForFunction(() =>
    document.querySelector('[role="option"][aria-selected="true"]')?.textContent?.startsWith("Time zone"),
  );
  await page.keyboard.press("Enter");
  await page.waitForURL("**/setting?tab=other#site.time_zone");
  await page.locator("[data-mounted]").waitFor();
  const zone = page.locator("#site\\.time_zone");
  await zone.locator("input").waitFor();
  await hand.fill(zone.locator("input"), "Asia/Tokyo");
  await page.keyboard.press("Control+Enter");
  await page.getByText("1 change saved").waitFor();
  expect(stored("site.time_zone")).toBe("Asia/Tokyo");
  expect(visit.problems).toEqual([]);
  await visit.close();
});

test("a switch acts at once and is undone; leaving with a change asks", async () => {
  const visit = await visitAsRoot();
  const { page } = visit;
  await open(page, "/setting");
  const drawings = page.getByRole("link", { name: "Drawing log" }).first();
  await drawings.waitFor();
  await page.locator("#DrawingEnabled").getByRole("switch").click();
  // The frame follows: the entry goes without a reload.
  await drawings.waitFor({ state: "detached" });
  expect(stored("DrawingEnabled")).toBe("false");
  await page.getByRole("button", { name: "Undo" }).click();
  await drawings.waitFor();
  expect(stored("DrawingEnabled")).toBe("true");

  await page.locator("#TopUpLink input").fill("https://shop.example.org/");
  await page.locator(".setting-bar").waitFor();
  let asked = "";
  page.once("dialog", (dialog) => {
    asked = dialog.type();
    void dialog.dismiss();
  });
  await page.getByRole("link", { name: "Channels" }).first().click();
  await page.locator(".setting-bar").getByRole("button", { name: "Discard" }).click();
  await page.locator(".setting-bar").waitFor({ state: "detached" });
  expect([asked, new URL(page.url()).pathname, stored("TopUpLink")]).toEqual([
    "beforeunload",
    "/setting",
    "",
  ]);
  await page.getByRole("link", { name: "Channels" }).first().click();
  await page.waitForURL("**/channel");
  expect(visit.problems).toEqual([]);
  await visit.close();
});

test("the tables of prices are fetched once they are near", async () => {
  const visit = await visitAsRoot();
  const { page } = visit;
  const asked: string[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/api/option/rows")) asked.push(request.url());
  });
  await open(page, "/setting");
  expect(asked).toEqual([]);
  await page.locator("#group-prices").scrollIntoViewIfNeeded();
  await page.locator("#group-prices").locator("textarea, input, button").first().waitFor();
  await page.locator("#group-prices .skeleton").first().waitFor({ state: "detached" });
  expect(asked.length).toBe(1);
  expect(visit.problems).toEqual([]);
  await visit.close();
});

test.each(OPTION_TABS)(
  "%s: clean for assistive technology, and as wide as the narrowest screen",
  async (tab) => {
    // Each width has its share of the rules, and all of them with WEIR_LONG.
    for (const [language, colorScheme, width, look] of [
      ["en", "light", 1440, WIDE_LOOK],
      ["zh", "dark", 320, NARROW_LOOK],
    ] as const) {
      const visit = await visitAsRoot({
        viewport: { width, height: 900 },
        locale: LOCALE_OF[language],
        colorScheme,
      });
      const { page } = visit;
      await open(page, `/setting?tab=${tab}`);
      // To the end, so that what comes late is there.
      await page.locator("section[id^=group-]").last().scrollIntoViewIfNeeded();
      if (tab === "operation")
        await page.locator("#group-prices .skeleton").first().waitFor({ state: "detached" });
      await page.waitForFunction(() => document.querySelector("#island .skeleton") === null);
      await page.locator("input:not([type=search]), select").first().focus();
      expect([tab, width, await violationsOf(page, look)]).toEqual([tab, width, []]);
      expect([tab, width, await isAsWideAsTheScreen(page)]).toEqual([tab, width, true]);
      expect(visit.problems).toEqual([]);
      await visit.close();
    }
  },
);
