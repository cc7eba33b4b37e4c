// What becomes of a row of an old site, table by table: awkward rows, each with what it must be here and what is told of it.
import { describe, expect, test } from "bun:test";
import { createSealer, sha256Hex } from "../../src/core/kit/seal.ts";
import { createNotes } from "../../src/import/report.ts";
import type { Notes } from "../../src/import/report.ts";
import { mapBackupCode, mapPasskey, mapTotp, deniedBy } from "../../src/import/mapping/factors.ts";
import { gathered, mapLog, mapQuotaData } from "../../src/import/mapping/logs.ts";
import { mapPlanOrder, mapTopUp, minorOfAmount } from "../../src/import/mapping/orders.ts";
import type { OrderFacts } from "../../src/import/mapping/orders.ts";
import { TAKEN_SLUGS } from "../../src/core/users/providers/custom-rows.ts";
import { mapBinding, mapProvider } from "../../src/import/mapping/providers.ts";
import { mapDrawing, mapTask } from "../../src/import/mapping/tasks.ts";
import { mapRedemption, mapToken } from "../../src/import/mapping/tokens.ts";
import { createTakenNames, mapUser } from "../../src/import/mapping/users.ts";
import type { UserFacts } from "../../src/import/mapping/users.ts";

const seal = createSealer("a secret of tests only");
const NOW = Date.UTC(2026, 10, 20) / 1000;
const DAY = 86_400;

const told = ({ findings }: Notes): Record<string, string[]> =>
  Object.fromEntries(findings.map(({ code, samples }) => [code, samples]));

function userFacts(more: Partial<UserFacts> = {}): UserFacts {
  return {
    family: "new-api",
    notes: createNotes(),
    seal,
    now: NOW,
    taken: createTakenNames(),
    sums: new Map(),
    plans: new Map(),
    factors: new Set(),
    passkeys: new Set(),
    hasNumericGithub: false,
    denied: new Set(),
    createdAt: () => 1000,
    randomHandle: () => "handle",
    ...more,
  };
}

describe("users", () => {
  test("keep number, password, tokens by hash, and all figures; the gap to the log is the opening", () => {
    const facts = userFacts({ sums: new Map([[5, { quota: 30, count: 2, first: 1 }]]) });
    const { user, credits, opening } = mapUser(
      {
        id: 5n,
        username: "ann",
        password: "$2a$10$hash",
        access_token: "token".padEnd(32),
        quota: "700",
        used_quota: 100n,
        request_count: 7,
        aff_code: "abcd",
        aff_history: 9,
        inviter_id: 3,
        role: null,
        status: null,
        group: null,
        setting: JSON.stringify({
          notify_type: "webhook",
          webhook_url: "https://x.example/h",
          webhook_secret: "w",
          foreign: 1,
        }),
      },
      facts,
    );
    expect(user).toMatchObject({
      id: 5,
      username: "ann",
      passwordHash: "$2a$10$hash",
      accessTokenHash: sha256Hex("token"),
      quota: 700,
      usedQuota: 100,
      requestCount: 7,
      affHistoryQuota: 9,
      role: 1,
      status: 1,
      group: "default",
      planMark: 100,
      planWallet: 700,
      deletedAt: null,
    });
    const setting = JSON.parse(user.setting ?? "") as Record<string, string>;
    expect(seal.open("user", setting["webhook_secret_sealed"] ?? "")).toBe("w");
    expect(setting).not.toHaveProperty("foreign");
    expect(credits).toEqual([
      { userId: 5, amount: 800, kind: "import", ref: "user:5", createdAt: 1000 },
      { userId: 5, amount: 0, kind: "invite", ref: "5", createdAt: 1000 },
    ]);
    expect(opening).toEqual({ kind: "user", id: 5, usedQuota: 70, requestCount: 5 });
  });

  test("of equal names and addresses the first keeps its key; empty ones and doubles get one of their own", () => {
    const facts = userFacts();
    const users = [
      { id: 1, username: "Ann", email: "A@Example.org", access_token: "t", aff_code: "c" },
      { id: 2, username: "ann", email: "a@example.ORG", access_token: "t", aff_code: "c" },
      { id: 3, username: "Ann", email: "no address" },
      { id: 4, username: null, email: null, access_token: "", aff_code: "" },
    ].map((row) => mapUser(row, facts).user);
    expect(users.map(({ username, usernameKey, emailKey }) => [username, usernameKey, emailKey])).toEqual([
      ["Ann", "ann", "a@example.org"],
      ["ann", "ann#2", ""],
      ["Ann#3", "ann#3", ""],
      ["user_4", "user_4", ""],
    ]);
    expect(users.map(({ accessTokenHash, affCode }) => [accessTokenHash === null, affCode])).toEqual([
      [false, "c"],
      [true, null],
      [true, null],
      [true, null],
    ]);
    expect(told(facts.notes)).toEqual({
      name_key_taken: ["2 (ann)"],
      mail_key_taken: ["2"],
      access_token_taken: ["2"],
      aff_code_taken: ["2"],
      name_taken: ["3 (Ann)", "4 (user_4)"],
      mail_unusable: ["3"],
    });
  });

  test("what an equal name would become may be somebody's own: each is one of its own", () => {
    const facts = userFacts();
    const users = [
      { id: 3, username: "bob" },
      { id: 5, username: "BOB#6" },
      { id: 6, username: "Bob" },
    ].map((row) => mapUser(row, facts).user.usernameKey);
    expect(users).toEqual(["bob", "bob#6", "bob#6.2"]);
  });

  test("identities: GitHub's login once in small letters, its number as it is; the deleted have none; doubles are told", () => {
    const old = userFacts();
    expect(
      mapUser({ id: 1, username: "a", github_id: "Octo", linux_do_id: "77", lark_id: "x" }, old).identities,
    ).toEqual([
      { userId: 1, provider: "github", subject: "octo", label: "Octo", legacy: true, createdAt: 1000 },
      { userId: 1, provider: "linuxdo", subject: "77", label: "", legacy: false, createdAt: 1000 },
    ]);
    expect(mapUser({ id: 2, username: "b", github_id: "OCTO" }, old).identities).toEqual([]);
    expect(
      mapUser({ id: 3, username: "c", github_id: "other", deleted_at: "2025-01-01 00:00:00" }, old)
        .identities,
    ).toEqual([]);
    expect(told(old.notes)).toMatchObject({ identity_taken: ["2 (github)"], lark: ["1"] });
    const late = userFacts({ hasNumericGithub: true });
    expect(mapUser({ id: 4, username: "d", github_id: "583231" }, late).identities[0]).toMatchObject({
      subject: "583231",
      legacy: false,
    });
  });

  test("the banned stay banned, the deleted deleted: by a time, or by one-api's status", () => {
    expect(mapUser({ id: 1, username: "a", status: 2 }, userFacts()).user).toMatchObject({
      status: 2,
      deletedAt: null,
    });
    expect(
      mapUser({ id: 2, username: "b", deleted_at: "2025-06-01 00:00:00+00:00" }, userFacts()).user.deletedAt,
    ).toBe(Date.UTC(2025, 5, 1) / 1000);
    const oneApi = userFacts({ family: "one-api" });
    expect(mapUser({ id: 3, username: "deleted_x", status: 3 }, oneApi).user).toMatchObject({
      status: 1,
      deletedAt: NOW,
    });
  });

  test("2^53 and more is cut, told, and the books still add up", () => {
    const facts = userFacts();
    const { user, credits } = mapUser(
      { id: 1, username: "root", quota: "500000000000000000", used_quota: 400 },
      facts,
    );
    // What was given in all is exact as well.
    expect(credits[0]?.amount).toBe(Number.MAX_SAFE_INTEGER);
    expect(user.quota).toBe(Number.MAX_SAFE_INTEGER - 400);
    expect((credits[0]?.amount ?? 0) - (user.usedQuota ?? 0)).toBe(user.quota ?? 0);
    expect(told(facts.notes)).toEqual({ capped: ["1 (quota)"], quota_beyond: ["1"] });
  });

  test("what plans have left joins the balance, and is no credit of the import; the old group comes back", () => {
    const plan = {
      left: 400,
      used: 100,
      until: NOW + DAY,
      isStrict: true,
      planGroup: "vip",
      ownGroup: "basic",
    };
    const { user, credits } = mapUser(
      { id: 1, username: "a", quota: 50, used_quota: 130, group: "vip" },
      userFacts({ plans: new Map([[1, plan]]) }),
    );
    expect(user).toMatchObject({
      quota: 450,
      planWallet: 50,
      planMark: 130,
      planUntil: NOW + DAY,
      planStrict: true,
      planGroup: "vip",
      group: "basic",
    });
    const moved = userFacts({ plans: new Map([[1, plan]]) });
    expect(mapUser({ id: 1, username: "a", group: "by hand" }, moved).user.group).toBe("by hand");
    // With the plan's own credit of 500: 80 + 500 - 130 = 450.
    expect(credits[0]?.amount).toBe(80);
  });

  test("of later products: administrators are told, those with a rule against them are ordinary users", () => {
    const facts = userFacts({
      family: "new-api-v1",
      denied: deniedBy([
        { v0: "user:7", v1: "channel", v2: "write", v3: "deny" },
        { v0: "user:8", v1: "channel", v2: "read", v3: "allow" },
      ]),
    });
    expect([7, 8].map((id) => mapUser({ id, username: `u${id}`, role: 10 }, facts).user.role)).toEqual([
      1, 10,
    ]);
    expect(told(facts.notes)).toEqual({ admin_denied: ["7"], admin_rights: ["8"] });
  });

  test("webhooks without TLS and ways that are not offered here become letters", () => {
    const facts = userFacts();
    const settingOf = (id: number, setting: unknown) =>
      JSON.parse(
        mapUser({ id, username: `u${id}`, setting: JSON.stringify(setting) }, facts).user.setting || "{}",
      ) as unknown;
    expect(settingOf(1, { notify_type: "webhook", webhook_url: "http://x" })).toEqual({
      notify_type: "email",
    });
    expect(settingOf(2, { notify_type: "bark", quota_warning_threshold: 9 })).toEqual({
      notify_type: "email",
      quota_warning_threshold: 9,
    });
    expect(mapUser({ id: 3, username: "u3", setting: "broken{" }, facts).user.setting).toBe("");
    expect(told(facts.notes)).toEqual({ webhook_http: ["1"], notify_kind: ["2 (bark)"] });
  });
});

describe("keys and codes", () => {
  const facts = (more = {}) => ({
    family: "new-api" as const,
    notes: createNotes(),
    seal,
    now: NOW,
    taken: new Set<string>(),
    sums: new Map(),
    hasUser: (id: number) => id < 100,
    ...more,
  });

  test("a key is found by its hash, and what it may do stays as it was", () => {
    const found = mapToken(
      {
        id: 3,
        user_id: 5,
        key: "abcd1234wxyz".padEnd(48),
        status: 4,
        remain_quota: 10,
        used_quota: 90,
        unlimited_quota: "t",
        model_limits_enabled: 1,
        model_limits: "gpt-4o",
        allow_ips: "10.0.0.1\n2001:db8::/32",
        group: "auto",
        auto_groups: ["a", "b", "a"],
        expired_time: null,
      },
      facts({ sums: new Map([[3, { quota: 60, count: 1, first: 0 }]]) }),
    );
    expect(found?.token).toMatchObject({
      id: 3,
      keyHash: sha256Hex("abcd1234wxyz"),
      keyHead: "abcd",
      keyTail: "wxyz",
      status: 4,
      remainQuota: 10,
      usedQuota: 90,
      quotaBase: 100,
      unlimitedQuota: true,
      modelLimitsEnabled: true,
      modelLimits: "gpt-4o",
      allowIps: "10.0.0.1\n2001:db8::/32",
      autoGroups: "a,b",
      expiredTime: -1,
    });
    expect(seal.open("token", found?.token.keySealed ?? "")).toBe("abcd1234wxyz");
    expect(found?.opening).toEqual({ kind: "token", id: 3, usedQuota: 30, requestCount: 0 });
  });

  test("empty, doubled, too long and orphaned keys are left out; what is odd about others is told", () => {
    const own = facts();
    const keys = [
      { id: 1, user_id: 1, key: "same" },
      { id: 2, user_id: 1, key: "same" },
      { id: 3, user_id: 1, key: null },
      { id: 4, user_id: 1, key: "x".repeat(129) },
      { id: 5, user_id: 100, key: "gone" },
      { id: 6, user_id: 1, key: "a-b" },
      { id: 7, user_id: 1, key: "ip", allow_ips: "somewhere" },
    ].map((row) => mapToken(row, own)?.token);
    expect(keys.map((token) => token?.id)).toEqual([1, undefined, undefined, undefined, undefined, 6, 7]);
    // A list of addresses that nobody understands must not let everybody in.
    expect(keys[6]).toMatchObject({ allowIps: "", status: 2 });
    expect(told(own.notes)).toEqual({
      key_taken: ["2"],
      key_empty: ["3"],
      key_long: ["4"],
      user_gone: ["5"],
      key_dash: ["6"],
      ips_unusable: ["7 (somewhere)"],
    });
    expect(own.notes.tables["tokens"]).toEqual({ read: 7, carried: 3, rejected: 4 });
  });

  test("an automatic key that stayed in one group there is told, one that went on is not", () => {
    const own = facts();
    for (const [id, group, retry] of [
      [1, "auto", 0],
      [2, "auto", null],
      [3, "auto", 1],
      [4, "vip", 0],
      [5, "auto", undefined],
    ] as const)
      mapToken({ id, user_id: 1, key: `k${id}`, group, cross_group_retry: retry }, own);
    expect(told(own.notes)).toEqual({ auto_next_group: ["1", "2"] });
  });

  test("one-api's list of models limits, its subnet is the list of addresses", () => {
    const found = mapToken(
      { id: 1, user_id: 1, key: "k", models: "a,b", subnet: "10.0.0.0/8" },
      facts({ family: "one-api" }),
    );
    expect(found?.token).toMatchObject({
      modelLimitsEnabled: true,
      modelLimits: "a,b",
      allowIps: "10.0.0.0/8",
    });
  });

  test("a code keeps its state, worth and end", () => {
    const own = facts();
    expect(
      mapRedemption(
        {
          id: 1,
          user_id: 1,
          key: "code".padEnd(32),
          status: 3,
          quota: 500,
          used_user_id: 2,
          expired_time: 0,
        },
        own,
      ),
    ).toMatchObject({ keyHash: sha256Hex("code"), status: 3, quota: 500, usedUserId: 2, expiresAt: 0 });
    expect(mapRedemption({ id: 2, user_id: 1, key: "code" }, own)).toBeUndefined();
  });
});

describe("log rows", () => {
  const facts = (more = {}) => ({
    family: "new-api" as const,
    notes: createNotes(),
    tokenIds: new Map<string, number>(),
    keptFrom: 0,
    ...more,
  });
  const call = {
    id: 1,
    user_id: 2,
    created_at: 7201,
    type: 2,
    quota: 5,
    use_time: 3,
    token_id: 4,
    model_name: "m",
    other: null,
  };

  test("a call keeps its row and adds to the sums of its hour", () => {
    const { row, sum } = mapLog(
      { ...call, prompt_tokens: 10, completion_tokens: 2, channel_id: 9, group: "g" },
      facts(),
    );
    expect(row).toMatchObject({ id: 1, type: 2, quota: 5, useTimeMs: 3000, tokenId: 4, other: "" });
    expect(sum).toEqual({
      hour: 7200,
      userId: 2,
      modelName: "m",
      channelId: 9,
      tokenId: 4,
      group: "g",
      count: 1,
      quota: 5,
      promptTokens: 10,
      completionTokens: 2,
      useTimeMs: 3000,
      loggedCount: 1,
      loggedQuota: 5,
    });
  });

  test("refunds, charges below nothing and foreign types are rows of the system, and no sum has them", () => {
    const own = facts();
    const mapped = [
      { ...call, type: 6 },
      { ...call, id: 2, quota: -5 },
      { ...call, id: 3, type: 99 },
    ].map((row) => mapLog(row, own));
    expect(mapped.map(({ row, sum }) => [row?.type, row?.other, sum])).toEqual([
      [4, '{"imported_type":6}', undefined],
      [4, '{"imported_type":2}', undefined],
      [4, '{"imported_type":99}', undefined],
    ]);
    expect(told(own.notes)).toEqual({ log_imported_type: ["1 (6)", "2 (2)", "3 (99)"] });
  });

  test("of one-api: milliseconds, tests are no errors, and a key by its name where a user has it once", () => {
    const own = facts({ family: "one-api", tokenIds: new Map([["2:mine", 8]]) });
    const row = { id: 1, user_id: 2, created_at: 1, type: 2, elapsed_time: 1234, token_name: "mine" };
    expect(mapLog(row, own).row).toMatchObject({ useTimeMs: 1234, tokenId: 8 });
    expect(mapLog({ ...row, token_name: "twice" }, own).row?.tokenId).toBe(0);
    expect(mapLog({ ...row, type: 5 }, own).row).toMatchObject({ type: 4, other: '{"imported_type":5}' });
  });

  test("what only administrators may read goes to them; an address comes along with what it is about", () => {
    const { row } = mapLog(
      {
        ...call,
        type: 3,
        ip: "10.1.1.1",
        other: { audit_info: { by: 1 }, admin_info: { use_channel: ["1"] }, op: { action: "x" } },
      },
      facts(),
    );
    expect(JSON.parse(row?.other ?? "")).toEqual({
      admin_info: { use_channel: ["1"], audit_info: { by: 1 } },
      op: { action: "x" },
      ip: "10.1.1.1",
    });
    const own = facts();
    expect(mapLog({ ...call, other: "{broken" }, own).row?.other).toBe("");
    expect(told(own.notes)).toEqual({ broken_json: ["1"] });
  });

  test("nobody's rows are left out; older calls become sums, other old rows stay", () => {
    const own = facts({ keptFrom: 10_000 });
    expect(mapLog({ ...call, user_id: 0 }, own)).toEqual({ row: undefined, sum: undefined });
    const old = mapLog(call, own);
    expect([old.row, old.sum?.count, old.sum?.loggedCount]).toEqual([undefined, 1, 0]);
    expect(mapLog({ ...call, type: 1 }, own).row?.type).toBe(1);
    expect(own.notes.tables["logs"]).toEqual({ read: 3, carried: 1, rejected: 1 });
  });

  test("sums of one hour become one, those of charts count without rows", () => {
    const sum = mapQuotaData({
      user_id: 1,
      model_name: "m",
      created_at: 3700,
      token_used: 9,
      count: 2,
      quota: 4,
    });
    expect(sum).toMatchObject({ hour: 3600, tokenId: 0, channelId: 0, group: "", promptTokens: 9, count: 2 });
    expect(sum?.loggedCount).toBeUndefined();
    expect(gathered([sum!, sum!])).toMatchObject([{ count: 4, quota: 8, promptTokens: 18 }]);
    expect(mapQuotaData({ user_id: 0, count: 1 })).toBeUndefined();
  });
});

describe("orders", () => {
  const facts = (more: Partial<OrderFacts> = {}): OrderFacts => ({
    notes: createNotes(),
    now: NOW,
    quotaPerUnit: 500_000,
    tradeNos: new Set(),
    hasUser: (id) => id < 100,
    termsOf: () => undefined,
    ...more,
  });
  const paid = {
    user_id: 1,
    amount: 10,
    money: 73.005,
    status: "success",
    create_time: NOW - 9 * DAY,
    complete_time: NOW - 8 * DAY,
  };

  test("money is exact: half up from the text, never from the double", () => {
    expect(
      ["73.005", "1.005", "73", "0.1", "1e3", "-1", "NaN", ""].map((text) => minorOfAmount(text, "CNY")),
    ).toEqual([7301, 101, 7300, 10, 100_000, 0, 0, 0]);
    expect(minorOfAmount("1000", "JPY")).toBe(1000);
  });

  test("each rail's amount means what it meant there", () => {
    const own = facts();
    const orders = [
      { ...paid, id: 1, trade_no: "E", payment_method: "alipay" },
      { ...paid, id: 2, trade_no: "S", payment_method: "stripe", money: 7.5 },
      { ...paid, id: 3, trade_no: "C", payment_method: "creem", amount: 1234 },
      { ...paid, id: 4, trade_no: "W", payment_method: "card", payment_provider: "waffo" },
    ].map((row) => mapTopUp(row, own, new Set()));
    expect(orders.map((order) => [order?.rail, order?.quota, order?.moneyMinor, order?.currency])).toEqual([
      ["epay", 5_000_000, 7301, "CNY"],
      ["stripe", 3_750_000, 750, "USD"],
      ["creem", 1234, 7301, "USD"],
      ["waffo", 5_000_000, 7301, "USD"],
    ]);
    expect(orders[0]).toMatchObject({ status: "credited", creditedAt: NOW - 8 * DAY, paidMinor: 7301 });
    expect(told(own.notes)).toEqual({ order_rail: ["3 (creem)", "4 (waffo)"] });
  });

  test("doubled and empty numbers get their own behind them; a plan's mirror and orphans are left out", () => {
    const own = facts();
    const row = { ...paid, status: "pending" };
    const orders = [
      { ...row, id: 1, trade_no: "T" },
      { ...row, id: 2, trade_no: "T", create_time: NOW - 60 },
      { ...row, id: 3, trade_no: null },
      { ...row, id: 4, trade_no: "MIRROR" },
      { ...row, id: 5, trade_no: "X", user_id: 100 },
    ].map((each) => mapTopUp(each, own, new Set(["MIRROR"])));
    expect(orders.map((order) => [order?.tradeNo, order?.status])).toEqual([
      ["T", "expired"],
      ["T#2", "pending"],
      ["#3", "expired"],
      [undefined, undefined],
      [undefined, undefined],
    ]);
    expect(told(own.notes)).toEqual({
      order_expired: ["1", "3"],
      order_trade_no: ["2 (T#2)", "3 (#3)"],
      order_mirror: ["4"],
      user_gone: ["5"],
    });
  });

  test("an order of a plan carries the terms that a late payment is kept by", () => {
    const terms = { planId: 2, title: "p", zone: "UTC" } as never;
    const own = facts({ termsOf: (id) => (id === 2 ? terms : undefined) });
    const row = { ...paid, id: 1, plan_id: 2, trade_no: "P", status: "pending", payment_method: "balance" };
    const order = mapPlanOrder(row, own, 11);
    expect(order).toMatchObject({ id: 11, kind: "plan", planId: 2, rail: "balance", status: "expired" });
    expect(JSON.parse((JSON.parse(order?.snapshot ?? "") as { terms: string }).terms)).toEqual(terms);
    expect(mapPlanOrder({ ...row, id: 2, plan_id: 3, trade_no: "Q" }, own, 12)?.status).toBe("failed");
  });
});

describe("second factors and providers", () => {
  const facts = () => ({
    notes: createNotes(),
    seal,
    now: NOW,
    isLiving: (id: number) => id < 100,
    passkeyHost: { old: "a.example", own: "a.example" },
  });

  test("a secret in force is sealed; what is off, deleted or unreadable is left out", () => {
    const own = facts();
    const row = { user_id: 1, secret: "jbsw y3dp ehpk 3pxp", is_enabled: 1 };
    const totp = mapTotp(row, own);
    expect(seal.open("user", totp?.secretSealed ?? "")).toBe("JBSWY3DPEHPK3PXP");
    expect(mapTotp({ ...row, is_enabled: false }, own)).toBeUndefined();
    expect(mapTotp({ ...row, deleted_at: new Date() }, own)).toBeUndefined();
    expect(mapTotp({ ...row, user_id: 2, secret: "no base 32!" }, own)).toBeUndefined();
    expect(mapTotp({ ...row, user_id: 100 }, own)).toBeUndefined();
    expect(told(own.notes)).toEqual({ totp_unusable: ["2"], user_gone: ["100"] });
  });

  test("unused backup codes stay the hashes that they are", () => {
    const hash = `$2a$10$${"x".repeat(53)}`;
    const { notes } = facts();
    const has = (id: number) => id === 1;
    expect(mapBackupCode({ user_id: 1, code_hash: hash, is_used: "f" }, notes, has)).toEqual({
      userId: 1,
      hash,
    });
    expect(mapBackupCode({ user_id: 1, code_hash: hash, is_used: true }, notes, has)).toBeUndefined();
    expect(mapBackupCode({ user_id: 2, code_hash: hash, is_used: 0 }, notes, has)).toBeUndefined();
  });

  test("a passkey of our host comes in this program's letters, one of another host does not", () => {
    const row = {
      user_id: 1,
      credential_id: "+/8=",
      public_key: "pQE/",
      aaguid: Buffer.alloc(16, 1).toString("base64"),
      sign_count: 4,
      transports: '["internal","hybrid"]',
      backup_eligible: true,
    };
    expect(mapPasskey(row, facts())).toMatchObject({
      credentialId: "-_8",
      publicKey: "pQE_",
      counter: 4,
      transports: "internal,hybrid",
      deviceType: "multiDevice",
      aaguid: "01010101-0101-0101-0101-010101010101",
    });
    const own = { ...facts(), passkeyHost: { old: "a.example", own: "b.example" } };
    expect(mapPasskey(row, own)).toBeUndefined();
    expect(told(own.notes)).toEqual({ passkey_host: ["1"] });
  });

  const provider = {
    id: 1,
    name: "Own",
    slug: "own",
    enabled: true,
    client_id: "c",
    client_secret: "s",
    authorization_endpoint: "https://id.example/a",
    token_endpoint: "https://id.example/t",
    user_info_endpoint: "https://id.example/u",
  };

  test("a provider keeps its name and secret; what is read otherwise here is off and told", () => {
    const own = { ...facts(), takenSlugs: new Set<string>() };
    const kept = mapProvider(provider, own);
    expect(kept).toMatchObject({ slug: "own", enabled: true, kind: "oauth2", userIdField: "sub" });
    expect(seal.open("user", kept.clientSecretSealed ?? "")).toBe("s");
    const off = [
      { ...provider, id: 2, slug: "own-2", user_id_field: "data.#.id" },
      { ...provider, id: 3, slug: "-bad-" },
      { ...provider, id: 4, slug: "own-4", access_policy: "{not json" },
    ].map((row) => mapProvider(row, own).enabled);
    expect(off).toEqual([false, false, false]);
    const strict = '{"logic":"and","conditions":[{"field":"org","op":"ne","value":"x"}]}';
    expect(mapProvider({ ...provider, id: 5, slug: "own-5", access_policy: strict }, own).enabled).toBe(true);
    expect(told(own.notes)).toEqual({
      provider_fields: ["2 (own-2)"],
      provider_slug: ["3 (-bad-)"],
      provider_policy: ["4 (own-4)", "5 (own-5)"],
    });
  });

  test("a short name that is another way in's here, whatever its letters, is replaced, told, and off", () => {
    const own = { ...facts(), takenSlugs: new Set(TAKEN_SLUGS) };
    const found = [
      { ...provider, id: 6, slug: "google" },
      { ...provider, id: 7, slug: "own" },
      { ...provider, id: 8, slug: "OWN" },
      { ...provider, id: 9, slug: "own-8" },
    ].map((row) => mapProvider(row, own));
    expect(found.map(({ slug, enabled }) => [slug, enabled])).toEqual([
      ["google-6", false],
      ["own", true],
      ["own-8", false],
      ["own-8-9", false],
    ]);
    expect(told(own.notes)).toEqual({
      provider_name_taken: ["6 (google → google-6)", "8 (own → own-8)", "9 (own-8 → own-8-9)"],
    });
  });

  test("a binding counts once, for who lives, of a provider that is there", () => {
    const own = {
      notes: createNotes(),
      taken: createTakenNames(),
      slugs: new Map([[1, "own"]]),
      isLiving: (id: number) => id < 100,
      owned: new Set<string>(),
    };
    const rows = [
      { id: 1, user_id: 1, provider_id: 1, provider_user_id: "s" },
      { id: 2, user_id: 2, provider_id: 1, provider_user_id: "s" },
      { id: 3, user_id: 1, provider_id: 1, provider_user_id: "other" },
      { id: 4, user_id: 3, provider_id: 9, provider_user_id: "s" },
      { id: 5, user_id: 100, provider_id: 1, provider_user_id: "z" },
    ];
    expect(rows.map((row) => mapBinding(row, own)?.subject)).toEqual([
      "s",
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(told(own.notes)).toEqual({ identity_taken: ["2", "3"], provider_gone: ["4"], user_gone: ["5"] });
  });
});

describe("tasks", () => {
  const facts = () => ({ notes: createNotes(), hasUser: (id: number) => id < 100 });

  test("a drawing keeps its milliseconds; one that failed was given back there", () => {
    const row = {
      id: 1,
      user_id: 1,
      action: "IMAGINE",
      submit_time: 1_700_000_000_123n,
      status: "FAILURE",
      quota: 5,
      progress: null,
    };
    expect(mapDrawing(row, facts())).toMatchObject({
      submitTimeMs: 1_700_000_000_123,
      modelName: "mj_imagine",
      refunded: true,
      progress: "0%",
    });
  });

  test("an open song is asked for by its upstream's id; foreign platforms are left out, open ones told apart", () => {
    const own = facts();
    const row = {
      id: 1,
      user_id: 1,
      platform: "suno",
      task_id: "task_public",
      action: "MUSIC",
      status: "IN_PROGRESS",
      progress: "30%",
    };
    const secret = { upstream_task_id: "up", token_id: 3 };
    expect(mapTask({ ...row, private_data: JSON.stringify(secret) }, own)).toMatchObject({
      taskId: "up",
      tokenId: 3,
    });
    const done = { ...row, id: 2, status: "SUCCESS", progress: "100%", private_data: secret };
    expect(mapTask(done, own)).toMatchObject({ taskId: "task_public" });
    expect(mapTask({ ...row, id: 3, platform: "36" }, own)).toBeUndefined();
    expect(mapTask({ ...done, id: 4, platform: "36" }, own)).toBeUndefined();
    expect(told(own.notes)).toEqual({ task_platform_open: ["3 (36)"], task_platform: ["4 (36)"] });
  });
});
