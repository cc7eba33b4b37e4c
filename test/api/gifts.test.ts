// Codes with an end, and gifts that nobody can farm: booked by kind, rewards once and where the site says so after the first paid
// order, and never paid out by a refund. On both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { receivePayment } from "../../src/core/payments/orders.ts";
import { takeBack } from "../../src/core/payments/taken-back.ts";
import { addUser } from "../../src/core/users/new-user.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const UNIT = 500_000;

describe.each(DATABASE_KINDS)("on %s", (database) => {
  // Codes end by the clock of a shared database, which is the machine's.
  const clock = testClock(Date.now());
  let app: TestApp;
  let root: TestUser;
  let user: TestUser;
  let changed: [OptionKey, string][] = [];
  let serial = 0;

  async function set(key: OptionKey, text: string): Promise<void> {
    changed.push([key, app.deps.options.text(key)]);
    await app.deps.options.set(key, text);
  }

  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    root = await app.createUser({ role: Role.root });
    await app.deps.options.set("ServerAddress", "https://gate.example");
    await app.deps.options.set("EpayId", "1001");
    await app.deps.options.set("EpayKey", "key");
    await app.deps.options.set("PayAddress", "https://pay.example");
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    user = await app.createUser();
  });
  afterEach(async () => {
    for (const [key, text] of changed.toReversed()) await app.deps.options.set(key, text);
    changed = [];
    await app.deps.ledger.flush();
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  /** The time that codes end by: the shared database's, where nodes share one. */
  const now = () => Math.floor((database === "postgres" ? Date.now() : clock.nowMs()) / 1000);

  async function makeCode(expiredTime: number): Promise<{ id: number; key: string }> {
    const name = `code ${++serial}`;
    const body = { name, quota: UNIT, count: 1, expired_time: expiredTime };
    const made = await app.call<{ data: string[]; code?: string }>("POST", "/api/redemption/", body, root);
    const [key = ""] = made.body.data;
    const list = await app.call<{ data: { items: { id: number }[] } }>(
      "GET",
      `/api/redemption/?keyword=${key}`,
      undefined,
      root,
    );
    return { id: list.body.data.items[0]?.id ?? 0, key };
  }

  const redeem = async (key: string, as = user) =>
    (
      await app.call<{ success: boolean; code?: string; data: number }>(
        "POST",
        "/api/user/topup",
        { key },
        as,
      )
    ).body;

  async function rowOf(id: number) {
    const { users } = app.deps.db.t;
    await app.deps.ledger.flush();
    const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, id));
    if (!row) throw new Error("no user");
    return row;
  }

  async function shown() {
    const { body } = await app.call<{ data: Record<string, unknown> }>("GET", "/api/status");
    return [body.data["quota_display_type"], body.data["display_in_currency"]];
  }

  async function endAt(id: number, expiresAt: number): Promise<void> {
    const { redemptions } = app.deps.db.t;
    await app.deps.db.orm.update(redemptions).set({ expiresAt }).where(eq(redemptions.id, id));
  }

  test("a code ends at its second, whatever the clock of the node says; without an end it never does", async () => {
    const past = await app.call<{ code: string }>(
      "POST",
      "/api/redemption/",
      { name: "late", quota: 1, count: 1, expired_time: now() - 3600 },
      root,
    );
    expect(past.body.code).toBe("redemption_end_past");
    const [lasting, ended, endless] = [
      await makeCode(now() + 3600),
      await makeCode(now() + 3600),
      await makeCode(0),
    ];
    await endAt(ended.id, now());
    // A node whose clock is an hour off: where several share a database it is asked, not the node.
    if (database === "postgres") clock.jump(-3_600_000);
    expect(await redeem(ended.key)).toMatchObject({ success: false, code: "redemption_expired" });
    if (database === "postgres") clock.jump(2 * 3_600_000);
    expect(await redeem(lasting.key)).toMatchObject({ success: true, data: UNIT });
    if (database === "postgres") clock.jump(-3_600_000);
    expect(await redeem(endless.key)).toMatchObject({ success: true, data: UNIT });
    expect((await rowOf(user.id)).quota).toBe(2 * UNIT);
    // Given more time it is good again; a used one says that it was used, over or not.
    const longer = { id: ended.id, name: "longer", quota: UNIT, expired_time: now() + 60 };
    expect((await app.call("PUT", "/api/redemption/", longer, root)).body).toMatchObject({
      data: { expired_time: longer.expired_time },
    });
    expect(await redeem(ended.key)).toMatchObject({ success: true });
    await endAt(lasting.id, now() - 5);
    expect(await redeem(lasting.key)).toMatchObject({ code: "redemption_used" });
  });

  test("many at once at a code's last second: at most one gets it", async () => {
    const { id, key } = await makeCode(now() + 3600);
    await endAt(id, now() + 1);
    const said = await Promise.all(Array.from({ length: 12 }, () => redeem(key)));
    const won = said.filter(({ success }) => success).length;
    expect(won).toBeLessThanOrEqual(1);
    expect((await rowOf(user.id)).quota).toBe(won * UNIT);
  });

  async function invite(inviter: TestUser): Promise<TestUser & { row: number }> {
    const username = `guest${++serial}`;
    const id = await addUser(app.deps, { username, displayName: username, inviterId: inviter.id });
    return { id, username, headers: {}, row: id };
  }

  /** An order of 10 dollars, as the row would stand before its callback. */
  async function ordered(userId: number): Promise<string> {
    const { orders } = app.deps.db.t;
    const tradeNo = `USR${userId}NO${String(++serial).padStart(16, "0")}`;
    const at = now();
    await app.deps.db.orm.insert(orders).values({
      tradeNo,
      userId,
      rail: "epay",
      quota: 10 * UNIT,
      moneyMinor: 7300,
      currency: "CNY",
      status: "pending",
      createdAt: at,
      updatedAt: at,
      expiresAt: at + 3600,
    });
    return tradeNo;
  }

  const paid = (tradeNo: string) =>
    receivePayment(app.deps, {
      rail: "epay",
      eventId: `e${tradeNo}`,
      tradeNo,
      providerRef: `p${tradeNo}`,
      moneyMinor: 7300,
      currency: undefined,
      doubt: "",
      payload: {},
    });

  test("an invitation is rewarded once: at the registration, or with the first paid order where the site says so", async () => {
    await set("QuotaForInviter", "700");
    await set("QuotaForInvitee", "300");
    await invite(user);
    expect(await rowOf(user.id)).toMatchObject({ affCount: 1, affQuota: 700, affHistoryQuota: 700 });
    await set("InviteRewardAfterFirstOrder", "true");
    const guest = await invite(user);
    expect((await rowOf(user.id)).affQuota).toBe(700);
    expect((await rowOf(guest.id)).quota).toBe(300);
    // What was promised is given, whatever the site promises by then; two orders at once are one first order.
    await set("QuotaForInviter", "9000");
    const two = [await ordered(guest.id), await ordered(guest.id)];
    expect(await Promise.all([...two, ...two].map(paid))).toContain("credited");
    expect(await rowOf(user.id)).toMatchObject({ affCount: 2, affQuota: 1400, affHistoryQuota: 1400 });
    await paid(await ordered(guest.id));
    expect((await rowOf(user.id)).affQuota).toBe(1400);
    // A code is no order, and who is gone by then gets nothing.
    const other = await app.createUser();
    const late = await invite(other);
    const { users } = app.deps.db.t;
    const { key } = await makeCode(0);
    await redeem(key, { ...user, id: user.id });
    expect((await rowOf(other.id)).affQuota).toBe(0);
    await app.deps.db.orm.update(users).set({ deletedAt: 1 }).where(eq(users.id, other.id));
    await paid(await ordered(late.id));
    expect((await rowOf(other.id)).affQuota).toBe(0);
    expect((await rowOf(late.id)).inviteReward).toBe(0);
  });

  test("a reward goes back, once, with the whole money of the order that earned it", async () => {
    await set("QuotaForInviter", "700");
    await set("InviteRewardAfterFirstOrder", "true");
    const back = (tradeNo: string, eventId: string, taken: Parameters<typeof takeBack>[2]) =>
      takeBack(app.deps, { tradeNo, eventId: `${eventId}:${tradeNo}`, reason: eventId }, taken);
    const refunded = (minor: number) => () => ({ refundedMinor: minor });
    const [first, second] = [await invite(user), await invite(user)];
    const [one, other] = [await ordered(first.id), await ordered(second.id)];
    const later = await ordered(first.id);
    for (const tradeNo of [one, other, later]) await paid(tradeNo);
    expect(await rowOf(user.id)).toMatchObject({ affCount: 2, affQuota: 1400, affHistoryQuota: 1400 });
    // Neither a part, nor an open dispute, nor another order of the same buyer.
    await back(one, "part", refunded(7299));
    await back(later, "whole", refunded(7300));
    await back(other, "dispute", () => ({ disputedMinor: 7300 }));
    expect(await rowOf(user.id)).toMatchObject({ affCount: 2, affQuota: 1400 });
    await back(one, "whole", refunded(7300));
    await back(one, "again", refunded(7300));
    expect(await rowOf(user.id)).toMatchObject({
      affCount: 1,
      affQuota: 700,
      affHistoryQuota: 700,
      quota: 0,
    });
    // What was transferred and spent meanwhile is owed.
    const { users, credits } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ affQuota: 100 }).where(eq(users.id, user.id));
    await back(other, "lost", () => ({ disputedMinor: 7300, lostMinor: 7300 }));
    await back(other, "lost twice", () => ({ disputedMinor: 7300, lostMinor: 7300 }));
    expect(await rowOf(user.id)).toMatchObject({ affCount: 0, affQuota: 0, affHistoryQuota: 0, quota: -600 });
    const taken = await app.deps.db.orm.select().from(credits).where(eq(credits.userId, user.id));
    expect(taken.map(({ kind, amount, ref }) => [kind, amount, ref])).toEqual([
      ["invite", -600, `${other}:reward:lost:${other}`],
    ]);
  });

  test("a refund that fails gives the reward again, to where it was taken from, as often as it happens", async () => {
    await set("QuotaForInviter", "700");
    await set("InviteRewardAfterFirstOrder", "true");
    const guest = await invite(user);
    const tradeNo = await ordered(guest.id);
    await paid(tradeNo);
    const { users, credits } = app.deps.db.t;
    // Part of it was transferred and spent: that part is taken from the balance.
    await app.deps.db.orm.update(users).set({ affQuota: 300 }).where(eq(users.id, user.id));
    const tell = (eventId: string, minor: number) =>
      takeBack(app.deps, { tradeNo, eventId: `${eventId}:${tradeNo}`, reason: "refund" }, () => ({
        refundedMinor: minor,
      }));
    const before = { affCount: 1, affQuota: 300, affHistoryQuota: 700, quota: 0 };
    const gone = { affCount: 0, affQuota: 0, affHistoryQuota: 0, quota: -400 };
    for (const round of ["first", "second"]) {
      await tell(`${round} refund`, 7300);
      expect(await rowOf(user.id)).toMatchObject(gone);
      await tell(`${round} failure`, round === "first" ? 0 : 100);
      await tell(`${round} failure`, round === "first" ? 0 : 100);
      expect(await rowOf(user.id)).toMatchObject(before);
    }
    // While the whole is disputed nothing comes again; once that is won it does.
    await tell("third refund", 7300);
    const dispute = (eventId: string, disputedMinor: number, refundedMinor: number) =>
      takeBack(app.deps, { tradeNo, eventId: `${eventId}:${tradeNo}`, reason: "dispute" }, () => ({
        disputedMinor,
        refundedMinor,
      }));
    await dispute("opened", 7300, 7300);
    await dispute("failed meanwhile", 7300, 0);
    expect(await rowOf(user.id)).toMatchObject(gone);
    await dispute("won", 0, 0);
    expect(await rowOf(user.id)).toMatchObject(before);
    const booked = await app.deps.db.orm.select().from(credits).where(eq(credits.userId, user.id));
    expect(booked.map(({ amount }) => amount)).toEqual([-400, 400, -400, 400, -400, 400]);
  });

  test("gifts are booked by kind, and a refund of everything that was paid never pays one out", async () => {
    await set("QuotaForNewUser", "1000");
    await set("QuotaForInvitee", "300");
    const guest = await invite(user);
    const tradeNo = await ordered(guest.id);
    await paid(tradeNo);
    await takeBack(app.deps, { tradeNo, eventId: `whole:${tradeNo}`, reason: "refund" }, () => ({
      refundedMinor: 7300 * 5,
    }));
    expect((await rowOf(guest.id)).quota).toBe(1300);
    const { credits } = app.deps.db.t;
    const booked = await app.deps.db.orm
      .select({ kind: credits.kind, amount: credits.amount })
      .from(credits)
      .where(and(eq(credits.userId, guest.id)));
    expect(booked.toSorted((a, b) => (a.kind < b.kind ? -1 : 1))).toEqual([
      { kind: "invite", amount: 300 },
      { kind: "payment", amount: 10 * UNIT },
      { kind: "refund", amount: -10 * UNIT },
      { kind: "register", amount: 1000 },
    ]);
  });

  test("the two options of display say one thing, whichever is saved; amounts of the API stay dollars or units", async () => {
    const unit = async () => {
      const { body } = await app.call<{ data: { unit: string } }>(
        "GET",
        "/api/user/topup/info",
        undefined,
        user,
      );
      return body.data.unit;
    };
    expect([await shown(), await unit()]).toEqual([["USD", true], "dollars"]);
    await set("QuotaDisplayType", "CNY");
    expect([await shown(), await unit()]).toEqual([["CNY", true], "dollars"]);
    await set("DisplayInCurrencyEnabled", "false");
    expect([await shown(), await unit()]).toEqual([["TOKENS", false], "quota"]);
    await set("DisplayInCurrencyEnabled", "true");
    expect(await shown()).toEqual(["USD", true]);
    await set("QuotaDisplayType", "TOKENS");
    expect([await shown(), await unit()]).toEqual([["TOKENS", false], "quota"]);
    await set("QuotaDisplayType", "CUSTOM");
    expect(await shown()).toEqual(["CUSTOM", true]);
    // One written without the other, as a settings file may: units where either says so.
    const { options } = app.deps.db.t;
    await app.deps.db.orm
      .insert(options)
      .values({ key: "DisplayInCurrencyEnabled", value: "false" })
      .onConflictDoUpdate({ target: options.key, set: { value: "false" } });
    await app.deps.options.reload();
    expect([await shown(), await unit()]).toEqual([["TOKENS", false], "quota"]);
  });

  test("display: a file that names one of its two options ends in what it says, whatever the site showed", async () => {
    const [type, inCurrency] = ["QuotaDisplayType", "DisplayInCurrencyEnabled"];
    const send = async (verb: "plan" | "apply", document: object) => {
      const body = { document: { format: 1, ...document }, accept_guards: true };
      const answer = await app.call<{ data: { status: string } }>("POST", `/api/config/${verb}`, body, root);
      return answer.body.data.status;
    };
    const apply = (document: object) => send("apply", document);
    const written = { [type]: "TOKENS", [inCurrency]: false };
    for (const [site, file, ends] of [
      [written, { [type]: "CNY" }, ["CNY", true]],
      [written, { [inCurrency]: true }, ["USD", true]],
      // What the file says stands already, and the other of the two hid it.
      [{ [type]: "CUSTOM", [inCurrency]: false }, { [type]: "CUSTOM" }, ["CUSTOM", true]],
      [{ [type]: "CUSTOM", [inCurrency]: true }, { [inCurrency]: true }, ["CUSTOM", true]],
      [{ [type]: "CNY", [inCurrency]: true }, { [inCurrency]: false }, ["TOKENS", false]],
      [{ [type]: "CNY", [inCurrency]: true }, { [type]: "TOKENS" }, ["TOKENS", false]],
      [written, { [type]: "CNY", [inCurrency]: true }, ["CNY", true]],
      [written, {}, ["TOKENS", false]],
    ] as const) {
      await apply({ options: site });
      await apply({ options: file });
      expect([file, await shown()]).toEqual([file, [...ends]]);
      expect(await send("plan", { options: file })).toBe("nothing");
    }
    // Pruned: what the file does not name is as shipped, but not against what it names.
    await apply({ options: written });
    await apply({ prune: ["options"], options: { [type]: "CNY" } });
    expect(await shown()).toEqual(["CNY", true]);
    await apply({ prune: ["options"], options: { [inCurrency]: false } });
    expect(await shown()).toEqual(["TOKENS", false]);
    await apply({ prune: ["options"], options: {} });
    expect(await shown()).toEqual(["USD", true]);
  });
});
