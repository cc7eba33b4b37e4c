// Buying nothing yet: a visitor reads the prices of 20,000 models, searches, compares, opens one and reckons, with scripts and
// without; with them nothing but the named parts is loaded, by mouse, keyboard and Back.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit, pageRests } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { PLAIN_WORDS, signIn, startSample } from "../support/sample.ts";
import type { Sample, SampleRole } from "../support/sample.ts";

const NAMED = PLAIN_WORDS.models;

let sample: Sample;
let browser: Browser;

beforeAll(async () => {
  [sample, browser] = await Promise.all([
    startSample({
      ...PLAIN_WORDS,
      models: 20_000,
      model: (index) => (index < NAMED ? PLAIN_WORDS.model(index) : `maker-${index % 40}/model-${index}`),
    }),
    launchBrowser(),
  ]);
  await sample.app.deps.options.set("SelfUseModeEnabled", "false");
}, 60_000);
afterAll(async () => {
  await browser.close();
  await sample.app.close();
});

interface Look {
  width?: number;
  role?: SampleRole;
  hasScripts?: boolean;
  locale?: string;
}

async function open({
  width = 1280,
  role = "guest",
  hasScripts = true,
  locale = "en-US",
}: Look): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: sample.app.url,
    viewport: { width, height: 800 },
    javaScriptEnabled: hasScripts,
    reducedMotion: "reduce",
    locale,
  });
  await signIn(visit.context, sample, role);
  return visit;
}

const firstRow = (page: Page) => page.locator("tbody tr").first();
/** Scripts are there: the button that only they can serve stands ready. */
const isAlive = pageRests;
/** True for as long as the document has not been left. */
async function marked(page: Page): Promise<() => Promise<boolean>> {
  await page.evaluate(() => Object.assign(window, { isSame: true }));
  return () => page.evaluate(() => "isSame" in window);
}

describe.each([true, false])("with scripts: %p", (hasScripts) => {
  // Scripts that may not run are not loaded: the browser counts that among its troubles.
  const troubles = (problems: readonly string[]) =>
    problems.filter((problem) => hasScripts || !problem.endsWith(".js csp"));

  test.each([1280, 360])("at %d px a search leads to a model and to what a call costs", async (width) => {
    const { page, problems, close } = await open({ hasScripts, width });
    await page.goto("/pricing");
    expect(await page.locator("tbody tr").count()).toBe(10);
    await page.getByText("You are not signed in").waitFor();
    await page.getByLabel("Search models").fill("MODEL-1999");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.waitForURL(/keyword=MODEL-1999/);
    await page.getByText("11 models", { exact: true }).waitFor();
    await page.goto("/pricing?group=vip");
    await page.getByText("the vip group (ratio 1.5)").waitFor();
    await page.getByRole("link", { name: "gpt-4o", exact: true }).click();
    await page.getByRole("heading", { name: "gpt-4o", level: 1 }).waitFor();
    await page.getByLabel("Input tokens").fill("1M");
    await page.getByLabel("Output tokens").fill("200k");
    await page.getByLabel("Cached of these").fill("0");
    await page.getByRole("button", { name: "Calculate" }).click();
    await page.getByText("Total $6.75").waitFor();
    await page.getByText("1.5 × 1.25 × (1,000,000 + 200,000 × 4) ÷ 500,000 = $6.75").waitFor();
    const sideways = () =>
      page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (hasScripts) expect(await sideways()).toBe(0);
    await page.getByRole("link", { name: "All models" }).click();
    await page.getByRole("heading", { name: "Model prices", level: 1 }).waitFor();
    await page.getByText("the vip group (ratio 1.5)").waitFor();
    expect(troubles(problems)).toEqual([]);
    await close();
  });

  test("pages, facets and the unit are links and fields that work", async () => {
    const { page, problems, close } = await open({ hasScripts });
    await page.goto("/pricing");
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Next" }).click();
    await page.waitForURL(/p=2/);
    await page.getByText("11–20 of 20,000").waitFor();
    await page.getByRole("navigation", { name: "Per page" }).getByRole("link", { name: "50" }).click();
    await page.getByText("1–50 of 20,000").waitFor();
    await page.getByLabel("Vendor").selectOption({ label: "OpenAI (3)" });
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("3 models", { exact: true }).waitFor();
    expect(await page.locator("tbody tr").count()).toBe(3);
    await page.getByRole("link", { name: "Ratios" }).click();
    await page.getByRole("columnheader", { name: "Model ratio" }).waitFor();
    expect(await firstRow(page).innerText()).toContain("1.25×");
    await page.getByRole("link", { name: "Reset" }).click();
    await page.getByText("20,000 models", { exact: true }).waitFor();
    expect(troubles(problems)).toEqual([]);
    await close();
  });
});

test("without scripts nothing stands there that only they could serve", async () => {
  const { page, close } = await open({ hasScripts: false });
  await page.goto("/pricing");
  await firstRow(page).waitFor();
  for (const useless of [
    page.getByRole("checkbox", { name: /^Select/ }),
    page.getByRole("button", { name: /Copy/ }),
  ])
    expect(await useless.count()).toBe(0);
  await close();
});

test("with scripts a search runs while one types, in the same document, and Back undoes it with the form", async () => {
  const { page, problems, close } = await open({});
  await page.goto("/pricing");
  await isAlive(page);
  const isSame = await marked(page);
  const field = page.getByLabel("Search models");
  await field.pressSequentially("model-1999");
  await page.getByText("11 models", { exact: true }).waitFor();
  expect(await field.evaluate((each) => each === document.activeElement)).toBe(true);
  await page.getByRole("combobox", { name: "Group" }).selectOption("svip");
  await page.getByText("the svip group (ratio 2)").waitFor();
  expect(page.url()).toContain("keyword=model-1999");
  expect(page.url()).toContain("group=svip");
  await page.goBack();
  await page.getByText("the default group (ratio 1)").waitFor();
  expect(await field.inputValue()).toBe("model-1999");
  await page.goBack();
  await page.getByText("20,000 models", { exact: true }).waitFor();
  expect(await field.inputValue()).toBe("");
  expect(await isSame()).toBe(true);
  expect(problems).toEqual([]);
  await close();
});

test("by keyboard the focus stays where the next page begins, and a group's link chooses it in the form too", async () => {
  const { page, problems, close } = await open({});
  await page.goto("/pricing");
  await isAlive(page);
  const isSame = await marked(page);
  await page.getByRole("link", { name: "Next" }).press("Enter");
  await page.getByText("11–20 of 20,000").waitFor();
  await page.waitForFunction(() => document.activeElement?.getAttribute("data-part") === "pricing-results");
  await page.goto("/pricing?keyword=gpt-4o");
  await isAlive(page);
  await firstRow(page).getByRole("link", { name: /^vip/ }).press("Enter");
  await page.getByText("the vip group (ratio 1.5)").waitFor();
  expect(await page.getByRole("combobox", { name: "Group" }).inputValue()).toBe("vip");
  expect(await page.getByLabel("Search models").inputValue()).toBe("gpt-4o");
  expect(await isSame()).toBe(false);
  expect(problems).toEqual([]);
  await close();
});

test("models chosen on several pages are copied together, in either language", async () => {
  const visit = await open({ role: "user" });
  const { page, problems, close } = visit;
  await visit.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: sample.app.url });
  await page.goto("/pricing?keyword=gpt-4o");
  await isAlive(page);
  await page.getByRole("checkbox", { name: "Select gpt-4o", exact: true }).check();
  const field = page.getByLabel("Search models");
  await field.fill("claude");
  await page.getByText("1 model", { exact: true }).waitFor();
  await page.getByRole("checkbox", { name: "Select every model of this page" }).check();
  await page.evaluate(() => document.querySelector<HTMLElement>('[data-set-language="zh"]')?.click());
  await page.getByRole("button", { name: "复制所选 (2)" }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe("gpt-4o,claude-sonnet-4-20250514");
  expect(await page.getByRole("checkbox", { name: "选择 claude-sonnet-4-20250514" }).isChecked()).toBe(true);
  expect(problems).toEqual([]);
  await close();
});

test("a model's details are clean for who cannot see them, wide and narrow, in both languages", async () => {
  for (const [width, locale] of [
    [1280, "en-US"],
    [320, "zh-CN"],
  ] as const) {
    const { page, problems, close } = await open({ width, locale });
    await page.goto("/pricing?model=gpt-4o&input=1000&output=10");
    await page.getByRole("heading", { level: 1, name: "gpt-4o" }).waitFor();
    await page.locator("summary").first().click();
    expect(await violationsOf(page)).toEqual([]);
    const sideways = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect([width, sideways]).toEqual([width, 0]);
    expect(problems).toEqual([]);
    await close();
  }
});

test("the first paint has rows: no call for data, and nothing moves", async () => {
  const { page, problems, close } = await open({ role: "user" });
  const calls: string[] = [];
  page.on("request", (request) => {
    if (["fetch", "xhr"].includes(request.resourceType())) calls.push(request.url());
  });
  const answer = await page.goto("/pricing");
  expect((await answer?.text())?.split("<tr data-index").length).toBe(11);
  await isAlive(page);
  expect(calls).toEqual([]);
  expect(problems).toEqual([]);
  await close();
});
