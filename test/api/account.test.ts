// Setup, sign-in, sessions, roles and user administration over the wire, on both databases.
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Envelope {
  success: boolean;
  message: string;
  code?: string;
  data?: Record<string, unknown>;
}

describe.each(DATABASE_KINDS)("accounts on %s", (database) => {
  let app: TestApp;
  let root: TestUser;

  async function login(
    username: string,
    password: string,
  ): Promise<{ answer: Envelope; user: TestUser; status: number }> {
    const answer = await app.call<Envelope>("POST", "/api/user/login", { username, password });
    const cookie = (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const id = Number(answer.body.data?.id ?? 0);
    return {
      status: answer.status,
      answer: answer.body,
      user: { id, username, headers: { cookie, "new-api-user": String(id) } },
    };
  }

  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  test("before setup the wizard is told so, and wrong input is refused with 400 and creates nobody", async () => {
    const state = await app.call<Envelope>("GET", "/api/setup");
    expect(state.body.data).toEqual({ status: false, root_init: false, database_type: database });
    for (const [body, code] of [
      [{ username: "  ", password: "longenough", confirmPassword: "longenough" }, "setup_username_empty"],
      [{ username: "admin", password: "short", confirmPassword: "short" }, "setup_password_short"],
      // Seven characters, however many bytes they take.
      [
        { username: "admin", password: "七个字的密码啊", confirmPassword: "七个字的密码啊" },
        "setup_password_short",
      ],
      [{ username: "admin", password: "longenough", confirmPassword: "different" }, "setup_passwords_differ"],
      [
        { username: "a".repeat(13), password: "longenough", confirmPassword: "longenough" },
        "setup_username_long",
      ],
      [{ username: "a\u0007b", password: "longenough", confirmPassword: "longenough" }, "username_invalid"],
    ] as const) {
      const answer = await app.call<Envelope>("POST", "/api/setup", body);
      expect([answer.status, answer.body.code]).toEqual([400, code]);
    }
    expect((await app.call<Envelope>("POST", "/api/setup", "{broken")).status).toBe(400);
    expect((await app.call<Envelope>("GET", "/api/setup")).body.data?.root_init).toBe(false);
  });

  test("two setups at the same moment create one root user, and a later one is refused", async () => {
    const body = {
      username: "admin",
      password: "correct horse",
      confirmPassword: "correct horse",
      SelfUseModeEnabled: true,
      DemoSiteEnabled: false,
    };
    const both = await Promise.all([
      app.call<Envelope>("POST", "/api/setup", body),
      app.call<Envelope>("POST", "/api/setup", body),
    ]);
    expect(both.map((each) => each.body.success).sort()).toEqual([false, true]);
    expect((await app.call<Envelope>("POST", "/api/setup", body)).body.message).toBe("系统已经初始化完成");
    expect((await app.call<Envelope>("GET", "/api/setup")).body.data).toEqual({
      status: true,
      root_init: false,
      database_type: "",
    });
    const status = await app.call<Envelope>("GET", "/api/status");
    expect(status.body.data).toMatchObject({ setup: true, self_use_mode_enabled: true, system_name: "Weir" });
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("signing in opens a session that the console can use, and a wrong password is told nothing more", async () => {
    const right = await login("admin", "correct horse");
    expect(right.answer).toMatchObject({ success: true, data: { username: "admin", role: 100 } });
    expect(right.user.headers.cookie).toStartWith("session=");
    root = right.user;
    const self = await app.call<Envelope>("GET", "/api/user/self", undefined, root);
    expect(self.body.data).toMatchObject({
      username: "admin",
      quota: 100_000_000,
      password: "",
      access_token: null,
    });
    const wrong = await login("admin", "wrong password");
    const unknown = await login("nobody", "wrong password");
    expect(wrong.answer).toEqual(unknown.answer);
    expect(wrong.status).toBe(200);
  });

  test("the New-Api-User header is demanded, must be a number and must be the caller", async () => {
    const bare = { ...root, headers: { cookie: root.headers.cookie ?? "" } };
    const cases = [
      [undefined, "auth_user_header_missing"],
      ["abc", "auth_user_header_malformed"],
      ["999", "auth_user_header_mismatch"],
    ] as const;
    for (const [header, code] of cases) {
      const as =
        header === undefined ? bare : { ...bare, headers: { ...bare.headers, "new-api-user": header } };
      const answer = await app.call<Envelope>("GET", "/api/user/self", undefined, as as TestUser);
      expect([answer.status, answer.body.code]).toEqual([401, code]);
    }
    const nobody = await app.call<Envelope>("GET", "/api/user/self");
    expect([nobody.status, nobody.body.code]).toEqual([401, "auth_not_signed_in"]);
    expect(nobody.headers.get("cache-control")).toBe("no-store");
  });

  test("messages come in the language the caller asks for", async () => {
    const answer = await app.call<Envelope>("GET", "/api/user/self", undefined, {
      id: 0,
      username: "",
      headers: { "accept-language": "en-GB,en;q=0.9" },
    });
    expect(answer.body.message).toBe("You are not signed in and sent no access token");
  });

  test("a system access token works for scripts, replaces the one before, and is never shown again", async () => {
    const first = (await app.call<Envelope>("GET", "/api/user/token", undefined, root)).body
      .data as unknown as string;
    const script = (token: string): TestUser => ({
      ...root,
      headers: { authorization: `Bearer ${token}`, "new-api-user": String(root.id) },
    });
    expect((await app.call<Envelope>("GET", "/api/user/self", undefined, script(first))).body.success).toBe(
      true,
    );
    const second = (await app.call<Envelope>("GET", "/api/user/token", undefined, root)).body
      .data as unknown as string;
    const old = await app.call<Envelope>("GET", "/api/user/self", undefined, script(first));
    expect([old.status, old.body.code]).toEqual([401, "auth_access_token_invalid"]);
    const list = await app.call("GET", "/api/user/?p=1", undefined, script(second));
    expect(list.text).not.toContain(second);
  });

  test("a disabled, demoted or re-passworded user loses every session at once", async () => {
    const created = await app.call<Envelope>(
      "POST",
      "/api/user/",
      { username: "carol", password: "12345678", display_name: "Carol" },
      root,
    );
    const id = Number(created.body.data?.id);
    const manage = (action: string) => app.call<Envelope>("POST", "/api/user/manage", { id, action }, root);
    for (const action of ["disable", "promote", "demote"]) {
      await manage("enable");
      const before = await login("carol", "12345678");
      expect((await app.call<Envelope>("GET", "/api/user/self", undefined, before.user)).body.success).toBe(
        true,
      );
      expect((await manage(action)).body.success).toBe(true);
      expect((await app.call("GET", "/api/user/self", undefined, before.user)).status).toBe(401);
    }
    await manage("enable");
    const session = await login("carol", "12345678");
    const other = await login("carol", "12345678");
    const changed = await app.call<Envelope>(
      "PUT",
      "/api/user/self",
      { original_password: "12345678", password: "87654321" },
      session.user,
    );
    expect(changed.body.success).toBe(true);
    expect((await app.call("GET", "/api/user/self", undefined, other.user)).status).toBe(401);
    expect((await login("carol", "87654321")).answer.success).toBe(true);
  });

  test("a save of group and balance tells of the change; a removed account is unknown, also where what follows its commit fails", async () => {
    const { accounts, sessions } = app.deps;
    const { id } = await app.createUser({ quota: 5 });
    const { key } = await app.createToken(id);
    const changed = spyOn(accounts, "usersChanged");
    const save = { id, group: "vip", quota_change: 5, quota_reason: "paid by bank" };
    expect((await app.call<Envelope>("PUT", "/api/user/", save, root)).body.success).toBe(true);
    expect(changed.mock.calls).toEqual([[[id]]]);
    changed.mockRestore();
    expect(accounts.cachedUser(id)).toMatchObject({ group: "vip", quota: 10 });
    expect(await accounts.tokenByKey(key.slice(3))).toMatchObject({ userId: id });
    const remove = spyOn(sessions, "remove").mockRejectedValue(new Error("the database went away"));
    expect((await app.call<Envelope>("DELETE", `/api/user/${id}`, undefined, root)).status).toBe(500);
    remove.mockRestore();
    expect(accounts.cachedUser(id)).toBeUndefined();
    expect(await accounts.tokenByKey(key.slice(3))).toBeUndefined();
  });

  test("an administrator cannot touch a same or higher rank, and nobody can disable, delete or demote root", async () => {
    const admin = await app.createUser({ username: "adam", role: 10 });
    const peer = await app.createUser({ username: "eve", role: 10 });
    const rank = "user_rank_update";
    const attempts: [string, string, unknown, TestUser, string][] = [
      ["POST", "/api/user/manage", { id: peer.id, action: "disable" }, admin, rank],
      ["POST", "/api/user/manage", { id: root.id, action: "enable" }, admin, rank],
      ["PUT", "/api/user/", { id: peer.id, quota: 5 }, admin, rank],
      ["GET", `/api/user/${root.id}`, undefined, admin, "user_rank_read"],
      ["DELETE", `/api/user/${peer.id}`, undefined, admin, "user_rank_delete"],
      ["POST", "/api/user/manage", { id: root.id, action: "disable" }, root, "user_root_undisableable"],
      ["POST", "/api/user/manage", { id: root.id, action: "delete" }, root, "user_root_undeletable"],
      ["POST", "/api/user/manage", { id: root.id, action: "demote" }, root, "user_root_undemotable"],
      ["DELETE", "/api/user/self", undefined, root, "user_root_self_undeletable"],
      // Nor the own balance and group: those are a higher rank's business.
      ["PUT", "/api/user/", { id: admin.id, quota: 5_000_000 }, admin, rank],
      ["PUT", "/api/user/", { id: admin.id, group: "vip" }, admin, rank],
      ["POST", "/api/user/manage", { id: admin.id, action: "demote" }, admin, rank],
      ["POST", "/api/user/", { username: "x", password: "12345678", role: 10 }, admin, "user_rank_create"],
    ];
    for (const [method, path, body, as, code] of attempts) {
      const answer = await app.call<Envelope>(method, path, body, as);
      expect([path, answer.status, answer.body.success, answer.body.code]).toEqual([path, 200, false, code]);
    }
    const plain = await app.createUser({});
    for (const path of ["/api/user/", "/api/user/search?keyword=a", "/api/option/"]) {
      expect((await app.call("GET", path, undefined, plain)).status).toBe(403);
    }
    expect((await app.call("GET", "/api/option/", undefined, admin)).status).toBe(403);
  });

  test("setting a quota is logged for the user it belongs to, and the books stay balanced", async () => {
    const user = await app.createUser({ username: "dora", quota: 700 });
    const answer = await app.call<Envelope>("PUT", "/api/user/", { id: user.id, quota: 250_000 }, root);
    expect(answer.body.success).toBe(true);
    const self = await app.call<Envelope>("GET", "/api/user/self", undefined, user);
    expect(self.body.data?.quota).toBe(250_000);
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, user.id));
    expect(rows.map((row) => [row.type, row.content])).toEqual([
      [3, "管理员将用户额度从 ＄0.001400 额度修改为 ＄0.500000 额度"],
    ]);
    for (const quota of [-1, 1.5, 1e309, "NaN", "many", Number.MAX_SAFE_INTEGER]) {
      const refused = await app.call<Envelope>("PUT", "/api/user/", { id: user.id, quota }, root);
      expect(refused.body.success).toBe(false);
    }
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("a call without an action does nothing, and a role no rank has is refused", async () => {
    const victim = await app.createUser({ username: "ivy" });
    for (const body of [
      { id: victim.id },
      { id: victim.id, action: "fly" },
      { id: victim.id, action: null },
    ]) {
      const answer = await app.call<Envelope>("POST", "/api/user/manage", body, root);
      expect(answer.body).toMatchObject({ success: false, code: "invalid_field", field: "action" });
    }
    expect((await app.call<Envelope>("GET", "/api/user/self", undefined, victim)).body.success).toBe(true);
    for (const role of [-1, 101, 2 ** 63, "NaN"]) {
      const body = { username: "roleless", password: "12345678", role };
      const answer = await app.call<Envelope>("POST", "/api/user/", body, root);
      expect(answer.body).toMatchObject({ success: false, code: "invalid_field", field: "role" });
    }
  });

  test("search finds by part of name, address and id, and treats wildcards as plain text", async () => {
    const user = await app.createUser({ username: "zoe_100%" });
    const find = async (keyword: string) => {
      const path = `/api/user/search?keyword=${encodeURIComponent(keyword)}&group=&p=1&page_size=10`;
      const answer = await app.call<{ data: { items: { id: number }[]; total: number } }>(
        "GET",
        path,
        undefined,
        root,
      );
      return answer.body.data.items.map((each) => each.id);
    };
    expect(await find("ZOE")).toEqual([user.id]);
    expect(await find("0%")).toEqual([user.id]);
    expect(await find("%%")).toEqual([]);
    expect(await find(String(user.id))).toContain(user.id);
  });

  test("a deleted user keeps the name taken, cannot sign in, and is listed as deleted", async () => {
    await app.call("POST", "/api/user/", { username: "gone", password: "12345678" }, root);
    const session = await login("gone", "12345678");
    expect((await app.call<Envelope>("DELETE", "/api/user/self", undefined, session.user)).body.success).toBe(
      true,
    );
    expect((await login("gone", "12345678")).answer.success).toBe(false);
    expect((await app.call("GET", "/api/user/self", undefined, session.user)).status).toBe(401);
    const again = await app.call<Envelope>(
      "POST",
      "/api/user/",
      { username: "gone", password: "12345678" },
      root,
    );
    expect(again.body.message).toBe("用户名已存在，或已注销");
  });

  test("guessing is stopped by account, whoever asks, and the wait is told", async () => {
    await app.call("POST", "/api/user/", { username: "target", password: "12345678" }, root);
    const answers = await Promise.all(
      Array.from({ length: 14 }, (_, i) => login("target", `wrong-${i}-pass`)),
    );
    const refused = answers.filter((each) => each.status === 429);
    expect(refused.length).toBe(4);
    expect(refused[0]?.answer.code).toBe("too_many_attempts");
    expect((await login("target", "12345678")).status).toBe(429);
  });
});
