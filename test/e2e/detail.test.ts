// The dashboard in a real browser: traffic through the gateway shows up exactly, in both languages, on a phone, by keys.
// Refuses prepared rows: what is expected is what the fake provider reported and the price list says.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import type { Browser, Page } from "playwright";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit, VisitOptions } from "../support/browser.ts";
import { answer, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";

let app: TestApp;
let upstream: FakeUpstream;
let browser: Browser;
let root: TestUser;
let ada: TestUser;

/** 2 calls of gpt-4o (1,000 + 200 tokens, 2,250 units each), 1 of gpt-4o-mini (2,000 + 500: 150 + 150), 1 that fails. */
const DOLLARS = "$0.0096";
const TOKENS = "4,900";

beforeAll(async () => {
  [app, upstream, browser] = await Promise.all([startTestApp(), startFakeUpstream(), launchBrowser()]);
  await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
  root = await app.createUser({ username: "root", role: 100 });
  ada = await app.createUser({ username: "ada", quota: 5_000_000 });
  await app.createChannel({
    name: "fake",
    base_url: upstream.url,
    baseUrl: upstream.url,
    models: "gpt-4o,gpt-4o-mini",
  });
  const { key } = await app.createToken(ada.id, { name: "laptop" });
  const client = new OpenAI({ apiKey: key, baseURL: `${app.url}/v1`, maxRetries: 0 });
  for (const [model, prompt, output] of [
    ["gpt-4o", 1000, 200],
    ["gpt-4o", 1000, 200],
    ["gpt-4o-mini", 2000, 500],
  ] as const) {
    const usage = { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output };
    upstream.script(answer("Hi", { usage }));
    await client.chat.completions.create({ model, messages: [{ role: "user", content: "Hello" }] });
  }
  await app.deps.ledger.flush();
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
  await app.close();
});

async function visit(user: TestUser, options: Partial<VisitOptions> = {}): Promise<Visit> {
  const opened = await openVisit(browser, {
    baseURL: app.url,
    viewport: { width: 1280, height: 900 },
    timezoneId: "Asia/Shanghai",
    reducedMotion: "reduce",
    ...options,
  });
  const [name = "", value = ""] = (user.headers.cookie ?? "").split("=");
  await opened.context.addCookies([{ name, value, url: app.url }]);
  return opened;
}

/** Calls of the page to the server's API. */
function apiCalls(page: Page): string[] {
  const asked: string[] = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/api/")) asked.push(pathname);
  });
  return asked;
}

async function opened(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await page.locator("[data-mounted]").waitFor();
}

describe("the dashboard", () => {
  test("a user sees the calls of a moment ago to the unit, without a further request, and walks to their log by keys", async () => {
    const { page, problems, close } = await visit(ada);
    const asked = apiCalls(page);
    await opened(page, "/token");
    await page.keyboard.press("g");
    await page.keyboard.press("d");
    await page.waitForURL("**/detail");
    await page.locator("[data-mounted]").waitFor();
    const figures = await page.locator(".tile-value").allTextContents();
    expect(figures.slice(1, 4)).toEqual([DOLLARS, "3", TOKENS]);
    await page.getByText(`${DOLLARS} spent in the last 24 hours`, { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: /^gpt-4o / }).count()).toBe(1);
    expect(asked).toEqual([]);

    // Tab reaches the chart, arrows speak, Enter opens the log of the hour with exactly these calls.
    const slider = page.getByRole("slider", { name: /^Spend over time/ });
    await slider.focus();
    await page.keyboard.press("End");
    const spoken = await slider.getAttribute("aria-valuetext");
    expect(spoken).toContain(`: ${DOLLARS}, gpt-4o $0.009, gpt-4o-mini $0.0006`);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/log\?type=2&start_timestamp=\d+/);
    await page.locator("[data-mounted]").waitFor();
    expect(await page.getByRole("table", { name: "Usage log" }).getByRole("row").count()).toBe(4);
    expect(await page.locator(".figure-row").textContent()).toContain(DOLLARS);
    expect(problems).toEqual([]);
    await close();
  });

  test("the figure, the table of the same numbers, a dragged range and Back", async () => {
    const { page, problems, close } = await visit(ada);
    await opened(page, "/detail");
    await page.getByRole("button", { name: "Tokens", exact: true }).click();
    await page.waitForURL(/show=tokens/);
    const chart = page.getByRole("figure", { name: "Tokens over time" });
    await chart.getByText("Show as table").click();
    const cells = chart.getByRole("table").getByRole("row").nth(1).getByRole("cell");
    expect(await cells.allTextContents()).toEqual([TOKENS, "2,500", "2,400"]);
    const plot = chart.getByRole("slider");
    const box = await plot.boundingBox();
    if (!box) throw new Error("no plot");
    await page.mouse.move(box.x + box.width * 0.7, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 4, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/start_timestamp=\d+&end_timestamp=\d+/);
    await chart.getByText(/^4,900 tokens from/).waitFor();
    await page.goBack();
    await chart.getByText("4,900 tokens in the last 24 hours", { exact: true }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  test("an administrator sees who used it, and one user alone", async () => {
    const { page, problems, close } = await visit(root, { colorScheme: "dark" });
    await opened(page, "/detail?by=user");
    expect(await page.getByRole("button", { name: /^ada / }).textContent()).toBe(`ada${DOLLARS}100%`);
    await page.getByRole("link", { name: "Channels", exact: true }).last().click();
    await page.getByRole("button", { name: /^fake / }).waitFor();
    await page.getByRole("searchbox", { name: "Username" }).fill("root");
    await page.keyboard.press("Enter");
    await page.getByText("No requests in this period").first().waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  test("in Chinese at 360 px in the dark: complete, accessible, nothing moves or sticks out", async () => {
    const { page, problems, close } = await visit(ada, {
      locale: "zh-CN",
      colorScheme: "dark",
      viewport: { width: 360, height: 800 },
      hasTouch: true,
    });
    await page.addInitScript(() => {
      const seen = window as unknown as { shift: number };
      seen.shift = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries())
          seen.shift += (entry as PerformanceEntry & { value: number }).value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    await opened(page, "/detail");
    await page.getByText(`最近 24 小时花费 ${DOLLARS}`, { exact: true }).waitFor();
    expect(await page.evaluate(() => (window as unknown as { shift: number }).shift)).toBeLessThan(0.01);
    const plot = page.getByRole("slider", { name: /^花费随时间的变化/ });
    await plot.tap();
    await page
      .getByRole("link", { name: /的使用日志$/ })
      .first()
      .waitFor();
    await page.getByText("以表格显示").first().click();
    await page.getByRole("table").first().waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    expect(await violationsOf(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });
});
