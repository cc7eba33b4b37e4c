// What a call would cost, told before it is made, and an id by which it is charged at these prices for five minutes.
// Asks no upstream and charges nothing; whatever would refuse the call refuses its quote.
import { medianOutput } from "../../core/logs/usual-output.ts";
import { mostTokens, unitsFor } from "../../core/prices/holds.ts";
import { costOf, settledRatios } from "../../core/prices/prices.ts";
import type { CallFacts } from "../../core/prices/prices.ts";
import { REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { asObject } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { MAX_QUOTA } from "../../shared/money.ts";
import { countUnits } from "../endpoints/call-units.ts";
import { withoutZeroLimits } from "../endpoints/output-limit.ts";
import { estimatedUsage } from "../meter/meter.ts";
import { hasOwnEncoder } from "../meter/token-count.ts";
import { corsHeaders } from "../wire/cors.ts";
import type { RelayBody } from "../wire/read-body.ts";
import type { Admitted } from "./admission.ts";
import type { Exchange } from "./exchange.ts";
import { forecast } from "./hold.ts";
import type { Forecast } from "./hold.ts";
import { bodyOf, receive, receiveInSession, requestOf } from "./prepare.ts";
import type { Received, SessionCaller } from "./prepare.ts";
import { QUOTE_MS, sealQuote } from "./quote-id.ts";
import { needsCallPrice, quotedTarget } from "./quote-paths.ts";
import type { CallServices } from "./services.ts";

/** Shares by which a count may be off: by the model's own encoder, by another one's, and with media that nobody opened. */
const ERRORS = { encoder: 0.02, similar_encoder: 0.25, estimate: 1 } as const;

/** Answers `POST /v1/quote {path, body}` for a caller with a key. */
export async function quoteForClient(services: CallServices, admitted: Admitted): Promise<Response> {
  return quoted(services, await receive(services, admitted), (body) => body);
}

/** The same in the playground. */
export async function quoteInSession(
  services: CallServices,
  exchange: Exchange,
  session: SessionCaller,
): Promise<Response> {
  const received = await receiveInSession(services, exchange, {
    user: session.user,
    bodyOf: (body) => body,
    callerOf: (body) => session.callerOf(askedIn(body).body),
  });
  return quoted(services, received, session.bodyOf);
}

/** An inference route by its path, and the body that it would get. */
function askedIn({ json }: RelayBody): { path: string; body: RelayBody } {
  const { path } = json;
  const body = asObject(json["body"]);
  if (typeof path !== "string" || path === "") throw missing("path");
  if (!body) throw missing("body");
  return { path, body: bodyOf(body) };
}

function missing(field: string): Failure {
  return new Failure("client", "field_required", { params: { field }, param: field });
}

function unknownPath(path: string): Failure {
  return new Failure("client", "quote_path_unknown", {
    params: { path: path.slice(0, 200) },
    param: "path",
  });
}

async function quoted(
  services: CallServices,
  { exchange, caller, body: sent }: Received,
  shaped: (body: RelayBody) => RelayBody,
): Promise<Response> {
  const asked = askedIn(sent);
  const target = quotedTarget(asked.path);
  if (!target) throw unknownPath(asked.path);
  const { endpoint } = target;
  const inner = shaped(asked.body);
  const body = withoutZeroLimits(endpoint.dialect, endpoint.translate?.(inner) ?? inner);
  const request = await requestOf(services, { exchange: { ...exchange, ...target }, caller, body });
  exchange.model = request.model;
  const { callPrice, callUnit = "call" } = request.price.ratios;
  if (needsCallPrice(endpoint) && (callPrice === undefined || callUnit !== "call"))
    throw unknownPath(asked.path);
  const answer = await quoteOf(services, await forecast(services, request));
  const headers = {
    ...corsHeaders(exchange.request),
    "cache-control": "no-store",
    [REQUEST_ID_HEADER]: exchange.requestId,
  };
  return Response.json(answer, { headers });
}

async function quoteOf({ deps }: CallServices, found: Forecast) {
  const { request, wanted, available } = found;
  const { caller, model, groupPrices, prompt } = request;
  const price = groupPrices?.find(({ group }) => group === caller.group)?.price ?? request.price;
  const worst = worstOf(found);
  const usage = await expectedUsage(deps, found);
  const charge = costOf(price, usage, factsOf(found));
  const expected = isPicturesByToken(found) ? worst : Math.min(charge.quota, worst);
  const method = prompt.mediaTokens > 0 ? "estimate" : hasOwnEncoder(model) ? "encoder" : "similar_encoder";
  const expiresMs = deps.clock.nowMs() + QUOTE_MS;
  const dollars = (units: number): number => units / price.quotaPerUnit;
  return {
    quote_id: sealQuote(deps.seal, caller, {
      model,
      expiresMs,
      prices: groupPrices ?? [{ group: caller.group, price }],
    }),
    revision: price.revision,
    model,
    group: caller.group,
    input_tokens: { count: promptTokens(usage), method, error: ERRORS[method] },
    output_tokens: usage.output.text,
    expected,
    worst,
    reserve: wanted.amount,
    cost: { expected: dollars(expected), worst: dollars(worst), reserve: dollars(wanted.amount) },
    affordable: available > 0 && available >= wanted.least,
    group_ratio: price.groupRatio,
    lines: charge.lines.map(({ kind, count, unitPrice, per, amount }) => ({
      kind,
      count,
      unit_price: unitPrice,
      per,
      quota: amount * price.groupRatio,
    })),
    rules: settledRatios(price, promptTokens(usage), undefined).applied,
    expires_at: Math.floor(expiresMs / 1000),
  };
}

/** The most that the call can be charged, in units: by its limit, or that which would be sent, and its cap. */
function worstOf({ request, terms, limit }: Forecast): number {
  return Math.min(request.cap ?? MAX_QUOTA, unitsFor(terms, limit ?? mostTokens(terms)));
}

/** Nobody knows before how many tokens a picture has: what is held is what is expected. */
function isPicturesByToken({ request }: Forecast): boolean {
  return request.endpoint.pieces !== undefined && request.price.ratios.callPrice === undefined;
}

function factsOf({ request }: Forecast): CallFacts {
  const { endpoint, body, model, price } = request;
  return {
    surface: endpoint.name === "messages" ? "messages" : undefined,
    ...countUnits(endpoint, price, { body: body.json, form: body.form, json: undefined }),
    ...(endpoint.factor ? { callFactor: endpoint.factor(body.json, model) } : {}),
  };
}

/** The prompt, and an answer as long as the caller's last ones; of a model new to the caller, a quarter of the limit. */
async function expectedUsage(
  deps: CallServices["deps"],
  { request, terms, limit }: Forecast,
): Promise<Usage> {
  const { endpoint, body, model, caller, prompt, earlierTokens } = request;
  const counted = endpoint.heldInput?.({ body: body.json, form: body.form, model }) ?? 0;
  const input = Math.max(prompt.tokens, counted) + earlierTokens;
  if (endpoint.answersTokens === false) return estimatedUsage(input, 0);
  const most = Math.min(limit ?? Infinity, terms.clientLimit ?? Infinity, mostTokens(terms));
  const usual = await medianOutput(deps, caller.user.id, model);
  // The log has the tokens of all answers together.
  const output = usual ?? Math.floor(most / 4) * terms.choices;
  return estimatedUsage(input, Math.min(output, most * terms.choices));
}
