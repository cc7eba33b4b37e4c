// Paying by Stripe, over the wire against a fake of it whose events the package itself signs: what credits, what waits, what is
// taken back, and what nobody believes. On both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { askForOpenOrders } from "../../src/core/payments/rails.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { payByStripe, signedEvent, startFakeStripe, STRIPE_SECRET } from "../support/fake-stripe.ts";
import type { FakeSession, FakeStripe, Signing } from "../support/fake-stripe.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const NEXT_SECRET = "whsec_lkjihgfedcba9876543210";
const UNIT = 500_000;
const HOUR_MS = 3_600_000;

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let stripe: FakeStripe;
  let root: TestUser;
  let buyer: TestUser;
  let changed: [OptionKey, string][] = [];

  async function set(name: string, text: string): Promise<void> {
    const key = name as OptionKey;
    changed.push([key, app.deps.options.text(key)]);
    await app.deps.options.set(key, text);
  }

  beforeAll(async () => {
    stripe = startFakeStripe();
    app = await startTestApp({ database, clock });
    // Pages of a site that nobody has set up lead to the setup.
    const account = { username: "owner", password: "long enough", confirmPassword: "long enough" };
    await app.call("POST", "/api/setup", account);
    root = await app.createUser({ role: Role.root });
    await app.createChannel({});
    await payByStripe(app.deps, stripe);
  });
  afterAll(async () => {
    await app.close();
    await stripe.stop();
  });
  beforeEach(async () => {
    clock.advance(HOUR_MS);
    stripe.status = 200;
    // Root has just come in again: completing and refunding ask for that.
    root = await app.createUser({ role: Role.root });
    buyer = await app.createUser({ quota: 1000 });
  });
  afterEach(async () => {
    for (const [key, text] of changed.toReversed()) await app.deps.options.set(key, text);
    changed = [];
    await app.deps.ledger.flush();
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  const now = () => Math.floor(clock.nowMs() / 1000);

  async function order(amount = 10): Promise<FakeSession> {
    const { body } = await app.call<{ success: boolean; data: { pay_link: string } }>(
      "POST",
      "/api/user/stripe/pay",
      { amount },
      buyer,
    );
    expect(body).toMatchObject({ message: "success" });
    const session = stripe.sessions.find(({ url }) => url === body.data.pay_link);
    if (!session) throw new Error("no session");
    return session;
  }

  async function post(
    payload: string,
    header: string,
    headers: Record<string, string> = {},
  ): Promise<number> {
    const answer = await fetch(`${app.url}/api/stripe/webhook`, {
      method: "POST",
      headers: { "content-type": "application/json", "stripe-signature": header, ...headers },
      body: payload,
    });
    await answer.arrayBuffer();
    return answer.status;
  }

  async function tell(type: string, object: object, signing: Partial<Signing> = {}): Promise<number> {
    const { payload, header } = await signedEvent(type, object, {
      secret: STRIPE_SECRET,
      timestamp: now(),
      ...signing,
    });
    return post(payload, header);
  }

  const paid = (session: FakeSession, other: Partial<FakeSession> = {}) => ({
    ...session,
    payment_status: "paid",
    status: "complete",
    ...other,
  });
  const COMPLETED = "checkout.session.completed";

  async function balance(): Promise<number> {
    const { users } = app.deps.db.t;
    await app.deps.ledger.flush();
    const [row] = await app.deps.db.orm
      .select({ quota: users.quota })
      .from(users)
      .where(eq(users.id, buyer.id));
    return row?.quota ?? Number.NaN;
  }

  async function stateOf(session: FakeSession): Promise<string> {
    const { body } = await app.call<{ data: { items: { status: string }[] } }>(
      "GET",
      `/api/user/topup?trade_no=${session.client_reference_id}`,
      undefined,
      root,
    );
    return body.data.items[0]?.status ?? "none";
  }

  async function keyAnswers(): Promise<[number, unknown]> {
    const { key } = await app.createToken(buyer.id);
    const answer = await fetch(`${app.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    const body = (await answer.json()) as { error?: { message: string } };
    return [answer.status, body.error?.message];
  }

  test("a session is opened for the sum in whole coins, and its event credits once", async () => {
    const session = await order();
    expect(session).toMatchObject({ amount_total: 1000, currency: "usd", mode: "payment" });
    expect(await tell(COMPLETED, paid(session), { id: "evt_same" })).toBe(200);
    expect(await tell(COMPLETED, paid(session), { id: "evt_same" })).toBe(200);
    expect(await tell("checkout.session.async_payment_succeeded", paid(session))).toBe(200);
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect(await stateOf(session)).toBe("success");
  });

  test("a currency without cents is not multiplied", async () => {
    await set("StripeCurrency", "jpy");
    await set("StripeUnitPrice", "150");
    const session = await order();
    expect(session).toMatchObject({ amount_total: 1500, currency: "jpy" });
    // The same sum in cents that the currency does not have.
    const wrong = await order();
    await tell(COMPLETED, paid(wrong, { amount_total: 150_000 }));
    expect(await stateOf(wrong)).toBe("review");
    await tell(COMPLETED, paid(session));
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("a sum of three places is one that Stripe takes: the last is 0", async () => {
    await set("StripeCurrency", "kwd");
    await set("StripeUnitPrice", "0.3078");
    expect(await order()).toMatchObject({ amount_total: 3080, currency: "kwd" });
  });

  test("unpaid waits; paid, failed and over are what they say, in any order", async () => {
    const session = await order();
    await tell(COMPLETED, session);
    expect([await stateOf(session), await balance()]).toEqual(["pending", 1000]);
    await tell("checkout.session.async_payment_failed", session);
    expect(await stateOf(session)).toBe("failed");
    await tell("checkout.session.async_payment_succeeded", paid(session));
    expect([await stateOf(session), await balance()]).toEqual(["success", 1000 + 10 * UNIT]);
    const early = await order();
    await tell("checkout.session.async_payment_succeeded", paid(early));
    await tell(COMPLETED, early);
    await tell("checkout.session.expired", early);
    expect([await stateOf(early), await balance()]).toEqual(["success", 1000 + 20 * UNIT]);
    const over = await order();
    await tell("checkout.session.expired", over);
    expect(await stateOf(over)).toBe("expired");
  });

  test.each([
    [{ amount_total: 999 }],
    [{ currency: "jpy" }],
    [{ mode: "subscription" }],
    [{ id: "cs_other" }],
    [{ payment_intent: "" }],
    [{ payment_status: "no_payment_required" }],
  ])("genuine, but %j: to review, nothing is credited", async (other) => {
    const session = await order();
    expect(await tell(COMPLETED, paid(session, other))).toBe(200);
    expect([await stateOf(session), await balance()]).toEqual(["review", 1000]);
  });

  test("signatures: wrong, absent, old, ahead, over other bytes; two secrets while one replaces the other", async () => {
    const session = await order();
    const good = await signedEvent(COMPLETED, paid(session), { secret: STRIPE_SECRET, timestamp: now() });
    expect(await post(good.payload, "")).toBe(400);
    expect(await post(good.payload, good.header.replace(/v1=./, "v1=x"))).toBe(400);
    expect(await post(JSON.stringify(JSON.parse(good.payload), null, 1), good.header)).toBe(400);
    expect(await post(`\u{FEFF}${good.payload}`, good.header)).toBe(400);
    expect(await tell(COMPLETED, paid(session), { secret: NEXT_SECRET })).toBe(400);
    expect(await tell(COMPLETED, paid(session), { timestamp: now() - 301 })).toBe(400);
    expect(await tell(COMPLETED, paid(session), { timestamp: now() + 301 })).toBe(400);
    expect(await post(" ".repeat(2_000_000), good.header)).toBe(413);
    const gzipped = Bun.gzipSync(good.payload);
    const squeezed = await fetch(`${app.url}/api/stripe/webhook`, {
      method: "POST",
      headers: { "content-encoding": "gzip", "stripe-signature": good.header },
      body: gzipped,
    });
    expect([squeezed.status, (await squeezed.text()).includes("payment_event_invalid")]).toEqual([400, true]);
    expect(await balance()).toBe(1000);
    await set("StripeWebhookSecret", `${NEXT_SECRET},${STRIPE_SECRET}`);
    const second = await order();
    // While a secret is replaced the provider signs by both: one that is right is enough.
    const two = good.header.replace(",v1=", `,v1=${"0".repeat(64)},v1=`);
    expect(await post(good.payload, two)).toBe(200);
    expect(await post(good.payload, good.header)).toBe(200);
    expect(await tell(COMPLETED, paid(second), { secret: NEXT_SECRET })).toBe(200);
    expect(await balance()).toBe(1000 + 20 * UNIT);
  });

  test("of the other mode or another site: taken and ignored; ours that nobody knows yet is asked for once more", async () => {
    const session = await order();
    expect(await tell(COMPLETED, paid(session), { livemode: true })).toBe(200);
    expect(await tell(COMPLETED, paid(session, { metadata: { site: "other", order: "x" } }))).toBe(200);
    expect(await tell("payment_intent.created", {})).toBe(200);
    expect([await stateOf(session), await balance()]).toEqual(["pending", 1000]);
    expect(await tell(COMPLETED, paid(session, { client_reference_id: "USR1NOunknown" }))).toBe(503);
  });

  test("without both secrets there is neither a way to pay nor a route", async () => {
    const session = await order();
    const good = await signedEvent(COMPLETED, paid(session), { secret: STRIPE_SECRET, timestamp: now() });
    for (const key of ["StripeApiSecret", "StripeWebhookSecret"] as const) {
      await set(key, "");
      expect(await post(good.payload, good.header)).toBe(404);
      const refused = await app.call<{ code: string }>("POST", "/api/user/stripe/pay", { amount: 10 }, buyer);
      expect(refused.body.code).toBe("payment_unset");
      await app.deps.options.set(key, changed.at(-1)?.[1] ?? "");
    }
  });

  test("a provider that is away fails the order in words, and a lost event is asked for", async () => {
    stripe.status = 500;
    const refused = await app.call<{ code: string }>("POST", "/api/user/stripe/pay", { amount: 10 }, buyer);
    expect(refused.body.code).toBe("payment_start_failed");
    stripe.status = 200;
    const session = await order();
    Object.assign(session, { payment_status: "paid", status: "complete" });
    await askForOpenOrders(app.deps);
    expect(await balance()).toBe(1000);
    clock.advance(11 * 60_000);
    await askForOpenOrders(app.deps);
    await askForOpenOrders(app.deps);
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("refunds: parts add up, a repeat and the wrong order change nothing, a failed one comes back", async () => {
    const session = await order();
    await tell(COMPLETED, paid(session));
    const charge = (amount: number) => ({ metadata: session.metadata, amount_refunded: amount });
    await tell("charge.refunded", charge(300));
    expect(await balance()).toBe(1000 + 7 * UNIT);
    await tell("charge.refunded", charge(1000));
    await tell("charge.refunded", charge(300));
    await tell("charge.refunded", charge(1000));
    expect([await balance(), await stateOf(session)]).toEqual([1000, "refunded"]);
    const failed = {
      id: `re_of_${session.id}`,
      status: "failed",
      payment_intent: session.payment_intent,
      amount: 700,
    };
    // Told by two kinds of event, and each of them again.
    for (const type of ["refund.failed", "charge.refund.updated", "refund.failed"]) await tell(type, failed);
    expect([await balance(), await stateOf(session)]).toEqual([1000 + 7 * UNIT, "success"]);
  });

  test("a dispute takes the credit and stops the keys until it is won; an inquiry does neither", async () => {
    const session = await order();
    await tell(COMPLETED, paid(session));
    const dispute = (status: string) => ({
      id: `dp_of_${session.id}`,
      payment_intent: session.payment_intent,
      amount: 1000,
      status,
    });
    await tell("charge.dispute.created", dispute("warning_needs_response"));
    expect([await balance(), (await keyAnswers())[0]]).toEqual([1000 + 10 * UNIT, 200]);
    const changed = spyOn(app.deps.accounts, "usersChanged");
    await tell("charge.dispute.created", dispute("needs_response"));
    // From the commit on memory does not let the keys in, whatever fails behind it.
    expect(changed.mock.calls.flatMap(([ids]) => ids)).toEqual([buyer.id]);
    changed.mockRestore();
    expect(await balance()).toBe(1000);
    expect((await keyAnswers())[0]).toBe(403);
    await tell("charge.dispute.closed", dispute("won"));
    expect([await balance(), (await keyAnswers())[0]]).toEqual([1000 + 10 * UNIT, 200]);
    // Refunded after all, and the dispute is won once more: nothing is given twice.
    await tell("charge.refunded", { metadata: session.metadata, amount_refunded: 1000 });
    await tell("charge.dispute.closed", dispute("won"));
    expect(await balance()).toBe(1000);
  });

  test("refunds that come all at once add up as if they came in order", async () => {
    const session = await order();
    await tell(COMPLETED, paid(session));
    const amounts = [300, 1000, 500, 300, 700];
    await Promise.all(
      amounts.map((amount) =>
        tell("charge.refunded", { metadata: session.metadata, amount_refunded: amount }),
      ),
    );
    expect([await balance(), await stateOf(session)]).toEqual([1000, "refunded"]);
  });

  test("an event that a failed refund has overtaken does not take the money again", async () => {
    const session = await order();
    await tell(COMPLETED, paid(session));
    const whole = { metadata: session.metadata, amount_refunded: 1000 };
    const failed = {
      id: `re_of_${session.id}`,
      status: "failed",
      payment_intent: session.payment_intent,
      amount: 1000,
    };
    await tell("charge.refunded", whole, { id: `evt_${session.id}` });
    await tell("refund.failed", failed);
    await tell("charge.refunded", whole, { id: `evt_${session.id}` });
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("word of a refund that comes after that refund has failed takes nothing; of the next one it does", async () => {
    const session = await order();
    await tell(COMPLETED, paid(session));
    const refund = { id: `re_of_${session.id}`, payment_intent: session.payment_intent, amount: 1000 };
    const whole = { metadata: session.metadata, amount_refunded: 1000, refunded: true };
    await tell("refund.failed", { ...refund, status: "failed" });
    await tell("charge.refunded", whole, { timestamp: now() - 60 });
    expect([await balance(), await stateOf(session)]).toEqual([1000 + 10 * UNIT, "success"]);
    await tell("charge.refunded", whole, { timestamp: now() + 60 });
    expect([await balance(), await stateOf(session)]).toEqual([1000, "refunded"]);
  });

  test("a refund by root that failed is asked for anew, not read again from the provider's memory", async () => {
    const session = await order();
    await tell(COMPLETED, paid(session));
    const asked = stripe.refunds.length;
    const body = { trade_no: session.client_reference_id, reason: "asked for" };
    for (const tries of [1, 2]) {
      const answer = await app.call("POST", "/api/user/topup/refund", body, root);
      expect(answer.body).toMatchObject({ success: true });
      expect([stripe.refunds.length - asked, await balance()]).toEqual([tries, 1000]);
      if (tries === 2) break;
      const refund = {
        id: `re_${stripe.refunds.length}`,
        payment_intent: session.payment_intent,
        amount: 1000,
      };
      await tell("refund.failed", { ...refund, status: "failed" });
      expect(await balance()).toBe(1000 + 10 * UNIT);
    }
    // Who asked for it stands in the trail, each time.
    const { logs } = app.deps.db.t;
    await app.deps.ledger.flush();
    const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, buyer.id));
    const told = rows.filter(({ other }) => other.includes('"order.refund"'));
    expect(told).toHaveLength(2);
    for (const { other } of told)
      expect(JSON.parse(other)).toMatchObject({
        op: { action: "order.refund", params: { order: session.client_reference_id, reason: "asked for" } },
        admin_info: { admin_username: root.username },
        auth_method: "session",
      });
  });

  test("a dispute's end before its beginning, and either of them again", async () => {
    for (const [status, left] of [
      ["won", 10 * UNIT],
      ["lost", 0],
    ] as const) {
      buyer = await app.createUser({ quota: 1000 });
      const session = await order();
      await tell(COMPLETED, paid(session));
      const dispute = (state: string) => ({
        id: `dp_of_${session.id}`,
        payment_intent: session.payment_intent,
        amount: 1000,
        status: state,
      });
      for (const [type, state] of [
        ["closed", status],
        ["created", "needs_response"],
        ["closed", status],
      ])
        expect(await tell(`charge.dispute.${type}`, dispute(state ?? ""))).toBe(200);
      expect([status, await balance(), (await keyAnswers())[0]]).toEqual([
        status,
        1000 + left,
        status === "won" ? 200 : 403,
      ]);
    }
  });

  test("a refund or dispute that is quicker than the payment is asked for once more, another site's is not", async () => {
    const session = await order();
    expect(await tell("charge.refunded", { metadata: session.metadata, amount_refunded: 300 })).toBe(503);
    const dispute = {
      id: "dp_early",
      payment_intent: session.payment_intent,
      amount: 1000,
      status: "needs_response",
    };
    expect(await tell("charge.dispute.created", dispute)).toBe(503);
    expect(await tell("charge.dispute.created", { ...dispute, payment_intent: "pi_elsewhere" })).toBe(200);
    await tell(COMPLETED, paid(session));
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect(await tell("charge.refunded", { metadata: session.metadata, amount_refunded: 300 })).toBe(200);
    expect(await balance()).toBe(1000 + 7 * UNIT);
  });

  test("an order that was completed by hand learns its payment, so that a dispute of it is heard", async () => {
    const session = await order();
    const body = { trade_no: session.client_reference_id, reason: "the event was lost" };
    await app.call("POST", "/api/user/topup/complete", body, root);
    await tell(COMPLETED, paid(session));
    expect(await balance()).toBe(1000 + 10 * UNIT);
    const dispute = {
      id: "dp_late",
      payment_intent: session.payment_intent,
      amount: 1000,
      status: "needs_response",
    };
    await tell("charge.dispute.created", dispute);
    expect(await balance()).toBe(1000);
  });

  test("root refunds what is left, with a reason; spent credit leaves a debt", async () => {
    const session = await order();
    await tell(COMPLETED, paid(session));
    await app.deps.ledger.atomic(function* (_tx, credit) {
      yield* credit({ userId: buyer.id, amount: -10 * UNIT, kind: "admin" });
    });
    const body = { trade_no: session.client_reference_id, reason: "ordered twice" };
    const admin = await app.createUser({ role: Role.admin });
    expect((await app.call("POST", "/api/user/topup/refund", body, admin)).status).toBe(403);
    expect((await app.call("POST", "/api/user/topup/refund", body, root)).body).toMatchObject({
      success: true,
    });
    expect(stripe.refunds.at(-1)?.get("amount")).toBe("1000");
    await tell("charge.refunded", { metadata: session.metadata, amount_refunded: 1000 });
    expect([await balance(), await stateOf(session)]).toEqual([1000 - 10 * UNIT, "refunded"]);
    const { key } = await app.createToken(buyer.id);
    const call = await fetch(`${app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-4o-mini", messages: [{ role: "user", content: "hi" }] }),
    });
    await call.text();
    expect([call.status, call.headers.get("x-weir-error-code")]).toEqual([403, "user_quota_empty"]);
    expect((await app.call("POST", "/api/user/topup/refund", body, root)).body).toMatchObject({
      code: "order_not_refundable",
    });
  });

  test("a receipt has the site's time and names its zone, whatever the reader's", async () => {
    await set("site.time_zone", "Asia/Tokyo");
    const session = await order();
    await tell(COMPLETED, paid(session));
    const path = `/topup/receipt/${session.client_reference_id}`;
    const headers = { ...buyer.headers, cookie: `${buyer.headers["cookie"]}; tz=America%2FLima` };
    const page = await (await fetch(app.url + path, { headers })).text();
    const there = new Date(clock.nowMs() + 9 * HOUR_MS).toISOString().slice(0, 19).replace("T", " ");
    expect(page).toContain(`${there} (Asia/Tokyo)`);
    // What a dispute took is no part of what was paid.
    const dispute = { id: "dp_receipt", payment_intent: session.payment_intent, amount: 400, status: "lost" };
    await tell("charge.dispute.closed", dispute);
    const left = await (await fetch(app.url + path, { headers })).text();
    expect(left).toMatch(/银行拒付扣回|Charged back by the bank/);
    expect(left).toMatch(/−[^<]*4\.00/);
    expect([page.includes("6.00"), left.includes("6.00")]).toEqual([false, true]);
  });

  test("no secret of a rail leaves the house: options, orders, what the rail said, logs, statement, status", async () => {
    const session = await order();
    await tell(COMPLETED, paid(session));
    const paths = [
      "/api/option/",
      "/api/option/rows",
      "/api/status",
      "/api/user/topup",
      `/api/user/topup/${session.client_reference_id}`,
      `/api/user/topup/${session.client_reference_id}/events`,
      "/api/log/?page_size=100",
      "/api/log/export?type=0",
      `/api/user/statement?month=2026-11&format=csv&user_id=${buyer.id}`,
      // The pages carry what they show as data.
      "/setting?tab=payment",
      "/order",
      `/order?order=${session.client_reference_id}`,
      "/topup",
      `/topup/receipt/${session.client_reference_id}`,
      "/topup/statement?month=2026-11",
    ];
    for (const path of paths) {
      const { status, text } = await app.call("GET", path, undefined, root);
      expect([path, status, /sk_test_|whsec_|v1=/.test(text)]).toEqual([path, 200, false]);
    }
  });
});
