// API keys over the wire: own keys only, refusals in the documented words, books that stay balanced.
// Refuses to trust answers alone: the relay's view of a key and the audit are asked as well.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Token {
  id: number;
  key: string;
  name: string;
  status: number;
  remain_quota: number;
  used_quota: number;
  expired_time: number;
  group: string;
  auto_groups: string;
  max_quota: number;
  allow_ips: string;
  model_limits: string;
}

interface Envelope<T> {
  success: boolean;
  message: string;
  code?: string;
  field?: string;
  data: T;
  total?: number;
}

const NOW = 1_760_000_000;

describe.each(DATABASE_KINDS)("tokens on %s", (database) => {
  let app: TestApp;
  /** Moved by tests of what ends. */
  let nowS = NOW;
  let alice: TestUser;
  let bob: TestUser;
  let root: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => nowS * 1000 } });
    alice = await app.createUser({ username: "alice", quota: 1_000_000 });
    bob = await app.createUser({ username: "bob" });
    root = await app.createUser({ username: "root", role: 100 });
  });
  afterAll(() => app.close());

  const call = <T = Token>(method: string, path: string, body?: unknown, as: TestUser = alice) =>
    app.call<Envelope<T>>(method, `/api/token${path}`, body, as);

  async function create(fields: Record<string, unknown> = {}, as: TestUser = alice): Promise<Token> {
    const answer = await call("POST", "/", { name: "key", ...fields }, as);
    expect([answer.body.message, answer.body.success]).toEqual(["", true]);
    return answer.body.data;
  }

  interface Rotated {
    key: string;
    previous_until: number;
  }
  const rotate = async (id: number, grace: unknown, as: TestUser = alice) =>
    (await call<Rotated>("POST", `/${id}/rotate`, { grace_seconds: grace }, as)).body;

  test("a new secret keeps the key's settings and history; the old one is taken for its time, then as unknown", async () => {
    const token = await create({ name: "to rotate", remain_quota: 700, allow_ips: "10.0.0.1" });
    const before = await known(token.key);
    const { data: made } = await rotate(token.id, 3600);
    expect([made.key.length, made.key === token.key, made.previous_until]).toEqual([48, false, nowS + 3600]);
    // One account: what open calls hold of the key is held of both secrets.
    expect([await known(made.key), await known(token.key)]).toEqual([before, before]);
    expect(await known(made.key)).toBe(await known(token.key));
    const { data: row } = (await call("GET", `/${token.id}`)).body;
    expect([row.name, row.remain_quota, row.allow_ips, row.key]).toEqual([
      "to rotate",
      700,
      "10.0.0.1",
      made.key,
    ]);
    nowS += 3599;
    expect((await known(token.key))?.id).toBe(token.id);
    nowS += 1;
    expect([await known(token.key), (await known(made.key))?.id]).toEqual([undefined, token.id]);
    expect((await call<Token & Rotated>("GET", `/${token.id}`)).body.data.previous_until).toBe(0);
    nowS = NOW;
  });

  test("without a time the old one ends at once; a further rotation ends the one before the last", async () => {
    const token = await create();
    const { data: second } = await rotate(token.id, 86_400);
    const { data: third } = await rotate(token.id, 86_400);
    expect([await known(token.key), (await known(second.key))?.id, (await known(third.key))?.id]).toEqual([
      undefined,
      token.id,
      token.id,
    ]);
    const { data: fourth } = await rotate(token.id, 0);
    expect([await known(second.key), await known(third.key), (await known(fourth.key))?.id]).toEqual([
      undefined,
      undefined,
      token.id,
    ]);
  });

  test("switching off and deleting a key ends both of its secrets", async () => {
    const token = await create();
    const { data: made } = await rotate(token.id, 86_400);
    await call("PUT", "/?status_only=true", { id: token.id, status: 2 });
    expect([(await known(token.key))?.status, (await known(made.key))?.status]).toEqual([2, 2]);
    await call("DELETE", `/${token.id}`);
    expect([await known(token.key), await known(made.key)]).toEqual([undefined, undefined]);
  });

  test("only its owner rotates a key, for none to thirty days; the log says who did and from where", async () => {
    const token = await create({ name: "told" });
    for (const as of [bob, root]) expect((await rotate(token.id, 60, as)).code).toBe("record_missing");
    for (const grace of [-1, 30 * 86_400 + 1, 1.5, "soon", undefined])
      expect((await rotate(token.id, grace)).success).toBe(false);
    expect((await known(token.key))?.id).toBe(token.id);
    expect((await rotate(token.id, 30 * 86_400)).success).toBe(true);
    await app.deps.ledger.flush();
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, alice.id));
    const told = rows.filter(({ content }) => content.includes("told"));
    expect(told.map(({ content }) => content)).toEqual(["更换令牌密钥：told，旧密钥 2592000 秒后失效"]);
    expect(told[0]?.other).toContain('"action":"key.rotated"');
    expect(told[0]?.other).not.toContain(token.key);
  });

  const known = (key: string) => Promise.resolve(app.deps.accounts.tokenByKey(key));

  test("a new key has 48 characters, works at once, and stands in its owner's list only", async () => {
    const token = await create({
      name: "مفتاح",
      remain_quota: 500,
      expired_time: -1,
      model_limits_enabled: true,
      model_limits: "a, b,a",
      allow_ips: " 10.0.0.1 \n\n10.1.0.0/16,",
      group: "",
    });
    expect(token.key).toMatch(/^[0-9A-Za-z]{48}$/);
    expect(token).toMatchObject({
      remain_quota: 500,
      model_limits: "a,b",
      allow_ips: "10.0.0.1\n10.1.0.0/16",
      accessed_time: null,
    });
    const seen = await app.call<Envelope<{ id: number; accessed_time: number | null }[]>>(
      "GET",
      `/api/user/${alice.id}/keys`,
      undefined,
      root,
    );
    expect(seen.body.data.find(({ id }) => id === token.id)?.accessed_time).toBeNull();
    const account = await known(token.key);
    expect(account).toMatchObject({ id: token.id, userId: alice.id, remainQuota: 500 });
    expect([...(account?.modelLimits ?? [])]).toEqual(["a", "b"]);
    const mine = await call<Token[]>("GET", "/");
    expect(mine.body.data.map(({ key }) => key)).toContain(token.key);
    expect(mine.body.total).toBe(mine.body.data.length);
    expect(mine.text).not.toContain("ealed");
    expect(mine.text).not.toContain("Hash");
    for (const other of [bob, root]) {
      expect((await call("GET", "/?size=100", undefined, other)).text).not.toContain(token.key);
    }
  });

  test("another user's key answers exactly like one that does not exist, on every route and for every role", async () => {
    const token = await create({ remain_quota: 10 });
    const routes: [string, (id: number) => string, ((id: number) => unknown)?][] = [
      ["GET", (id) => `/${id}`],
      ["PUT", () => "/", (id) => ({ id, name: "stolen" })],
      ["PUT", () => "/", (id) => ({ id, remain_quota: 999 })],
      ["PUT", () => "/?status_only=true", (id) => ({ id, status: 2 })],
      ["DELETE", (id) => `/${id}/`],
    ];
    for (const [method, path, body] of routes) {
      for (const as of [bob, root]) {
        const foreign = await call(method, path(token.id), body?.(token.id), as);
        const missing = await call(method, path(99_999_999), body?.(99_999_999), as);
        expect([foreign.status, foreign.text]).toEqual([missing.status, missing.text]);
        expect(foreign.body.code).toBe("record_missing");
      }
      const guest = await app.call(method, `/api/token${path(token.id)}`, body?.(token.id));
      expect(guest.status).toBe(401);
    }
    expect((await call("GET", `/${token.id}`)).body.data).toMatchObject({
      name: "key",
      status: 1,
      remain_quota: 10,
    });
    const search = await call<Token[]>("GET", `/search?token=sk-${token.key}`, undefined, bob);
    expect(search.body.data).toEqual([]);
  });

  test("lists by state show keys as a call would find them, and searches are cut into pages on request", async () => {
    const owner = await app.createUser({ username: `states${database}`, quota: 1000 });
    const past = Math.floor(app.deps.clock.nowMs() / 1000) - 1000;
    await app.createToken(owner.id, { name: "works" });
    await app.createToken(owner.id, { name: "off", status: 2 });
    await app.createToken(owner.id, { name: "over", expiredTime: past });
    await app.createToken(owner.id, { name: "marked over", status: 3 });
    await app.createToken(owner.id, { name: "empty", remainQuota: 0 });
    await app.createToken(owner.id, { name: "empty but off", remainQuota: 0, status: 2 });
    const names = async (path: string) =>
      (await call<Token[]>("GET", path, undefined, owner)).body.data.map(({ name }) => name).toSorted();
    expect(await names("/?status=1&size=100")).toEqual(["works"]);
    expect(await names("/?status=2&size=100")).toEqual(["empty but off", "off"]);
    expect(await names("/?status=3&size=100")).toEqual(["marked over", "over"]);
    expect(await names("/?status=4&size=100")).toEqual(["empty"]);
    expect(await names("/?status=x&size=100")).toHaveLength(6);
    expect(await names("/search?keyword=empty&status=4")).toEqual(["empty"]);
    const first = await call<Token[]>("GET", "/search?keyword=o&size=2&p=0", undefined, owner);
    const second = await call<Token[]>("GET", "/search?keyword=o&size=2&p=1", undefined, owner);
    expect(first.body.total).toBe(5);
    expect(new Set([...first.body.data, ...second.body.data].map(({ name }) => name)).size).toBe(4);
    expect((await call<Token[]>("GET", "/search?keyword=o", undefined, owner)).body.data).toHaveLength(5);
  });

  test("a name may have 30 characters, whatever their bytes; one more is refused at its field", async () => {
    for (const character of ["n", "键", "🗝"]) {
      expect((await call("POST", "/", { name: character.repeat(30) })).body.success).toBe(true);
      const refused = await call("POST", "/", { name: character.repeat(31) });
      expect([character, refused.body.code, refused.body.field]).toEqual([
        character,
        "token_name_long",
        "name",
      ]);
    }
  });

  test("wrong input is refused in words and changes nothing", async () => {
    const count = async () => (await call<Token[]>("GET", "/")).body.total;
    const before = await count();
    const cases: [Record<string, unknown>, string][] = [
      [{ name: "n".repeat(31) }, "令牌名称过长"],
      [{ name: "名".repeat(31) }, "令牌名称过长"],
      [{ name: " " }, "令牌名称不能为空"],
      [{ expired_time: 0 }, "过期时间格式错误！"],
      [{ expired_time: NOW * 1000 }, "过期时间格式错误！"],
      [{ allow_ips: "10.0.0.1\n10.0.0.300" }, "10.0.0.300 不是合法的 IP 地址或网段"],
      [{ group: "svip-of-others" }, "无权使用分组 svip-of-others"],
    ];
    for (const [fields, message] of cases) {
      const answer = await call("POST", "/", { name: "key", ...fields });
      expect([fields, answer.status, answer.body.success, answer.body.message]).toEqual([
        fields,
        200,
        false,
        message,
      ]);
    }
    const hostile: [string, unknown][] = [
      ["remain_quota", -1],
      ["remain_quota", 2 ** 63],
      ["remain_quota", "NaN"],
      ["remain_quota", 0.5],
      ["expired_time", -2],
      ["unlimited_quota", "perhaps"],
      ["name", "nul\u0000"],
      ["name", "n".repeat(300)],
      ["group", 7],
    ];
    for (const [field, value] of hostile) {
      const answer = await call("POST", "/", { name: "key", [field]: value });
      expect([field, value, answer.status, answer.body.success, answer.body.field]).toEqual([
        field,
        value,
        200,
        false,
        field,
      ]);
    }
    expect((await call("POST", "/", '{"name":"k","remain_quota":1e309}')).body.field).toBe("remain_quota");
    expect((await call("POST", "/", "not json")).body).toMatchObject({
      success: false,
      code: "invalid_params",
    });
    expect((await call("POST", "/", {})).body.message).toBe("令牌名称不能为空");
    expect(await count()).toBe(before);
  });

  test("a key may name a group that is open or its owner's own, and keeps one that was closed later", async () => {
    const vip = await app.createUser({ username: "vipuser", group: "svip" });
    await app.deps.options.set("GroupRatio", '{"default":1,"vip":1,"svip":1,"hidden":1}');
    await app.deps.options.set("UserUsableGroups", '{"default":"d","vip":"v","gone":"g"}');
    expect((await create({ group: "vip" })).group).toBe("vip");
    expect((await create({ group: "svip" }, vip)).group).toBe("svip");
    for (const group of ["svip", "hidden", "gone", "__proto__", "constructor"]) {
      expect((await call("POST", "/", { name: "key", group })).body.code).toBe("token_group_unusable");
    }
    const token = await create({ group: "vip" });
    await app.deps.options.set("UserUsableGroups", '{"default":"d"}');
    const kept = await call("PUT", "/", { id: token.id, name: "renamed", group: "vip" });
    expect(kept.body.data).toMatchObject({ name: "renamed", group: "vip" });
    expect((await call("PUT", "/", { id: token.id, group: "svip" })).body.code).toBe("token_group_unusable");
  });

  test("a key has no cap until it gets one; it is in force at once, taken back by 0, and refused where it is no amount", async () => {
    const token = await create({});
    expect(token.max_quota).toBe(0);
    expect((await call("PUT", "/", { id: token.id, max_quota: 25_000 })).body.data.max_quota).toBe(25_000);
    expect(await known(token.key)).toMatchObject({ maxQuota: 25_000 });
    expect((await call("PUT", "/", { id: token.id, name: "other" })).body.data.max_quota).toBe(25_000);
    expect((await call("PUT", "/", { id: token.id, max_quota: 0 })).body.data.max_quota).toBe(0);
    expect(await known(token.key)).toMatchObject({ maxQuota: 0 });
    for (const wrong of [-1, 1.5, "much", 2 ** 53])
      expect((await call("PUT", "/", { id: token.id, max_quota: wrong })).body.success).not.toBe(true);
    expect(await known(token.key)).toMatchObject({ maxQuota: 0 });
  });

  describe("the automatic choice of a group", () => {
    const set = async (options: Record<string, unknown>): Promise<void> => {
      for (const [key, value] of Object.entries(options))
        await app.deps.options.set(key, JSON.stringify(value));
    };
    const refused = async (fields: Record<string, unknown>) => {
      const { body } = await call("POST", "/", { name: "key", ...fields });
      return [body.code, body.field];
    };
    beforeAll(() =>
      set({
        GroupRatio: { default: 1, vip: 1, beta: 1 },
        UserUsableGroups: { default: "d", vip: "v" },
        AutoGroups: ["beta", "vip"],
      }),
    );
    afterAll(() => set({ AutoGroups: [], DefaultUseAutoGroup: false }));

    test("a key has it, by the site's order or its own, and calls find it at once", async () => {
      const token = await create({ group: "auto" });
      expect(token).toMatchObject({ group: "auto", auto_groups: "" });
      const listed = await create({ group: "auto", auto_groups: " vip, default,vip" });
      expect(listed).toMatchObject({ group: "auto", auto_groups: "vip,default" });
      expect(await known(listed.key)).toMatchObject({ group: "auto", autoGroups: ["vip", "default"] });
      const { body } = await call("PUT", "/", { id: listed.id, auto_groups: "default" });
      expect(body.data.auto_groups).toBe("default");
      expect(await known(listed.key)).toMatchObject({ autoGroups: ["default"] });
      // A group of its own ends the list; so does the owner's.
      expect((await call("PUT", "/", { id: listed.id, group: "vip" })).body.data).toMatchObject({
        group: "vip",
        auto_groups: "",
      });
    });

    test("a list names at most ten groups, each open to the owner; without any the site must have one", async () => {
      const many = Array.from({ length: 11 }, (_, at) => `g${at}`).join(",");
      expect(await refused({ group: "auto", auto_groups: many })).toEqual(["token_auto_many", "auto_groups"]);
      expect(await refused({ group: "auto", auto_groups: "vip,beta" })).toEqual([
        "token_group_unusable",
        "auto_groups",
      ]);
      await set({ AutoGroups: ["beta"] });
      expect(await refused({ group: "auto" })).toEqual(["token_auto_empty", "group"]);
      expect((await create({ group: "auto", auto_groups: "vip" })).auto_groups).toBe("vip");
      await set({ AutoGroups: ["beta", "vip"] });
    });

    test("an edit of other fields leaves a key alone whose groups were closed meanwhile", async () => {
      const token = await create({ group: "auto", auto_groups: "vip" });
      await set({ UserUsableGroups: { default: "d" } });
      const { body } = await call("PUT", "/", { id: token.id, name: "renamed" });
      expect(body.data).toMatchObject({ name: "renamed", group: "auto", auto_groups: "vip" });
      await set({ UserUsableGroups: { default: "d", vip: "v" } });
    });

    test("where the site wants it, a key that is made without a word about its group has it", async () => {
      expect((await create()).group).toBe("");
      await set({ DefaultUseAutoGroup: true });
      expect((await create()).group).toBe("auto");
      expect((await create({ group: "" })).group).toBe("");
      expect((await create({ group: "vip" })).group).toBe("vip");
      await set({ AutoGroups: ["beta"] });
      expect((await create()).group).toBe("");
      await set({ AutoGroups: ["beta", "vip"] });
    });
  });

  test("enabling an expired or used-up key is refused; changing what stood in the way enables it again", async () => {
    const { tokens } = app.deps.db.t;
    const token = await create({ remain_quota: 5 });
    const force = async (fields: Partial<typeof tokens.$inferInsert>) => {
      await app.deps.db.orm.update(tokens).set(fields).where(eq(tokens.id, token.id));
      await app.deps.accounts.tokenChanged(token.id);
    };
    const enable = () => call("PUT", "/?status_only=true", { id: token.id, status: 1, name: "ignored" });
    const edit = (fields: Record<string, unknown>) => call("PUT", "/", { id: token.id, ...fields });

    await edit({ remain_quota: 0 });
    await force({ status: 4 });
    expect((await enable()).body.message).toBe(
      "令牌可用额度已用尽，无法启用，请先修改令牌剩余额度，或者设置为无限额度",
    );
    expect((await edit({ name: "still empty" })).body.data.status).toBe(4);
    expect((await edit({ remain_quota: 70 })).body.data).toMatchObject({ status: 1, remain_quota: 70 });

    await force({ status: 3, expiredTime: NOW - 1 });
    expect((await enable()).body.message).toBe(
      "令牌已过期，无法启用，请先修改令牌过期时间，或者设置为永不过期",
    );
    expect((await edit({ expired_time: NOW + 60 })).body.data.status).toBe(1);
    await force({ status: 4 });
    await edit({ remain_quota: 0 });
    expect((await edit({ unlimited_quota: true })).body.data.status).toBe(1);
    expect((await known(token.key))?.status).toBe(1);

    const off = await call("PUT", "/?status_only=true", { id: token.id, status: 2, name: "ignored" });
    expect(off.body.data).toMatchObject({ status: 2, name: "still empty" });
    expect((await known(token.key))?.status).toBe(2);
    expect((await edit({ status: 1, remain_quota: 10 })).body.data.status).toBe(2);
    expect((await call("PUT", "/?status_only=1", { id: token.id, status: 3 })).body.success).toBe(false);
    expect((await enable()).body.data.status).toBe(1);
  });

  test("a key without quota stands as used up from the start, and after every edit that leaves it so", async () => {
    const edit = async (id: number, fields: Record<string, unknown>) =>
      (await call("PUT", "/", { id, ...fields })).body.data.status;
    for (const fields of [{}, { remain_quota: 0 }, { remain_quota: 0, unlimited_quota: false }]) {
      const token = await create(fields);
      expect([fields, token.status]).toEqual([fields, 4]);
      expect([
        (await known(token.key))?.status,
        (await call("GET", `/${token.id}`)).body.data.status,
      ]).toEqual([4, 4]);
      const refused = await fetch(`${app.url}/v1/models`, {
        headers: { authorization: `Bearer sk-${token.key}` },
      });
      expect(refused.status).toBe(401);
    }
    expect((await create({ remain_quota: 0, unlimited_quota: true })).status).toBe(1);
    expect((await create({ remain_quota: 1 })).status).toBe(1);
    expect((await create({ remain_quota: 5, expired_time: NOW - 1 })).status).toBe(3);

    const token = await create({ remain_quota: 5 });
    expect(await edit(token.id, { remain_quota: 0 })).toBe(4);
    expect((await known(token.key))?.status).toBe(4);
    expect(await edit(token.id, { unlimited_quota: true })).toBe(1);
    expect(await edit(token.id, { unlimited_quota: false, name: "whole row", remain_quota: 0 })).toBe(4);
    expect(await edit(token.id, { remain_quota: 9 })).toBe(1);
    await call("PUT", "/?status_only=true", { id: token.id, status: 2 });
    expect(await edit(token.id, { remain_quota: 0 })).toBe(2);
    expect(await edit(token.id, { remain_quota: 9 })).toBe(2);

    // A row of an earlier release says enabled: the next edit puts it right, whatever it is about.
    const { tokens } = app.deps.db.t;
    const old = await create({ remain_quota: 0 });
    await app.deps.db.orm.update(tokens).set({ status: 1 }).where(eq(tokens.id, old.id));
    expect(await edit(old.id, { name: "renamed" })).toBe(4);
  });

  test("what open calls hold is still the key's: an edit meanwhile does not end it", async () => {
    const { reservations, tokens } = app.deps.db.t;
    const token = await create({ remain_quota: 50 });
    const held = { requestId: `held-${database}`, userId: alice.id, tokenId: token.id, amount: 50 };
    await app.deps.db.orm.insert(reservations).values({ ...held, nodeId: "another", expiresAt: NOW + 600 });
    await app.deps.db.orm.update(tokens).set({ remainQuota: 0 }).where(eq(tokens.id, token.id));
    const renamed = await call("PUT", "/", { id: token.id, name: "while it runs", remain_quota: 0 });
    expect(renamed.body.data.status).toBe(1);
    await app.deps.db.orm.delete(reservations).where(eq(reservations.tokenId, token.id));
    expect((await call("PUT", "/", { id: token.id, name: "after it" })).body.data.status).toBe(4);
    await call("PUT", "/", { id: token.id, remain_quota: 1 });
  });

  test("editing a quota while calls are charged keeps the books balanced", async () => {
    const token = await create({ remain_quota: 10_000 });
    const user = await app.deps.accounts.user(alice.id);
    const account = await known(token.key);
    if (!user || !account) throw new Error("no account");
    const calls = Array.from({ length: 20 }, async (_, index) => {
      const requestId = `edit-${database}-${index}`;
      const hold = await app.deps.ledger.reserve({ requestId, user, token: account, amount: 50 });
      await hold.settle({
        quota: 40,
        promptTokens: 1,
        completionTokens: 1,
        modelName: "m",
        channelId: 0,
        group: "default",
        isStream: false,
        useTimeMs: 1,
        content: "",
        other: {},
      });
    });
    const edits = [20_000, 15_000, 30_000].map((remain_quota) =>
      call("PUT", "/", { id: token.id, remain_quota }),
    );
    await Promise.all([...calls, ...edits]);
    // What a call still holds comes back to the key when it is settled: only then is the rest exactly what was set.
    await app.deps.ledger.flush();
    await call("PUT", "/", { id: token.id, remain_quota: 777, name: "last" });
    expect((await call("GET", `/${token.id}`)).body.data).toMatchObject({
      remain_quota: 777,
      used_quota: 800,
    });
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("a deleted key ends at once and is gone for its owner too", async () => {
    const token = await create();
    expect(await known(token.key)).toBeDefined();
    expect((await call("DELETE", `/${token.id}/`)).body).toMatchObject({ success: true, message: "" });
    expect(await known(token.key)).toBeUndefined();
    expect((await call("GET", `/${token.id}`)).body.code).toBe("record_missing");
    expect((await call("DELETE", `/${token.id}`)).body.code).toBe("record_missing");
    expect((await call("GET", "/?size=100")).text).not.toContain(token.key);
  });

  test("lists page from 0 with size; searches match names and keys literally", async () => {
    const pager = await app.createUser({ username: "pager" });
    const tokens: Token[] = [];
    for (let index = 0; index < 12; index++) tokens.push(await create({ name: `t${index}` }, pager));
    const get = (path: string) => call<Token[]>("GET", path, undefined, pager);
    const ids = tokens.map(({ id }) => id).reverse();
    expect((await get("/")).body.data.map(({ id }) => id)).toEqual(ids.slice(0, 10));
    expect((await get("/?p=1&size=5")).body.data.map(({ id }) => id)).toEqual(ids.slice(5, 10));
    expect((await get("/?p=2&page_size=5")).body.total).toBe(12);
    expect((await get("?p=-1&size=NaN")).body.data.length).toBe(10);
    expect((await get("/?p=99999999999999999999&size=1e309")).status).toBe(200);

    const special = await create({ name: "50%_off" }, pager);
    const found = async (query: string) => (await get(`/search?${query}`)).body.data.map(({ id }) => id);
    expect(await found("keyword=%25_")).toEqual([special.id]);
    expect(await found("keyword=%25%25")).toEqual([]);
    expect(await found("keyword=t1&token=")).toEqual([
      tokens[11]?.id ?? 0,
      tokens[10]?.id ?? 0,
      tokens[1]?.id ?? 0,
    ]);
    expect(await found(`token=sk-${special.key}`)).toEqual([special.id]);
    expect(await found(`token=${special.key.slice(0, 10)}`)).toEqual([special.id]);
    expect(await found(`token=${special.key.slice(-6)}`)).toEqual([special.id]);
    expect(await found(`keyword=t1&token=${special.key}`)).toEqual([]);
    expect(await found("token=%25%25%25%25")).toEqual([]);
    expect((await get("/search?keyword=%00")).status).toBe(200);
    for (const path of ["/abc", "/-1", "/0", "/9223372036854775808"]) {
      expect((await get(path)).body.code).toBe("record_missing");
    }
  });
});
