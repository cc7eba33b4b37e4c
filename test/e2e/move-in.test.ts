// From an old site's file to root, signed in on a site that is closed: the setup screen's way in, by a browser at two widths.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright";
import { createFixture } from "../import/fixtures/sources.ts";
import type { FixtureSource } from "../import/fixtures/sources.ts";
import { PASSWORD } from "../import/fixtures/rows.ts";
import { launchBrowser, PAGE_IS_UP } from "../support/browser.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";
import { untilSo } from "../support/turns.ts";

const TEXTS = {
  en: {
    open: "Move a site in",
    source: /^Database of the old site/,
    begin: "Start moving",
    done: "The site has moved in",
    signIn: "Sign in",
    account: "Username or email",
    password: "Password",
    quiet: /no email, notice or channel test leaves the site/,
    end: "End maintenance",
  },
  zh: {
    open: "迁入已有站点",
    source: /^原站点的数据库/,
    begin: "开始迁入",
    done: "站点已迁入",
    signIn: "登录",
    account: "用户名或邮箱",
    password: "密码",
    quiet: /邮件、通知与渠道测试均不会发出/,
    end: "结束维护",
  },
} as const;

const WALKS = [
  { language: "en", locale: "en-US", width: 1440, scheme: "light" },
  { language: "zh", locale: "zh-CN", width: 360, scheme: "dark" },
] as const;

describe.each(WALKS)("in $language at $width px", ({ language, locale, width, scheme }) => {
  const t = TEXTS[language];
  let browser: Browser;
  let source: FixtureSource;
  let server: ServerProcess;

  beforeAll(async () => {
    const now = Math.floor(Date.now() / 1000);
    source = await createFixture("sqlite", { family: "new-api-v1", upstream: "http://127.0.0.1:9", now });
    [browser, server] = await Promise.all([launchBrowser(), startServerProcess()]);
  });
  afterAll(async () => {
    await browser.close();
    await server.remove();
    await source.drop();
  });

  test("moved in, signed in with the old password, opened", async () => {
    const context = await browser.newContext({
      locale,
      viewport: { width, height: 900 },
      colorScheme: scheme,
    });
    const page = await context.newPage();
    const fits = async (name: string) => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect([name, wide <= width]).toEqual([name, true]);
    };
    await page.goto(`${server.url}/setup`);
    await fits("setup");
    await page.waitForSelector(PAGE_IS_UP, { state: "attached" });
    await page.getByRole("button", { name: t.open }).click();
    const field = page.getByLabel(t.source);
    await field.fill("/no/such.db");
    await page.getByRole("button", { name: t.begin }).click();
    await page.getByText(/neither a file that is there/).waitFor();
    await fits("refused");
    await field.fill(source.address);
    await page.getByRole("button", { name: t.begin }).click();
    await page.getByRole("heading", { name: t.done }).waitFor();
    await fits("done");
    await untilSo(() => server.log().split('"serving"').length === 3);
    await page.getByRole("link", { name: t.signIn }).click();
    await page.waitForURL(/\/login/);
    // What is typed before the page has come to life is nobody's.
    await page.waitForSelector(PAGE_IS_UP, { state: "attached" });
    await page.getByLabel(t.account).fill("root");
    await page.getByLabel(t.password, { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: t.signIn, exact: true }).click();
    await page.getByText(t.quiet).waitFor();
    await fits("quiet");
    await page.getByRole("button", { name: t.end }).click();
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    await fits("asked");
    await dialog.getByRole("button", { name: t.end }).click();
    await page.getByText(t.quiet).waitFor({ state: "detached" });
    const status = (await (await fetch(`${server.url}/api/status`)).json()) as { data: object };
    expect(status.data).toMatchObject({ maintenance_enabled: false });
    await context.close();
  });
});
