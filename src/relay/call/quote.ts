// What a call would cost, told before it is made, and an id by which it is charged at these prices for five minutes.
// Asks no upstream and charges nothing; whatever would refuse the call refuses its quote.
import { medianOutput } from "../../core/logs/usual-output.ts";
import { mostTokens, unitsFor } from "../../core/prices/holds.ts";
import { costOf, settledRatios } from "../../core/prices/prices.ts";
import type { CallFacts, CallPrice } from "../../core/prices/prices.ts";
import { REQUEST_ID_HEADER } from "../../http/request-id.ts";
import { asObject } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { completionTokens, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { MAX_QUOTA } from "../../shared/money.ts";
import { countUnits } from "../endpoints/call-units.ts";
import { withoutZeroLimits } from "../endpoints/output-limit.ts";
import { estimatedUsage } from "../meter/meter.ts";
import { COUNT_ERRORS, hasOwnEncoder } from "../meter/token-count.ts";
import { corsHeaders } from "../wire/cors.ts";
import type { RelayBody } from "../wire/read-body.ts";
import { checkModel, pinnedChannel, unserved } from "./admission.ts";
import type { Admitted, Caller } from "./admission.ts";
import { callerFor, dearestIn, pricesIn } from "./auto-group.ts";
import type { GroupPrice } from "./auto-group.ts";
import { capOf, overCap } from "./cap.ts";
import type { Exchange } from "./exchange.ts";
import { forecast } from "./hold.ts";
import type { Forecast } from "./hold.ts";
import { bodyOf, receive, receiveInSession, requestOf } from "./prepare.ts";
import type { Received, SessionCaller } from "./prepare.ts";
import { QUOTE_MS, sealQuote } from "./quote-id.ts";
import { needsCallPrice, quotedTarget } from "./quote-paths.ts";
import type { CallServices } from "./services.ts";

/** What a task or a session costs at a price. */
export interface SurfaceCosts {
  usage: Usage;
  charge: ReturnType<typeof costOf>;
  /** Units: the most, what would be held now, and less than what serves nothing. */
  worst: number;
  reserve: number;
  least: number;
}

/** What is quoted for a route whose price follows from its room's own rules: a task, a session. */
export interface QuotedSurface {
  model: string;
  /** Throws where the model has none. */
  priceIn(caller: Caller, group: string): CallPrice;
  /** `price`: the dearest of the groups that may serve, which is held; `own`: in the caller's; `available`: units. */
  costs(asked: {
    caller: Caller;
    price: CallPrice;
    own: CallPrice;
    available: number;
  }): SurfaceCosts | Promise<SurfaceCosts>;
}

/** Undefined: the path is none of a task or session. Throws what the body itself would be refused with. */
export type SurfaceOf = (path: string, body: Record<string, unknown>) => QuotedSurface | undefined;

/** Shares by which a count may be off; the last is of media that nobody opened. */
const ERRORS = { ...COUNT_ERRORS, estimate: 1 } as const;

/** Answers `POST /v1/quote {path, body}` for a caller with a key; `surfaceOf` knows tasks and sessions. */
export async function quoteForClient(
  services: CallServices,
  admitted: Admitted,
  surfaceOf: SurfaceOf,
): Promise<Response> {
  const received = await receive(services, admitted);
  const { path, body } = askedIn(received.body);
  const surface = surfaceOf(path, body.json);
  return surface ? quotedSurface(services, received, surface) : quoted(services, received, (json) => json);
}

/** The same in the playground. */
export async function quoteInSession(
  services: CallServices,
  exchange: Exchange,
  session: SessionCaller,
): Promise<Response> {
  const received = await receiveInSession(services, exchange, {
    ...session,
    bodyOf: (body) => body,
    callerOf: (body, user) => session.callerOf(askedIn(body).body, user),
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
  return answered(exchange, await quoteOf(services, await forecast(services, request)));
}

function answered({ request, requestId }: Exchange, answer: object): Response {
  const headers = {
    ...corsHeaders(request),
    "cache-control": "no-store",
    [REQUEST_ID_HEADER]: requestId,
  };
  return Response.json(answer, { headers });
}

/** A task or a session: what its own room says of it, for a caller who is checked as the submission would be. */
async function quotedSurface(
  { deps }: CallServices,
  { exchange, caller: admitted }: Received,
  surface: QuotedSurface,
): Promise<Response> {
  const { model } = surface;
  exchange.model = model;
  checkModel(admitted, model);
  const pinned = admitted.pinned === undefined ? undefined : pinnedChannel(deps, admitted.pinned);
  const caller = callerFor(deps, admitted, model, pinned);
  exchange.caller = caller;
  if (!pinned && deps.routing.tiers(caller.group, model).length === 0) throw unserved(deps, caller, model);
  const groupPrices = pricesIn(caller, (group) => surface.priceIn(caller, group));
  const price = (groupPrices && dearestIn(groupPrices)) ?? surface.priceIn(caller, caller.group);
  const own = groupPrices?.find(({ group }) => group === caller.group)?.price ?? price;
  const cap = capOf(exchange.request.headers, caller, price.quotaPerUnit);
  await deps.ledger.ready(caller);
  const available = deps.ledger.available(caller);
  const costs = await surface.costs({ caller, price, own, available: Math.max(0, available) });
  if (cap !== undefined && costs.least > cap) throw overCap(deps.options, costs.least, cap);
  const under = (units: number): number => Math.min(units, cap ?? MAX_QUOTA);
  return answered(
    exchange,
    answerOf(deps, {
      caller,
      model,
      groupPrices,
      price: own,
      usage: costs.usage,
      method: "estimate",
      charge: costs.charge,
      expected: under(costs.charge.quota),
      worst: under(costs.worst),
      reserve: under(costs.reserve),
      isAffordable: available > 0 && available >= costs.least,
    }),
  );
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
  return answerOf(deps, {
    caller,
    model,
    groupPrices,
    price,
    usage,
    method,
    charge,
    expected,
    worst,
    reserve: wanted.amount,
    isAffordable: available > 0 && available >= wanted.least,
  });
}

interface Told {
  caller: Caller;
  model: string;
  /** Of an automatic key. */
  groupPrices: readonly GroupPrice[] | undefined;
  /** In the caller's group. */
  price: CallPrice;
  /** What `expected` assumes. */
  usage: Usage;
  method: keyof typeof ERRORS;
  charge: ReturnType<typeof costOf>;
  /** Units, these three. */
  expected: number;
  worst: number;
  reserve: number;
  isAffordable: boolean;
}

function answerOf(deps: Pick<CallServices["deps"], "clock" | "seal">, told: Told) {
  const { caller, model, groupPrices, price, usage, method, charge, expected, worst, reserve } = told;
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
    output_tokens: completionTokens(usage),
    expected,
    worst,
    reserve,
    cost: { expected: dollars(expected), worst: dollars(worst), reserve: dollars(reserve) },
    affordable: told.isAffordable,
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
  const { endpoint, body, model, caller, price, prompt, earlierTokens } = request;
  const counted = endpoint.heldInput?.({ body: body.json, form: body.form, model }) ?? 0;
  const input = Math.max(prompt.tokens, counted) + earlierTokens;
  if (endpoint.answersTokens === false) {
    const usage = estimatedUsage(input, 0);
    usage.output.audio = endpoint.heldSound?.({ body: body.json, model, ratios: price.ratios }) ?? 0;
    return usage;
  }
  const most = Math.min(limit ?? Infinity, terms.clientLimit ?? Infinity, mostTokens(terms));
  const usual = await medianOutput(deps, caller.user.id, model);
  // The log has the tokens of all answers together.
  const output = usual ?? Math.floor(most / 4) * terms.choices;
  return estimatedUsage(input, Math.min(output, most * terms.choices));
}
