// A newcomer, end to end: from somebody's invitation link to an account with a proven address and a first key, and back in
// after a forgotten password. Codes and links come by a real SMTP server. With a mouse on SQLite, by finger at 360 px in
// Chinese on PostgreSQL, and by keyboard alone.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF, walkedNow } from "../support/hands.ts";
import type { Hand, JourneyLanguage, Manner } from "../support/hands.ts";
import { startMailServer } from "../support/mail-server.ts";
import type { MailServerStand } from "../support/mail-server.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { DatabaseKind, TestDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";
import { untilSo } from "../support/turns.ts";

const ROOT = { username: "owner", password: "a long password" };
const EMAIL = "nora@mail.example";

const TEXTS = {
  en: {
    login: "Sign in",
    account: "Username or email",
    registerLink: "Create one",
    forgotLink: "Forgot your password?",
    username: /^Username/,
    email: /^Email/,
    code: /^Code from the email/,
    send: "Send code",
    again: /^Again in \d+ s$/,
    password: /^Password/,
    password2: /^Password again/,
    invitation: /^Invitation code/,
    accept: /^I have read and accept/,
    create: "Create account",
    short: "The password must have 8 to 64 characters",
    wrongCode: "The code is wrong or has expired",
    sendLink: "Send the link",
    sent: /^If the address belongs to an account/,
    reset: "Reset the password",
    done: /^This is your new password/,
    signIn: "Sign in",
  },
  zh: {
    login: "登录",
    account: "用户名或邮箱",
    registerLink: "注册",
    forgotLink: "忘记密码？",
    username: /^用户名/,
    email: /^邮箱/,
    code: /^邮箱验证码/,
    send: "获取验证码",
    again: /^\d+ 秒后重发$/,
    password: /^密码/,
    password2: /^确认密码/,
    invitation: /^邀请码/,
    accept: /^我已阅读并同意/,
    create: "注册",
    short: "密码长度应为 8 到 64 个字符",
    wrongCode: "验证码错误或已过期",
    sendLink: "发送链接",
    sent: /^如果该邮箱属于某个账户/,
    reset: "重置密码",
    done: /^这是您的新密码/,
    signIn: "去登录",
  },
} as const;

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

const WALKS: readonly (readonly [Manner, JourneyLanguage, DatabaseKind])[] = [
  ["mouse", "en", "sqlite"],
  ["finger", "zh", "postgres"],
  ["keyboard", "en", "sqlite"],
];

describe.each(walkedNow(WALKS))("by %s in %s on %s", (manner, language, kind) => {
  const texts = TEXTS[language];
  let database: TestDatabase;
  let server: ServerProcess;
  let mail: MailServerStand;
  let visit: Visit;
  let page: Page;
  let hand: Hand;
  let rootHeaders: Record<string, string>;
  let invitation = "";

  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(server.url + path, {
      method,
      headers: { "content-type": "application/json", ...rootHeaders },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const told = (await answer.json()) as { success: boolean; message: string; data: unknown };
    expect([path, told.success, told.message]).toEqual([path, true, told.message]);
    return { answer, data: told.data };
  };
  const set = (key: string, value: string) => call("PUT", "/api/option/", { key, value });

  beforeAll(async () => {
    mail = await startMailServer();
    database = await createTestDatabase(kind);
    server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
    rootHeaders = {};
    await call("POST", "/api/setup", { ...ROOT, confirmPassword: ROOT.password });
    const { answer, data } = await call("POST", "/api/user/login", ROOT);
    const cookie = answer.headers.getSetCookie().map((line) => line.split(";")[0]);
    rootHeaders = { cookie: cookie.join("; "), "new-api-user": String((data as { id: number }).id) };
    for (const [key, value] of Object.entries({
      SMTPPort: String(mail.port),
      SMTPServer: "127.0.0.1",
      SMTPFrom: "site@mail.example",
      ServerAddress: server.url,
      EmailVerificationEnabled: "true",
      GenerateDefaultToken: "true",
      QuotaForInvitee: "250000",
      QuotaForInviter: "500000",
      "legal.terms": "# Be kind",
    }))
      await set(key, value);
    invitation = String((await call("GET", "/api/user/aff")).data);
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
    await mail.close();
  });

  const mounted = () => page.locator("[data-mounted]").waitFor();
  const button = (name: string) => page.getByRole("main").getByRole("button", { name, exact: true });
  const link = (name: string) => page.getByRole("main").getByRole("link", { name, exact: true });
  const field = (label: RegExp) => page.getByLabel(label).first();
  const letterAfter = async (count: number) => {
    await untilSo(() => mail.letters.length > count);
    return mail.letters[count]?.text ?? "";
  };

  test("an invitation link becomes an account with a proven address, signed in and with its first key", async () => {
    await page.goto(`/register?aff=${invitation}`);
    await mounted();
    expect(await field(texts.invitation).inputValue()).toBe(invitation);
    expect(await isAsWideAsTheScreen(page)).toBe(true);
    await hand.fill(field(texts.username), "nora");
    await hand.fill(field(texts.password), "short");
    await hand.press(button(texts.create));
    await page.getByText(texts.short).first().waitFor();
    await hand.fill(field(texts.email), EMAIL);
    await hand.press(button(texts.send));
    await page.getByRole("button", { name: texts.again }).waitFor();
    const code = /\b\d{6}\b/.exec(await letterAfter(0))?.[0] ?? "";
    const wrong = code === "000000" ? "111111" : "000000";
    await hand.fill(field(texts.password), "battery staple");
    await hand.fill(field(texts.password2), "battery staple");
    await hand.press(page.getByRole("checkbox", { name: texts.accept }));
    await hand.fill(field(texts.code), wrong);
    await hand.press(button(texts.create));
    await page.getByText(texts.wrongCode).waitFor();
    await hand.fill(field(texts.code), code);
    await hand.press(button(texts.create));
    await page.waitForURL("**/token");
    await page.getByText("nora的初始令牌").first().waitFor();
    const { data } = await call("GET", "/api/user/search?keyword=nora");
    const [made] = (data as { items: Record<string, unknown>[] }).items;
    expect(made).toMatchObject({ username: "nora", email: EMAIL, quota: 250_000, inviter_id: 1 });
    expect((await call("GET", "/api/user/self")).data).toMatchObject({ aff_count: 1, aff_quota: 500_000 });
  });

  test("a forgotten password comes back by a link that one press uses up", async () => {
    await page.context().clearCookies({ name: "session" });
    await page.goto("/login");
    await mounted();
    await link(texts.registerLink).waitFor();
    await hand.press(link(texts.forgotLink));
    await page.waitForURL("**/reset");
    await mounted();
    await hand.fill(field(texts.email), EMAIL);
    await hand.press(button(texts.sendLink));
    await page.getByText(texts.sent).waitFor();
    const [address = ""] = /http\S+\/user\/reset\?\S+token=[0-9a-f]{32}/.exec(await letterAfter(1)) ?? [];
    expect(address).toStartWith(server.url);
    await page.goto(address);
    await mounted();
    await hand.press(button(texts.reset));
    await page.getByText(texts.done).waitFor();
    const password = (await page.locator("[data-new-password]").textContent()) ?? "";
    expect(password).toMatch(/^[A-Za-z2-9]{12}$/);
    expect(page.url()).toBe(`${server.url}/user/reset`);
    expect(await isAsWideAsTheScreen(page)).toBe(true);
  });

  test("the new password opens the account", async () => {
    const password = (await page.locator("[data-new-password]").textContent()) ?? "";
    // A browser that may not write the clipboard offers the text in a dialog.
    const dialog = page.getByRole("dialog");
    if (await dialog.isVisible()) await page.keyboard.press("Escape");
    await hand.press(link(texts.signIn));
    await page.waitForURL("**/login?**");
    await mounted();
    await hand.fill(page.getByLabel(texts.account), EMAIL);
    await hand.fill(field(texts.password), password);
    await hand.press(button(texts.login));
    await page.waitForURL("**/personal");
  });

  test("while registration is closed nobody is sent there", async () => {
    await set("RegisterEnabled", "false");
    await page.goto("/topup");
    await page.locator("[data-mounted]").waitFor();
    expect(await page.locator("#invitation").count()).toBe(0);
    await page.goto("/register");
    await mounted();
    expect(await page.getByRole("main").locator("form").count()).toBe(0);
    await page.goto("/login");
    await mounted();
    expect(await link(texts.registerLink).count()).toBe(0);
    expect(visit.problems).toEqual([]);
  });
});
