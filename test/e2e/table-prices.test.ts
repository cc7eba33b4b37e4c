// A current model on a site that has no price for it: one click takes the shipped table's, in the channel editor and in the first
// steps; the next call is sold at it, to the unit, and the log says by which rule. Both databases, both languages.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import type { TestApp, TestUser } from "../support/app.ts";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { answer, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { CHANNEL_WORDS, openPage, startSite, visitOf } from "../support/journeys.ts";
import type { DatabaseKind } from "../support/postgres.ts";

const MODEL = "gpt-5.4";
const TEXTS = {
  en: {
    ...CHANNEL_WORDS.en,
    use: "Use 1 table price",
    saved: "1 model has a price now",
    undo: "Undo",
    prices: "Set prices",
    rule: "Rule: input 272,001 is over 271,999, long-context prices for the whole call",
  },
  zh: {
    ...CHANNEL_WORDS.zh,
    use: "使用价格表（1 个）",
    saved: "已为 1 个模型设置价格",
    undo: "撤销",
    prices: "设置价格",
    rule: "规则：输入 272,001 > 271,999，全部按长上下文价",
  },
} as const;

const WALKS: { database: DatabaseKind; language: keyof typeof TEXTS; width: number }[] = [
  { database: "sqlite", language: "en", width: 1440 },
  { database: "postgres", language: "zh", width: 360 },
];

let upstream: FakeUpstream;
let browser: Browser;
beforeAll(async () => {
  [upstream, browser] = await Promise.all([startFakeUpstream(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
});

describe.each(WALKS)("on $database in $language at $width px", ({ database, language, width }) => {
  const texts = TEXTS[language];
  let app: TestApp;
  let root: TestUser;
  let visit: Visit;
  let page: Page;
  let key = "";
  beforeAll(async () => {
    ({ app, root } = await startSite({ database }));
    const { options } = app.deps;
    ({ key } = await app.createToken(root.id, { name: "laptop" }));
    // An older console has saved the map without what it does not know.
    const { [MODEL]: _, ...rest } = options.get("ModelRatio") as Record<string, number>;
    await options.set("ModelRatio", JSON.stringify(rest));
    const viewport = { width, height: width === 360 ? 740 : 900 };
    visit = await visitOf(browser, app, { user: root, language, more: { viewport } });
    ({ page } = visit);
  });
  afterAll(async () => {
    await visit.close();
    await app.close();
  });

  const sold = async (input: number, output: number): Promise<number> => {
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
    upstream.always(answer("hello", { usage }));
    const response = await fetch(`${app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "Hi" }] }),
    });
    await response.text();
    return response.status;
  };
  const charges = async () => {
    await app.deps.ledger.flush();
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(logs).orderBy(logs.id);
    return rows.filter(({ type }) => type === 2);
  };

  test("the new channel's model is priced from the table with one click, and that can be taken back", async () => {
    await openPage(page, "/channel?new=1");
    const drawer = page.getByRole("dialog", { name: texts.newChannel });
    await drawer.getByLabel(texts.name).fill("fake provider");
    await drawer.getByLabel(texts.baseUrl).fill(upstream.url);
    await drawer.getByLabel(texts.key).fill("sk-upstream-secret");
    await drawer.getByLabel(texts.models).fill(MODEL);
    await drawer.getByRole("button", { name: texts.create, exact: true }).click();
    const dialog = page.getByRole("dialog", { name: texts.setPrices });
    await dialog.getByRole("button", { name: texts.use }).waitFor();
    expect(app.deps.prices.pricing(MODEL)).toBeUndefined();
    expect(await violationsOf(page)).toEqual([]);
    await dialog.getByRole("button", { name: texts.use }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByText(texts.saved).waitFor();
    expect(app.deps.prices.pricing(MODEL)).toMatchObject({ modelRatio: 1.25, completionRatio: 6 });
    const undone = page.waitForResponse((response) => response.url().endsWith("/undo"));
    await page.getByRole("button", { name: texts.undo }).click();
    expect((await undone).status()).toBe(200);
    expect(app.deps.prices.pricing(MODEL)).toBeUndefined();
  });

  test("so do the first steps, and the next calls are sold at that price, to the unit", async () => {
    await openPage(page, "/detail");
    const step = page.getByRole("listitem").filter({ hasText: texts.prices }).first();
    await step.getByRole("button", { name: texts.use }).click();
    await page.locator('li[data-done="true"]').filter({ hasText: texts.prices }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect([await sold(1000, 100), await sold(272_001, 2000)]).toEqual([200, 200]);
    // 2.50 and 15 dollars a million; above 272,000 tokens 5 and 22.50 for all of it.
    expect((await charges()).map(({ quota }) => quota)).toEqual([2000, 702_503]);
  });

  test("the log says which rule made the price, and why", async () => {
    const id = (await charges()).at(-1)?.id ?? 0;
    await openPage(page, `/log?id=${id}`);
    await page.getByRole("dialog").getByText(texts.rule).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(visit.problems).toEqual([]);
  });
});
