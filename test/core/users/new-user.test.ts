// What a new account is given: its own gift, the invitee's, the inviter's; with credits that the audit adds up and rows of
// the log that say so. An inviter who is gone gets and gives nothing, and a name that is taken leaves no trace.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { addUser } from "../../../src/core/users/new-user.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let serial = 0;
  const account = (inviterId?: number) => {
    const username = `new${++serial}`;
    return { username, displayName: username, passwordHash: "none", inviterId };
  };
  const rowOf = async (id: number) => {
    const { users } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, id));
    if (!row) throw new Error("no such user");
    return row;
  };
  const saidOf = async (userId: number) => {
    await app.deps.ledger.flush();
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, userId));
    return rows.map(({ type, content }) => [type, content]);
  };

  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    const { options } = app.deps;
    await options.set("QuotaForNewUser", "250000");
    await options.set("QuotaForInvitee", "100000");
    await options.set("QuotaForInviter", "50000");
  });

  test("an account that an administrator makes has the site's gift, told in its log", async () => {
    const root = await app.createUser({ role: 100 });
    const made = await app.call<{ success: boolean; data: { id: number } }>(
      "POST",
      "/api/user/",
      { username: "made", password: "long enough" },
      root,
    );
    const { id } = made.body.data;
    expect(await rowOf(id)).toMatchObject({ quota: 250_000, inviterId: 0, displayName: "made" });
    expect((await app.deps.accounts.user(id))?.quota).toBe(250_000);
    expect(await saidOf(id)).toEqual([
      [3, "管理员创建了用户 made"],
      [4, "新用户注册赠送 ＄0.500000 额度"],
    ]);
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("whoever comes by an invitation gets both gifts, and the inviter's reward waits to be moved", async () => {
    const inviter = await app.createUser({ quota: 7 });
    const { id } = { id: await addUser(app.deps, account(inviter.id)) };
    expect(await rowOf(id)).toMatchObject({ quota: 350_000, inviterId: inviter.id });
    expect(await rowOf(inviter.id)).toMatchObject({
      quota: 7,
      affCount: 1,
      affQuota: 50_000,
      affHistoryQuota: 50_000,
    });
    expect(await saidOf(id)).toEqual([
      [4, "新用户注册赠送 ＄0.500000 额度"],
      [4, "使用邀请码赠送 ＄0.200000 额度"],
    ]);
    expect(await saidOf(inviter.id)).toEqual([[4, "邀请用户赠送 ＄0.100000 额度"]]);
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("without gifts there is an account, its inviter, and nothing else", async () => {
    for (const key of ["QuotaForNewUser", "QuotaForInvitee", "QuotaForInviter"] as const)
      await app.deps.options.set(key, "0");
    const inviter = await app.createUser();
    const id = await addUser(app.deps, account(inviter.id));
    expect(await rowOf(id)).toMatchObject({ quota: 0, inviterId: inviter.id });
    expect(await rowOf(inviter.id)).toMatchObject({ affCount: 0, affQuota: 0 });
    expect([await saidOf(id), await saidOf(inviter.id)]).toEqual([[], []]);
  });

  test("an inviter who is gone, or was never there, gets and gives nothing", async () => {
    const gone = await app.createUser();
    const { users } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ deletedAt: 1 }).where(eq(users.id, gone.id)).returning();
    for (const inviterId of [gone.id, 987_654]) {
      const id = await addUser(app.deps, account(inviterId));
      expect(await rowOf(id)).toMatchObject({ quota: 250_000, inviterId: 0 });
    }
    expect(await rowOf(gone.id)).toMatchObject({ affCount: 0, affQuota: 0 });
  });

  test("of twenty equal names at once one account comes to be, with one gift for each", async () => {
    const inviter = await app.createUser();
    const one = account(inviter.id);
    const made = await Promise.allSettled(Array.from({ length: 20 }, () => addUser(app.deps, one)));
    const refused = made.filter((each) => each.status === "rejected");
    expect(refused.map(({ reason }) => (reason as { code: string }).code)).toEqual(
      Array<string>(19).fill("username_taken"),
    );
    expect(await rowOf(inviter.id)).toMatchObject({ affCount: 1, affQuota: 50_000 });
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });
});
