// What the observer is told of calls: every attempt as it ends, every request of a client once. Models are told by name where some
// channel serves them. Refuses what belongs to no client: the gateway's own probes count as attempts alone.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { EndReason } from "../../core/ledger/settle-policy.ts";
import { OTHER_MODEL } from "../../observe/names.ts";
import type { AttemptOutcome, Outcome } from "../../observe/names.ts";
import type { ChargedTokens } from "../../observe/observer.ts";
import type { CallRecord } from "../../observe/record.ts";
import { providerName } from "../../providers/telemetry.ts";
import type { Failure, FailureKind } from "../../shared/failures.ts";
import { completionTokens, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Caller } from "./admission.ts";
import type { AttemptFailure } from "./attempt.ts";
import type { AttemptNote, Call } from "./call.ts";
import type { CallEnd } from "./settle.ts";
import { endAttempt, traceAttempt, traceCall, traceEnd } from "./tracing.ts";

/** What a client calls a model may be anything. */
const MOST_NAME_CHARACTERS = 128;

type Told = Pick<Deps, "observer" | "routing">;

const OUTCOME_OF_KIND: Readonly<Record<FailureKind, Outcome>> = {
  client: "client",
  auth: "auth",
  forbidden: "auth",
  quota: "quota",
  limit: "limit",
  "no-channel": "upstream",
  "upstream-auth": "upstream",
  "upstream-quota": "upstream",
  "upstream-limit": "upstream",
  "upstream-request": "client",
  "upstream-refusal": "client",
  "context-length": "client",
  "upstream-down": "upstream",
  "upstream-timeout": "upstream",
  "broken-stream": "upstream",
  internal: "internal",
};

const OUTCOME_OF_END: Readonly<Partial<Record<EndReason, Outcome>>> = {
  completed: "ok",
  "max-cost": "ok",
  refusal: "ok",
  balance: "quota",
  draining: "internal",
  abandoned: "cancelled",
  "client-gone": "cancelled",
};

function outcomeOf({ code, kind }: Failure): Outcome {
  if (code === "client_gone") return "cancelled";
  if (code === "server_draining") return "internal";
  return OUTCOME_OF_KIND[kind];
}

/** The name of a model as a label: clients choose names, so only those count that some channel of the group serves. */
function modelLabel({ routing }: Told, group: string, model: string): string {
  return routing.knows(group, model) ? model : OTHER_MODEL;
}

/** Of a failed attempt: what it says of its channel. */
function attemptOutcome({ failure, verdict }: AttemptFailure): AttemptOutcome {
  if (failure.code === "client_gone" || failure.code === "server_draining") return "cancelled";
  return verdict === "ok" ? "refused" : verdict;
}

/** One try at one channel. */
export interface ToldAttempt {
  channel: Channel;
  group: string;
  model: string;
  endpoint: string;
  ms: number;
  /** performance.now() of its start. */
  startedMs: number;
  record?: CallRecord | undefined;
  note?: AttemptNote | undefined;
}

/** It has its answer; of a stream the first of it, whose end `tellAttemptEnd` tells. */
export function tellServedAttempt(deps: Told, attempt: ToldAttempt, goesOn: boolean): void {
  deps.observer.attempted(attempt.channel.id, "ok");
  traceAttempt(attempt);
  if (!goesOn) tellAttemptEnd(deps, attempt, "");
}

export function tellFailedAttempt(deps: Told, attempt: ToldAttempt, failed: AttemptFailure): void {
  deps.observer.attempted(attempt.channel.id, attemptOutcome(failed));
  traceAttempt(attempt);
  tellAttemptEnd(deps, attempt, failed.failure.code);
}

/** `error`: "" = it was answered in full. */
function tellAttemptEnd(
  deps: Told,
  { channel, group, model, endpoint, ms }: ToldAttempt,
  error: string,
): void {
  deps.observer.attemptEnded({
    channel: channel.id,
    endpoint,
    provider: providerName(channel.type),
    model: modelLabel(deps, group, model),
    error,
    ms,
  });
}

/** The last byte of a streamed answer, or what broke it off. */
export function tellStreamedAttempt(deps: Told, call: Call, channel: Channel, reason: EndReason): void {
  const { group, model, endpoint, record } = call;
  const ms = performance.now() - record.askedMs;
  const error = reason === "completed" ? "" : reason;
  endAttempt(record.trace, error);
  tellAttemptEnd(deps, { channel, group, model, endpoint: endpoint.name, ms, startedMs: 0 }, error);
}

function tokensOf(usage: Usage): ChargedTokens {
  const { input, output } = usage;
  return {
    input: promptTokens(usage),
    output: completionTokens(usage),
    cacheRead: input.cacheRead,
    cacheWrite: input.cacheWrite5m + input.cacheWrite1h,
    reasoning: output.thinking,
  };
}

/** How an answered call ended for its client. */
export interface SettledEnd {
  end: Pick<CallEnd, "reason" | "firstByteMs" | "json" | "upstreamId">;
  /** performance.now() when nothing more came from the upstream. */
  endedMs: number;
  /** As charged; undefined: nothing was. */
  usage: Usage | undefined;
}

export function tellSettled(deps: Told, call: Call, channel: Channel, settled: SettledEnd): void {
  const { record, startedMs } = call;
  if (call.isTest || record.isTold) return;
  record.isTold = true;
  const { endedMs, usage } = settled;
  const { reason, firstByteMs } = settled.end;
  const durationMs = performance.now() - startedMs;
  const atUpstreams = record.triedMs + (endedMs - record.askedMs);
  deps.observer.ended({
    endpoint: call.endpoint.name,
    provider: providerName(channel.type),
    model: modelLabel(deps, call.group, call.model),
    outcome: OUTCOME_OF_END[reason] ?? "upstream",
    error: reason === "completed" ? "" : reason,
    durationMs,
    addedMs: record.askedMs === 0 ? undefined : durationMs - atUpstreams,
    firstTokenMs: firstByteMs,
    tokens: usage && tokensOf(usage),
  });
  const error = reason === "completed" ? "" : reason;
  const { json, upstreamId } = settled.end;
  if (record.trace) traceCall(deps, call, { json, upstreamId, channel, error, usage });
  if (!deps.observer.access) return;
  const { requestId, caller, model, group, charged } = call;
  const endpoint = call.endpoint.name;
  const said = { endpoint, channel, group, model, requestId, caller, startedMs, reason, firstByteMs };
  writeAccess(deps, { ...said, usage, quota: charged, record }, durationMs);
}

/** The line of a call that was answered. */
function writeAccess({ observer }: Told, answered: ToldAnswer, durationMs: number): void {
  if (!observer.access) return;
  const { endpoint, channel, model, requestId, caller, reason, firstByteMs, usage, quota, record } = answered;
  observer.access({
    request_id: requestId,
    trace_id: record?.trace?.traceId,
    endpoint,
    model: model.slice(0, MOST_NAME_CHARACTERS),
    outcome: OUTCOME_OF_END[reason] ?? "upstream",
    error: reason === "completed" ? "" : reason,
    channel: channel?.id,
    user: caller?.user.id,
    key: caller?.token?.id,
    ms: Math.round(durationMs),
    first_ms: firstByteMs === undefined ? undefined : Math.round(firstByteMs),
    input: usage && promptTokens(usage),
    output: usage && completionTokens(usage),
    quota,
  });
}

/** A turn of a session, a submitted task: what was answered without being a call of its own. */
export interface ToldAnswer {
  endpoint: string;
  channel: Channel | undefined;
  group: string;
  model: string;
  requestId: string;
  caller: Caller | undefined;
  /** performance.now() of the start. */
  startedMs: number;
  reason: EndReason;
  firstByteMs?: number | undefined;
  usage?: Usage | undefined;
  /** As charged, in units and in dollars. */
  quota?: number | undefined;
  cost?: number | undefined;
  /** Absent: it is not traced. */
  record?: CallRecord | undefined;
}

export function tellAnswered(deps: Told, answered: ToldAnswer): void {
  const { endpoint, channel, group, model, startedMs, reason, firstByteMs, usage, record } = answered;
  if (record?.isTold) return;
  if (record) record.isTold = true;
  const error = reason === "completed" ? "" : reason;
  const durationMs = performance.now() - startedMs;
  traceEnd(deps, record?.trace, { ...answered, model: model.slice(0, MOST_NAME_CHARACTERS), error });
  writeAccess(deps, answered, durationMs);
  deps.observer.ended({
    endpoint,
    provider: channel ? providerName(channel.type) : "",
    model: modelLabel(deps, group, model),
    outcome: OUTCOME_OF_END[reason] ?? "upstream",
    error,
    durationMs,
    addedMs: undefined,
    firstTokenMs: firstByteMs,
    tokens: usage && tokensOf(usage),
  });
}

/** A request without an answer, as far as it is known. */
export interface ToldRefusal {
  endpoint: string;
  group: string | undefined;
  model: string | undefined;
  requestId: string;
  startedMs: number;
  caller?: Caller | undefined;
  record: CallRecord | undefined;
}

export function tellRefused(deps: Told, refused: ToldRefusal, failure: Failure): void {
  const { record, group, model } = refused;
  if (record?.isTold) return;
  if (record) record.isTold = true;
  traceEnd(deps, record?.trace, {
    ...refused,
    model: model?.slice(0, MOST_NAME_CHARACTERS) ?? OTHER_MODEL,
    error: failure.code,
  });
  deps.observer.ended({
    endpoint: refused.endpoint,
    provider: "",
    model: group !== undefined && model !== undefined ? modelLabel(deps, group, model) : OTHER_MODEL,
    outcome: outcomeOf(failure),
    error: failure.code,
    durationMs: performance.now() - refused.startedMs,
    addedMs: undefined,
    firstTokenMs: undefined,
    tokens: undefined,
  });
  deps.observer.access?.({
    request_id: refused.requestId,
    trace_id: record?.trace?.traceId,
    endpoint: refused.endpoint,
    model: model?.slice(0, MOST_NAME_CHARACTERS),
    outcome: outcomeOf(failure),
    error: failure.code,
    user: refused.caller?.user.id,
    key: refused.caller?.token?.id,
    status: failure.status,
    ms: Math.round(performance.now() - refused.startedMs),
  });
}
