// A request rule's life in a real browser, against the real server: written as a sentence, tried dry, saved, acting on a call, seen in
// the log. By mouse in English on a wide screen, by finger in Chinese on a phone, by keyboard alone.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import { answer, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF, walkedNow } from "../support/hands.ts";
import type { Manner } from "../support/hands.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const OWNER = { username: "owner", password: "a long password" };

const TEXTS = {
  en: {
    signIn: "Sign in",
    user: "Username or email",
    password: "Password",
    edit: "Edit channel: main",
    rewrite: /^Rewrite and settings/,
    rules: "Request rules",
    add: "Add a rule",
    form: "Rule",
    field: "Field",
    value: "Value",
    condition: "Add a condition",
    conditions: "Condition",
    take: "Apply rule",
    words: "Set temperature to 0, if model is gpt-4o",
    open: "Try the rules…",
    part: "Try the rules",
    run: "Try",
    after: "What would be sent",
    save: "Save",
    saved: "Channel saved",
    told: "set temperature",
  },
  zh: {
    signIn: "登录",
    user: "用户名或邮箱",
    password: "密码",
    edit: "编辑渠道：main",
    rewrite: /^改写与设置/,
    rules: "请求规则",
    add: "添加规则",
    form: "规则",
    field: "字段",
    value: "值",
    condition: "添加条件",
    conditions: "条件",
    take: "应用规则",
    words: "当 model 等于 gpt-4o 时，将 temperature 设为 0",
    open: "试运行规则…",
    part: "试运行规则",
    run: "试运行",
    after: "将要发送",
    save: "保存",
    saved: "渠道保存成功！",
    told: "set temperature",
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

interface Row {
  id: number;
  name: string;
  param_override: string;
}

beforeAll(async () => {
  [upstream, browser, server] = await Promise.all([
    startFakeUpstream(),
    launchBrowser(),
    startServerProcess({}),
  ]);
  upstream.always(answer("Hi"));
  const switches = { SelfUseModeEnabled: false, DemoSiteEnabled: false };
  await call("POST", "/api/setup", { ...OWNER, confirmPassword: OWNER.password, ...switches });
  owner = {};
  const { id } = await call<{ id: number }>("POST", "/api/user/login", OWNER);
  owner["new-api-user"] = String(id);
});
afterAll(async () => {
  await Promise.all([server.remove(), browser.close()]);
  upstream.stop();
});

async function key(): Promise<string> {
  const fields = { name: "journey", unlimited_quota: true, expired_time: -1 };
  const made = await call<{ key: string }>("POST", "/api/token/", fields);
  return made.key;
}

test.each(
  walkedNow([
    ["en", "mouse"],
    ["zh", "finger"],
    ["en", "keyboard"],
  ] as const),
)("a rule is written, tried, saved and seen: %s, by %s", async (language, manner: Manner) => {
  const texts = TEXTS[language];
  const old = await call<Row[]>("GET", "/api/channel/search");
  if (old.length > 0) await call("POST", "/api/channel/batch", { ids: old.map(({ id }) => id) });
  await call("POST", "/api/channel/", {
    type: 1,
    name: "main",
    key: "sk-good",
    base_url: upstream.url,
    models: "gpt-4o",
    group: "default",
  });
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
  await press(editor.locator("summary").filter({ hasText: texts.rewrite }));

  // Written.
  const rules = editor.getByRole("group", { name: texts.rules, exact: true });
  await press(rules.getByRole("button", { name: texts.add }));
  const form = rules.getByRole("group", { name: texts.form, exact: true });
  await fill(form.getByRole("combobox", { name: texts.field, exact: true }), "temperature");
  await fill(form.getByRole("textbox", { name: texts.value, exact: true }), "0");
  await press(form.getByRole("button", { name: texts.condition }));
  const condition = form.getByRole("group", { name: texts.conditions, exact: true });
  await fill(condition.getByRole("textbox", { name: texts.value, exact: true }), "gpt-4o");
  await press(form.getByRole("button", { name: texts.take }));
  await rules.getByText(texts.words, { exact: true }).waitFor();

  // Tried, and nobody is asked.
  const before = upstream.requests.length;
  await press(editor.getByRole("button", { name: texts.open }));
  const part = editor.getByRole("group", { name: texts.part, exact: true });
  await press(part.getByRole("button", { name: texts.run, exact: true }));
  const sent = part.getByRole("region", { name: texts.after });
  await sent.waitFor();
  expect(await sent.textContent()).toContain('"temperature": 0');
  expect(await part.textContent()).toContain(texts.told);
  expect(upstream.requests.length).toBe(before);
  expect(await isAsWideAsTheScreen(page)).toBe(true);

  // Saved, and it acts.
  await press(editor.getByRole("button", { name: texts.save, exact: true }));
  await editor.waitFor({ state: "detached" });
  const [row] = await call<Row[]>("GET", "/api/channel/search");
  expect(JSON.parse(row?.param_override ?? "")).toEqual({
    operations: [
      {
        mode: "set",
        path: "temperature",
        value: 0,
        logic: "AND",
        conditions: [{ path: "model", mode: "full", value: "gpt-4o" }],
      },
    ],
  });
  const served = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${await key()}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-4o", messages: [{ role: "user", content: "hi" }], temperature: 1 }),
  });
  expect(served.status).toBe(200);
  await served.text();
  expect(upstream.requests.at(-1)?.json()["temperature"]).toBe(0);

  // Seen in the log.
  await page.goto("/log");
  await page.locator("[data-mounted]").waitFor();
  await press(page.locator("tr[data-index] .row-link, [data-index] .row-link").first());
  await page.getByText(texts.told, { exact: true }).first().waitFor();
  expect(visit.problems).toEqual([]);
  await visit.close();
});
