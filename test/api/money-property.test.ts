// Whatever is mixed with whatever: calls, given back or not, plans and their periods, orders, callbacks right and wrong, completions
// by hand, refunds, disputes, codes and gifts, some of them at once, by chance. Afterwards users.quota = credits − use − held, and each
// credit has its reason. Both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import fc from "fast-check";
import { audit } from "../../src/core/ledger/audit.ts";
import type { Reservation } from "../../src/core/deps.ts";
import { refundSteps, settledHourOf } from "../../src/core/ledger/refund.ts";
import { completeOrder, markExpired, markFailed, receivePayment } from "../../src/core/payments/orders.ts";
import { plansOf } from "../../src/core/plans/own-plans.ts";
import { renewPlans } from "../../src/core/plans/periods.ts";
import { buyFromWallet, cancelPlan, grantPlan, termsOf } from "../../src/core/plans/purchases.ts";
import type { PlanRow } from "../../src/core/plans/purse.ts";
import { takeBack } from "../../src/core/payments/taken-back.ts";
import { redeem } from "../../src/core/users/redemptions.ts";
import { sha256Hex } from "../../src/core/kit/seal.ts";
import { newRequestId } from "../../src/http/request-id.ts";
import { Failure } from "../../src/shared/failures.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const ORDERS = 3;
const CODES = 2;
const MONEY = 997;
/** The last one buys a plan. */
const which = fc.nat(ORDERS);
const PLANS = 3;
const HOUR_MS = 3_600_000;

const step = fc.oneof(
  fc.record({
    do: fc.constant("call" as const),
    hold: fc.integer({ min: 0, max: 4000 }),
    charge: fc.nat(6000),
  }),
  fc.record({ do: fc.constant("open" as const), hold: fc.integer({ min: 1, max: 4000 }) }),
  fc.record({ do: fc.constant("close" as const), charge: fc.option(fc.nat(6000)) }),
  fc.record({
    do: fc.constant("callback" as const),
    order: which,
    money: fc.constantFrom(MONEY, MONEY, MONEY, MONEY - 1, undefined),
    payment: fc.constantFrom("a", "a", "b"),
  }),
  fc.record({ do: fc.constant("byHand" as const), order: which, isProRata: fc.boolean() }),
  fc.record({
    do: fc.constant("refund" as const),
    order: which,
    minor: fc.integer({ min: 1, max: MONEY + 50 }),
  }),
  fc.record({ do: fc.constant("dispute" as const), order: which, minor: fc.constantFrom(0, 500, MONEY) }),
  fc.record({ do: fc.constantFrom("expire" as const, "fail" as const), order: which }),
  fc.record({ do: fc.constantFrom("buy" as const, "give" as const), plan: fc.nat(PLANS - 1) }),
  fc.record({ do: fc.constant("cancel" as const), nth: fc.nat(4), isRefund: fc.boolean() }),
  fc.record({ do: fc.constant("time" as const), hours: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ do: fc.constant("renew" as const) }),
  fc.record({ do: fc.constant("giveBack" as const) }),
  fc.record({ do: fc.constant("redeem" as const), code: fc.nat(CODES - 1) }),
  fc.record({ do: fc.constant("admin" as const), amount: fc.integer({ min: -3000, max: 3000 }) }),
);
const by = { id: 0, username: "", role: 100, address: "", userAgent: "", authMethod: "none" as const };
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;
/** Money that does not fit, then what may become of such an order, one after another: seldom by chance alone. */
const inReview = fc
  .tuple(
    which,
    fc.array(
      fc.oneof(
        fc.record({
          do: fc.constant("refund" as const),
          minor: fc.constantFrom(1, MONEY - 1, MONEY, MONEY + 50),
        }),
        fc.record({ do: fc.constant("dispute" as const), minor: fc.constantFrom(0, 500, MONEY) }),
        fc.record({ do: fc.constant("byHand" as const), isProRata: fc.boolean() }),
      ),
      { minLength: 2, maxLength: 4 },
    ),
  )
  .map(([order, then]): Step[][] => [
    [{ do: "callback", order, money: MONEY - 1, payment: "a" }],
    ...then.map((each): Step[] => [{ ...each, order }]),
  ]);
/** The steps of one list are taken at once. */
const anyhow = fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 8 });
const history = fc.oneof(
  { weight: 2, arbitrary: anyhow },
  {
    weight: 1,
    arbitrary: fc.tuple(inReview, anyhow).map(([first, rest]) => [...first, ...rest.slice(0, 4)]),
  },
);

/** One that was charged, and when. */
interface Call {
  requestId: string;
  quota: number;
  submittedAt: number;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let channelId = 0;
  let serial = 0;
  let plans: PlanRow[] = [];

  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    channelId = await app.createChannel({});
    const { db } = app.deps;
    const base = { durationUnit: "day", durationCount: 2, walletPrice: 900, createdAt: 0, updatedAt: 0 };
    plans = await db.orm
      .insert(db.t.plans)
      .values([
        { ...base, title: "over", quota: 3000, reset: "day", stack: "extend" },
        { ...base, title: "strict", quota: 4000, reset: "none", overflow: false, stack: "parallel" },
        { ...base, title: "once", quota: 2500, reset: "day", stack: "parallel", maxPerUser: 2, group: "vip" },
      ])
      .returning();
  });
  afterAll(() => app.close());

  function planOrder() {
    const [plan] = plans;
    if (!plan) throw new Error("no plan");
    const snapshot = JSON.stringify({ plan: plan.title, terms: JSON.stringify(termsOf(app.deps, plan)) });
    return { kind: "plan", planId: plan.id, snapshot };
  }

  /** One user's life: what of it is settled stands in `used`, and what is still open in `open`. */
  async function begin() {
    const { deps } = app;
    const { orders, redemptions } = deps.db.t;
    const { id } = await app.createUser({ quota: 9000 });
    const actor = await deps.accounts.user(id);
    if (!actor) throw new Error("no user");
    const life = ++serial;
    const now = Math.floor(clock.nowMs() / 1000);
    const tradeNos = Array.from(
      { length: ORDERS + 1 },
      (_, n) => `USR${id}NO${String(life * 10 + n).padStart(16, "0")}`,
    );
    const codes = Array.from({ length: CODES }, (_, n) => `code-${life}-${n}`);
    const base = { userId: id, rail: "epay", moneyMinor: MONEY, currency: "CNY", status: "pending" };
    const times = { createdAt: now, updatedAt: now, expiresAt: now + 3600 };
    await deps.db.orm.insert(orders).values(
      tradeNos.map((tradeNo, n) => ({
        ...base,
        ...times,
        tradeNo,
        quota: 5000 + n,
        ...(n < ORDERS ? {} : planOrder()),
      })),
    );
    await deps.db.orm.insert(redemptions).values(
      codes.map((code) => ({
        userId: id,
        keyHash: sha256Hex(code),
        keySealed: "",
        quota: 777,
        name: code,
      })),
    );
    return { id, actor, tradeNos, codes, open: [] as Reservation[], calls: [] as Call[], used: 0 };
  }
  type Life = Awaited<ReturnType<typeof begin>>;

  async function settle(life: Life, held: Reservation, quota: number): Promise<void> {
    const counts = { promptTokens: 1, completionTokens: 1, useTimeMs: 1 };
    const what = {
      modelName: "gpt-4o-mini",
      channelId,
      group: "default",
      isStream: false,
      content: "",
      other: {},
    };
    const submittedAt = Math.floor(clock.nowMs() / 1000);
    await held.settle({ quota, ...counts, ...what });
    life.used += quota;
    if (quota > 0) life.calls.push({ requestId: held.requestId, quota, submittedAt });
  }

  async function hold({ actor }: Life, amount: number): Promise<Reservation> {
    const requestId = newRequestId(clock.nowMs());
    return app.deps.ledger.reserve({ requestId, user: actor, token: undefined, amount });
  }

  /** A settled call came to nothing after all: its charge goes back where it was taken. */
  async function giveBack(life: Life): Promise<void> {
    const { deps } = app;
    const found = life.calls.pop();
    if (!found) return;
    await deps.ledger.flush();
    const { requestId, quota, submittedAt } = found;
    const of = {
      userId: life.id,
      tokenId: 0,
      channelId,
      keyId: 0,
      modelName: "gpt-4o-mini",
      group: "default",
    };
    const call = { ...of, requestId, quota, settledHour: 0 };
    const hour = await settledHourOf(deps.db, call, submittedAt);
    expect(await deps.db.atomic((tx) => refundSteps(deps.db, tx, call, hour ?? 0))).toBe(true);
    life.used -= quota;
    await deps.accounts.userChanged(life.id);
  }

  const byHand = ({ id, username, role }: Life["actor"]) =>
    ({ id, username, role, address: "127.0.0.1", userAgent: "test", authMethod: "session" }) as const;

  async function take(life: Life, given: Step): Promise<unknown> {
    const { deps } = app;
    const tradeNo = "order" in given ? (life.tradeNos[given.order] ?? "") : "";
    const eventId = `event-${++serial}`;
    switch (given.do) {
      case "call":
        return settle(life, await hold(life, given.hold), given.charge);
      case "open":
        return void life.open.push(await hold(life, given.hold));
      case "close": {
        const held = life.open.shift();
        return held && (given.charge === null ? held.release() : settle(life, held, given.charge));
      }
      case "callback":
        return receivePayment(deps, {
          rail: "epay",
          eventId,
          tradeNo,
          // Whoever pays "b" pays another order's money, or a second time.
          providerRef: given.payment === "a" ? `a-${tradeNo}` : `b-${life.id}`,
          moneyMinor: given.money,
          currency: undefined,
          doubt: "",
          payload: {},
        });
      case "byHand":
        return completeOrder(deps, byHand(life.actor), {
          tradeNo,
          reason: "test",
          isProRata: given.isProRata,
        });
      case "refund":
        return takeBack(deps, { tradeNo, eventId, reason: "refund" }, (known) => ({
          refundedMinor: Math.max(known.refundedMinor, given.minor),
        }));
      case "dispute":
        return takeBack(deps, { tradeNo, eventId, reason: "dispute" }, () => ({
          disputedMinor: given.minor,
        }));
      case "expire":
        return markExpired(deps, tradeNo);
      case "fail":
        return markFailed(deps, tradeNo, "no");
      case "buy":
        return buyFromWallet(deps, life.actor, plans[given.plan]?.id ?? 0);
      case "give":
        return grantPlan(deps, by, { userId: life.id, planId: plans[given.plan]?.id ?? 0, reason: "test" });
      case "cancel": {
        const { items } = await plansOf(deps, life.id);
        const userPlanId = items[given.nth]?.id ?? 0;
        return cancelPlan(deps, { userId: life.id, userPlanId, isRefund: given.isRefund });
      }
      case "time":
        return clock.advance(given.hours * HOUR_MS);
      case "renew":
        return renewPlans(deps, life.id);
      case "giveBack":
        return giveBack(life);
      case "redeem":
        return redeem(deps, life.actor, life.codes[given.code] ?? "");
      case "admin":
        return deps.ledger.atomic(function* (_tx, credit) {
          yield* credit({ userId: life.id, amount: given.amount, kind: "admin" });
        });
    }
  }

  async function expectSound(life: Life): Promise<void> {
    const { db, ledger } = app.deps;
    await ledger.flush();
    const { credits, orders, redemptions, reservations, userPlans, users } = db.t;
    const sumOf = (of: SQL) => sql`(select coalesce(sum(amount), 0) from ${of})`.mapWith(Number);
    // In one statement: a period of a plan may end between two, unasked, and both would be right.
    const sums = {
      quota: users.quota,
      usedQuota: users.usedQuota,
      booked: sumOf(sql`${credits} where ${credits.userId} = ${life.id}`),
      held: sumOf(sql`${reservations} where ${reservations.userId} = ${life.id}`),
    };
    const [user] = await db.orm.select(sums).from(users).where(eq(users.id, life.id));
    expect(user?.quota).toBe((user?.booked ?? NaN) - life.used - (user?.held ?? NaN));
    expect(user?.usedQuota).toBe(life.used);
    const booked = await db.orm.select().from(credits).where(eq(credits.userId, life.id));
    const sum = (of: readonly { amount: number }[]) => of.reduce((total, { amount }) => total + amount, 0);
    const ofPlans = await db.orm.select().from(userPlans).where(eq(userPlans.userId, life.id));
    for (const order of await db.orm.select().from(orders).where(eq(orders.userId, life.id))) {
      const wasCredited = order.creditedAt > 0;
      if (order.kind === "plan") {
        expect(ofPlans.filter(({ tradeNo }) => tradeNo === order.tradeNo)).toHaveLength(wasCredited ? 1 : 0);
        const back = booked.filter(
          ({ kind, ref }) => kind === "refund" && ref.startsWith(`${order.tradeNo}:`),
        );
        expect(sum(back) + order.debitedQuota).toBe(0);
        continue;
      }
      const paid = booked.filter(({ kind, ref }) => kind === "payment" && ref === order.tradeNo);
      expect(paid.map(({ amount }) => amount)).toEqual(wasCredited ? [order.quota] : []);
      const back = booked.filter(({ kind, ref }) => kind === "refund" && ref.startsWith(`${order.tradeNo}:`));
      expect(sum(back) + order.debitedQuota).toBe(0);
      const gone = Math.min(order.moneyMinor, order.refundedMinor + order.disputedMinor);
      expect(order.debitedQuota).toBe(wasCredited ? Math.floor((order.quota * gone) / order.moneyMinor) : 0);
    }
    for (const code of await db.orm.select().from(redemptions).where(eq(redemptions.userId, life.id))) {
      const got = booked.filter(({ kind, ref }) => kind === "redeem" && ref === String(code.id));
      expect(got).toHaveLength(code.status === 3 ? 1 : 0);
    }
  }

  test("any interleaving keeps users.quota = credits − use − held, and every credit has its reason", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (batches) => {
        const life = await begin();
        for (const batch of batches) {
          const results = await Promise.allSettled(batch.map((each) => take(life, each)));
          for (const result of results)
            if (result.status === "rejected") expect(result.reason).toBeInstanceOf(Failure);
          await expectSound(life);
        }
        await Promise.all(life.open.map((held) => held.release()));
        await expectSound(life);
      }),
      { numRuns: database === "sqlite" ? 40 : 15 },
    );
    expect((await audit(app.deps.db)).differences).toEqual([]);
  }, 120_000);
});
