// A user's month in a real browser: keys made and used, the log read, a cost explained, the month exported and added up.
// The same journey three times: by mouse, by finger at 360 px in Chinese on PostgreSQL, and by keyboard alone.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import OpenAI from "openai";
import type { Browser, Page } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { answer, startFakeUpstream, stream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF, openUntil } from "../support/hands.ts";
import type { Hand, Manner } from "../support/hands.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const OWNER = { username: "owner", password: "a long password" };
const PASSWORD = "another long one";
const PER_DOLLAR = 500_000;

const TEXTS = {
  en: {
    newKey: "New API key",
    name: /^Name/,
    unlimited: "Unlimited quota",
    create: "Create",
    signIn: "Sign in",
    user: "Username or email",
    password: "Password",
    log: "Usage log",
    search: "Search models",
    more: "More actions",
    exportCsv: "Export CSV",
    cost: "How the cost came about",
    total: /^Total/,
    input: /^Input/,
    output: /^Output/,
    exported: "The log has been exported",
    next: "Next entry",
    saveView: "Save view",
    viewName: "Name of the view",
    errors: "Errors",
    all: "All",
  },
  zh: {
    newKey: "新建令牌",
    name: /^名称/,
    unlimited: "无限额度",
    create: "新建",
    signIn: "登录",
    user: "用户名或邮箱",
    password: "密码",
    log: "使用日志",
    search: "搜索模型",
    more: "更多操作",
    exportCsv: "导出 CSV",
    cost: "费用构成",
    total: /^合计/,
    input: /^输入/,
    output: /^输出/,
    exported: "日志已导出",
    next: "下一条",
    saveView: "保存视图",
    viewName: "视图名称",
    errors: "错误",
    all: "全部",
  },
} as const;

type Language = keyof typeof TEXTS;

let server: ServerProcess;
let upstream: FakeUpstream;
let browser: Browser;

interface Envelope<T> {
  success: boolean;
  message: string;
  data: T;
}

async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  const response = await fetch(server.url + path, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const envelope = (await response.json()) as Envelope<T>;
  if (!envelope.success) throw new Error(`${method} ${path}: ${envelope.message}`);
  return envelope.data;
}

async function signIn(account: { username: string; password: string }): Promise<Record<string, string>> {
  const response = await fetch(`${server.url}/api/user/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(account),
  });
  const { data } = (await response.json()) as Envelope<{ id: number }>;
  return {
    cookie: (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "",
    "new-api-user": String(data.id),
  };
}

let owner: Record<string, string> = {};

beforeAll(async () => {
  [upstream, browser] = await Promise.all([startFakeUpstream(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
});

/** A user with ten dollars, signed in through the form. */
async function start(username: string, language: Language, manner: Manner): Promise<Visit & { hand: Hand }> {
  await call("POST", "/api/user/", { username, password: PASSWORD, display_name: username }, owner);
  const { items } = await call<{ items: { id: number }[] }>(
    "GET",
    `/api/user/search?keyword=${username}`,
    undefined,
    owner,
  );
  await call("PUT", "/api/user/", { id: items[0]?.id, quota: 10 * PER_DOLLAR }, owner);
  const visit = await openVisit(browser, {
    baseURL: server.url,
    locale: LOCALE_OF[language],
    timezoneId: "Asia/Shanghai",
    acceptDownloads: true,
    ...CONTEXT_OF[manner],
  });
  const { page } = visit;
  const hand = await handOf(page, manner);
  const texts = TEXTS[language];
  await page.goto("/token");
  await page.waitForURL("**/login?**");
  await page.locator("[data-mounted]").waitFor();
  await hand.fill(page.getByLabel(texts.user), username);
  await hand.fill(page.getByLabel(texts.password, { exact: true }), PASSWORD);
  await hand.press(page.getByRole("button", { name: texts.signIn, exact: true }));
  await page.waitForURL("**/token");
  await page.locator("[data-mounted]").waitFor();
  return { ...visit, hand };
}

async function shownKey(page: Page): Promise<string> {
  const shown = page.locator("code", { hasText: /^sk-[0-9A-Za-z]{48}$/ }).first();
  await shown.waitFor();
  return (await shown.textContent()) ?? "";
}

/** Three calls: 2,250 and 450 units streamed, 1,125 plain. */
async function useKey(key: string): Promise<void> {
  const client = new OpenAI({ apiKey: key, baseURL: `${server.url}/v1`, maxRetries: 0 });
  const usage = (prompt: number, output: number) => ({
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
  });
  const messages = [{ role: "user" as const, content: "Hello" }];
  for (const [prompt, output] of [
    [1000, 200],
    [200, 40],
  ] as const) {
    upstream.script(stream(["Hello"], { usage: usage(prompt, output) }));
    const streamed = await client.chat.completions.create({ model: "gpt-4o", stream: true, messages });
    for await (const _ of streamed);
  }
  upstream.script(answer("Hi", { usage: usage(500, 100) }));
  await client.chat.completions.create({ model: "gpt-4o", messages });
}

const CHARGED = 2250 + 450 + 1125;

async function balanceOf(page: Page): Promise<number> {
  const id = await page.evaluate(
    () => (JSON.parse(localStorage.getItem("user") ?? "{}") as { id?: number }).id,
  );
  const response = await page.request.get("/api/user/self", { headers: { "New-Api-User": String(id) } });
  return ((await response.json()) as Envelope<{ quota: number }>).data.quota;
}

/** Calls, and the sums of the columns of quota units and of dollars. */
function sumsOf(csv: string): { rows: number; quota: number; dollars: number } {
  const [heads = [], ...rows] = csv
    .replace("\uFEFF", "")
    .trimEnd()
    .split("\r\n")
    // A cell in quotes may hold commas, as the texts of rows do.
    .map((line) => line.replaceAll(/"(?:[^"]|"")*"/g, "text").split(","));
  const calls = rows.filter((row) => row[heads.indexOf("type")] === "2");
  const sum = (name: string) => calls.reduce((total, row) => total + Number(row[heads.indexOf(name)]), 0);
  return { rows: calls.length, quota: sum("quota"), dollars: Number(sum("cost_usd").toFixed(9)) };
}

async function exported(page: Page, ask: () => Promise<void>): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent("download"), ask()]);
  expect(download.suggestedFilename()).toMatch(/^log-\d{4}-\d\d-\d\d\.csv$/);
  return readFileSync(await download.path(), "utf8");
}

/** The journey with pointer or finger. */
async function month(page: Page, language: Language, hand: Hand): Promise<void> {
  const texts = TEXTS[language];
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  await hand.press(button(texts.newKey).first());
  const drawer = page.getByRole("dialog", { name: texts.newKey });
  await hand.fill(drawer.getByLabel(texts.name), "laptop");
  await hand.press(drawer.getByLabel(texts.unlimited));
  await hand.press(drawer.getByRole("button", { name: texts.create, exact: true }));
  await useKey(await shownKey(page));

  const rows = page.getByRole("table", { name: texts.log }).getByRole("row", { name: /laptop/ });
  await openUntil(page, "/log", rows, 3);
  // Filtered by key and saved under a name; the address holds the filter.
  await page.goto("/log?token_name=laptop&type=2");
  await page.locator("[data-mounted]").waitFor();
  await hand.press(button(texts.saveView));
  await hand.fill(page.getByLabel(texts.viewName), "mine");
  await page.keyboard.press("Enter");
  await hand.press(page.getByRole("link", { name: texts.errors, exact: true }));
  await page.waitForURL(/type=5/);
  await rows.first().waitFor({ state: "detached" });
  await hand.press(page.getByRole("link", { name: "mine", exact: true }));
  await page.waitForURL(/type=2/);
  await rows.nth(2).waitFor();

  // The oldest call: 1000 × 1.25 + 200 × 5 = 2250 units = $0.0045.
  await hand.press(rows.nth(2).getByRole("link"));
  const detail = page.getByRole("dialog");
  const sum = detail.getByRole("region", { name: texts.cost });
  expect(await sum.getByRole("row", { name: texts.input }).first().textContent()).toContain("1,000");
  expect(await sum.getByRole("row", { name: texts.output }).first().textContent()).toContain("200");
  expect(await sum.getByRole("row", { name: texts.total }).textContent()).toContain("$0.0045");
  expect(await detail.textContent()).not.toContain("sk-upstream");
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "detached" });

  const csv = await exported(page, async () => {
    await hand.press(button(texts.more));
    await hand.press(page.getByRole("menuitem", { name: texts.exportCsv }));
  });
  await page.getByText(texts.exported).waitFor();
  expect(sumsOf(csv)).toEqual({ rows: 3, quota: CHARGED, dollars: CHARGED / PER_DOLLAR });
  expect(await balanceOf(page)).toBe(10 * PER_DOLLAR - CHARGED);
  expect(await isAsWideAsTheScreen(page)).toBe(true);
}

describe.each(DATABASE_KINDS)("a user's month on %s", (kind) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase(kind);
    server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
    await call("POST", "/api/setup", {
      ...OWNER,
      confirmPassword: OWNER.password,
      SelfUseModeEnabled: false,
      DemoSiteEnabled: false,
    });
    owner = await signIn(OWNER);
    await call(
      "POST",
      "/api/channel/",
      {
        type: 1,
        name: "fake",
        key: "sk-upstream",
        base_url: upstream.url,
        models: "gpt-4o,gpt-4o-mini",
        group: "default",
      },
      owner,
    );
  });
  afterAll(async () => {
    await server.remove();
    await database.drop();
  });

  const [manner, language, username] =
    kind === "sqlite" ? (["mouse", "en", "alice"] as const) : (["finger", "zh", "bo"] as const);
  test(`by ${manner}, in ${language}: keys, log, a cost explained, an export that adds up`, async () => {
    const { page, hand, problems, close } = await start(username, language, manner);
    await month(page, language, hand);
    expect(problems).toEqual([]);
    await close();
  });

  if (kind === "sqlite")
    test("the same by keyboard alone", async () => {
      const visit = await start("carol", "en", "keyboard");
      const { page, hand } = visit;
      const { keyboard } = page;
      const focusedName = () =>
        page.evaluate(
          () =>
            document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "",
        );
      await keyboard.press("c");
      await page.getByRole("dialog", { name: "New API key" }).waitFor();
      await keyboard.type("laptop");
      await keyboard.press("Tab");
      await keyboard.press("Space");
      await keyboard.press("Control+Enter");
      await useKey(await shownKey(page));

      await keyboard.press("g");
      await keyboard.press("l");
      await page.waitForURL("**/log");
      await page.locator("[data-mounted]").waitFor();
      await keyboard.press("/");
      await keyboard.type("gpt-4o");
      await keyboard.press("Enter");
      await page.waitForURL(/model_name=gpt-4o/);
      // Letters are shortcuts again once the field is left.
      await keyboard.press("Tab");
      await keyboard.press("j");
      await keyboard.press("j");
      await keyboard.press("j");
      await keyboard.press("Enter");
      const detail = page.getByRole("dialog");
      await detail.getByRole("region", { name: "How the cost came about" }).waitFor();
      expect(await detail.getByRole("row", { name: /^Total/ }).textContent()).toContain("$0.0045");
      await keyboard.press("k");
      await detail
        .getByRole("row", { name: /^Total/ })
        .filter({ hasText: "$0.0009" })
        .waitFor();
      await keyboard.press("Escape");
      await detail.waitFor({ state: "detached" });

      const csv = await exported(page, async () => {
        await keyboard.press("Control+k");
        await page.getByRole("combobox", { name: "Search or jump" }).waitFor();
        await keyboard.type("Export");
        await keyboard.press("Enter");
      });
      expect(sumsOf(csv)).toEqual({ rows: 3, quota: CHARGED, dollars: CHARGED / PER_DOLLAR });
      // The histogram is walked and zoomed into without a pointer.
      await hand.walkTo(page.getByRole("slider"));
      await keyboard.press("End");
      await keyboard.press("Enter");
      await page.waitForURL(/start_timestamp=/);
      expect(await focusedName()).not.toBe("");
      expect(visit.problems).toEqual([]);
      await visit.close();
    });

  test("the books are balanced after all of it", async () => {
    await server.stop();
    expect(server.audit()).toMatchObject({ code: 0 });
  });
});
