// The rail "stripe": Checkout in the provider's own page, and signed events that say what became of it.
// Refuses events without a fresh signature of a secret that is set, of another mode or another site.
import { eq, and } from "drizzle-orm";
import type Stripe from "stripe";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { flagAccount } from "./flags.ts";
import {
  markExpired,
  markFailed,
  markPending,
  noteEvent,
  openOrders,
  orderOf,
  receivePayment,
} from "./orders.ts";
import type { OrderRow, Payment, PaymentDeps } from "./orders.ts";
import { takeBack } from "./taken-back.ts";

export const STRIPE = "stripe";
/** Of a Checkout session; the provider takes 30 minutes to 24 hours. */
export const STRIPE_SECONDS = 23 * 3600;
const DEFAULT_BASE = "https://api.stripe.com";
const TOLERANCE_SECONDS = 300;
const LEAST_SECRET = 24;
const ANSWER_BYTES = 1024 * 1024;
const TIMEOUT_MS = 20_000;
const ASK_AFTER_SECONDS = 600;

export type StripeDeps = PaymentDeps & Pick<Deps, "guard" | "reach" | "seal">;
type Options = Pick<Deps["options"], "get">;

/** Signing secrets in force: two while one replaces the other. */
function secretsOf(options: Options): string[] {
  return options
    .get("StripeWebhookSecret")
    .split(/[\s,]+/)
    .filter((secret) => secret.startsWith("whsec_") && secret.length >= LEAST_SECRET);
}

export function isStripeReady(options: Options): boolean {
  return (
    options.get("StripeApiSecret") !== "" &&
    options.get("ServerAddress") !== "" &&
    secretsOf(options).length > 0
  );
}

const isLive = (options: Options): boolean => /^[rs]k_live_/.test(options.get("StripeApiSecret"));

/** What this installation calls itself in orders: one account may serve several sites. */
const siteOf = ({ seal }: Pick<Deps, "seal">): string =>
  seal.mac("payment site").toString("hex").slice(0, 16);

/** Loaded with the first payment: few sites have this rail. */
async function clientOf(deps: StripeDeps): Promise<Stripe> {
  const { default: Client } = await import("stripe");
  const base = new URL(deps.options.get("StripeApiBase") || DEFAULT_BASE);
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
  return new Client(deps.options.get("StripeApiSecret"), {
    httpClient: Client.createFetchHttpClient(fetchGuarded as typeof fetch),
    host: base.hostname,
    ...(base.port === "" ? {} : { port: base.port }),
    protocol: base.protocol === "http:" ? "http" : "https",
    maxNetworkRetries: 1,
    telemetry: false,
  });
}

/** Opens Checkout for the order and answers where the buyer goes. Throws `payment_start_failed`; the order has failed then. */
export async function stripeLink(deps: StripeDeps, order: OrderRow): Promise<string> {
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
    return session.url;
  } catch (error) {
    const internal = String(error).slice(0, 300);
    await markFailed(deps, order.tradeNo, "start");
    throw new Failure("client", "payment_start_failed", { internal });
  }
}

/** The event, if one of the secrets signed it, neither long ago nor ahead of time. Throws `payment_event_invalid`. */
async function eventOf(deps: StripeDeps, raw: Uint8Array, header: string): Promise<Stripe.Event> {
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
  deps: StripeDeps,
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
async function paidBy(deps: StripeDeps, paymentIntent: string): Promise<OrderRow | undefined> {
  if (paymentIntent === "") return undefined;
  const { orders } = deps.db.t;
  const [row] = await deps.db.orm
    .select()
    .from(orders)
    .where(and(eq(orders.rail, STRIPE), eq(orders.providerRef, paymentIntent)));
  return row;
}

async function takeCharge(deps: StripeDeps, eventId: string, charge: Stripe.Charge): Promise<void> {
  if (charge.metadata["site"] !== siteOf(deps)) return;
  const order = await orderOf(deps, charge.metadata["order"] ?? "");
  if (!order) throw new Failure("internal", "payment_event_early", { status: 503 });
  await takeBack(deps, { tradeNo: order.tradeNo, eventId, reason: "refund" }, (known) => ({
    refundedMinor: Math.max(known.refundedMinor, charge.amount_refunded),
  }));
}

/**
 * The same, where the provider names the payment alone. Undefined: another site's; throws `payment_event_early` (503) for
 * one of ours whose own event has not come yet.
 */
async function ownPaid(deps: StripeDeps, paymentIntent: string): Promise<OrderRow | undefined> {
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
async function takeFailedRefund(deps: StripeDeps, refund: Stripe.Refund): Promise<void> {
  if (refund.status !== "failed") return;
  const order = await ownPaid(deps, idOf(refund.payment_intent));
  if (!order) return;
  const event = { tradeNo: order.tradeNo, eventId: `${refund.id}:failed`, reason: "refund_failed" };
  await takeBack(deps, event, (known) => ({
    refundedMinor: Math.max(0, known.refundedMinor - refund.amount),
  }));
}

/** Its beginning and its end may come in any order, and more than once. */
async function takeDispute(deps: StripeDeps, type: string, dispute: Stripe.Dispute): Promise<void> {
  const isOver = type === "charge.dispute.closed";
  // An inquiry is no dispute yet, and one that ends as such never was.
  if (!isOver && dispute.status.startsWith("warning_")) return;
  const order = await ownPaid(deps, idOf(dispute.payment_intent));
  if (!order) return;
  const closed = `${dispute.id}:closed`;
  const isLost = isOver && dispute.status === "lost";
  const disputedMinor = isOver && !isLost ? 0 : dispute.amount;
  const reason = isOver ? (isLost ? "dispute_lost" : "dispute_won") : "dispute";
  const eventId = isOver ? closed : `${dispute.id}:created`;
  const unless = isOver ? "" : closed;
  await takeBack(deps, { tradeNo: order.tradeNo, eventId, reason, unless }, () => ({ disputedMinor }));
  const after = await orderOf(deps, order.tradeNo);
  await flagAccount(deps, order.userId, (after?.disputedMinor ?? 0) > 0, order.tradeNo);
}

/**
 * Takes in an event of the provider. Resolves once what it means is durable, or it means nothing here; throws
 * `payment_event_invalid` (400), and `order_missing` (503) where the event is early.
 */
export async function stripeEvent(deps: StripeDeps, raw: Uint8Array, header: string): Promise<void> {
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
      return takeCharge(deps, event.id, event.data.object);
    case "refund.failed":
    case "charge.refund.updated":
      return takeFailedRefund(deps, event.data.object);
    case "charge.dispute.created":
    case "charge.dispute.closed":
      return takeDispute(deps, event.type, event.data.object);
    default:
  }
}

/** Asks for what is left of the money to go back, and books it. Throws `order_missing`, `order_not_refundable`, `refund_failed`. */
export async function refundStripe(
  deps: StripeDeps,
  actor: UserAccount,
  tradeNo: string,
  reason: string,
): Promise<void> {
  const order = await orderOf(deps, tradeNo);
  if (!order || order.rail !== STRIPE) throw refuse("order_missing");
  const left = order.moneyMinor - order.refundedMinor;
  if (order.providerRef === null || left <= 0) throw refuse("order_not_refundable");
  const client = await clientOf(deps);
  let refund: Stripe.Refund;
  try {
    refund = await client.refunds.create(
      { payment_intent: order.providerRef, amount: left },
      { idempotencyKey: `${tradeNo}:refund:${order.refundedMinor}` },
    );
  } catch (error) {
    throw new Failure("client", "refund_failed", { internal: String(error).slice(0, 300) });
  }
  if (refund.status === "failed" || refund.status === "canceled") throw refuse("refund_failed");
  await takeBack(deps, { tradeNo, eventId: refund.id, reason, actor }, () => ({
    refundedMinor: order.moneyMinor,
  }));
}

/** Asks for orders that have waited long: an event may be lost. */
export async function askForOpenOrders(deps: StripeDeps): Promise<void> {
  if (!isStripeReady(deps.options)) return;
  const open = (await openOrders(deps, STRIPE, ASK_AFTER_SECONDS)).filter(
    ({ sessionId }) => sessionId !== "",
  );
  if (open.length === 0) return;
  const client = await clientOf(deps);
  for (const order of open) {
    try {
      const session = await client.checkout.sessions.retrieve(order.sessionId);
      const isPaid = session.payment_status === "paid";
      if (isPaid || session.status === "expired") {
        const type = isPaid ? "checkout.session.completed" : "checkout.session.expired";
        await takeSession(deps, { id: `asked:${session.id}:${type}`, type }, session);
      }
    } catch (error) {
      deps.logger.warn("an open order could not be asked for", {
        order: order.tradeNo,
        error: String(error),
      });
    }
  }
}
