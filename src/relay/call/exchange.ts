// One request to the gateway and its answer, whatever is requested: its id, its failures in the client's dialect, and what is
// given back when it is over.
import type { Deps } from "../../core/deps.ts";
import type { RateState } from "../../core/kit/rate-limit.ts";
import type { RateClaim } from "../../core/limits/shared-rates.ts";
import type { DialectName } from "../../protocol/canonical.ts";
import { refuseBadHost } from "../../http/host.ts";
import { relayLanguageOf } from "../../http/messages.ts";
import { newRequestId } from "../../http/request-id.ts";
import type { Work } from "../../http/visitors.ts";
import type { OptionStore } from "../../core/options/store.ts";
import { idsOf } from "../../observe/trace-context.ts";
import type { CallRecord } from "../../observe/record.ts";
import type { Failure } from "../../shared/failures.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { corsHeaders } from "../wire/cors.ts";
import { setRateHeaders } from "../wire/rate-headers.ts";
import { asFailure, renderFailure } from "../wire/render-failure.ts";
import type { FailureView } from "../wire/render-failure.ts";
import type { Caller } from "./admission.ts";
import { logRefusal } from "./refusal-rows.ts";
import type { RefusalServices, RefusedRequest } from "./refusal-rows.ts";
import type { CallServices } from "./services.ts";
import { tellRefused } from "./telling.ts";
import { beginRecord } from "./tracing.ts";

export interface RelayRequest {
  request: Request;
  endpoint: Endpoint;
  /** Model that the address names, where it does. */
  pathModel?: string;
  /** What the address says about streaming (Gemini): in events, as a JSON array, or not at all. */
  pathStream?: "events" | "array" | "none";
  /** What it counts as, where it only asks about a call of the endpoint. */
  countsAs?: "count" | "quote";
}

export interface Exchange {
  readonly request: Request;
  readonly endpoint: Endpoint;
  readonly pathModel: RelayRequest["pathModel"];
  readonly pathStream: RelayRequest["pathStream"];
  readonly requestId: string;
  readonly countsAs: RelayRequest["countsAs"];
  /** For the language of what the gateway itself says. */
  readonly options: Pick<OptionStore, "get">;
  /** performance.now() of the start. */
  readonly startedMs: number;
  /** What is told of it when it is over. */
  readonly record: CallRecord;
  /** The request rate that the caller is under; undefined where there is none. */
  rate: (RateClaim & { isAdmitted: boolean }) | undefined;
  /** From the body's last byte on. */
  work: Work | undefined;
  /** Set as soon as they are known: a refused call leaves a row that names them. */
  caller: Caller | undefined;
  model: string | undefined;
  /** Its refusals stand without the id: the playground's own do. */
  omitsId: boolean;
}

/** Runs the exchange to its response. Never throws: what fails is answered in the client's dialect. */
export async function runExchange(
  services: CallServices,
  { request, endpoint, pathModel, pathStream, countsAs }: RelayRequest,
  answer: (services: CallServices, exchange: Exchange) => Promise<Response>,
): Promise<Response> {
  const refused = refuseBadHost({ request });
  if (refused) return refused;
  const { lockstep, bodies, visitors, deps } = services;
  const exchange: Exchange = {
    request,
    endpoint,
    pathModel,
    pathStream,
    requestId: newRequestId(deps.clock.nowMs()),
    countsAs,
    options: deps.options,
    startedMs: performance.now(),
    record: beginRecord(deps, request),
    rate: undefined,
    work: undefined,
    caller: undefined,
    model: undefined,
    omitsId: false,
  };
  lockstep.enter();
  try {
    const response = await answer(services, exchange);
    tellRates(services, exchange, response, true);
    return response;
  } catch (error) {
    const response = refusal(services, exchange, error);
    tellRates(services, exchange, response, false);
    return response;
  } finally {
    bodies.done(request);
    visitors.done(exchange.work);
    lockstep.leave();
  }
}

/** The answer says where the caller stands: of the site's rate and the limits of key and user, what leaves least. */
function tellRates(services: CallServices, exchange: Exchange, response: Response, isSuccess: boolean): void {
  const { clock, limits } = services.deps;
  const { caller, rate } = exchange;
  const states = caller && limits.states(caller);
  const ofSite = rate && endRate(services, rate, isSuccess);
  if (!ofSite && !states) return;
  const { dialect } = exchange.endpoint;
  const ofKey = states?.requests;
  const requests = ofKey && ofSite && ofSite.remaining <= ofKey.remaining ? ofSite : (ofKey ?? ofSite);
  if (requests) setRateHeaders(response.headers, dialect, "requests", requests, clock.nowMs());
  if (states?.tokens) setRateHeaders(response.headers, dialect, "tokens", states.tokens, clock.nowMs());
}

/** The call no longer takes the place of a success. */
function endRate(
  { limiter, deps }: CallServices,
  rate: NonNullable<Exchange["rate"]>,
  isSuccess: boolean,
): RateState {
  const { userId, rule } = rate;
  const nowMs = deps.clock.monotonicMs();
  if (rate.isAdmitted) {
    limiter.ended(userId, rule, isSuccess, nowMs, rate.shared === "refused");
    deps.limits.rateEnded(rate, isSuccess);
  }
  return limiter.state(userId, rule, nowMs);
}

/** How a failure is written for the client of this request. */
export function viewOf({
  request,
  requestId,
  endpoint,
  options,
}: Pick<Exchange, "request" | "requestId" | "endpoint" | "options">): FailureView {
  return { dialect: endpoint.dialect, language: relayLanguageOf(request, options), requestId };
}

type ExplainServices = RefusalServices & { deps: Pick<Deps, "logger" | "observer" | "routing"> };

/**
 * The failure that an error means to the client. What nobody expected is logged with its cause, and a call whose key is
 * known leaves a row.
 */
export function explain(
  services: ExplainServices,
  request: RefusedRequest & { endpoint?: { readonly name: string }; record?: CallRecord; request?: Request },
  error: unknown,
): Failure {
  const { logger } = services.deps;
  const { requestId, endpoint, caller, model, startedMs, record } = request;
  const failure = asFailure(error);
  if (failure.kind === "internal" && failure.cause !== undefined) {
    const { cause } = failure;
    logger.error("relayed call failed", {
      request_id: requestId,
      trace_id: record?.trace?.traceId ?? idsOf(request.request?.headers.get("traceparent") ?? null)?.traceId,
      code: failure.code,
      error: cause instanceof Error ? (cause.stack ?? cause.message) : "thrown value",
    });
  }
  logRefusal(services, request, failure);
  if (endpoint) {
    const told = {
      endpoint: endpoint.name,
      group: caller?.group,
      model,
      requestId,
      startedMs,
      caller,
      record,
    };
    tellRefused(services.deps, told, failure);
  }
  return failure;
}

function refusal(services: CallServices, exchange: Exchange, error: unknown): Response {
  const { endpoint, countsAs } = exchange;
  const told = countsAs === undefined ? endpoint : { name: countsAs };
  const failure = explain(services, { ...exchange, dialect: endpoint.dialect, endpoint: told }, error);
  const view = { ...viewOf(exchange), omitId: exchange.omitsId };
  return renderFailure(failure, view, corsHeaders(exchange.request));
}

/** A request that is answered without an exchange: lists, handshakes, tasks. */
export interface PlainRequest {
  request: Request;
  dialect: DialectName;
  /** As far as they are known. */
  caller?: Caller | undefined;
  model?: string | undefined;
  requestId?: string;
  startedMs?: number;
  omitId?: boolean;
  /** Where it counts among the requests of clients. */
  endpoint?: { readonly name: string };
  record?: CallRecord;
}

/** The refusal of a request that is no exchange, in the words of its dialect; it leaves its row like any other. */
export function refusePlain(services: ExplainServices, plain: PlainRequest, error: unknown): Response {
  const { request, dialect, caller, model, omitId = false } = plain;
  const { requestId = newRequestId(), startedMs = performance.now() } = plain;
  const { endpoint, record } = plain;
  const known = {
    requestId,
    caller,
    model,
    startedMs,
    dialect,
    request,
    ...(endpoint ? { endpoint } : {}),
    ...(record ? { record } : {}),
  };
  const failure = explain(services, known, error);
  const view = { dialect, language: relayLanguageOf(request, services.deps.options), requestId, omitId };
  return renderFailure(failure, view, corsHeaders(request));
}
