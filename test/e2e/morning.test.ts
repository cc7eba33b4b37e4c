// An operator's morning in a real browser, against the real server and a provider that refuses a key: find what fails,
// see why, mend it, put it back, change a tag, clear out. By mouse, by finger in Chinese, by keyboard alone; both databases.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { answer, refuse, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF, walkedNow } from "../support/hands.ts";
import type { Hand, Manner } from "../support/hands.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const OWNER = { username: "owner", password: "a long password" };
const REASON = "Incorrect API key provided";

const TEXTS = {
  en: {
    signIn: "Sign in",
    close: "Close",
    user: "Username or email",
    password: "Password",
    more: "More actions",
    testAll: "Test all channels",
    testsDone: "Tests done: 2 passed, 1 failed",
    autoDisabled: /^Auto-disabled/,
    byTag: /^By tag/,
    all: /^All/,
    actionsFor: (name: string) => `Actions for ${name}`,
    test: "Test",
    failed: "Failed",
    key: /^Key/,
    edit: "Edit channel: broken",
    saveAndTest: "Save and test",
    answered: /^broken answered in/,
    enable: "Enable",
    disable: "Disable",
    disabled: "broken disabled",
    enabled: "broken enabled",
    undo: "Undo",
    editTag: "Edit tag",
    tagTitle: "Edit tag: openai",
    setPriority: "Set Priority",
    priority: "Priority",
    preview: "Changes the priority of 2 channels to 7",
    save: "Save",
    tagSaved: "2 channels updated",
    deleteDisabled: "Delete disabled channels (2)",
    deleteTitle: "Delete all 2 disabled channels?",
    deleteAction: "Delete 2 channels",
    deleted: "2 channels deleted",
  },
  zh: {
    signIn: "登录",
    close: "关闭",
    user: "用户名或邮箱",
    password: "密码",
    more: "更多操作",
    testAll: "测试所有渠道",
    testsDone: "测试完成：2 个成功，1 个失败",
    autoDisabled: /^自动禁用/,
    byTag: /^按标签/,
    all: /^全部/,
    actionsFor: (name: string) => `${name} 的操作`,
    test: "测试",
    failed: "失败",
    key: /^密钥/,
    edit: "编辑渠道：broken",
    saveAndTest: "保存并测试",
    answered: /^渠道 broken 测试成功，耗时/,
    enable: "启用",
    disable: "禁用",
    disabled: "已禁用 broken",
    enabled: "已启用 broken",
    undo: "撤销",
    editTag: "编辑标签",
    tagTitle: "编辑标签：openai",
    setPriority: "设置优先级",
    priority: "优先级",
    preview: "2 个渠道的优先级变为 7",
    save: "保存",
    tagSaved: "已更新 2 个渠道",
    deleteDisabled: "删除已禁用的渠道（2）",
    deleteTitle: "删除所有 2 个已禁用的渠道？",
    deleteAction: "删除 2 个渠道",
    deleted: "已删除 2 个渠道",
  },
} as const;

type Language = keyof typeof TEXTS;

interface Row {
  id: number;
  name: string;
  status: number;
  priority: number;
  other_info: string;
}

let upstream: FakeUpstream;
let browser: Browser;

beforeAll(async () => {
  [upstream, browser] = await Promise.all([startFakeUpstream(), launchBrowser()]);
  upstream.always((request) =>
    String(request.headers["authorization"]).includes("bad")
      ? refuse(401, { error: { message: REASON, type: "invalid_request_error", code: "invalid_api_key" } })
      : answer("Hi"),
  );
});
afterAll(async () => {
  await browser.close();
  upstream.stop();
});

describe.each(DATABASE_KINDS)("an operator's morning on %s", (kind) => {
  let database: TestDatabase;
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
  const rows = () => call<Row[]>("GET", "/api/channel/search");
  async function rowOf(name: string): Promise<Row> {
    const found = (await rows()).find((row) => row.name === name);
    if (!found) throw new Error(`no channel ${name}`);
    return found;
  }

  beforeAll(async () => {
    database = await createTestDatabase(kind);
    server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
    await call("POST", "/api/setup", {
      ...OWNER,
      confirmPassword: OWNER.password,
      SelfUseModeEnabled: false,
      DemoSiteEnabled: false,
    });
    owner = {};
    const { id } = await call<{ id: number }>("POST", "/api/user/login", OWNER);
    owner["new-api-user"] = String(id);
    await call("PUT", "/api/option/", { key: "AutomaticDisableChannelEnabled", value: "true" });
  });
  afterAll(async () => {
    await server.remove();
    await database.drop();
  });

  /** Three channels of which one has a bad key, and after the first run two that were given up by hand. */
  async function prepare(): Promise<void> {
    const old = (await rows()).map(({ id }) => id);
    if (old.length > 0) await call("POST", "/api/channel/batch", { ids: old });
    const shared = { type: 1, base_url: upstream.url, models: "gpt-4o,gpt-4o-mini", group: "default" };
    await call("POST", "/api/channel/", { ...shared, name: "main", key: "sk-good", tag: "openai" });
    await call("POST", "/api/channel/", { ...shared, name: "broken", key: "sk-bad", tag: "openai" });
    await call("POST", "/api/channel/", { ...shared, name: "spare", key: "sk-good" });
  }

  async function start(language: Language, manner: Manner): Promise<Visit & { hand: Hand }> {
    const visit = await openVisit(browser, {
      baseURL: server.url,
      locale: LOCALE_OF[language],
      timezoneId: "Asia/Shanghai",
      ...CONTEXT_OF[manner],
    });
    const { page } = visit;
    const texts = TEXTS[language];
    const hand = await handOf(page, manner);
    await page.goto("/channel");
    await page.waitForURL("**/login?**");
    await page.locator("[data-mounted]").waitFor();
    await hand.fill(page.getByLabel(texts.user), OWNER.username);
    await hand.fill(page.getByLabel(texts.password, { exact: true }), OWNER.password);
    await hand.press(page.getByRole("button", { name: texts.signIn, exact: true }));
    await page.waitForURL("**/channel");
    await page.locator("[data-mounted]").waitFor();
    return { ...visit, hand };
  }

  async function morning(page: Page, language: Language, manner: Manner, { press, fill, undo }: Hand) {
    const texts = TEXTS[language];
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    const row = (name: string) => page.getByRole("row").filter({ hasText: name });
    const choose = async (opener: string, item: string) => {
      await press(button(opener));
      await press(page.getByRole("menuitem", { name: item, exact: true }));
    };

    /** On a phone messages lie over the views until they are closed, or go by themselves. */
    const closeMessages = async () => {
      if (manner === "keyboard") return;
      const closers = page.locator(".toast-box").getByRole("button", { name: texts.close });
      // One that has gone by itself meanwhile is closed too.
      for (let left = await closers.count(); left > 0; left = await closers.count())
        await closers
          .first()
          .click({ timeout: 1000 })
          .catch(() => undefined);
    };

    // What fails? One run over all tells, and takes the broken one out of service.
    await choose(texts.more, texts.testAll);
    await page.getByText(texts.testsDone).waitFor();
    await press(page.getByRole("link", { name: texts.autoDisabled }));
    await page.waitForURL(/status=3/);
    await row("main").waitFor({ state: "detached" });
    // Why? It stands in the row.
    expect(await row("broken").textContent()).toContain(REASON);
    await choose(texts.actionsFor("broken"), texts.test);
    await row("broken").getByText(texts.failed).waitFor();

    // Mended: a new key, tried before leaving.
    await press(row("broken").getByRole("link"));
    const editor = page.getByRole("dialog", { name: texts.edit });
    await fill(editor.locator("[name=key]"), "sk-good-again");
    await press(editor.getByRole("button", { name: texts.saveAndTest }));
    await page.getByText(texts.answered).waitFor();
    // A key that works brings its channel back by itself.
    expect((await rowOf("broken")).status).toBe(1);

    // Out of service by hand, back, out again, and back.
    await press(page.getByRole("link", { name: texts.all }));
    await page.waitForURL((url) => !url.searchParams.has("status"));
    await choose(texts.actionsFor("broken"), texts.disable);
    await page.getByText(texts.disabled, { exact: true }).waitFor();
    expect((await rowOf("broken")).status).toBe(2);
    const undone = page.waitForResponse((answer) => answer.request().method() !== "GET");
    await undo(button(texts.undo));
    await undone;
    expect((await rowOf("broken")).status).toBe(1);
    await choose(texts.actionsFor("broken"), texts.disable);
    await page.getByText(texts.disabled, { exact: true }).waitFor();
    await choose(texts.actionsFor("broken"), texts.enable);
    await page.getByText(texts.enabled, { exact: true }).waitFor();
    expect((await rowOf("broken")).status).toBe(1);

    await closeMessages();
    // Both channels of the tag are to be tried first.
    await press(page.getByRole("link", { name: texts.byTag }));
    await page.waitForURL(/tag_mode=true/);
    await choose(texts.actionsFor("openai"), texts.editTag);
    const tagEditor = page.getByRole("dialog", { name: texts.tagTitle });
    await press(tagEditor.getByRole("switch", { name: texts.setPriority }));
    await fill(tagEditor.getByRole("spinbutton", { name: texts.priority }), "7");
    await tagEditor.getByText(texts.preview).waitFor();
    await press(tagEditor.getByRole("button", { name: texts.save, exact: true }));
    await page.getByText(texts.tagSaved).waitFor();
    expect((await rowOf("broken")).priority).toBe(7);
    expect((await rowOf("spare")).priority).toBe(0);

    await closeMessages();
    // What was given up goes, counted.
    for (const name of ["old", "older"]) {
      await call("POST", "/api/channel/", {
        type: 1,
        name,
        key: "k",
        base_url: upstream.url,
        models: "gpt-4o",
        status: 2,
      });
    }
    await press(page.getByRole("link", { name: texts.all }));
    await row("older").waitFor();
    await page.reload();
    await page.locator("[data-mounted]").waitFor();
    await choose(texts.more, texts.deleteDisabled);
    await press(
      page.getByRole("dialog", { name: texts.deleteTitle }).getByRole("button", { name: texts.deleteAction }),
    );
    await page.getByText(texts.deleted).waitFor();
    expect((await rows()).map(({ name }) => name).sort()).toEqual(["broken", "main", "spare"]);
  }

  // Keys reach the same server as fingers do: each manner once over both databases is enough.
  const walks: [Manner, Language][] =
    kind === "sqlite"
      ? [
          ["mouse", "en"],
          ["keyboard", "en"],
        ]
      : [["finger", "zh"]];
  test.each(walkedNow(walks))("by %s, in %s", async (manner, language) => {
    await prepare();
    const { page, hand, problems, close } = await start(language, manner);
    await morning(page, language, manner, hand);
    expect(await isAsWideAsTheScreen(page)).toBe(true);
    expect(problems).toEqual([]);
    await close();
  });

  test("tests charged nobody: the books are balanced", async () => {
    await server.stop();
    expect(server.audit()).toMatchObject({ code: 0 });
  });
});
