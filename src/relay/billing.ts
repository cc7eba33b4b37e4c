// The billing calls of old OpenAI clients: what a key may spend, and what it has spent.
// Dates are ignored: both answer for all time, as clients of this API know it.
import { Elysia } from "elysia";
import type { Deps, TokenAccount } from "../core/deps.ts";
import { relayLanguageOf } from "../http/messages.ts";
import { isInCurrency } from "../core/options/display.ts";
import { ERROR_CODE_HEADER, newRequestId, REQUEST_ID_HEADER } from "../http/request-id.ts";
import { checkedBy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { asObject } from "../protocol/json.ts";
import { admitCaller } from "./call/admission.ts";
import type { Caller } from "./call/admission.ts";
import { corsHeaders, preflight } from "./wire/cors.ts";
import { asFailure, encodeFailure } from "./wire/render-failure.ts";

/** What a key without a limit of its own reports. */
const UNLIMITED = 100_000_000;
const CENTS = 100;

type BillingDeps = Pick<
  Deps,
  "accounts" | "options" | "clock" | "ledger" | "logger" | "maintenance" | "routing"
>;

/** The sums of the key, or of its owner where the site says so; amounts not yet in the ledger are left out. */
function sums(deps: BillingDeps, { user, token }: Caller): { left: number; used: number } {
  if (token && deps.options.get("DisplayTokenStatEnabled"))
    return { left: token.remainQuota, used: token.usedQuota };
  return { left: user.quota, used: user.usedQuota };
}

/** In dollars, or in plain units where the site shows no currency. */
function shown(deps: BillingDeps, quota: number): number {
  return isInCurrency(deps.options) ? quota / deps.options.get("QuotaPerUnit") : quota;
}

function isOpenEnded(deps: BillingDeps, token: TokenAccount | undefined): boolean {
  return token !== undefined && token.unlimitedQuota && deps.options.get("DisplayTokenStatEnabled");
}

function subscription(deps: BillingDeps, caller: Caller): Record<string, unknown> {
  const { token } = caller;
  const { left, used } = sums(deps, caller);
  const limit = isOpenEnded(deps, token) ? UNLIMITED : shown(deps, left + used);
  const expiry = token?.expiredTime ?? -1;
  return {
    object: "billing_subscription",
    has_payment_method: true,
    soft_limit_usd: limit,
    hard_limit_usd: limit,
    system_hard_limit_usd: limit,
    access_until: expiry > 0 ? expiry : 0,
  };
}

function usage(deps: BillingDeps, caller: Caller): Record<string, unknown> {
  return { object: "list", total_usage: shown(deps, sums(deps, caller).used) * CENTS };
}

export function billingRelay(deps: BillingDeps, { visitors }: Pick<SessionSettings, "visitors">) {
  async function answer(request: Request, make: typeof subscription, errorType: string): Promise<Response> {
    const requestId = newRequestId();
    const headers: Record<string, string> = {
      ...corsHeaders(request),
      "cache-control": "no-store",
      [REQUEST_ID_HEADER]: requestId,
    };
    try {
      return Response.json(make(deps, await admitCaller(deps, request, visitors)), { headers });
    } catch (error) {
      const failure = asFailure(error);
      headers[ERROR_CODE_HEADER] = failure.code;
      const view = {
        dialect: "openai-chat",
        language: relayLanguageOf(request, deps.options),
        requestId,
      } as const;
      const { status, body } = encodeFailure(failure, view);
      // A key that is refused is refused everywhere; what fails behind it is answered with 200 to clients of these calls.
      if (failure.kind !== "internal") return Response.json(body, { status, headers });
      return Response.json(
        { error: { ...asObject(asObject(body)?.["error"]), type: errorType } },
        { headers },
      );
    }
  }

  const raw = { parse: "none", ...checkedBy("relay key") } as const;
  const subscribed = ({ request }: { request: Request }) => answer(request, subscription, "upstream_error");
  const used = ({ request }: { request: Request }) => answer(request, usage, "new_api_error");
  return new Elysia()
    .get("/v1/dashboard/billing/subscription", subscribed, raw)
    .get("/v1/dashboard/billing/usage", used, raw)
    .get("/dashboard/billing/subscription", subscribed, raw)
    .get("/dashboard/billing/usage", used, raw)
    .options("/dashboard/*", ({ request }) => preflight(request), checkedBy("relay key"));
}
