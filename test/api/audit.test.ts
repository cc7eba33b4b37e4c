// The audit trail: who did what from where, as its rows tell administrators and the people concerned, and what a clearing spares.
// Refuses secrets in any row.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { auditActions } from "../../src/shared/audit-actions.ts";
import { auditSentence } from "../../src/core/logs/sentences.ts";
import en from "../../locales/en/log.json" with { type: "json" };
import zh from "../../locales/zh/log.json" with { type: "json" };

interface Row {
  type: number;
  content: string;
  text?: string;
  other: string;
}
interface Envelope {
  success: boolean;
  code?: string;
  data: { items: Row[]; id: number };
}
interface Other {
  op?: { action: string; params: Record<string, unknown> };
  ip?: string;
  auth_method?: string;
  admin_info?: { admin_username: string };
}

const PASSWORD = "correct horse";
const DAY_MS = 86_400_000;
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0";

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let root: TestUser;
  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    root = await app.createUser({ username: "theroot", role: 100 });
  });
  afterAll(() => app.close());

  const ask = (method: string, path: string, body: unknown, as?: TestUser, headers = {}) =>
    app.call<Envelope>(method, path, body, {
      ...(as ?? { id: 0, username: "" }),
      headers: { ...as?.headers, ...headers },
    });
  const rowsOf = async (userId: number) => {
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, userId)).orderBy(logs.id);
    return rows.map((row) => ({ ...row, seen: JSON.parse(row.other || "{}") as Other }));
  };
  const actionsOf = async (userId: number) =>
    (await rowsOf(userId)).map(({ seen, type }) => [seen.op?.action, type]);
  const made = async (name: string) =>
    (await ask("POST", "/api/user/", { username: name, password: PASSWORD }, root)).body.data.id;
  const signIn = (username: string, password = PASSWORD) =>
    ask("POST", "/api/user/login", { username, password }, undefined, { "user-agent": FIREFOX });

  test("what an administrator does to an account stands in its rows, each with its type", async () => {
    const id = await made("alice");
    await ask("PUT", "/api/user/", { id, display_name: "Alice B", password: "another horse" }, root);
    for (const action of ["disable", "enable", "promote", "demote"])
      await ask("POST", "/api/user/manage", { id, action }, root);
    await ask("POST", `/api/user/${id}/sessions/revoke`, {}, root);
    await ask("DELETE", `/api/user/${id}`, undefined, root);
    expect(await actionsOf(id)).toEqual(
      [
        "create",
        "update",
        "password",
        "disable",
        "enable",
        "promote",
        "demote",
        "sessions_revoke",
        "remove",
      ].map((name) => [`user.${name}`, 3]),
    );
    for (const { seen } of await rowsOf(id))
      expect(seen).toMatchObject({
        ip: "127.0.0.1",
        auth_method: "session",
        admin_info: { admin_username: "theroot" },
      });
  });

  test("a sign-in tells method and device, wrong ones stand in one row with a count", async () => {
    const id = await made("bob");
    expect((await signIn("bob")).body.success).toBe(true);
    for (let i = 0; i < 3; i++) await signIn("bob", "wrong password");
    await signIn("nobody-has-this", "wrong password");
    let failed = 0;
    for (const start = performance.now(); failed < 3 && performance.now() - start < 5000;)
      failed = Number(
        (await rowsOf(id)).find(({ seen }) => seen.op?.action === "login.failed")?.seen.op?.params["count"] ??
          0,
      );
    const rows = await rowsOf(id);
    expect(await actionsOf(id)).toEqual([
      ["user.create", 3],
      ["login.ok", 7],
      ["login.failed", 7],
    ]);
    expect(rows[1]?.seen.op?.params).toEqual({
      method: "password",
      provider: "",
      device: "Firefox 132 · Linux",
    });
    expect(rows[2]?.seen.op?.params).toEqual({ count: 3, device: "Firefox 132 · Linux" });
    expect(rows[2]?.content).toBe("登录失败 3 次：Firefox 132 · Linux");
    const { logs } = app.deps.db.t;
    const all = await app.deps.db.orm.select().from(logs).where(eq(logs.type, 7));
    expect(all.every(({ userId }) => userId > 0)).toBe(true);
    expect(JSON.stringify(all)).not.toContain("nobody-has-this");
  });

  test("users read their own rows in their language, without who and from where an administrator acted", async () => {
    const user = await app.createUser();
    await ask("POST", "/api/user/manage", { id: user.id, action: "disable" }, root);
    await ask("POST", "/api/user/manage", { id: user.id, action: "enable" }, root);
    await app.deps.accounts.userChanged(user.id);
    const account = await app.deps.accounts.user(user.id);
    const { listOwnLogs } = await import("../../src/core/logs/list.ts");
    if (!account) throw new Error("no account");
    const filter = { type: 0, from: 0, to: 1e11 };
    const own = await listOwnLogs(app.deps, account, filter, { limit: 10, offset: 0 });
    expect(own.items).toHaveLength(2);
    for (const { other, content } of own.items) {
      expect(content).not.toContain("theroot");
      expect(Object.keys(JSON.parse(other) as object)).toEqual(["op"]);
    }
    const listed = await ask("GET", `/api/log/?type=3&username=${user.username}`, undefined, root, {
      "accept-language": "en",
    });
    expect(listed.body.data.items.map(({ text }) => text)).toEqual([
      "An administrator enabled the account",
      "An administrator disabled the account",
    ]);
    expect(listed.body.data.items[0]?.other).toContain("theroot");
  });

  test("settings tell old and new, secrets and tables their names alone", async () => {
    const put = (key: string, value: string) => ask("PUT", "/api/option/", { key, value }, root);
    await put("SystemName", "New name");
    await put("SystemName", "New name");
    await put("SMTPToken", "hush-hush");
    await put("GroupRatio", '{"default": 1, "vip": 0.5}');
    const told = (await rowsOf(root.id)).flatMap(({ seen }) =>
      seen.op?.action === "option.set" ? [seen.op.params] : [],
    );
    expect(told.filter(({ key }) => key === "SystemName")).toMatchObject([{ new: "New name" }]);
    expect(told.filter(({ key }) => key === "SMTPToken")).toEqual([{ key: "SMTPToken", old: "…", new: "…" }]);
    expect(told.find(({ key }) => key === "GroupRatio")).toMatchObject({ old: "…", new: "…" });
    expect(JSON.stringify(await rowsOf(root.id))).not.toContain("hush");
  });

  test("what people do to their own account is theirs, and no token stands in a row", async () => {
    const user = await app.createUser();
    const token = (await app.call<{ data: string }>("GET", "/api/user/token", undefined, user)).body.data;
    await ask("PUT", "/api/user/self", { display_name: "Me", password: "first password" }, user);
    expect(await actionsOf(user.id)).toEqual([
      ["token.renewed", 4],
      ["account.names", 4],
      ["password.changed", 4],
    ]);
    const text = JSON.stringify(await rowsOf(user.id));
    expect(text).not.toContain(token);
    expect(text).not.toContain("first password");
  });

  test("a clearing spares the trail while it is young, leaves its own row, and lists go on showing both", async () => {
    const user = await app.createUser();
    await ask("POST", "/api/user/manage", { id: user.id, action: "disable" }, root);
    await app.deps.ledger.log({ type: 5, userId: user.id, username: user.username, content: "an error" });
    await app.deps.ledger.flush();
    clock.advance(10 * DAY_MS);
    const clear = async () => {
      const at = Math.floor(clock.nowMs() / 1000);
      return (await ask("DELETE", `/api/log/?target_timestamp=${at}`, undefined, root)).body.success;
    };
    expect(await clear()).toBe(true);
    expect(await actionsOf(user.id)).toEqual([["user.disable", 3]]);
    const { logs } = app.deps.db.t;
    const cleared = await app.deps.db.orm
      .select()
      .from(logs)
      .where(and(eq(logs.userId, root.id), eq(logs.type, 3)));
    expect(cleared.filter(({ other }) => other.includes("log.clear"))).toHaveLength(1);
    for (const type of ["", "type=3&"]) {
      const path = `/api/log/?${type}username=${user.username}`;
      expect((await ask("GET", path, undefined, root)).body.data.items).toHaveLength(1);
    }
    clock.advance(200 * DAY_MS);
    expect(await clear()).toBe(true);
    expect(await actionsOf(user.id)).toEqual([]);
  });
});

test("each action has its line in both languages, the log's own sentence is the Chinese one", () => {
  const words = { method: "password", factor: "totp", device: "" };
  for (const action of Object.keys(auditActions) as (keyof typeof auditActions)[]) {
    if (action === "user.quota") continue;
    const lines = [zh, en].map((texts) => (texts as Record<string, string>)[`op.${action}`]);
    expect([action, ...lines]).toEqual([action, expect.any(String), expect.any(String)]);
    const said = (lines[0] ?? "").replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
      const value = (words as Record<string, string>)[name] ?? "";
      const key = `op.word.${name}${value === "" ? "" : `.${value}`}`;
      return (zh as Record<string, string>)[key] ?? value;
    });
    expect(auditSentence(action, words)).toBe(said.trim());
  }
});
