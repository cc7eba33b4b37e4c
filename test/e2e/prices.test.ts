// A model without a price is told before anybody calls it: in the channel editor, when saved and tested, beside a key and on
// the dashboard; the root user sets one on the spot, and the next call is let through. Both languages; every
// width under WEIR_LONG.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { extremeFonts, SEEN_AT_LEAST, setFont } from "../support/fonts.ts";
import type { ExtremeFonts, Seen } from "../support/fonts.ts";

const WIDE: Seen = { width: 1440, height: 900, font: "widest" };

let fonts: ExtremeFonts;
let app: TestApp;
let upstream: FakeUpstream;
let browser: Browser;
let root: TestUser;
let admin: TestUser;
let ada: TestUser;
let key = "";

beforeAll(async () => {
  [app, upstream, browser] = await Promise.all([startTestApp(), startFakeUpstream(), launchBrowser()]);
  await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
  root = await app.createUser({ username: "owner", role: 100 });
  admin = await app.createUser({ username: "helper", role: 10 });
  ada = await app.createUser({ username: "ada", quota: 5_000_000 });
  ({ key } = await app.createToken(ada.id, { name: "laptop" }));
  const { page, close } = await openVisit(browser, { baseURL: app.url });
  fonts = await extremeFonts(page);
  await close();
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
  await app.close();
});

async function visitOf(user: TestUser, seen: Seen, locale = "en-US"): Promise<Visit> {
  const visit = await openVisit(browser, {
    baseURL: app.url,
    viewport: { width: seen.width, height: seen.height },
    reducedMotion: "reduce",
    locale,
    ...(seen.width === 360 ? { hasTouch: true, isMobile: true } : {}),
  });
  const [name = "", value = ""] = (user.headers.cookie ?? "").split("=");
  await visit.context.addCookies([{ name, value, url: app.url }]);
  return visit;
}

async function opened(page: Page, path: string, { font }: Seen = WIDE): Promise<void> {
  await page.goto(path);
  await page.locator("[data-mounted]").waitFor();
  await setFont(page, fonts[font]);
}

async function callOf(model: string): Promise<number> {
  const response = await fetch(`${app.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] }),
  });
  await response.text();
  return response.status;
}

const isWithin = (page: Page, selector: string) =>
  page
    .locator(selector)
    .evaluateAll((boxes) =>
      boxes.every(
        (box) => box.scrollWidth <= box.clientWidth + 1 && box.getBoundingClientRect().right <= innerWidth,
      ),
    );

describe.each(SEEN_AT_LEAST)("at $width px with the $font font", (seen) => {
  const model = `house-${seen.width}-${seen.font}`;

  test("from the refusal on the dashboard and in the editor to a price and a call that is let through", async () => {
    const id = await app.createChannel({
      name: `channel of ${model}`,
      baseUrl: upstream.url,
      models: `gpt-4o,${model}`,
    });
    expect(await callOf(model)).toBe(400);
    await app.deps.ledger.flush();

    const { page, problems, close } = await visitOf(root, seen);
    await opened(page, "/detail", seen);
    await page.getByText("1 model was refused because it has no price").waitFor();
    await page.locator("main").getByText(model).first().waitFor();

    await opened(page, `/channel?edit=${id}`, seen);
    const editor = page.getByRole("dialog").first();
    await editor.getByText(`1 model has no price, so calls to it are refused: ${model}.`).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await editor.getByRole("button", { name: "Set prices" }).click();

    const dialog = page.getByRole("dialog", { name: "Set prices" });
    const save = dialog.getByRole("button", { name: "Set prices" });
    await save.click();
    await dialog.getByText("Enter at least one price.").waitFor();
    await dialog.getByLabel("Input / 1M").fill("2.5");
    await save.click();
    await dialog.getByText("Enter both prices; 0 if it is free.").waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(await isWithin(page, "dialog[open] .modal-box")).toBe(true);
    await dialog.getByLabel("Output / 1M").fill("10");
    await save.click();
    await page.getByText("1 model has a price now").waitFor();
    await editor.getByText("calls to it are refused").waitFor({ state: "detached" });
    expect(app.deps.prices.pricing(model)).toMatchObject({ modelRatio: 1.25, completionRatio: 4 });
    // What was priced before stands as it was.
    expect(app.deps.prices.pricing("gpt-4o")).toMatchObject({ modelRatio: 1.25, completionRatio: 4 });
    expect(await callOf(model)).toBe(200);

    await opened(page, "/detail", seen);
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect(await page.getByText("refused because").count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });
});

test("an administrator who may not set prices reads whom to ask, and saving with a test says it again", async () => {
  const id = await app.createChannel({ name: "helped", baseUrl: upstream.url, models: "gpt-4o,unpriced-1" });
  const { page, problems, close } = await visitOf(admin, WIDE);
  await opened(page, `/channel?edit=${id}`);
  const editor = page.getByRole("dialog");
  await editor.getByText("Ask owner to set one: only the super administrator can.").waitFor();
  expect(await editor.getByRole("button", { name: "Set prices" }).count()).toBe(0);
  await editor.getByRole("button", { name: "Save and test" }).click();
  await page.getByText("Saved. 1 model has no price and will be refused: unpriced-1.").waitFor();
  await opened(page, `/channel?test=${id}`);
  await page
    .getByRole("row", { name: /unpriced-1/ })
    .getByText("no price")
    .waitFor();
  expect(
    await page
      .getByRole("row", { name: /gpt-4o/ })
      .getByText("no price")
      .count(),
  ).toBe(0);
  expect(problems).toEqual([]);
  await close();
});

test("beside a key, in the reader's language: the model that is refused is told before its code is copied", async () => {
  await app.createChannel({ name: "last", baseUrl: upstream.url, models: "gpt-4o,unpriced-2" });
  const { page, problems, close } = await visitOf(ada, WIDE, "zh-CN");
  await opened(page, "/token");
  await page.getByRole("button", { name: "laptop 的操作" }).click();
  await page.getByRole("menuitem", { name: "使用方法" }).click();
  await page.getByLabel("模型").selectOption("unpriced-2");
  await page.getByText("1 个模型未设置价格，调用会被拒绝：unpriced-2。 请联系管理员设置价格。").waitFor();
  await page.getByLabel("模型").selectOption("gpt-4o");
  expect(await page.getByText("请联系管理员设置价格。").count()).toBe(0);
  expect(problems).toEqual([]);
  await close();
});

test("in the playground: the chosen model says it before a message is sent, and is quiet for one that has a price", async () => {
  await app.createChannel({ name: "played", baseUrl: upstream.url, models: "gpt-4o-mini,unpriced-3" });
  const { page, problems, close } = await visitOf(ada, WIDE);
  await opened(page, "/playground");
  const picker = page.getByRole("combobox", { name: "Model" });
  const told = page.getByText("1 model has no price, so calls to it are refused: unpriced-3.");
  await picker.fill("unpriced-3");
  await picker.press("Enter");
  await told.waitFor();
  await picker.fill("gpt-4o-mini");
  await picker.press("Enter");
  await told.waitFor({ state: "detached" });
  expect(problems).toEqual([]);
  await close();
});
