// The main job, end to end: set up, add a channel, make a key, call a model with the official client, see its price.
// By mouse on SQLite, by finger at 360 px in Chinese on PostgreSQL, and by keyboard alone.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import type { Browser, Page } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { startFakeUpstream, stream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import {
  CONTEXT_OF,
  handOf,
  isAsWideAsTheScreen,
  LOCALE_OF,
  openUntil,
  walkedNow,
} from "../support/hands.ts";
import type { Hand, JourneyLanguage, Manner } from "../support/hands.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { DatabaseKind, TestDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const ROOT = { username: "owner", password: "a long password" };

const TEXTS = {
  en: {
    next: "Next",
    username: "Username",
    newPassword: /^Password/,
    confirmPassword: /^Confirm password/,
    differ: "Passwords do not match",
    initialise: "Finish setup",
    done: "The system has been set up",
    account: "Username or email",
    password: "Password",
    signIn: "Sign in",
    refused: "The username or password is wrong, or the user has been banned",
    newChannel: "New channel",
    name: /^Name/,
    baseUrl: "Base URL",
    key: /^Key/,
    create: "Create",
    modelsMissing: "Choose at least one model",
    models: /^Models/,
    newKey: "New API key",
    unlimited: "Unlimited quota",
    cost: "How the cost came about",
    input: /^Input/,
    output: /^Output/,
    total: /^Total/,
    message: /message/i,
  },
  zh: {
    next: "下一步",
    username: "用户名",
    newPassword: /^密码/,
    confirmPassword: /^确认密码/,
    differ: "两次输入的密码不一致",
    initialise: "初始化系统",
    done: "系统初始化成功",
    account: "用户名或邮箱",
    password: "密码",
    signIn: "登录",
    refused: "用户名或密码错误，或用户已被封禁",
    newChannel: "新建渠道",
    name: /^名称/,
    baseUrl: "API 地址",
    key: /^密钥/,
    create: "新建",
    modelsMissing: "请至少选择一个模型！",
    models: /^模型（/,
    newKey: "新建令牌",
    unlimited: "无限额度",
    cost: "费用构成",
    input: /^输入/,
    output: /^输出/,
    total: /^合计/,
    message: /消息/,
  },
} as const;

const WALKS: { database: DatabaseKind; language: JourneyLanguage; manner: Manner }[] = [
  { database: "sqlite", language: "en", manner: "mouse" },
  { database: "postgres", language: "zh", manner: "finger" },
  { database: "sqlite", language: "en", manner: "keyboard" },
];
const NOW = walkedNow(WALKS);

let upstream: FakeUpstream;
let browser: Browser;
beforeAll(async () => {
  [upstream, browser] = await Promise.all([startFakeUpstream(), launchBrowser()]);
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
});

describe.each(NOW)("by $manner on $database, in $language", ({ database: kind, language, manner }) => {
  const texts = TEXTS[language];
  let database: TestDatabase;
  let server: ServerProcess;
  let visit: Visit;
  let page: Page;
  let hand: Hand;
  let key = "";

  beforeAll(async () => {
    database = await createTestDatabase(kind);
    server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
    visit = await openVisit(browser, {
      baseURL: server.url,
      locale: LOCALE_OF[language],
      ...CONTEXT_OF[manner],
    });
    page = visit.page;
    hand = await handOf(page, manner);
  });
  afterAll(async () => {
    await visit.close();
    await server.remove();
    await database.drop();
  });

  const mounted = () => page.locator("[data-mounted]").waitFor();
  const button = (name: string) => page.getByRole("button", { name, exact: true });

  test("every address leads to the wizard until it is finished, and the wizard ends signed in", async () => {
    await page.goto("/log");
    await page.waitForURL("**/setup");
    await mounted();
    // No link that would only lead back here.
    expect(await page.locator("a:not(.skip-link, .brand)").count()).toBe(0);
    await hand.press(button(texts.next));
    await hand.fill(page.getByLabel(texts.username), ROOT.username);
    await hand.fill(page.getByLabel(texts.newPassword), ROOT.password);
    await hand.fill(page.getByLabel(texts.confirmPassword), "something else");
    await hand.press(button(texts.next));
    await page.getByText(texts.differ).waitFor();
    await hand.fill(page.getByLabel(texts.confirmPassword), ROOT.password);
    await hand.press(button(texts.next));
    await hand.press(button(texts.initialise));
    await page.getByText(texts.done).waitFor();
    await page.goto("/setup");
    expect(new URL(page.url()).pathname).not.toBe("/setup");
  });

  test("a guest is sent to sign in and comes back to the page that was asked for", async () => {
    await page.context().clearCookies();
    await page.goto("/channel");
    await page.waitForURL("**/login?**");
    await mounted();
    await hand.fill(page.getByLabel(texts.account), ROOT.username);
    await hand.fill(page.getByLabel(texts.password, { exact: true }), "not the password");
    await hand.press(button(texts.signIn));
    await page.getByText(texts.refused).first().waitFor();
    await hand.fill(page.getByLabel(texts.password, { exact: true }), ROOT.password);
    await hand.press(button(texts.signIn));
    await page.waitForURL("**/channel");
    await mounted();
  });

  test("a channel is added, and one without models is refused at its field", async () => {
    await hand.press(button(texts.newChannel).first());
    const drawer = page.getByRole("dialog", { name: texts.newChannel });
    await hand.fill(drawer.getByLabel(texts.name), "fake provider");
    await hand.fill(drawer.getByLabel(texts.baseUrl), upstream.url);
    await hand.fill(drawer.getByLabel(texts.key), "sk-upstream-secret");
    await hand.press(drawer.getByRole("button", { name: texts.create, exact: true }));
    await drawer.getByText(texts.modelsMissing).waitFor();
    await hand.fill(drawer.getByLabel(texts.models), "gpt-4o-mini, gpt-4o");
    await hand.press(drawer.getByRole("button", { name: texts.create, exact: true }));
    await page.getByRole("row", { name: /fake provider/ }).waitFor();
    expect(await page.content()).not.toContain("sk-upstream-secret");
    expect(await isAsWideAsTheScreen(page)).toBe(true);
  });

  test("a key is made and shown with ready code", async () => {
    await page.goto("/token");
    await mounted();
    await hand.press(button(texts.newKey).first());
    const drawer = page.getByRole("dialog", { name: texts.newKey });
    await hand.fill(drawer.getByLabel(texts.name), "laptop");
    await hand.press(drawer.getByLabel(texts.unlimited));
    await hand.press(drawer.getByRole("button", { name: texts.create, exact: true }));
    const shown = page.locator("code", { hasText: /^sk-[0-9A-Za-z]{48}$/ }).first();
    await shown.waitFor();
    key = (await shown.textContent()) ?? "";
    await page.getByText(`${server.url}/v1/chat/completions`).waitFor();
    await page.getByRole("row", { name: /laptop/ }).waitFor();
    expect(await isAsWideAsTheScreen(page)).toBe(true);
  });

  test("the official client streams a completion, and the log shows that call with its exact price", async () => {
    const client = new OpenAI({ apiKey: key, baseURL: `${server.url}/v1` });
    upstream.script(
      stream(["Hello", ", ", "world"], {
        usage: { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 },
      }),
    );
    const answer = await client.chat.completions.create({
      model: "gpt-4o",
      stream: true,
      messages: [{ role: "user", content: "Say hello" }],
    });
    let text = "";
    for await (const chunk of answer) text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("Hello, world");

    const row = page.getByRole("row", { name: /gpt-4o/ });
    await openUntil(page, "/log", row);
    // 1000 × 1.25 + 200 × 1.25 × 4 = 2250 units = $0.0045.
    expect(await row.textContent()).toContain("$0.0045");
    await (manner === "mouse" ? row.click() : hand.press(row.getByRole("link").first()));
    const detail = page.getByRole("dialog");
    const sum = detail.getByRole("region", { name: texts.cost });
    expect(await sum.getByRole("row", { name: texts.input }).textContent()).toContain("1,000");
    expect(await sum.getByRole("row", { name: texts.output }).textContent()).toContain("200");
    expect(await sum.getByRole("row", { name: texts.total }).textContent()).toContain("$0.0045");
  });

  test("the balance is lower by that price, the books are balanced, and all of it survives a kill", async () => {
    const self = async () => {
      const id = await page.evaluate(
        () => (JSON.parse(localStorage.getItem("user") ?? "{}") as { id?: number }).id,
      );
      const answer = await page.request.get("/api/user/self", { headers: { "New-Api-User": String(id) } });
      return ((await answer.json()) as { data: { quota: number; used_quota: number; request_count: number } })
        .data;
    };
    expect(await self()).toMatchObject({ quota: 100_000_000 - 2250, used_quota: 2250, request_count: 1 });
    await server.kill();
    expect(server.audit()).toMatchObject({ code: 0 });
    await server.restart();
    expect(await self()).toMatchObject({ quota: 100_000_000 - 2250, used_quota: 2250, request_count: 1 });
    await openUntil(page, "/log", page.getByRole("row", { name: /gpt-4o/ }));
  });

  test("the playground streams through the gateway and is billed like any call", async () => {
    upstream.script(
      stream(["A weir ", "measures ", "water."], {
        usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      }),
    );
    await page.goto("/playground");
    await mounted();
    await hand.fill(page.getByRole("textbox", { name: texts.message }), "What is a weir?");
    await page.keyboard.press("Enter");
    await page.getByText("A weir measures water.").waitFor();
    await openUntil(page, "/log", page.getByRole("row", { name: /playground-default/ }));
  });

  test("no page had an error in its console", () => {
    // The refused sign-in and form are expected to be answered with refusals, not with failed requests.
    expect(visit.problems).toEqual([]);
  });
});
