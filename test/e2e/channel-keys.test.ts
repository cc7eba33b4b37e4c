// The keys of a channel in a real browser, against the real server: pasted, one tested and found bad, one rested, both back.
// By finger in Chinese on a phone, by keyboard alone in English.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import { answer, refuse, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF } from "../support/hands.ts";
import type { Manner } from "../support/hands.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const OWNER = { username: "owner", password: "a long password" };
const ALPHA = "sk-alpha-0000000000001111";
const BRAVO = "sk-bravo-0000000000002222";
const CHARLIE = "sk-charlie-00000000003333";

const TEXTS = {
  en: {
    signIn: "Sign in",
    user: "Username or email",
    password: "Password",
    edit: "Edit channel: main",
    keys: "Key status",
    add: "Add keys",
    paste: "One key per line",
    addBoth: "Add 2 keys",
    allOn: "3 of 3 on",
    test: (mark: string) => `Test ${mark}`,
    failed: "Test failed",
    isOff: "Off by itself since",
    oneOff: "2 of 3 on, 1 off by itself",
    passed: "Answered after",
    actions: (mark: string) => `Actions for ${mark}`,
    rest: "Rest for 10 minutes",
    resting: "Resting until",
    oneRests: /^2 of 3 on, 1 resting until/,
    wake: "End the rest",
    row: "3 of 3 keys",
    close: "Close",
  },
  zh: {
    signIn: "登录",
    user: "用户名或邮箱",
    password: "密码",
    edit: "编辑渠道：main",
    keys: "密钥状态",
    add: "添加密钥",
    paste: "每行一个密钥",
    addBoth: "添加 2 个密钥",
    allOn: "3 个中 3 个可用",
    test: (mark: string) => `测试 ${mark}`,
    failed: "测试失败",
    isOff: "起自动禁用",
    oneOff: "3 个中 2 个可用，1 个自动禁用",
    passed: "秒后应答",
    actions: (mark: string) => `${mark} 的操作`,
    rest: "暂停 10 分钟",
    resting: "暂停至",
    oneRests: /^3 个中 2 个可用，1 个暂停/,
    wake: "结束暂停",
    row: "3 个密钥中 3 个可用",
    close: "关闭",
  },
} as const;

let upstream: FakeUpstream;
let browser: Browser;
let server: ServerProcess;
let owner: Record<string, string> = {};

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(server.url + path, {
    method,
    headers: { "content-type": "application/json", ...owner },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const envelope = (await response.json()) as { success: boolean; message: string; data: T };
  if (!envelope.success) throw new Error(`${method} ${path}: ${envelope.message}`);
  owner["cookie"] ??= (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  return envelope.data;
}

beforeAll(async () => {
  [upstream, browser, server] = await Promise.all([
    startFakeUpstream(),
    launchBrowser(),
    startServerProcess({}),
  ]);
  const switches = { SelfUseModeEnabled: false, DemoSiteEnabled: false };
  await call("POST", "/api/setup", { ...OWNER, confirmPassword: OWNER.password, ...switches });
  owner = {};
  const { id } = await call<{ id: number }>("POST", "/api/user/login", OWNER);
  owner["new-api-user"] = String(id);
  await call("PUT", "/api/option/", { key: "AutomaticDisableChannelEnabled", value: "true" });
  await call("PUT", "/api/option/", { key: "AutomaticEnableChannelEnabled", value: "true" });
});
afterAll(async () => {
  await Promise.all([server.remove(), browser.close()]);
  upstream.stop();
});

test.each([
  ["zh", "finger"],
  ["en", "keyboard"],
] as const)("keys are pasted, tested, rested and come back: %s, by %s", async (language, manner: Manner) => {
  const texts = TEXTS[language];
  const old = await call<{ id: number }[]>("GET", "/api/channel/search");
  if (old.length > 0) await call("POST", "/api/channel/batch", { ids: old.map(({ id }) => id) });
  upstream.reset();
  upstream.always(answer("Hi"));
  const main = { type: 1, name: "main", key: ALPHA, base_url: upstream.url, models: "gpt-4o" };
  await call("POST", "/api/channel/", { ...main, group: "default" });
  const fields = { name: `journey ${language}`, unlimited_quota: true, expired_time: -1 };
  const token = await call<{ key: string }>("POST", "/api/token/", fields);
  /** Which keys three calls are served with. */
  const served = async (): Promise<string[]> => {
    const from = upstream.requests.length;
    for (let i = 0; i < 3; i++) {
      const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${token.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "gpt-4o", messages: [{ role: "user", content: "hi" }] }),
      });
      expect(response.status).toBe(200);
      await response.text();
    }
    const keys = upstream.requests
      .slice(from)
      .map(({ headers }) => String(headers["authorization"]).slice(7));
    return [...new Set(keys)].sort();
  };
  const visit = await openVisit(browser, {
    baseURL: server.url,
    locale: LOCALE_OF[language],
    timezoneId: "Asia/Shanghai",
    ...CONTEXT_OF[manner],
  });
  const { page } = visit;
  const { press, fill } = await handOf(page, manner);
  await page.goto("/channel");
  await page.waitForURL("**/login?**");
  await page.locator("[data-mounted]").waitFor();
  await fill(page.getByLabel(texts.user), OWNER.username);
  await fill(page.getByLabel(texts.password, { exact: true }), OWNER.password);
  await press(page.getByRole("button", { name: texts.signIn, exact: true }));
  await page.waitForURL("**/channel");
  await page.locator("[data-mounted]").waitFor();
  await press(page.getByRole("row").filter({ hasText: "main" }).getByRole("link").first());
  const editor = page.getByRole("dialog", { name: texts.edit });
  const keys = editor.getByRole("group", { name: texts.keys });
  const row = (tail: string) => keys.getByRole("listitem").filter({ hasText: tail });
  const choose = async (mark: string, item: string) => {
    await press(keys.getByRole("button", { name: texts.actions(mark) }));
    await press(keys.getByRole("menuitem", { name: item }));
  };

  // Pasted: no key is seen again.
  await press(keys.getByRole("button", { name: texts.add, exact: true }));
  await fill(keys.getByRole("textbox", { name: texts.paste }), `${BRAVO}\n${CHARLIE}`);
  await press(keys.getByRole("button", { name: texts.addBoth }));
  await keys.getByText(texts.allOn, { exact: true }).waitFor();
  const html = await page.content();
  expect([ALPHA, BRAVO, CHARLIE].filter((key) => html.includes(key))).toEqual([]);
  expect(await isAsWideAsTheScreen(page)).toBe(true);

  // Tested, refused, and off by itself; tested again, and back.
  upstream.always(({ headers }) =>
    String(headers["authorization"]).endsWith(BRAVO) ? refuse(401) : answer("Hi"),
  );
  await press(keys.getByRole("button", { name: texts.test("••••2222") }));
  await row("2222").getByText(texts.failed).waitFor();
  await row("2222").getByText(texts.isOff).waitFor();
  await keys.getByText(texts.oneOff, { exact: true }).waitFor();
  expect(await served()).toEqual([ALPHA, CHARLIE]);
  upstream.always(answer("Hi"));
  await press(keys.getByRole("button", { name: texts.test("••••2222") }));
  await row("2222").getByText(texts.passed).waitFor();
  await keys.getByText(texts.allOn, { exact: true }).waitFor();

  // Rested, and let go on.
  await choose("••••3333", texts.rest);
  await row("3333").getByText(texts.resting).waitFor();
  await keys.getByText(texts.oneRests).waitFor();
  expect(await served()).toEqual([ALPHA, BRAVO]);
  await choose("••••3333", texts.wake);
  await keys.getByText(texts.allOn, { exact: true }).waitFor();
  expect(await served()).toEqual([ALPHA, BRAVO, CHARLIE]);

  await press(editor.getByRole("button", { name: texts.close, exact: true }));
  await page.getByText(texts.row).first().waitFor();
  expect(visit.problems).toEqual([]);
  await visit.close();
});
