// Plans over the wire: bought by order and by wallet, used up, overflowing or not, ended by the clock, cancelled, refunded;
// after each test the books agree to the unit. Both databases; time is the test's.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { hourOf } from "../../src/core/ledger/items.ts";
import { refundSteps } from "../../src/core/ledger/refund.ts";
import { completeOrder, orderOf, receivePayment } from "../../src/core/payments/orders.ts";
import { RAILS } from "../../src/core/payments/rails.ts";
import { markPending } from "../../src/core/payments/orders.ts";
import type { PaymentRail } from "../../src/core/payments/rail.ts";
import { takeBack } from "../../src/core/payments/taken-back.ts";
import type { PlanFields } from "../../src/core/plans/plans.ts";
import { allocatePlans, renewDuePlans, renewPlans } from "../../src/core/plans/periods.ts";
import { ownPlans } from "../../src/core/payments/plan-orders.ts";
import type { OwnPlans } from "../../src/core/payments/plan-orders.ts";
import { newRequestId } from "../../src/http/request-id.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import { balanceOf } from "../support/balances.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const Q = 1_000_000;
const WALLET = 5_000_000;
const PRICE = 400_000;

const pigeon: PaymentRail = {
  name: "pigeon",
  title: "pigeon",
  isGuarded: () => true,
  currency: () => "cny",
  price: () => "7.3",
  minimum: () => 1,
  seconds: 600,
  methods: () => [{ type: "white", name: "White pigeon", minimum: 0 }],
  async start(deps, order) {
    await markPending(deps, order.tradeNo);
    return { url: `https://loft.example/${order.tradeNo}` };
  },
  maxBodyBytes: 10,
  receive: () => Promise.resolve(""),
};

interface Told<T> {
  success: boolean;
  code?: string;
  data: T;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock(Date.UTC(2027, 0, 31, 2, 0, 0)); // 31 January, 10:00 in Shanghai
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let buyer: TestUser;
  let channelId = 0;
  let titles = 0;

  beforeAll(async () => {
    app = await startTestApp({ database, clock, rails: [...RAILS, pigeon] });
    channelId = await app.createChannel({});
    await app.deps.options.set("GroupRatio", JSON.stringify({ default: 1, vip: 0.5, gold: 0.25 }));
    await app.deps.options.set("site.time_zone", "Asia/Shanghai");
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    root = await app.createUser({ role: Role.root });
    admin = await app.createUser({ role: Role.admin });
    buyer = await app.createUser({ quota: WALLET });
  });
  afterEach(async () => {
    await app.deps.ledger.flush();
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  const call = async <T>(method: string, path: string, body?: unknown, as = buyer) =>
    (await app.call<Told<T>>(method, `/api/plan${path}`, body, as)).body;

  /** At this moment, with people who have signed in at it. */
  async function travel(text: string): Promise<void> {
    clock.jump(Date.parse(text) - clock.nowMs());
    root = await app.createUser({ role: Role.root });
    admin = await app.createUser({ role: Role.admin });
    buyer = await app.createUser({ quota: WALLET });
  }

  async function makePlan(fields: Partial<PlanFields> = {}): Promise<number> {
    const plan = {
      title: `plan ${++titles}`,
      quota: Q,
      duration_unit: "month",
      reset: "none",
      price: "73.00",
      currency: "cny",
      wallet_price: PRICE,
      ...fields,
    };
    const made = await call<{ id: number }>("POST", "/", plan, root);
    expect(made.success).toBe(true);
    return made.data.id;
  }
  const buy = (id: number, as = buyer) =>
    call<{ id: number; trade_no: string }>("POST", `/${id}/buy`, { method: "wallet" }, as);
  /** Sessions end with time, so what the page shows is asked for as the page's loader does. */
  async function own(): Promise<OwnPlans> {
    await app.deps.ledger.flush();
    return ownPlans(app.deps, await account());
  }
  const running = async () =>
    (await own()).items.filter(({ status }) => status === "active" || status === "waiting");

  async function account(id = buyer.id) {
    const user = await app.deps.accounts.user(id);
    if (!user) throw new Error("no user");
    return user;
  }

  /** One settled call. */
  async function use(quota: number, hold = quota): Promise<string> {
    const requestId = newRequestId(clock.nowMs());
    const held = await app.deps.ledger.reserve({
      requestId,
      user: await account(),
      token: undefined,
      amount: hold,
    });
    await held.settle(settlement(quota));
    return requestId;
  }
  const settlement = (quota: number) => ({
    quota,
    promptTokens: 1,
    completionTokens: 1,
    useTimeMs: 1,
    modelName: "gpt-4o-mini",
    channelId,
    group: "default",
    isStream: false,
    content: "",
    other: {},
    atMs: clock.nowMs(),
  });

  async function giveBack(requestId: string, quota: number): Promise<void> {
    await app.deps.ledger.flush();
    const call = {
      requestId,
      userId: buyer.id,
      tokenId: 0,
      channelId,
      modelName: "gpt-4o-mini",
      group: "default",
      quota,
      keyId: 0,
      settledHour: 0,
    };
    const hour = hourOf(Math.floor(clock.nowMs() / 1000));
    const isDone = await app.deps.db.atomic((tx) => refundSteps(app.deps.db, tx, call, hour));
    expect(isDone).toBe(true);
    await app.deps.accounts.userChanged(buyer.id);
  }

  const balance = (): Promise<number> => balanceOf(app, buyer.id);

  async function creditsOf(kind: string): Promise<number[]> {
    const { credits } = app.deps.db.t;
    const rows = await app.deps.db.orm
      .select({ amount: credits.amount })
      .from(credits)
      .where(and(eq(credits.userId, buyer.id), eq(credits.kind, kind)))
      .orderBy(credits.id);
    return rows.map(({ amount }) => amount);
  }

  /** How often other nodes were told that the buyer is changed: by more than a balance. */
  async function tellsOf(work: () => Promise<unknown>): Promise<number> {
    const changed = spyOn(app.deps.accounts, "usersChanged");
    await work();
    const told = changed.mock.calls.filter(([ids]) => ids.includes(buyer.id)).length;
    changed.mockRestore();
    return told;
  }

  const available = async () => app.deps.ledger.available({ user: await account(), token: undefined });

  /** An order of the plan as its rail reports it paid. */
  async function order(id: number): Promise<string> {
    const { data, code } = await call<{ trade_no: string }>("POST", `/${id}/buy`, { rail: "pigeon" });
    expect(code).toBeUndefined();
    return data.trade_no;
  }
  const paid = (tradeNo: string, fields = {}) =>
    receivePayment(app.deps, {
      rail: "pigeon",
      eventId: `landed:${tradeNo}`,
      tradeNo,
      providerRef: `p${tradeNo}`,
      moneyMinor: 7300,
      currency: "cny",
      doubt: "",
      payload: {},
      ...fields,
    });

  test("bought from the wallet: price, plan and period in one go; the plan pays first, then the wallet; its end takes the rest", async () => {
    const id = await makePlan();
    const bought = await buy(id);
    expect(bought).toMatchObject({ success: true, data: { trade_no: "" } });
    expect(await balance()).toBe(WALLET - PRICE + Q);
    expect([await creditsOf("plan_buy"), await creditsOf("plan")]).toEqual([[-PRICE], [Q]]);
    await use(300_000);
    const [mine] = await running();
    expect(mine).toMatchObject({
      status: "active",
      source: "wallet",
      period: { no: 1, quota: Q, used: 300_000 },
    });
    // Beyond the plan the wallet pays.
    await use(Q);
    expect(await running()).toMatchObject([{ period: { used: Q } }]);
    clock.advance(28 * DAY_MS);
    // 28 February, 10:00: the month from 31 January is over.
    await account();
    expect((await own()).items).toMatchObject([{ status: "ended", used_total: Q }]);
    expect(await creditsOf("plan_end")).toEqual([]);
    expect(await balance()).toBe(WALLET - PRICE + Q - 1_300_000);
  });

  test("resets come by the local month's end from the anchor; nothing carries over; the last period ends with the plan", async () => {
    await travel("2027-01-31T02:00:00Z");
    const id = await makePlan({ duration_count: 3, reset: "month" });
    await buy(id);
    await use(250_000);
    const ends: (number | undefined)[] = [];
    const nextPeriod = async (day: string): Promise<void> => {
      clock.jump(Date.parse(`${day}T01:59:59Z`) - clock.nowMs());
      const [before] = await running();
      ends.push(before?.period?.no);
      clock.jump(1000);
      // A call at the very second is the new period's.
      await use(1000);
      expect(await running()).toMatchObject([{ period: { used: 1000, quota: Q } }]);
    };
    // Only balances move; the plan's end may take a group.
    for (const day of ["2027-02-28", "2027-03-31"]) expect(await tellsOf(() => nextPeriod(day))).toBe(0);
    expect(ends).toEqual([1, 2]);
    expect(await creditsOf("plan")).toEqual([Q, Q, Q]);
    expect(await creditsOf("plan_end")).toEqual([250_000 - Q, 1000 - Q]);
    clock.jump(Date.parse("2027-04-30T02:00:00Z") - clock.nowMs());
    expect(await tellsOf(() => renewDuePlans(app.deps))).toBe(1);
    expect((await own()).items).toMatchObject([{ status: "ended", used_total: 252_000 }]);
    expect(await balance()).toBe(WALLET - PRICE);
  });

  test("a zone that the site changes to does not move what was bought; days missed meanwhile are not made up for", async () => {
    await travel("2027-05-01T15:00:00Z");
    const id = await makePlan({ duration_unit: "week", reset: "day" });
    await buy(id);
    await app.deps.options.set("site.time_zone", "America/New_York");
    try {
      const [first] = await running();
      expect(first?.period?.ends_at).toBe(Date.UTC(2027, 4, 2, 15) / 1000);
      clock.advance(3 * DAY_MS + 1000);
      await account();
      const [later] = await running();
      expect(later?.period).toMatchObject({ no: 2, starts_at: Date.UTC(2027, 4, 4, 15) / 1000, used: 0 });
      expect(later?.ends_at).toBe(Date.UTC(2027, 4, 8, 15) / 1000);
      expect(await balance()).toBe(WALLET - PRICE + Q);
    } finally {
      await app.deps.options.set("site.time_zone", "Asia/Shanghai");
    }
  });

  test("without overflow calls end with the plan's quota, whatever the wallet has; top-ups do not change that, the next period does", async () => {
    const id = await makePlan({ overflow: false, duration_unit: "week", reset: "day" });
    await buy(id);
    expect(await available()).toBe(Q);
    const key = await app.createToken(buyer.id);
    await use(Q - 10_000);
    expect(await available()).toBe(10_000);
    await app.deps.ledger.atomic(function* (_, credit) {
      yield* credit({ userId: buyer.id, amount: 777, kind: "admin" });
    });
    expect(await available()).toBe(10_000);
    expect(await use(20_000).catch((error: unknown) => error)).toMatchObject({ code: "plan_quota_used" });
    // What a call costs beyond its hold is charged, and nothing is left then.
    await use(15_000, 10_000);
    expect(await available()).toBe(-5000);
    const refused = await app.call<{ error: { code: string; message: string } }>(
      "POST",
      "/v1/chat/completions",
      { model: "gpt-4o-mini", messages: [{ role: "user", content: "hi" }] },
      { id: buyer.id, username: "", headers: { authorization: `Bearer ${key.key}` } },
    );
    expect([refused.status, refused.headers.get("x-weir-error-code")]).toEqual([403, "plan_quota_used"]);
    clock.advance(DAY_MS);
    expect(await available()).toBe(Q);
    // The day before took 5,000 from the wallet.
    expect(await balance()).toBe(WALLET - PRICE + 777 - 5000 + Q);
  });

  test("20 calls at once on the last units: exactly those are served that it can pay", async () => {
    const id = await makePlan({ overflow: false, quota: 100_000 });
    await buy(id);
    const user = await account();
    const tries = await Promise.allSettled(
      Array.from({ length: 20 }, async () => {
        const requestId = newRequestId(clock.nowMs());
        const held = await app.deps.ledger.reserve({ requestId, user, token: undefined, amount: 10_000 });
        await held.settle(settlement(10_000));
      }),
    );
    expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
    expect(await running()).toMatchObject([{ period: { used: 100_000 } }]);
    expect(await available()).toBe(0);
  });

  test("another one extends: it waits, begins when the first ends, and moves up where that is cancelled; parallel ones run at once", async () => {
    const id = await makePlan({ duration_unit: "week", max_per_user: 3 });
    const [first, second, third] = [await buy(id), await buy(id), await buy(id)];
    expect(await buy(id)).toMatchObject({ success: false, code: "plan_limit" });
    const rows = (await running()).toSorted((a, b) => a.id - b.id);
    expect(rows.map(({ status }) => status)).toEqual(["active", "waiting", "waiting"]);
    expect(rows.map(({ starts_at: from }) => from).slice(1)).toEqual(
      rows.map(({ ends_at: to }) => to).slice(0, 2),
    );
    expect(await creditsOf("plan")).toEqual([Q]);
    await use(100_000);
    await call("POST", `/self/${first.data.id}/cancel`);
    const left = (await running()).toSorted((a, b) => a.id - b.id);
    const now = Math.floor(clock.nowMs() / 1000);
    expect(left).toMatchObject([
      { id: second.data.id, status: "active", starts_at: now },
      { id: third.data.id, status: "waiting", starts_at: now + 7 * 86_400 },
    ]);
    expect(await creditsOf("plan_end")).toEqual([100_000 - Q]);
    expect(await call("POST", `/self/${first.data.id}/cancel`)).toMatchObject({ code: "plan_over" });
    clock.advance(7 * DAY_MS);
    await renewDuePlans(app.deps);
    expect(await running()).toMatchObject([{ id: third.data.id, status: "active" }]);
    const both = await makePlan({ stack: "parallel", duration_unit: "day" });
    await buy(both);
    await buy(both);
    expect((await running()).filter(({ status }) => status === "active")).toHaveLength(3);
    // What lapses first pays first.
    await use(1_500_000);
    await allocatePlans(app.deps);
    const used = (await running()).toSorted((a, b) => a.id - b.id).map(({ period }) => period?.used);
    expect(used).toEqual([0, Q, 500_000]);
  });

  test("refunded calls go back to the plan in reverse, what the wallet paid to the wallet first; also over a period's end", async () => {
    const id = await makePlan({ duration_unit: "day" });
    await buy(id);
    const one = await use(600_000);
    const two = await use(600_000);
    await renewPlans(app.deps, buyer.id);
    expect(await running()).toMatchObject([{ period: { used: Q } }]);
    const whole = await balance();
    await giveBack(two, 600_000);
    expect(await running()).toMatchObject([{ period: { used: 400_000 } }]);
    expect(await balance()).toBe(whole + 600_000);
    clock.advance(DAY_MS);
    await renewDuePlans(app.deps);
    expect((await own()).items).toMatchObject([{ status: "ended", used_total: 400_000 }]);
    // The period is closed: what comes back now is the wallet's.
    const ended = await balance();
    clock.jump(-DAY_MS);
    await giveBack(one, 600_000);
    clock.jump(DAY_MS);
    expect(await balance()).toBe(ended + 600_000);
  });

  test("a call over a period's end counts where it arrives", async () => {
    const id = await makePlan({ duration_unit: "week", reset: "day" });
    await buy(id);
    const user = await account();
    const held = await app.deps.ledger.reserve({
      requestId: newRequestId(clock.nowMs()),
      user,
      token: undefined,
      amount: 200_000,
    });
    clock.advance(DAY_MS);
    await renewDuePlans(app.deps);
    expect(await creditsOf("plan_end")).toEqual([-Q]);
    await held.settle(settlement(200_000));
    expect(await running()).toMatchObject([{ period: { no: 2, used: 200_000 } }]);
  });

  test("the newest plan's group is in force everywhere while it runs, and is never written into the account", async () => {
    const vip = await makePlan({ group: "vip", duration_unit: "week" });
    const gold = await makePlan({ group: "gold", duration_unit: "day" });
    const plain = await makePlan({ duration_unit: "day" });
    expect(await tellsOf(() => buy(vip))).toBe(1);
    for (const id of [gold, plain]) await buy(id);
    const groupNow = async () => (await account()).group;
    const pricing = async () =>
      (await app.call<{ group_ratio: Record<string, number> }>("GET", "/api/pricing", undefined, buyer)).body
        .group_ratio;
    expect(await groupNow()).toBe("gold");
    expect(Object.keys(await pricing())).toContain("gold");
    const choices = (await app.call<Told<object>>("GET", "/api/user/self/groups", undefined, buyer)).body
      .data;
    expect(Object.keys(choices)).toContain("gold");
    clock.advance(DAY_MS);
    expect(await tellsOf(groupNow)).toBe(1);
    expect(await groupNow()).toBe("vip");
    expect(Object.keys(await pricing())).not.toContain("gold");
    const { users } = app.deps.db.t;
    const [row] = await app.deps.db.orm
      .select({ group: users.group })
      .from(users)
      .where(eq(users.id, buyer.id));
    expect(row?.group).toBe("default");
    // A group that a plan names keeps its ratio.
    const taken = await app.call<Told<null>>(
      "PUT",
      "/api/option/",
      { key: "GroupRatio", value: JSON.stringify({ default: 1, gold: 0.25 }) },
      root,
    );
    expect(taken.body).toMatchObject({ success: false, code: "price_group_in_use" });
    clock.advance(7 * DAY_MS);
    expect(await groupNow()).toBe("default");
  });

  test("paid by order: the terms of the order count, callbacks repeat, the limit holds, a rail of another currency does not take it", async () => {
    const id = await makePlan({ max_per_user: 1 });
    const [one, two] = [await order(id), await order(id)];
    expect(await call("POST", `/${id}/buy`, { rail: "epay" })).toMatchObject({ code: "payment_unset" });
    const dollars = await makePlan({ price: "10.00", currency: "USD", wallet_price: 0 });
    expect(await call("POST", `/${dollars}/buy`, { rail: "pigeon" })).toMatchObject({
      code: "plan_no_money",
    });
    expect((await own()).on_sale.map((plan) => plan.id)).not.toContain(dollars);
    // Changed, switched off and taken away before the money comes: what was ordered is delivered.
    await call("PUT", `/${id}`, { quota: 5, enabled: false }, root);
    expect((await call("DELETE", `/${id}`, undefined, root)).success).toBe(true);
    expect(await buy(id)).toMatchObject({ code: "plan_missing" });
    let verdicts: string[] = [];
    const pay = async () => void (verdicts = await Promise.all(Array.from({ length: 5 }, () => paid(one))));
    expect(await tellsOf(pay)).toBe(1);
    expect(verdicts.toSorted()).toEqual(["credited", "repeated", "repeated", "repeated", "repeated"]);
    expect(await creditsOf("plan")).toEqual([Q]);
    expect(await creditsOf("payment")).toEqual([]);
    expect(await balance()).toBe(WALLET + Q);
    // A second one is more than the plan allows: a person decides.
    expect(await paid(two)).toBe("review");
    expect(await balance()).toBe(WALLET + Q);
    const { data } = await app
      .call<Told<{ items: { plan: string; status: string }[] }>>(
        "GET",
        "/api/user/topup/self",
        undefined,
        buyer,
      )
      .then(({ body }) => body);
    expect(data.items.map(({ status }) => status)).toEqual(["review", "success"]);
    expect(data.items.every(({ plan }) => plan !== "")).toBe(true);
    // Who completes it by hand has seen that it is one too many.
    const by = {
      id: root.id,
      username: "root",
      role: Role.root,
      address: "",
      userAgent: "",
      authMethod: "session",
    } as const;
    await completeOrder(app.deps, by, { tradeNo: two, reason: "the money came", isProRata: false });
    expect((await orderOf(app.deps, two))?.status).toBe("credited");
    expect((await running()).map(({ title, status }) => [title, status])).toEqual([
      [`plan ${titles - 1}`, "waiting"],
      [`plan ${titles - 1}`, "active"],
    ]);
  });

  test("money that goes back ends the plan; what was used of it is owed once all of it went back; a lost dispute is the same", async () => {
    const id = await makePlan();
    const [part, whole, lost] = [await order(id), await order(id), await order(id)];
    for (const each of [part, whole, lost]) expect(await paid(each)).toBe("credited");
    await use(300_000);
    const back = (tradeNo: string, refundedMinor: number) =>
      takeBack(app.deps, { tradeNo, eventId: `${tradeNo}:${refundedMinor}`, reason: "refund" }, () => ({
        refundedMinor,
      }));
    // What a plan gave beside its balance ends on every node.
    expect(await tellsOf(() => back(part, 1000))).toBe(1);
    // The next one of the same plan begins at once.
    expect(await balance()).toBe(WALLET + Q);
    expect(await back(part, 7300)).toBe(-300_000);
    expect(await back(part, 7300)).toBe(0);
    // Its refund may fail, and the money is the site's again: the plan stays ended, and a person is told.
    const raised = spyOn(app.deps.inbox, "raise");
    const failed = { tradeNo: part, eventId: `${part}:failed`, reason: "refund_failed" };
    for (let time = 0; time < 2; time++) await takeBack(app.deps, failed, () => ({ refundedMinor: 0 }));
    expect(raised.mock.calls).toEqual([[{ kind: "payment", subject: part, params: { order: part } }]]);
    raised.mockRestore();
    expect(
      await takeBack(app.deps, { ...failed, eventId: `${part}:again`, reason: "refund" }, () => ({
        refundedMinor: 7300,
      })),
    ).toBe(-300_000);
    expect(await balance()).toBe(WALLET - 300_000 + Q);
    await use(200_000);
    const dispute = (reason: string, disputedMinor: number, lostMinor: number) =>
      takeBack(app.deps, { tradeNo: whole, eventId: `${whole}:${reason}`, reason }, () => ({
        disputedMinor,
        lostMinor,
      }));
    expect(await dispute("dispute", 7300, 0)).toBe(0);
    expect((await running()).map(({ status }) => status).toSorted()).toEqual(["active", "waiting"]);
    expect(await dispute("dispute_lost", 7300, 7300)).toBe(-200_000);
    expect(await running()).toMatchObject([{ status: "active", trade_no: lost }]);
    expect(await balance()).toBe(WALLET - 300_000 - 200_000 + Q);
    // Refunded purchases do not count against a limit; the plan's own end changes nothing afterwards.
    clock.advance(40 * DAY_MS);
    await renewDuePlans(app.deps);
    expect(await back(lost, 7300)).toBe(0);
    expect((await own()).items.map(({ status }) => status)).toEqual(["refunded", "refunded", "refunded"]);
    expect(await balance()).toBe(WALLET - 500_000);
  });

  test("administrators give, cancel and refund with a reason; users do none of it; wrong terms are named", async () => {
    const id = await makePlan({ enabled: false, quota: 50_000 });
    expect(await buy(id)).toMatchObject({ code: "plan_not_sold" });
    const give = () =>
      call<{ id: number }>("POST", `/user/${buyer.id}`, { plan_id: id, reason: "sorry" }, admin);
    expect(await tellsOf(give)).toBe(1);
    const [given] = await running();
    expect(given).toMatchObject({ source: "admin" });
    const act = (body: object, as = admin) => call("POST", `/user/${buyer.id}/cancel`, body, as);
    expect(await act({ user_plan_id: given?.id, reason: " " })).toMatchObject({ code: "reason_missing" });
    expect(await act({ user_plan_id: given?.id, reason: "x", refund: true })).toMatchObject({
      code: "plan_no_refund",
    });
    expect((await act({ user_plan_id: given?.id, reason: "x" })).success).toBe(true);
    expect(await balance()).toBe(WALLET);
    const sold = await makePlan();
    const bought = await buy(sold);
    await use(150_000);
    expect((await act({ user_plan_id: bought.data.id, reason: "by mail", refund: true })).success).toBe(true);
    expect(await balance()).toBe(WALLET - 150_000);
    for (const [method, path, body] of [
      ["GET", "/", undefined],
      ["POST", "/", {}],
      ["PUT", `/${sold}`, {}],
      ["DELETE", `/${sold}`, undefined],
      ["GET", `/user/${admin.id}`, undefined],
    ] as const)
      expect((await call(method, path, body)).success).toBe(false);
    const stranger = await app.createUser({});
    expect(await call("POST", `/self/${bought.data.id}/cancel`, undefined, stranger)).toMatchObject({
      code: "plan_missing",
    });
    const base = { title: "t", quota: Q, duration_unit: "month", wallet_price: 5 };
    const taken = await makePlan({ title: "taken" });
    expect(taken).toBeGreaterThan(0);
    for (const [fields, code] of [
      [{ title: " " }, "plan_title"],
      [{ title: "taken" }, "plan_title_taken"],
      [{ quota: 0 }, "quota_out_of_range"],
      [{ quota: 2e15 }, "quota_out_of_range"],
      [{ wallet_price: -1 }, "quota_out_of_range"],
      [{ wallet_price: 0 }, "plan_no_price"],
      [{ price: "7,3", currency: "CNY" }, "plan_price"],
      [{ price: "7.301", currency: "CNY" }, "plan_price"],
      [{ price: "7", currency: "XXX" }, "plan_price"],
      [{ price: "7.005", currency: "KWD" }, "plan_price"],
      [{ duration_count: 0 }, "plan_duration"],
      [{ duration_count: 121 }, "plan_duration"],
      [{ group: "nowhere" }, "plan_group"],
      [{ max_per_user: -1 }, "plan_max"],
    ] as const)
      expect(await call("POST", "/", { ...base, ...fields }, root)).toMatchObject({ success: false, code });
  });

  test("the wallet alone buys plans: what plans give does not; a site for oneself sells none", async () => {
    const id = await makePlan({ wallet_price: 3_000_000, quota: 9 * Q, stack: "parallel" });
    expect((await buy(id)).success).toBe(true);
    expect(await buy(id)).toMatchObject({ code: "plan_balance_short" });
    expect(await balance()).toBe(WALLET - 3_000_000 + 9 * Q);
    await app.deps.options.set("SelfUseModeEnabled", "true");
    try {
      expect(await buy(id)).toMatchObject({ code: "plan_not_sold" });
      expect((await own()).on_sale).toEqual([]);
      expect(await running()).toHaveLength(1);
    } finally {
      await app.deps.options.set("SelfUseModeEnabled", "false");
    }
  });

  test("several at once: as many purchases as the plan allows and the wallet pays, never more", async () => {
    const id = await makePlan({ max_per_user: 2, stack: "parallel" });
    const results = await Promise.all(Array.from({ length: 6 }, () => buy(id)));
    expect(results.filter(({ success }) => success)).toHaveLength(2);
    expect(await balance()).toBe(WALLET - 2 * PRICE + 2 * Q);
  });

  test("the audit names every figure of plans that is off by one", async () => {
    const id = await makePlan({ duration_unit: "day" });
    await buy(id);
    await use(1000);
    clock.advance(DAY_MS);
    await renewDuePlans(app.deps);
    await buy(id);
    await use(1000);
    await renewPlans(app.deps, buyer.id);
    const { planPeriods, users } = app.deps.db.t;
    const { orm } = app.deps.db;
    const [closed, open] = await orm
      .select()
      .from(planPeriods)
      .where(eq(planPeriods.userId, buyer.id))
      .orderBy(planPeriods.id);
    const period = (row: typeof open, set: object) =>
      orm
        .update(planPeriods)
        .set(set)
        .where(eq(planPeriods.id, row?.id ?? 0));
    const account = (set: object) => orm.update(users).set(set).where(eq(users.id, buyer.id));
    const [was] = await orm.select().from(users).where(eq(users.id, buyer.id));
    if (!open || !closed || !was) throw new Error("no rows");
    for (const [change, undo, names] of [
      [period(open, { used: 1001 }), period(open, { used: 1000 }), ["users.plan_wallet"]],
      [
        period(open, { quota: Q + 1 }),
        period(open, { quota: Q }),
        ["plan_periods.quota", "plan_periods.used", "users.plan_wallet"],
      ],
      [period(closed, { used: 1001 }), period(closed, { used: 1000 }), ["plan_periods.used"]],
      [
        period(closed, { used: -1 }),
        period(closed, { used: 1000 }),
        ["plan_periods.unsound", "plan_periods.used"],
      ],
      [account({ planMark: was.planMark + 1 }), account({ planMark: was.planMark }), ["users.plan_wallet"]],
      [account({ planUntil: 0 }), account({ planUntil: was.planUntil }), ["users.plan_until"]],
    ] as const) {
      await change;
      expect((await audit(app.deps.db)).differences.map(({ what }) => what).toSorted()).toEqual([...names]);
      await undo;
    }
  });
});
