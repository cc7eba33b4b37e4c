// Paying for credit: what an amount costs, the order, the rails' callbacks, the own history and the payment inbox.
// Refuses on each callback's own terms: a rail that is not set up has no route.
import { Elysia, t } from "elysia";
import type { Deps, UserAccount } from "../core/deps.ts";
import { offerFor } from "../core/payments/amounts.ts";
import type { Offer } from "../core/payments/amounts.ts";
import { minorText } from "../shared/currencies.ts";
import { EPAY, epayCallback, epayForm, epayType, isEpayReady } from "../core/payments/epay.ts";
import { completeOrder, createOrder } from "../core/payments/orders.ts";
import { eventsOf, listOrders } from "../core/payments/order-list.ts";
import { openRail } from "../core/payments/rails.ts";
import type { PaymentRail } from "../core/payments/rails.ts";
import { isStripeReady, refundStripe, STRIPE, stripeEvent, stripeLink } from "../core/payments/stripe.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { done, ok } from "../http/envelope.ts";
import { LARGE_PAGE_SIZE, pageOf, pageQuery } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { receive } from "../http/receive.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure, refuse } from "../shared/failures.ts";

const MAX_CALLBACK_BYTES = 8 * 1024;
const MAX_EVENT_BYTES = 512 * 1024;
const CALLBACK_MS = 10_000;

/** Any: what is no whole number gets a sentence of its own. */
const amountBody = t.Object({
  amount: t.Optional(t.Any()),
  payment_method: given(plainText(32)),
  top_up_code: given(plainText(255)),
});
const byHandBody = t.Object({ trade_no: plainText(64), reason: plainText(255) });
const orderQuery = {
  ...pageQuery,
  status: t.Optional(plainText(16)),
  trade_no: t.Optional(plainText(64)),
};

function payRoutes(deps: Deps, session: SessionSettings) {
  function railOf(name: string): PaymentRail {
    const rail = openRail(deps.options, name);
    if (!rail) throw refuse("payment_unset");
    return rail;
  }

  function offerOf(actor: UserAccount, rail: PaymentRail, amount: unknown, minimum = 0): Offer {
    return offerFor(deps, actor, amount, {
      price: rail.price(deps.options),
      currency: rail.currency(deps.options),
      minimum: Math.max(minimum, rail.minimum(deps.options)),
    });
  }

  /** Words that old consoles look for in `message`, beside ours. */
  const paid = <T>(data: T) => ({ success: true as const, message: "success", data });

  return new Elysia({ prefix: "/api/user" })
    .use(policy(session))
    .post(
      "/amount",
      ({ actor, body }) => {
        const rail = railOf(EPAY);
        const offer = offerOf(actor, rail, body.amount);
        return paid(minorText(offer.moneyMinor, offer.currency));
      },
      { access: "user", body: amountBody },
    )
    .post(
      "/pay",
      async ({ actor, body }) => {
        const rail = railOf(EPAY);
        const type = epayType(body.payment_method ?? "");
        const method = deps.options.get("PayMethods").find((each) => each.type === type);
        if (!method) throw refuse("payment_method_missing");
        const offer = offerOf(actor, rail, body.amount, method.min_topup);
        const order = await createOrder(deps, actor, {
          rail: rail.name,
          method: type,
          offer,
          seconds: rail.seconds,
        });
        const { url, fields } = await epayForm(deps, order);
        return { ...paid(fields), url };
      },
      { access: "user", body: amountBody },
    )
    .get(
      "/epay/notify",
      async ({ request }) => {
        if (!isEpayReady(deps.options)) throw missing(request);
        return epayCallback(deps, new URL(request.url).searchParams);
      },
      { open: "public" },
    )
    .post(
      "/epay/notify",
      async ({ request }) => {
        if (!isEpayReady(deps.options)) throw missing(request);
        return epayCallback(deps, await formOf(request));
      },
      { open: "visitor", parse: "none" },
    )
    .post(
      "/stripe/amount",
      ({ actor, body }) => {
        const offer = offerOf(actor, railOf(STRIPE), body.amount);
        return paid(minorText(offer.moneyMinor, offer.currency));
      },
      { access: "user", body: amountBody },
    )
    .post(
      "/stripe/pay",
      async ({ actor, body }) => {
        const rail = railOf(STRIPE);
        const offer = offerOf(actor, rail, body.amount);
        const order = await createOrder(deps, actor, {
          rail: rail.name,
          method: STRIPE,
          offer,
          seconds: rail.seconds,
        });
        return paid({ pay_link: await stripeLink(deps, order), trade_no: order.tradeNo });
      },
      { access: "user", body: amountBody },
    );
}

/** Orders as their buyers, and those who look after them, see them. */
function orderRoutes(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/user" })
      .use(policy(session))
      .get(
        "/topup/self",
        async ({ actor, query }) => {
          const { page, pageSize } = pageOf(query, 1);
          const { items, total } = await listOrders(deps, {
            userId: actor.id,
            status: query.status || undefined,
            tradeNo: query.trade_no || undefined,
            page,
            pageSize,
          });
          return ok({ items, total, page, page_size: pageSize });
        },
        { access: "user", query: t.Object(orderQuery) },
      )
      .get(
        "/topup",
        async ({ query }) => {
          const { page, pageSize } = pageOf(query, 1, LARGE_PAGE_SIZE);
          const filter = { status: query.status || undefined, tradeNo: query.trade_no || undefined };
          const { items, total } = await listOrders(deps, { ...filter, page, pageSize });
          const events = await eventsOf(
            deps,
            items.map((item) => item.trade_no),
          );
          return ok({ items, total, page, page_size: pageSize, events });
        },
        { access: "admin", query: t.Object(orderQuery) },
      )
      // By root, who has proven themselves afresh: money that came another way.
      .post(
        "/topup/complete",
        async ({ actor, session: current, body }) => {
          await requireFreshProof(deps, { actor, session: current }, "everybody");
          await completeOrder(deps, actor, body.trade_no, reasonOf(body.reason));
          return done();
        },
        { access: "root", body: byHandBody },
      )
      .post(
        "/topup/refund",
        async ({ actor, session: current, body }) => {
          await requireFreshProof(deps, { actor, session: current }, "everybody");
          await refundStripe(deps, actor, body.trade_no, reasonOf(body.reason));
          return done();
        },
        { access: "root", body: byHandBody },
      )
  );
}

export function payments(deps: Deps, session: SessionSettings) {
  return new Elysia().use(payRoutes(deps, session)).use(orderRoutes(deps, session));
}

/** By itself: the provider calls another prefix. */
export function stripeWebhook(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/stripe" }).use(policy(session)).post(
    "/webhook",
    async ({ request }) => {
      if (!isStripeReady(deps.options)) throw missing(request);
      if (!request.body) throw new Failure("client", "payment_event_invalid", { status: 400 });
      const raw = await receive(request.body, {
        maxBytes: MAX_EVENT_BYTES,
        totalMs: CALLBACK_MS,
        tooLarge: () => new Failure("client", "body_too_large", { status: 413 }),
      });
      await stripeEvent(deps, raw, request.headers.get("stripe-signature") ?? "");
      return done();
    },
    { open: "visitor", parse: "none" },
  );
}

function reasonOf(text: string): string {
  if (text.trim() === "") throw new Failure("client", "reason_missing", { param: "reason" });
  return text.trim();
}

function missing(request: Request): Failure {
  return new Failure("client", "payment_route_closed", {
    status: 404,
    internal: new URL(request.url).pathname,
  });
}

/** The form of a callback; anything else has no fields, which no signature fits. */
async function formOf(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\b/i.test(type) || !request.body) return new URLSearchParams();
  const bytes = await receive(request.body, {
    maxBytes: MAX_CALLBACK_BYTES,
    totalMs: CALLBACK_MS,
    tooLarge: () => new Failure("client", "body_too_large", { status: 413 }),
  });
  return new URLSearchParams(new TextDecoder().decode(bytes));
}
