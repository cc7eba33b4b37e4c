// Rails as the machine of orders sees them: a third one is a value of its interface and nothing else, lost callbacks are asked
// for, and what went to review leaves it by hand or by a refund. On both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { jobsOf } from "../../src/jobs/jobs.ts";
import { addRailOptions, askForOpenOrders, RAILS } from "../../src/core/payments/rails.ts";
import { markPending, receivePayment } from "../../src/core/payments/orders.ts";
import { readerOf } from "../../src/core/options/definitions.ts";
import { int, text, url } from "../../src/core/options/kinds.ts";
import type { PaymentRail, RailOption } from "../../src/core/payments/rail.ts";
import { Role } from "../../src/shared/enums.ts";
import type { OptionRow } from "../../src/shared/setting-rows.ts";
import { startTestApp } from "../support/app.ts";
import { balanceOf } from "../support/balances.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { startFakeEpay } from "../support/fake-epay.ts";
import { signedEvent, startFakeStripe } from "../support/fake-stripe.ts";
import type { FakeSession } from "../support/fake-stripe.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const UNIT = 500_000;
const HOUR_MS = 3_600_000;
const SECRET = "whsec_0123456789abcdefghijkl";

/** Money by pigeon: all that there is of this rail stands here. */
const sent: { refunds: [string, number | undefined][]; asked: string[] } = { refunds: [], asked: [] };
const settings = {
  PigeonLoft: {
    kind: url,
    default: "",
    isRequired: true,
    needs: { key: "ServerAddress", code: "option_needs_server_address" },
    texts: { title: { en: "Loft", zh: "鸽舍" }, help: { en: "Where they land.", zh: "鸽子落脚处。" } },
  },
  PigeonRing: {
    kind: text,
    default: "",
    secret: true,
    isRequired: true,
    texts: { title: { en: "Ring", zh: "脚环" }, help: { en: "Tells ours apart.", zh: "用于辨认。" } },
  },
  PigeonLeast: {
    kind: int(1),
    default: "2",
    unit: "dollars",
    texts: { title: { en: "Least load", zh: "最小载重" }, help: { en: "In dollars.", zh: "以美元计。" } },
  },
} as const satisfies Record<string, RailOption>;
const { valueOf } = readerOf(settings);

const pigeon: PaymentRail = {
  name: "pigeon",
  title: "By pigeon",
  settings,
  isGuarded: (options) => valueOf(options, "PigeonLoft") !== "" && valueOf(options, "PigeonRing") !== "",
  currency: () => "kwd",
  price: () => "0.305",
  minimum: (options) => valueOf(options, "PigeonLeast"),
  seconds: 600,
  methods: () => [
    { type: "white", name: "White pigeon", minimum: 0 },
    { type: "grey", name: "Grey pigeon", minimum: 3 },
  ],
  async start(deps, order) {
    await markPending(deps, order.tradeNo);
    return { url: `https://loft.example/${order.method}/${order.tradeNo}` };
  },
  maxBodyBytes: 1000,
  async receive(deps, { body }) {
    const { order, money, feather } = JSON.parse(new TextDecoder().decode(body)) as Record<string, string>;
    const verdict = await receivePayment(deps, {
      rail: "pigeon",
      eventId: `landed:${feather}`,
      tradeNo: order ?? "",
      providerRef: feather ?? "",
      moneyMinor: Number(money),
      currency: "KWD",
      doubt: "",
      payload: { feather: feather ?? "" },
    });
    return `coo ${verdict}`;
  },
  refund: (_deps, order, minor) => {
    sent.refunds.push([order.tradeNo, minor]);
    return Promise.resolve({ eventId: `back:${order.tradeNo}` });
  },
  ask: (_deps, order) => {
    sent.asked.push(order.tradeNo);
    return Promise.resolve();
  },
};

interface Told<T> {
  success: boolean;
  code?: string;
  data: T;
}

interface Order {
  trade_no: string;
  status: string;
  money: string;
  currency: string;
  quota: number;
  method_name: string;
  can_refund: boolean;
  refunded: string;
  background: { paid: string; note: string; actor_name: string } | null;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  const epay = startFakeEpay();
  const stripe = startFakeStripe();
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let buyer: TestUser;

  let forget = () => {};

  beforeAll(async () => {
    forget = addRailOptions([pigeon]);
    app = await startTestApp({ database, clock, rails: [...RAILS, pigeon] });
    const { db, options } = app.deps;
    await db.orm.insert(db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
    await options.set("ServerAddress", app.url);
    await options.set("EpayId", epay.pid);
    await options.set("EpayKey", epay.key);
    await options.set("PayAddress", epay.url);
    await options.set("StripeApiBase", stripe.url);
    await options.set("StripeApiSecret", "sk_test_0123456789");
    await options.set("StripeWebhookSecret", SECRET);
    await options.set("PigeonLoft", "https://loft.example");
    await options.set("PigeonRing", "ring-secret");
  });
  afterAll(async () => {
    await app.close();
    await Promise.all([epay.stop(), stripe.stop()]);
    forget();
  });
  beforeEach(async () => {
    clock.advance(HOUR_MS);
    root = await app.createUser({ role: Role.root });
    admin = await app.createUser({ role: Role.admin });
    buyer = await app.createUser({ quota: 1000 });
    sent.asked = [];
  });
  afterEach(async () => {
    await app.deps.ledger.flush();
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  async function call<T>(method: string, path: string, body?: unknown, as = buyer) {
    return (await app.call<Told<T>>(method, `/api/user/${path}`, body, as)).body;
  }
  const pay = async (rail: string, method: string, amount = 10) =>
    (
      await call<{ trade_no: string; url: string; fields: Record<string, string> | null }>(
        "POST",
        "topup/pay",
        {
          rail,
          method,
          amount,
        },
      )
    ).data;
  const orderOf = async (tradeNo: string, as = root) =>
    (await call<Order>("GET", `topup/${tradeNo}`, undefined, as)).data;

  const balance = (): Promise<number> => balanceOf(app, buyer.id);

  test("a third rail is its file and its row: offered, priced, ordered, called back, asked for, refunded", async () => {
    const { data: info } = await call<{
      open: boolean;
      unit: string;
      amounts: number[];
      methods: { rail: string; type: string; currency: string; min_topup: number }[];
    }>("GET", "topup/info");
    expect(info).toMatchObject({ open: true, unit: "dollars" });
    expect(
      info.methods.map(({ rail, type, currency, min_topup: least }) => [rail, type, currency, least]),
    ).toEqual([
      ["epay", "alipay", "CNY", 1],
      ["epay", "wxpay", "CNY", 1],
      ["stripe", "stripe", "USD", 1],
      ["pigeon", "white", "KWD", 2],
      ["pigeon", "grey", "KWD", 3],
    ]);
    const cost = (method: string, amount: number) =>
      call("POST", "topup/amount", { rail: "pigeon", method, amount });
    expect((await cost("white", 10)).data).toEqual({
      money: "3.050",
      currency: "KWD",
      quota: 10 * UNIT,
      discount: 1,
    });
    expect(await cost("grey", 2)).toMatchObject({ success: false, code: "topup_amount_low" });
    expect(await cost("pink", 5)).toMatchObject({ success: false, code: "payment_method_missing" });
    const { trade_no: tradeNo, url, fields } = await pay("pigeon", "grey");
    expect([url, fields]).toEqual([`https://loft.example/grey/${tradeNo}`, null]);
    clock.advance(11 * 60_000);
    await askForOpenOrders(app.deps);
    expect(sent.asked).toContain(tradeNo);
    const land = async (body: object) =>
      (await fetch(`${app.url}/api/payment/pigeon`, { method: "POST", body: JSON.stringify(body) })).text();
    const landing = { order: tradeNo, money: "3050", feather: `f${tradeNo}` };
    expect(await land(landing)).toBe("coo credited");
    expect(await land(landing)).toBe("coo repeated");
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect(await orderOf(tradeNo, buyer)).toMatchObject({
      status: "success",
      method_name: "Grey pigeon",
      can_refund: true,
      background: null,
    });
    const refund = { trade_no: tradeNo, reason: "flew back" };
    // Root came in 11 minutes ago: money goes back to who has proven themselves just now.
    expect(await call("POST", "topup/refund", refund, root)).toMatchObject({ code: "verification_required" });
    root = await app.createUser({ role: Role.root });
    expect(await call("POST", "topup/refund", refund, root)).toMatchObject({ success: true });
    expect(sent.refunds.at(-1)).toEqual([tradeNo, 3050]);
    expect([await balance(), (await orderOf(tradeNo)).status]).toEqual([1000, "refunded"]);
    const status = await app.call<Told<{ enable_online_topup: boolean }>>("GET", "/api/status");
    expect(status.body.data.enable_online_topup).toBe(true);
  });

  test("a third rail's options are its own rows: typed, sealed, listed, guarded, drawn, in files; closed it says what it lacks", async () => {
    const fresh = async () => (root = await app.createUser({ role: Role.root }));
    const put = async (key: string, value: string) =>
      (await app.call<Told<null>>("PUT", "/api/option/", { key, value }, await fresh())).body;
    const railsFor = async (as: TestUser) =>
      (
        await call<{
          rails: { name: string; title: string; callback: string; open: boolean; missing: string[] }[] | null;
        }>("GET", "topup/info", undefined, as)
      ).data.rails;
    const ours = async () => (await railsFor(root))?.find(({ name }) => name === "pigeon");
    expect(await ours()).toEqual({
      name: "pigeon",
      title: "By pigeon",
      callback: "/api/payment/pigeon",
      open: true,
      missing: [],
    });
    expect([await railsFor(buyer), await railsFor(admin)]).toEqual([null, null]);
    // As the settings draw them, and as they are kept.
    const list = await app.call<{ data: OptionRow[] }>("GET", "/api/option/rows", undefined, root);
    const rows = list.body.data.filter(({ key }) => key.startsWith("Pigeon"));
    expect(rows.map(({ key, kind, group, tab, isSet }) => [key, kind, group, tab, isSet ?? null])).toEqual([
      ["PigeonLoft", "url", "payment", "payment", null],
      ["PigeonRing", "text", "payment", "payment", true],
      ["PigeonLeast", "number", "payment", "payment", null],
    ]);
    expect(rows[0]?.texts).toEqual(settings.PigeonLoft.texts);
    const all = await app.call<Record<string, unknown>>("GET", "/api/option/", undefined, root);
    expect(all.text).toContain("https://loft.example");
    const exported = await app.call("GET", "/api/config", undefined, root);
    expect(exported.text).toContain("PigeonLoft");
    expect([list, all, exported].map(({ text: said }) => said.includes("ring-secret"))).toEqual([
      false,
      false,
      false,
    ]);
    const { options } = app.deps.db.t;
    const [stored] = await app.deps.db.orm.select().from(options).where(eq(options.key, "PigeonRing"));
    expect(stored?.value).not.toContain("ring-secret");
    // The page of the settings names them in its own language, and the wallet's offers them.
    const page = await fetch(`${app.url}/setting?tab=payment`, {
      headers: { ...root.headers, "accept-language": "en" },
    });
    expect((await page.text()).includes("Where they land.")).toBe(true);
    // Checked and guarded by their rows.
    expect(await put("PigeonLoft", "no address")).toMatchObject({ success: false });
    expect(await put("PigeonLeast", "0")).toMatchObject({ code: "option_not_int" });
    expect(await put("ServerAddress", "")).toMatchObject({ success: false });
    expect(await put("PigeonLeast", "7")).toMatchObject({ success: true });
    const few = { rail: "pigeon", method: "white", amount: 6 };
    expect(await call("POST", "topup/amount", few)).toMatchObject({ code: "topup_amount_low" });
    const file = { document: { format: 1, options: { PigeonLeast: 2, PigeonLoft: "" } } };
    const applied = await app.call<{ data: { status: string } }>("POST", "/api/config/apply", file, root);
    expect(applied.body.data.status).toBe("applied");
    expect(await ours()).toMatchObject({ open: false, missing: ["PigeonLoft"] });
    expect((await fetch(`${app.url}/api/payment/pigeon`, { method: "POST", body: "{}" })).status).toBe(404);
    expect(await put("PigeonLoft", "https://loft.example")).toMatchObject({ success: true });
    expect(await ours()).toMatchObject({ open: true });
  });

  test("an order of one rail is nobody's on another, and unknown rails have no address", async () => {
    const { trade_no: tradeNo } = await pay("epay", "alipay");
    const body = JSON.stringify({ order: tradeNo, money: "7300", feather: "x" });
    const answer = await fetch(`${app.url}/api/payment/pigeon`, { method: "POST", body });
    expect(await answer.text()).toBe("coo unknown_order");
    expect(await balance()).toBe(1000);
    // The same by the gateway's own word: its signature is right, the order is another rail's.
    const { trade_no: elsewhere } = await pay("stripe", "stripe");
    const foreign = epay.report({
      form: { out_trade_no: elsewhere, money: "10.00" },
      tradeNo: "t1",
      isPaid: true,
    });
    expect(await (await fetch(`${app.url}/api/user/epay/notify?${foreign}`)).text()).toBe("success");
    expect([await balance(), (await orderOf(elsewhere)).status]).toEqual([1000, "pending"]);
    expect((await fetch(`${app.url}/api/payment/owl`, { method: "POST", body })).status).toBe(404);
    // Paid on its own rail it is another matter.
    const trade = await epay.submit(`${epay.url}/submit.php`, (await pay("epay", "wxpay")).fields ?? {});
    expect(await epay.pay(trade, { method: "POST" })).toBe("success");
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("epay is asked for a lost callback only where the site says so, and its answer is checked as a callback is", async () => {
    const { url, fields } = await pay("epay", "alipay");
    const trade = await epay.submit(url, fields ?? {});
    trade.isPaid = true;
    clock.advance(11 * 60_000);
    await askForOpenOrders(app.deps);
    expect([epay.asked.length, await balance()]).toEqual([0, 1000]);
    await app.deps.options.set("EpayAskOrders", "true");
    const job = jobsOf(app.deps, { testAll: () => Promise.reject(new Error("not now")) } as never, () =>
      Promise.resolve(),
    ).find(({ name }) => name === "payment-check");
    await job?.run();
    await job?.run();
    await app.deps.options.set("EpayAskOrders", "false");
    expect(await balance()).toBe(1000 + 10 * UNIT);
    // The callback comes after all: it is the same payment.
    expect(await epay.pay(trade)).toBe("success");
    expect(await balance()).toBe(1000 + 10 * UNIT);
    const events = await call<{ verdict: string }[]>(
      "GET",
      `topup/${fields?.["out_trade_no"]}/events`,
      undefined,
      root,
    );
    expect(events.data.map(({ verdict }) => verdict).toSorted()).toEqual(["credited", "repeated"]);
    expect(JSON.stringify(events)).not.toContain(epay.key);
  });

  async function shortPaid(amount: number): Promise<FakeSession> {
    const { url } = await pay("stripe", "stripe");
    const session = stripe.sessions.find((each) => each.url === url);
    if (!session) throw new Error("no session");
    await tell("checkout.session.completed", {
      ...session,
      payment_status: "paid",
      status: "complete",
      amount_total: amount,
    });
    return session;
  }

  async function tell(type: string, object: object): Promise<number> {
    const timestamp = Math.floor(clock.nowMs() / 1000);
    const { payload, header } = await signedEvent(type, object, { secret: SECRET, timestamp });
    const headers = { "stripe-signature": header };
    return (await fetch(`${app.url}/api/stripe/webhook`, { method: "POST", headers, body: payload })).status;
  }

  test("too little money goes to review; by hand its part is credited, and a refund takes back that part", async () => {
    const { client_reference_id: tradeNo, payment_intent: intent } = await shortPaid(400);
    expect(await orderOf(tradeNo)).toMatchObject({
      status: "review",
      background: { paid: "4.00", note: "money" },
    });
    const complete = { trade_no: tradeNo, reason: "part of it came", pro_rata: true };
    expect(await call("POST", "topup/complete", complete, root)).toMatchObject({ success: true });
    expect(await balance()).toBe(1000 + 4 * UNIT);
    expect(await orderOf(tradeNo)).toMatchObject({
      status: "success",
      money: "4.00",
      background: { actor_name: root.username },
    });
    const metadata = stripe.sessions.find((each) => each.payment_intent === intent)?.metadata;
    await tell("charge.refunded", { metadata, amount_refunded: 400, refunded: true });
    expect(await balance()).toBe(1000);
    // Only what is short and in review has a part.
    const open = await pay("epay", "alipay");
    const refused = { ...complete, trade_no: open.trade_no };
    expect(await call("POST", "topup/complete", refused, root)).toMatchObject({ code: "order_no_pro_rata" });
  });

  test("an order in review leaves it by a refund of all that came, once, and credits nothing on the way", async () => {
    const session = await shortPaid(999);
    const body = { trade_no: session.client_reference_id, reason: "wrong sum" };
    expect(await call("POST", "topup/refund", body, root)).toMatchObject({ success: true });
    const asked = stripe.refunds.at(-1);
    expect([asked?.get("payment_intent"), asked?.get("amount")]).toEqual([session.payment_intent, null]);
    // The provider tells of it as well, and of its failing.
    await tell("charge.refunded", { metadata: session.metadata, amount_refunded: 999, refunded: true });
    expect([await balance(), (await orderOf(session.client_reference_id)).status]).toEqual([
      1000,
      "refunded",
    ]);
    const failed = { id: "re_x", status: "failed", payment_intent: session.payment_intent, amount: 999 };
    await tell("refund.failed", failed);
    expect([await balance(), (await orderOf(session.client_reference_id)).status]).toEqual([1000, "review"]);
  });

  test("a won dispute lifts the flag only when no other payment of the account is disputed", async () => {
    const sessions = [await shortPaid(1000), await shortPaid(1000)];
    const dispute = (session: FakeSession, status: string) => ({
      id: `dp_${session.id}`,
      payment_intent: session.payment_intent,
      amount: 1000,
      status,
    });
    const isFlagged = async () => (await app.deps.accounts.user(buyer.id))?.flagged;
    for (const session of sessions) await tell("charge.dispute.created", dispute(session, "needs_response"));
    const [first, second] = sessions;
    if (!first || !second) throw new Error("no sessions");
    await tell("charge.dispute.closed", dispute(first, "won"));
    expect([await isFlagged(), await balance()]).toEqual([true, 1000 + 10 * UNIT]);
    await tell("charge.dispute.closed", dispute(second, "warning_closed"));
    expect([await isFlagged(), await balance()]).toEqual([false, 1000 + 20 * UNIT]);
  });

  test("a flag that root lifted stays lifted, whatever is told again of that dispute or of another one", async () => {
    const [first, second] = [await shortPaid(1000), await shortPaid(1000)];
    const dispute = (session: FakeSession, status: string) => ({
      id: `dp_${session.id}`,
      payment_intent: session.payment_intent,
      amount: 1000,
      status,
    });
    const isFlagged = async () => (await app.deps.accounts.user(buyer.id))?.flagged;
    await tell("charge.dispute.created", dispute(first, "needs_response"));
    await tell("charge.dispute.created", dispute(second, "needs_response"));
    const lifted = await app.call("PUT", `/api/user/${buyer.id}/notes`, { flagged: false }, root);
    expect([lifted.status, await isFlagged()]).toEqual([200, false]);
    await tell("charge.dispute.created", dispute(first, "under_review"));
    await tell("charge.dispute.closed", dispute(second, "won"));
    expect(await isFlagged()).toBe(false);
    await tell("charge.dispute.closed", dispute(first, "lost"));
    expect(await isFlagged()).toBe(false);
    await tell("charge.dispute.created", dispute(await shortPaid(1000), "needs_response"));
    expect(await isFlagged()).toBe(true);
  });

  test("administrators find orders by number, payer, rail, state and time; what the rails said is root's", async () => {
    const [first, second] = [await pay("epay", "alipay"), await pay("pigeon", "white")];
    const found = async (query: string) =>
      (
        await call<{ items: { trade_no: string }[] }>("GET", `topup?${query}`, undefined, admin)
      ).data.items.map((item) => item.trade_no);
    const both = [second.trade_no, first.trade_no];
    const now = Math.floor(clock.nowMs() / 1000);
    expect(await found(`keyword=${buyer.username}`)).toEqual(both);
    expect(await found(`user_id=${buyer.id}`)).toEqual(both);
    expect(await found(`keyword=${first.trade_no.slice(0, 20)}`)).toEqual([first.trade_no]);
    expect(await found(`user_id=${buyer.id}&rail=pigeon`)).toEqual([second.trade_no]);
    expect(await found(`user_id=${buyer.id}&status=success`)).toEqual([]);
    // Waits for its payer whether the provider knows of it already or not.
    await app.deps.db.orm
      .update(app.deps.db.t.orders)
      .set({ status: "created" })
      .where(eq(app.deps.db.t.orders.tradeNo, first.trade_no));
    expect(await found(`user_id=${buyer.id}&status=waiting`)).toEqual(both);
    expect(await found(`user_id=${buyer.id}&start_timestamp=${now}&end_timestamp=${now}`)).toEqual(both);
    expect(await found(`user_id=${buyer.id}&end_timestamp=${now - 1}`)).toEqual([]);
    expect((await app.call("GET", `/api/user/topup/${first.trade_no}/events`, undefined, admin)).status).toBe(
      403,
    );
    const other = await app.createUser();
    for (const number of [first.trade_no, "x", "%00"])
      expect(await call("GET", `topup/${number}`, undefined, other)).toMatchObject({ code: "order_missing" });
  });
});
