// Payments and codes on two nodes that share a database: a hundred callbacks, a person who completes by hand, and two people with
// one code, all at once. Whoever is told what: it is credited once.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { startFakeEpay } from "../support/fake-epay.ts";
import type { EpayTrade } from "../support/fake-epay.ts";
import { signedEvent, startFakeStripe } from "../support/fake-stripe.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";

const UNIT = 500_000;
const SECRET = "whsec_0123456789abcdefghijkl";
const epay = startFakeEpay();
const stripe = startFakeStripe();
let database: TestDatabase;
let here: TestApp;
let there: TestApp;
let root: TestUser;
let buyer: TestUser;

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  const env = {
    DATABASE_URL: database.databaseUrl ?? "",
    ENCRYPTION_KEY: "one key for both nodes",
    SESSION_SECRET: "one secret for both nodes",
  };
  here = await startTestApp({ env });
  await here.deps.options.set("ServerAddress", here.url);
  await here.deps.options.set("EpayId", epay.pid);
  await here.deps.options.set("EpayKey", epay.key);
  await here.deps.options.set("PayAddress", epay.url);
  await here.deps.options.set("StripeApiBase", stripe.url);
  await here.deps.options.set("StripeApiSecret", "sk_test_0123456789");
  await here.deps.options.set("StripeWebhookSecret", SECRET);
  there = await startTestApp({ env });
  root = await here.createUser({ role: 100 });
  buyer = await here.createUser();
});
afterAll(async () => {
  await here.close();
  await there.close();
  await database.drop();
  await epay.stop();
  await stripe.stop();
});
afterEach(async () => {
  await Promise.all([here.deps.ledger.flush(), there.deps.ledger.flush()]);
  expect((await audit(here.deps.db)).differences).toEqual([]);
});

async function balance(): Promise<number> {
  const { users } = here.deps.db.t;
  const [row] = await here.deps.db.orm
    .select({ quota: users.quota })
    .from(users)
    .where(eq(users.id, buyer.id));
  return row?.quota ?? Number.NaN;
}

async function submitted(): Promise<EpayTrade> {
  const wish = { rail: "epay", method: "alipay", amount: 10 };
  const { body } = await here.call<{ data: { url: string; fields: Record<string, string> } }>(
    "POST",
    "/api/user/topup/pay",
    wish,
    buyer,
  );
  return epay.submit(body.data.url, body.data.fields);
}

const notifyOf = (app: TestApp) => `${app.url}/api/user/epay/notify`;

test("a hundred callbacks on two nodes credit once, and both nodes know the balance", async () => {
  const before = await balance();
  const trade = await submitted();
  const said = await Promise.all(
    Array.from({ length: 100 }, (_, number) =>
      epay.pay(trade, { notifyUrl: notifyOf(number % 2 ? here : there) }),
    ),
  );
  expect(said).toContain("success");
  expect(await balance()).toBe(before + 10 * UNIT);
});

test("callbacks on one node and a completion by hand on the other credit once", async () => {
  const before = await balance();
  const trade = await submitted();
  const byHand = { trade_no: trade.form["out_trade_no"], reason: "bank" };
  await Promise.all([
    epay.pay(trade, { notifyUrl: notifyOf(here) }),
    there.call("POST", "/api/user/topup/complete", byHand, root),
    epay.pay(trade, { notifyUrl: notifyOf(there), method: "POST" }),
    here.call("POST", "/api/user/topup/complete", byHand, root),
  ]);
  expect(await balance()).toBe(before + 10 * UNIT);
});

test("the events of one Stripe payment, doubled and on both nodes, credit once and take back once", async () => {
  const before = await balance();
  await here.call("POST", "/api/user/topup/pay", { rail: "stripe", method: "stripe", amount: 10 }, buyer);
  const session = stripe.sessions.at(-1);
  if (!session) throw new Error("no session");
  const everywhere = async (type: string, object: object) => {
    const { payload, header } = await signedEvent(type, object, {
      secret: SECRET,
      timestamp: Math.floor(Date.now() / 1000),
    });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, number) =>
        fetch(`${(number % 2 ? here : there).url}/api/stripe/webhook`, {
          method: "POST",
          headers: { "stripe-signature": header },
          body: payload,
        }),
      ),
    );
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    return new Set(answers.map(({ status }) => status));
  };
  const paid = { ...session, payment_status: "paid", status: "complete" };
  expect(await everywhere("checkout.session.completed", paid)).toEqual(new Set([200]));
  expect(await balance()).toBe(before + 10 * UNIT);
  const dispute = { id: "dp_1", payment_intent: session.payment_intent, amount: 1000 };
  await everywhere("charge.dispute.created", { ...dispute, status: "needs_response" });
  expect(await balance()).toBe(before);
  await everywhere("charge.dispute.closed", { ...dispute, status: "won" });
  expect(await balance()).toBe(before + 10 * UNIT);
  const charge = { metadata: session.metadata, amount_refunded: 300, refunded: false };
  await everywhere("charge.refunded", charge);
  expect(await balance()).toBe(before + 7 * UNIT);
});

test("a refund by root on both nodes at once, with the provider's word of it, goes back once", async () => {
  const before = await balance();
  await here.call("POST", "/api/user/topup/pay", { rail: "stripe", method: "stripe", amount: 10 }, buyer);
  const session = stripe.sessions.at(-1);
  if (!session) throw new Error("no session");
  const tell = async (node: TestApp, type: string, object: object) => {
    const timestamp = Math.floor(Date.now() / 1000);
    const { payload, header } = await signedEvent(type, object, { secret: SECRET, timestamp });
    const headers = { "stripe-signature": header };
    const answer = await fetch(`${node.url}/api/stripe/webhook`, { method: "POST", headers, body: payload });
    return answer.status;
  };
  expect(
    await tell(there, "checkout.session.completed", {
      ...session,
      payment_status: "paid",
      status: "complete",
    }),
  ).toBe(200);
  expect(await balance()).toBe(before + 10 * UNIT);
  const refund = { trade_no: session.client_reference_id, reason: "twice at once" };
  const charge = { metadata: session.metadata, amount_refunded: 1000, refunded: true };
  const asked = stripe.refunds.length;
  const [one, other, ...told] = await Promise.all([
    here.call<{ success: boolean }>("POST", "/api/user/topup/refund", refund, root),
    there.call<{ success: boolean }>("POST", "/api/user/topup/refund", refund, root),
    tell(here, "charge.refunded", charge),
    tell(there, "charge.refunded", charge),
  ]);
  // Whoever comes too late hears that there is nothing left.
  expect(one.body.success || other.body.success || stripe.refunds.length === asked).toBe(true);
  expect(stripe.refunds.length - asked).toBeLessThanOrEqual(1);
  expect(told).toEqual([200, 200]);
  expect(await balance()).toBe(before);
});

test("one code on two nodes at its last moment is worth its value once", async () => {
  const made = await here.call<{ data: string[] }>(
    "POST",
    "/api/redemption/",
    { name: "shared", quota: UNIT, count: 1, expired_time: Math.floor(Date.now() / 1000) + 3600 },
    root,
  );
  const [key = ""] = made.body.data;
  const before = await balance();
  const said = await Promise.all(
    Array.from({ length: 10 }, (_, number) =>
      (number % 2 ? here : there).call<{ success: boolean; code?: string }>(
        "POST",
        "/api/user/topup",
        { key },
        buyer,
      ),
    ),
  );
  expect(said.filter(({ body }) => body.success)).toHaveLength(1);
  expect(await balance()).toBe(before + UNIT);
  const { redemptions } = here.deps.db.t;
  await here.deps.db.orm.update(redemptions).set({ status: 1, expiresAt: Math.floor(Date.now() / 1000) });
  for (const node of [here, there])
    expect((await node.call<{ code: string }>("POST", "/api/user/topup", { key }, buyer)).body.code).toBe(
      "redemption_expired",
    );
});
