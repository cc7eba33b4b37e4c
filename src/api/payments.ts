// Paying for credit: what is offered, what an amount costs, the order, and what the rails send.
// Refuses on each callback's own terms: a rail that is not set up has no route.
import { Elysia, t } from "elysia";
import type { Deps, UserAccount } from "../core/deps.ts";
import { minorText } from "../shared/currencies.ts";
import { EPAY } from "../core/payments/epay.ts";
import { guardedRail, offerOf, pay, topUpOffers } from "../core/payments/rails.ts";
import type { Wish } from "../core/payments/rails.ts";
import { STRIPE } from "../core/payments/stripe.ts";
import { ok } from "../http/envelope.ts";
import { failureText } from "../http/messages.ts";
import { given, plainText } from "../http/plain-text.ts";
import { receive } from "../http/receive.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import type { Language } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";

const CALLBACK_MS = 10_000;

const wishBody = t.Object({
  rail: plainText(32),
  method: t.Optional(plainText(32)),
  /** Any: what is no whole number gets a sentence of its own. */
  amount: t.Optional(t.Any()),
  /** Units in place of it, where the site shows a currency of its own. */
  quota: t.Optional(t.Any()),
});
/** As consoles of old send it. */
const oldBody = t.Object({
  amount: t.Optional(t.Any()),
  payment_method: given(plainText(32)),
  top_up_code: given(plainText(255)),
});

/** The envelope of these calls of old: no `success`, and a refusal's text stands in `data`. */
async function oldAnswer<T extends object>(language: Language, work: () => T | Promise<T>) {
  try {
    return { message: "success" as const, ...(await work()) };
  } catch (error) {
    if (!(error instanceof Failure) || error.kind !== "client") throw error;
    return { message: "error" as const, data: failureText(error, language), code: error.code };
  }
}

/** The wallet's calls, whichever rail it is. */
function payRoutes(deps: Deps, session: SessionSettings) {
  const costOf = (actor: UserAccount, wish: Wish) => {
    const { offer } = offerOf(deps, actor, wish);
    return {
      money: minorText(offer.moneyMinor, offer.currency),
      currency: offer.currency.toUpperCase(),
      quota: offer.quota,
      discount: Number(offer.snapshot["discount"] ?? 1),
    };
  };
  return new Elysia({ prefix: "/api/user" })
    .use(policy(session))
    .get("/topup/info", ({ actor }) => ok(topUpOffers(deps, actor)), { access: "user" })
    .post(
      "/topup/amount",
      ({ actor, body: { rail, method, amount, quota } }) =>
        ok(costOf(actor, { rail, method, amount, quota })),
      { access: "user", body: wishBody },
    )
    .post(
      "/topup/pay",
      async ({ actor, body: { rail, method, amount, quota } }) => {
        const { tradeNo, url, fields } = await pay(deps, actor, { rail, method, amount, quota });
        return ok({ trade_no: tradeNo, url, fields: fields ?? null });
      },
      { access: "user", body: wishBody },
    );
}

/** The same as older consoles call it: a path for each of two rails. */
function oldRoutes(deps: Deps, session: SessionSettings) {
  const costOf = (actor: UserAccount, rail: string, amount: unknown) => {
    const { offer } = offerOf(deps, actor, { rail, method: undefined, amount });
    return { data: minorText(offer.moneyMinor, offer.currency) };
  };
  return new Elysia({ prefix: "/api/user" })
    .use(policy(session))
    .post(
      "/amount",
      ({ actor, body, language }) => oldAnswer(language, () => costOf(actor, EPAY, body.amount)),
      {
        access: "user",
        body: oldBody,
      },
    )
    .post(
      "/pay",
      ({ actor, body, language }) =>
        oldAnswer(language, async () => {
          const method = body.payment_method ?? "";
          const { url, fields } = await pay(deps, actor, { rail: EPAY, method, amount: body.amount });
          return { data: fields ?? {}, url };
        }),
      { access: "user", body: oldBody },
    )
    .post(
      "/stripe/amount",
      ({ actor, body, language }) => oldAnswer(language, () => costOf(actor, STRIPE, body.amount)),
      { access: "user", body: oldBody },
    )
    .post(
      "/stripe/pay",
      ({ actor, body, language }) =>
        oldAnswer(language, async () => {
          const wish = { rail: STRIPE, method: undefined, amount: body.amount };
          const { url, tradeNo } = await pay(deps, actor, wish);
          return { data: { pay_link: url, trade_no: tradeNo } };
        }),
      { access: "user", body: oldBody },
    );
}

/** What was sent to a rail's address, and what its sender is told. Throws `payment_route_closed` (404), `body_too_large`. */
async function callRail(deps: Deps, name: string, request: Request): Promise<string> {
  const rail = guardedRail(deps, name);
  const { pathname, searchParams } = new URL(request.url);
  if (!rail) throw new Failure("client", "payment_route_closed", { status: 404, internal: pathname });
  const isPost = request.method === "POST";
  const body =
    isPost && request.body
      ? await receive(request.body, {
          maxBytes: rail.maxBodyBytes,
          totalMs: CALLBACK_MS,
          tooLarge: () => new Failure("client", "body_too_large", { status: 413 }),
        })
      : new Uint8Array();
  return rail.receive(deps, {
    method: isPost ? "POST" : "GET",
    query: searchParams,
    contentType: request.headers.get("content-type") ?? "",
    body,
    header: (header) => request.headers.get(header) ?? "",
  });
}

/** What providers call: any rail by its name, and the two addresses that were known before. */
function callbackRoutes(deps: Deps, session: SessionSettings) {
  return new Elysia()
    .use(policy(session))
    .get("/api/payment/:rail", ({ params, request }) => callRail(deps, params.rail, request), {
      open: "public",
    })
    .post("/api/payment/:rail", ({ params, request }) => callRail(deps, params.rail, request), {
      open: "visitor",
      parse: "none",
    })
    .get("/api/user/epay/notify", ({ request }) => callRail(deps, EPAY, request), { open: "public" })
    .post("/api/user/epay/notify", ({ request }) => callRail(deps, EPAY, request), {
      open: "visitor",
      parse: "none",
    })
    .post("/api/stripe/webhook", ({ request }) => callRail(deps, STRIPE, request), {
      open: "visitor",
      parse: "none",
    });
}

export function payments(deps: Deps, session: SessionSettings) {
  return new Elysia()
    .use(payRoutes(deps, session))
    .use(oldRoutes(deps, session))
    .use(callbackRoutes(deps, session));
}
