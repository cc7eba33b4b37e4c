// Balances by administrators: a reason, an entry of the books, a daily ceiling that two at once cannot pass, and root is told.
// The same of what is as good as a balance: codes, and plans that are given away or ended.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { audit } from "../../src/core/ledger/audit.ts";
import { LogType } from "../../src/shared/enums.ts";

interface Envelope {
  success: boolean;
  code?: string;
  message: string;
  data: { ceiling: number | null; left: number | null };
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let root: TestUser;
  let user: TestUser;
  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    root = await app.createUser({ role: 100 });
    user = await app.createUser({ quota: 1000 });
  });
  afterAll(() => app.close());

  const put = async (body: object, as: TestUser) =>
    (await app.call<Envelope>("PUT", "/api/user/", { id: user.id, ...body }, as)).body;
  const change = (quota: number, as: TestUser) =>
    put({ quota_change: quota, quota_reason: "paid by bank" }, as);
  const ceiling = (text: string) => app.deps.options.set("AdminBalanceDailyCeiling", text);
  const leftOf = async (as: TestUser) =>
    (await app.call<Envelope>("GET", "/api/user/ceiling", undefined, as)).body.data.left;
  const balance = async () => {
    const { users } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, user.id));
    return row?.quota;
  };

  test("a difference needs a reason; the row, its entry and root's inbox tell of it", async () => {
    await ceiling("");
    const admin = await app.createUser({ role: 10 });
    expect((await put({ quota_change: 5 }, admin)).code).toBe("quota_reason_missing");
    expect((await put({ quota_change: 5, quota_reason: "  " }, admin)).code).toBe("quota_reason_missing");
    const before = await balance();
    expect((await change(5, admin)).success).toBe(true);
    expect(await balance()).toBe((before ?? 0) + 5);
    const { credits, logs } = app.deps.db.t;
    const entries = await app.deps.db.orm.select().from(credits).where(eq(credits.userId, user.id));
    expect(entries.filter(({ kind }) => kind === "admin").map(({ amount }) => amount)).toEqual([5]);
    const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, user.id));
    expect(rows.at(-1)?.content).toEndWith("，原因：paid by bank");
    expect(JSON.parse(rows.at(-1)?.other ?? "{}")).toMatchObject({
      op: { action: "user.quota", params: { change: 5, reason: "paid by bank" } },
      before,
      after: (before ?? 0) + 5,
    });
    await app.services.inbox.settle();
    const { inboxItems } = app.deps.db.t;
    const items = await app.deps.db.orm.select().from(inboxItems).where(eq(inboxItems.kind, "balance"));
    expect(items.map(({ subject }) => subject)).toEqual([`${admin.id}:${user.id}`]);
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("an absolute balance counts as its difference, both ways count, and root has no ceiling", async () => {
    await ceiling("100");
    const admin = await app.createUser({ role: 10 });
    const before = (await balance()) ?? 0;
    expect((await put({ quota: before + 60 }, admin)).success).toBe(true);
    expect(await leftOf(admin)).toBe(40);
    expect((await change(-30, admin)).success).toBe(true);
    expect(await leftOf(admin)).toBe(10);
    const refused = await change(11, admin);
    expect(refused.code).toBe("quota_ceiling");
    expect(refused.message).toContain("$0.000020");
    expect(await balance()).toBe(before + 30);
    expect((await change(10, admin)).success).toBe(true);
    expect(await leftOf(root)).toBe(null);
    expect((await change(1_000_000, root)).success).toBe(true);
  });

  test("twenty at once pass the ceiling by nothing", async () => {
    await ceiling("100");
    const admin = await app.createUser({ role: 10 });
    const before = (await balance()) ?? 0;
    const answers = await Promise.all(Array.from({ length: 20 }, () => change(10, admin)));
    expect(answers.filter(({ success }) => success)).toHaveLength(10);
    expect(await balance()).toBe(before + 100);
    expect(await leftOf(admin)).toBe(0);
  });

  test("each has a ceiling of their own, which the site's next day renews; 0 allows nothing", async () => {
    await ceiling("100");
    const [one, two] = [await app.createUser({ role: 10 }), await app.createUser({ role: 10 })];
    expect((await change(100, one)).success).toBe(true);
    expect((await change(1, one)).code).toBe("quota_ceiling");
    expect((await change(100, two)).success).toBe(true);
    clock.advance(86_400_000);
    expect(await leftOf(one)).toBe(100);
    expect((await change(100, one)).success).toBe(true);
    await ceiling("0");
    expect((await change(1, two)).code).toBe("quota_ceiling");
    expect((await change(-1, two)).code).toBe("quota_ceiling");
  });

  const ask = async <T = unknown>(method: string, path: string, body: unknown, as: TestUser) =>
    (await app.call<Omit<Envelope, "data"> & { data: T }>(method, path, body, as)).body;
  /** Items of root's inbox that name the administrator: kind, subject, what is said. */
  const toldOf = async (as: TestUser) => {
    await app.services.inbox.settle();
    const { inboxItems } = app.deps.db.t;
    const items = await app.deps.db.orm.select().from(inboxItems).orderBy(inboxItems.id);
    return items
      .filter(({ subject }) => subject.startsWith(`${as.id}:`))
      .map(({ kind, subject, params }) => [kind, subject, (JSON.parse(params) as { what: string }).what]);
  };
  /** Actions of the audit trail by that administrator. */
  const traced = async (as: TestUser) => {
    await app.deps.ledger.flush();
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm
      .select()
      .from(logs)
      .where(eq(logs.type, LogType.manage))
      .orderBy(logs.id);
    return rows.flatMap(({ userId, other }) => {
      const { op, admin_info: by } = JSON.parse(other) as {
        op?: { action: string; params: object };
        admin_info?: { admin_id: number };
      };
      return op && (by?.admin_id ?? userId) === as.id ? [[op.action, op.params]] : [];
    });
  };

  test("codes are balances: what they are worth together counts, a raised value by its gain; each leaves a row, and root is told", async () => {
    await ceiling("1000");
    const admin = await app.createUser({ role: 10 });
    const make = (quota: number, count: number) =>
      ask<string[]>("POST", "/api/redemption/", { name: "spring", quota, count }, admin);
    expect((await make(501, 2)).code).toBe("quota_ceiling");
    const { redemptions } = app.deps.db.t;
    const rows = () => app.deps.db.orm.select().from(redemptions).where(eq(redemptions.userId, admin.id));
    expect(await rows()).toHaveLength(0);
    expect((await make(300, 2)).data).toHaveLength(2);
    expect(await leftOf(admin)).toBe(400);
    const [code] = await rows();
    const set = (quota: number, as = admin) => ask("PUT", "/api/redemption/", { id: code?.id, quota }, as);
    expect((await set(701)).code).toBe("quota_ceiling");
    // Lowered and raised again is raised again.
    for (const quota of [500, 100, 300]) expect([quota, (await set(quota)).success]).toEqual([quota, true]);
    expect(await leftOf(admin)).toBe(0);
    expect((await set(301)).code).toBe("quota_ceiling");
    expect((await ask("PUT", "/api/redemption/", { id: code?.id, name: "summer" }, admin)).success).toBe(
      true,
    );
    expect((await change(1, admin)).code).toBe("quota_ceiling");
    expect((await set(1_000_000, root)).success).toBe(true);
    expect(await traced(admin)).toEqual([
      ["redemption.create", { name: "spring", count: 2, quota: 300 }],
      ["redemption.update", { name: "spring", before: 300, quota: 500 }],
      ["redemption.update", { name: "spring", before: 500, quota: 100 }],
      ["redemption.update", { name: "spring", before: 100, quota: 300 }],
    ]);
    expect(await toldOf(admin)).toEqual([
      ["codes", expect.stringMatching(new RegExp(`^${admin.id}:\\d+:spring$`)), "$0.000400"],
    ]);
  });

  test("plans are balances: their terms are root's; giving and ending goes by rank, counts, and root is told", async () => {
    await ceiling("1000");
    const admin = await app.createUser({ role: 10 });
    const other = await app.createUser({ role: 10 });
    const terms = { title: "Gift", quota: 100, duration_unit: "week", reset: "day", wallet_price: 50 };
    const { data: made } = await ask<{ id: number }>("POST", "/api/plan/", terms, root);
    for (const [method, path, body] of [
      ["POST", "/api/plan/", { ...terms, title: "Mine", wallet_price: 1 }],
      ["PUT", `/api/plan/${made.id}`, { quota: 1e15 }],
      ["DELETE", `/api/plan/${made.id}`, undefined],
    ] as const)
      expect([method, (await ask(method, path, body, admin)).success]).toEqual([method, false]);
    expect(await ask("GET", "/api/plan/", undefined, admin)).toMatchObject({ data: [{ quota: 100 }] });

    const give = (to: TestUser, as = admin) =>
      ask<{ id: number }>("POST", `/api/plan/user/${to.id}`, { plan_id: made.id, reason: "sorry" }, as);
    const end = (of: TestUser, id: number, more = {}) =>
      ask("POST", `/api/plan/user/${of.id}/cancel`, { user_plan_id: id, reason: "over", ...more }, admin);
    for (const to of [admin, other, root])
      expect([to.id, (await give(to)).code]).toEqual([to.id, "user_rank_update"]);
    expect((await ask("GET", `/api/plan/user/${other.id}`, undefined, admin)).code).toBe("user_rank_read");
    const { data: theirs } = await give(other, root);
    expect((await end(other, theirs.id)).code).toBe("user_rank_update");

    // Seven days of 100, the first of which is what the balance has so far.
    const { data: given } = await give(user);
    expect(await leftOf(admin)).toBe(300);
    expect((await give(user)).code).toBe("quota_ceiling");
    expect((await end(user, given.id)).success).toBe(true);
    expect(await leftOf(admin)).toBe(200);
    // The wallet gets back what it paid.
    const { data: bought } = await ask<{ id: number }>(
      "POST",
      `/api/plan/${made.id}/buy`,
      { method: "wallet" },
      user,
    );
    await ceiling("850");
    expect((await end(user, bought.id, { refund: true })).code).toBe("quota_ceiling");
    await ceiling("900");
    expect((await end(user, bought.id, { refund: true })).success).toBe(true);
    expect(await leftOf(admin)).toBe(0);
    expect((await traced(admin)).map(([action]) => action)).toEqual([
      "plan.grant",
      "plan.cancel",
      "plan.refund",
    ]);
    // Each act is an item of its own: what comes later says nothing of what was before.
    const of = (what: string) => `${admin.id}:${user.id}:${what}`;
    const told = await toldOf(admin);
    expect(told.toSorted((one, other) => one.join().localeCompare(other.join()))).toEqual([
      ["plan_by_hand", of(`ended:${given.id}`), "− Gift"],
      ["plan_by_hand", of(`ended:${bought.id}`), "− Gift"],
      ["plan_by_hand", of(`given:${given.id}`), "+ Gift"],
    ]);
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });
});
