// Balances by administrators: a reason, an entry of the books, a daily ceiling that two at once cannot pass, and root is told.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { audit } from "../../src/core/ledger/audit.ts";

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
});
