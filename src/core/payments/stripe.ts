// The rail "stripe": Checkout in the provider's own page, and signed events that say what became of it.
// Refuses events without a fresh signature of a secret that is set, of another mode or another site.
import { eq, and } from "drizzle-orm";
import type Stripe from "stripe";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { readerOf } from "../options/definitions.ts";
import { int, money, text, url } from "../options/kinds.ts";
import { currencyCode, webhookSecrets } from "../options/payment-kinds.ts";
import { DISPUTE_LOST, DISPUTE_OPEN, DISPUTE_WON } from "./disputes.ts";
import { tellDispute } from "./flags.ts";
import { markExpired, markFailed, markPending, noteEvent, orderOf, receivePayment } from "./orders.ts";
import type { OrderRow, Payment } from "./orders.ts";
import type { PaymentRail, PaymentStart, RailDeps, RailOption } from "./rail.ts";
import { failedRefundSteps, REFUND_FAILED, takeBack } from "./taken-back.ts";

export const STRIPE = "stripe";
/** Of a Checkout session; the provider takes 30 minutes to 24 hours. */
const SESSION_SECONDS = 23 * 3600;
const DEFAULT_BASE = "https://api.stripe.com";
const TOLERANCE_SECONDS = 300;
const LEAST_SECRET = 24;
const ANSWER_BYTES = 1024 * 1024;
const TIMEOUT_MS = 20_000;
const MAX_EVENT_BYTES = 512 * 1024;

const settings = {
  StripeApiSecret: {
    kind: text,
    default: "",
    secret: true,
    isRequired: true,
    texts: {
      title: { en: "Stripe secret key", zh: "Stripe 密钥" },
      help: {
        en: "From the dashboard of Stripe; never shown again.",
        zh: "来自 Stripe 控制台，保存后不再显示。",
      },
    },
  },
  /** Two while one replaces the other. */
  StripeWebhookSecret: {
    kind: webhookSecrets,
    default: "",
    secret: true,
    isRequired: true,
    texts: {
      title: { en: "Stripe signing secret", zh: "Stripe 签名密钥" },
      help: {
        en: "Of the webhook that calls ServerAddress/api/stripe/webhook. Two, separated by a comma, while one replaces the other.",
        zh: "调用 服务器地址 /api/stripe/webhook 的 Webhook 的签名密钥。更换期间可填两个，用逗号分隔。",
      },
    },
  },
  StripeApiBase: {
    kind: url,
    default: "",
    texts: {
      title: { en: "Stripe address", zh: "Stripe 地址" },
      help: {
        en: "Only for tests and mirrors; empty: Stripe itself.",
        zh: "仅用于测试和镜像；留空为 Stripe 官方。",
      },
    },
  },
  StripeCurrency: {
    kind: currencyCode,
    default: "usd",
    texts: {
      title: { en: "Stripe currency", zh: "Stripe 货币" },
      help: {
        en: "Its code, for example usd.",
        zh: "三个字母的代码。",
      },
    },
  },
  StripeUnitPrice: {
    kind: money(0, 1e6, 6),
    default: "1",
    unit: "currency_per_dollar",
    texts: {
      title: { en: "Stripe price", zh: "Stripe 价格" },
      help: {
        en: "What a dollar of quota costs in that currency.",
        zh: "每美元额度的价格，以该货币计。",
      },
    },
  },
  StripeMinTopUp: {
    kind: int(),
    default: "1",
    unit: "dollars",
    texts: {
      title: { en: "Smallest top-up by Stripe", zh: "Stripe 最小充值数量" },
      help: {
        en: "In US dollars of quota.",
        zh: "以美元额度计。",
      },
    },
  },
} as const satisfies Record<string, RailOption>;

const { valueOf, textOf } = readerOf(settings);

type Options = Pick<Deps["options"], "get">;

/** Signing secrets in force: two while one replaces the other. */
function secretsOf(options: Options): string[] {
  return valueOf(options, "StripeWebhookSecret")
    .split(/[\s,]+/)
    .filter((secret) => secret.startsWith("whsec_") && secret.length >= LEAST_SECRET);
}

function isStripeReady(options: Options): boolean {
  return (
    valueOf(options, "StripeApiSecret") !== "" &&
    options.get("ServerAddress") !== "" &&
    secretsOf(options).length > 0
  );
}

const isLive = (options: Options): boolean => /^[rs]k_live_/.test(valueOf(options, "StripeApiSecret"));

/** What this installation calls itself in orders: one account may serve several sites. */
const siteOf = ({ seal }: Pick<Deps, "seal">): string =>
  seal.mac("payment site").toString("hex").slice(0, 16);

/** Loaded with the first payment: few sites have this rail. */
async function clientOf(deps: RailDeps): Promise<Stripe> {
  const { default: Client } = await import("stripe");
  const base = new URL(valueOf(deps.options, "StripeApiBase") || DEFAULT_BASE);
  const networks = deps.reach.networks(base.href, { baseUrl: base.href, setting: {} });
  const fetchGuarded = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const { status, headers, bytes } = await deps.guard(
      String(input instanceof Request ? input.url : input),
      {
        method: init.method === "GET" ? "GET" : "POST",
        headers: Object.fromEntries(new Headers(init.headers)),
        ...(typeof init.body === "string" && init.body !== "" ? { body: init.body } : {}),
        maxBytes: ANSWER_BYTES,
        timeoutMs: TIMEOUT_MS,
        maxRedirects: 0,
        allow: networks,
      },
    );
    return new Response(bytes, { status, headers });
  };
  return new Client(valueOf(deps.options, "StripeApiSecret"), {
    httpClient: Client.createFetchHttpClient(fetchGuarded as typeof fetch),
    host: base.hostname,
    ...(base.port === "" ? {} : { port: base.port }),
    protocol: base.protocol === "http:" ? "http" : "https",
    maxNetworkRetries: 1,
    telemetry: false,
  });
}

/** Opens Checkout for the order and answers where the buyer goes. Throws `payment_start_failed`; the order has failed then. */
async function openCheckout(deps: RailDeps, order: OrderRow): Promise<PaymentStart> {
  const client = await clientOf(deps);
  const site = deps.options.get("ServerAddress").replace(/\/+$/, "");
  const metadata = { order: order.tradeNo, site: siteOf(deps) };
  const back = `${site}/topup?order=${order.tradeNo}`;
  try {
    const session = await client.checkout.sessions.create(
      {
        mode: "payment",
        client_reference_id: order.tradeNo,
        metadata,
        payment_intent_data: { metadata },
        line_items: [
          {
            quantity: 1,
            price_data: {
              currency: order.currency.toLowerCase(),
              unit_amount: order.moneyMinor,
              product_data: { name: `${deps.options.get("SystemName")} ${order.tradeNo}` },
            },
          },
        ],
        success_url: back,
        cancel_url: back,
        expires_at: order.expiresAt,
        allow_promotion_codes: false,
        adaptive_pricing: { enabled: false },
      },
      { idempotencyKey: order.tradeNo },
    );
    if (typeof session.url !== "string" || !/^https?:/.test(session.url)) throw new Error("no address");
    await markPending(deps, order.tradeNo, { sessionId: session.id });
    return { url: session.url };
  } catch (error) {
    const internal = String(error).slice(0, 300);
    await markFailed(deps, order.tradeNo, "start");
    throw new Failure("client", "payment_start_failed", { internal });
  }
}

/** The event, if one of the secrets signed it, neither long ago nor ahead of time. Throws `payment_event_invalid`. */
async function eventOf(deps: RailDeps, raw: Uint8Array, header: string): Promise<Stripe.Event> {
  const { default: Client } = await import("stripe");
  const nowMs = deps.clock.nowMs();
  const signedAt = Number(/(?:^|,)\s*t=(\d{1,12})(?:,|$)/.exec(header)?.[1] ?? Number.NaN);
  const invalid = () => new Failure("client", "payment_event_invalid", { status: 400 });
  // The package takes what was signed ahead of time.
  if (!(signedAt <= nowMs / 1000 + TOLERANCE_SECONDS)) throw invalid();
  for (const secret of secretsOf(deps.options)) {
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw);
      return await Client.webhooks.constructEventAsync(
        text,
        header,
        secret,
        TOLERANCE_SECONDS,
        undefined,
        nowMs,
      );
    } catch {
      // The next secret, or none.
    }
  }
  throw invalid();
}

const idOf = (value: string | { id: string } | null | undefined): string =>
  typeof value === "string" ? value : (value?.id ?? "");

function paymentOf(eventId: string, session: Stripe.Checkout.Session, doubt: string): Payment {
  return {
    rail: STRIPE,
    eventId,
    tradeNo: session.client_reference_id ?? "",
    providerRef: idOf(session.payment_intent),
    moneyMinor: session.amount_total ?? undefined,
    currency: session.currency ?? "",
    doubt,
    payload: {
      session: session.id,
      payment_status: session.payment_status,
      amount_total: String(session.amount_total ?? ""),
      currency: session.currency ?? "",
    },
  };
}

async function takeSession(
  deps: RailDeps,
  event: { id: string; type: string },
  session: Stripe.Checkout.Session,
) {
  const order = await orderOf(deps, session.client_reference_id ?? "");
  // It may stand on another node, whose commit is on its way: the provider asks again for days.
  if (!order || order.rail !== STRIPE) throw new Failure("internal", "payment_event_early", { status: 503 });
  const doubt =
    order.sessionId !== "" && order.sessionId !== session.id
      ? "session"
      : session.mode === "payment"
        ? session.payment_status === "no_payment_required"
          ? "no_payment_required"
          : ""
        : "mode";
  const payment = paymentOf(event.id, session, doubt);
  switch (event.type) {
    case "checkout.session.completed":
      if (session.payment_status === "unpaid") return noteEvent(deps, payment, "waits");
      await receivePayment(deps, payment);
      return;
    case "checkout.session.async_payment_succeeded":
      await receivePayment(deps, payment);
      return;
    case "checkout.session.async_payment_failed":
      await markFailed(deps, order.tradeNo, "async_payment_failed");
      return noteEvent(deps, payment, "failed");
    default:
      await markExpired(deps, order.tradeNo);
      return noteEvent(deps, payment, "expired");
  }
}

/** The order that a payment of the provider paid; undefined: none of ours, or not yet. */
async function paidBy(deps: RailDeps, paymentIntent: string): Promise<OrderRow | undefined> {
  if (paymentIntent === "") return undefined;
  const { orders } = deps.db.t;
  const [row] = await deps.db.orm
    .select()
    .from(orders)
    .where(and(eq(orders.rail, STRIPE), eq(orders.providerRef, paymentIntent)));
  return row;
}

async function takeCharge(
  deps: RailDeps,
  { id: eventId, created }: Pick<Stripe.Event, "id" | "created">,
  charge: Stripe.Charge,
): Promise<void> {
  if (charge.metadata["site"] !== siteOf(deps)) return;
  const order = await orderOf(deps, charge.metadata["order"] ?? "");
  if (!order) throw new Failure("internal", "payment_event_early", { status: 503 });
  await takeBack(deps, { tradeNo: order.tradeNo, eventId, reason: "refund" }, (known) => {
    // Told late, it does not know yet of what has come back meanwhile.
    const cameBack = known.failed.reduce((sum, { amount, at }) => sum + (at > created ? amount : 0), 0);
    // Of an order in review another sum came than was asked for: all of it is all of it.
    const gone = charge.refunded ? known.moneyMinor : charge.amount_refunded;
    return { refundedMinor: Math.max(known.refundedMinor, gone - cameBack) };
  });
}

/**
 * The same, where the provider names the payment alone. Undefined: another site's; throws `payment_event_early` (503) for
 * one of ours whose own event has not come yet.
 */
async function ownPaid(deps: RailDeps, paymentIntent: string): Promise<OrderRow | undefined> {
  const order = await paidBy(deps, paymentIntent);
  if (order || paymentIntent === "") return order;
  const client = await clientOf(deps);
  const { metadata } = await client.paymentIntents.retrieve(paymentIntent).catch((error: unknown) => {
    throw new Failure("internal", "payment_event_early", {
      status: 503,
      internal: String(error).slice(0, 300),
    });
  });
  if (metadata["site"] !== siteOf(deps)) return undefined;
  throw new Failure("internal", "payment_event_early", { status: 503 });
}

/** Told twice, by two kinds of event: its own number counts, not theirs. */
async function takeFailedRefund(deps: RailDeps, at: number, refund: Stripe.Refund): Promise<void> {
  if (refund.status !== "failed") return;
  const order = await ownPaid(deps, idOf(refund.payment_intent));
  if (!order) return;
  const event = {
    tradeNo: order.tradeNo,
    eventId: `${refund.id}:failed`,
    reason: REFUND_FAILED,
    failed: { amount: refund.amount, at },
  };
  await takeBack(deps, event, (known) => ({
    refundedMinor: Math.max(0, known.refundedMinor - refund.amount),
  }));
}

/** Its beginning and its end may come in any order, and more than once; a payment may have several, of a part each. */
async function takeDispute(deps: RailDeps, type: string, dispute: Stripe.Dispute): Promise<void> {
  const isOver = type === "charge.dispute.closed";
  // An inquiry is no dispute yet, and one that ends as such never was.
  if (!isOver && dispute.status.startsWith("warning_")) return;
  const order = await ownPaid(deps, idOf(dispute.payment_intent));
  if (!order) return;
  const closed = `${dispute.id}:closed`;
  const isLost = isOver && dispute.status === "lost";
  const mine = isOver && !isLost ? 0 : dispute.amount;
  const reason = isOver ? (isLost ? DISPUTE_LOST : DISPUTE_WON) : DISPUTE_OPEN;
  const eventId = isOver ? closed : `${dispute.id}:created`;
  const unless = isOver ? "" : closed;
  const told = { id: dispute.id, amount: dispute.amount };
  await takeBack(deps, { tradeNo: order.tradeNo, eventId, reason, unless, dispute: told }, ({ others }) => ({
    disputedMinor: others.disputedMinor + mine,
    lostMinor: others.lostMinor + (isLost ? mine : 0),
  }));
  await tellDispute(deps, order);
}

/**
 * Takes in an event of the provider. Resolves once what it means is durable, or it means nothing here; throws
 * `payment_event_invalid` (400), and `order_missing` (503) where the event is early.
 */
async function stripeEvent(deps: RailDeps, raw: Uint8Array, header: string): Promise<void> {
  const event = await eventOf(deps, raw, header);
  // Foreign on purpose: an account that serves a test site too is no error.
  if (event.livemode !== isLive(deps.options)) return;
  switch (event.type) {
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded":
    case "checkout.session.async_payment_failed":
    case "checkout.session.expired": {
      const session = event.data.object;
      if (session.metadata?.["site"] !== siteOf(deps)) return;
      return takeSession(deps, event, session);
    }
    case "charge.refunded":
      return takeCharge(deps, event, event.data.object);
    case "refund.failed":
    case "charge.refund.updated":
      return takeFailedRefund(deps, event.created, event.data.object);
    case "charge.dispute.created":
    case "charge.dispute.closed":
      return takeDispute(deps, event.type, event.data.object);
    default:
  }
}

/** Sends money of a payment back. Throws `refund_failed`. */
async function sendBack(
  deps: RailDeps,
  order: OrderRow,
  minor: number | undefined,
): Promise<{ eventId: string }> {
  const client = await clientOf(deps);
  // Another try than the one that came back: by the same key the provider would only say its first answer again.
  const failed = await deps.db.atomic((tx) => failedRefundSteps(tx, deps, order));
  const tries = failed.length === 0 ? "" : `:${failed.length}`;
  const refund = await client.refunds.create(
    { payment_intent: order.providerRef ?? "", ...(minor === undefined ? {} : { amount: minor }) },
    { idempotencyKey: `${order.tradeNo}:refund:${order.refundedMinor}${tries}` },
  );
  if (refund.status === "failed" || refund.status === "canceled") throw refuse("refund_failed");
  return { eventId: refund.id };
}

async function askFor(deps: RailDeps, order: OrderRow): Promise<void> {
  if (order.sessionId === "") return;
  const client = await clientOf(deps);
  const session = await client.checkout.sessions.retrieve(order.sessionId);
  const isPaid = session.payment_status === "paid";
  if (!isPaid && session.status !== "expired") return;
  const type = isPaid ? "checkout.session.completed" : "checkout.session.expired";
  await takeSession(deps, { id: `asked:${session.id}:${type}`, type }, session);
}

export const stripe: PaymentRail = {
  name: STRIPE,
  title: "Stripe",
  callback: "/api/stripe/webhook",
  settings,
  isGuarded: isStripeReady,
  currency: (options) => valueOf(options, "StripeCurrency"),
  price: (options) => textOf(options, "StripeUnitPrice"),
  minimum: (options) => valueOf(options, "StripeMinTopUp"),
  seconds: SESSION_SECONDS,
  methods: () => [{ type: STRIPE, name: "Stripe", minimum: 0 }],
  start: openCheckout,
  maxBodyBytes: MAX_EVENT_BYTES,
  async receive(deps, { method, body, header }) {
    if (method !== "POST" || body.length === 0)
      throw new Failure("client", "payment_event_invalid", { status: 400 });
    await stripeEvent(deps, body, header("stripe-signature"));
    return "success";
  },
  refund: sendBack,
  ask: askFor,
};
