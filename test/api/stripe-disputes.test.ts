// Disputes of a part of a payment, over the wire against a fake of Stripe: each takes its own part and ends by itself.
// On both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { startTestApp } from "../support/app.ts";
import { balanceOf } from "../support/balances.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { payByStripe, signedEvent, startFakeStripe, STRIPE_SECRET } from "../support/fake-stripe.ts";
import type { FakeSession, FakeStripe } from "../support/fake-stripe.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const UNIT = 500_000;

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let stripe: FakeStripe;
  let buyer: TestUser;

  beforeAll(async () => {
    stripe = startFakeStripe();
    app = await startTestApp({ database, clock });
    await app.createChannel({});
    await payByStripe(app.deps, stripe);
  });
  afterAll(async () => {
    await app.deps.ledger.flush();
    const { differences } = await audit(app.deps.db);
    await app.close();
    await stripe.stop();
    expect(differences).toEqual([]);
  });
  beforeEach(async () => {
    buyer = await app.createUser({ quota: 1000 });
  });

  async function tell(type: string, object: object): Promise<void> {
    const timestamp = Math.floor(clock.nowMs() / 1000);
    const { payload, header } = await signedEvent(type, object, { secret: STRIPE_SECRET, timestamp });
    const answer = await fetch(`${app.url}/api/stripe/webhook`, {
      method: "POST",
      headers: { "content-type": "application/json", "stripe-signature": header },
      body: payload,
    });
    expect([type, answer.status]).toEqual([type, 200]);
  }

  /** An order of ten dollars that is paid. */
  async function order(): Promise<FakeSession> {
    type Started = { data: { pay_link: string } };
    const { body } = await app.call<Started>("POST", "/api/user/stripe/pay", { amount: 10 }, buyer);
    const session = stripe.sessions.find(({ url }) => url === body.data.pay_link);
    if (!session) throw new Error("no session");
    await tell("checkout.session.completed", { ...session, payment_status: "paid", status: "complete" });
    return session;
  }

  const partsOf =
    (session: FakeSession) =>
    (name: string, amount: number, status = "needs_response") => ({
      id: `dp_${name}_of_${session.id}`,
      payment_intent: session.payment_intent,
      amount,
      status,
    });

  const balance = (): Promise<number> => balanceOf(app, buyer.id);

  async function keyAnswers(): Promise<number> {
    const { key } = await app.createToken(buyer.id);
    const answer = await fetch(`${app.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    await answer.arrayBuffer();
    return answer.status;
  }

  test("two disputes of one payment take a part each, and each part ends by itself", async () => {
    const session = await order();
    const part = partsOf(session);
    const expectLeft = async (units: number, answer: number) =>
      expect([await balance(), await keyAnswers()]).toEqual([1000 + units * UNIT, answer]);
    await tell("charge.dispute.created", part("a", 300));
    await tell("charge.dispute.created", part("b", 500));
    await tell("charge.dispute.created", part("b", 500));
    await expectLeft(2, 403);
    await tell("charge.dispute.closed", part("b", 500, "won"));
    await expectLeft(7, 403);
    // Lost, and the account let in again by hand: the next one shuts it out once more.
    await tell("charge.dispute.closed", part("a", 300, "lost"));
    const { orders, paymentEvents, users } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ flagged: false }).where(eq(users.id, buyer.id));
    await app.deps.accounts.userChanged(buyer.id);
    await tell("charge.dispute.closed", part("a", 300, "lost"));
    await expectLeft(7, 200);
    await tell("charge.dispute.created", part("c", 100));
    await expectLeft(6, 403);
    await tell("charge.dispute.closed", part("c", 100, "won"));
    await tell("charge.refunded", { metadata: session.metadata, amount_refunded: 700 });
    const tradeNo = session.client_reference_id ?? "";
    const [row] = await app.deps.db.orm.select().from(orders).where(eq(orders.tradeNo, tradeNo));
    expect([await balance(), row?.disputedMinor, row?.refundedMinor]).toEqual([1000, 300, 700]);
    // Of events of older versions only the order says how much.
    await app.deps.db.orm
      .update(paymentEvents)
      .set({ report: "{}" })
      .where(eq(paymentEvents.tradeNo, tradeNo));
    await app.deps.db.orm.update(orders).set({ refundedMinor: 0 }).where(eq(orders.tradeNo, tradeNo));
    await tell("charge.dispute.created", part("d", 200));
    await tell("charge.dispute.closed", part("d", 200, "won"));
    const [kept] = await app.deps.db.orm.select().from(orders).where(eq(orders.tradeNo, tradeNo));
    expect(kept?.disputedMinor).toBe(300);
  });

  test("a dispute that was told without its sum ends by what its end says, beside a newer one", async () => {
    const session = await order();
    const part = partsOf(session);
    await tell("charge.dispute.created", part("old", 300));
    const { paymentEvents } = app.deps.db.t;
    const ofOrder = eq(paymentEvents.tradeNo, session.client_reference_id ?? "");
    await app.deps.db.orm.update(paymentEvents).set({ report: "{}" }).where(ofOrder);
    await tell("charge.dispute.created", part("new", 200));
    expect(await balance()).toBe(1000 + 5 * UNIT);
    await tell("charge.dispute.closed", part("old", 300, "won"));
    expect(await balance()).toBe(1000 + 8 * UNIT);
    await tell("charge.dispute.closed", part("new", 200, "won"));
    expect([await balance(), await keyAnswers()]).toEqual([1000 + 10 * UNIT, 200]);
  });
});
