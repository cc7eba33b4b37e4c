// One attempt at one upstream: the request, its timers, and the classification of whatever comes back.
// Refuses to follow redirects and to show where the upstream lives; the only file that calls inference upstreams.
import type { Channel } from "../../core/channels/rows.ts";
import type { Verdict } from "../../core/channels/picker.ts";
import type { EgressTarget } from "../../net/reach.ts";
import { AS_SENT, unpacked } from "../../net/decompress.ts";
import { readErrorBody, retrySeconds, scrub } from "../../protocol/classify.ts";
import type { Dialect } from "../../protocol/dialect.ts";
import { asObject, parseJson } from "../../protocol/json.ts";
import type { UpstreamFetch } from "../../providers/adapter.ts";
import { Failure } from "../../shared/failures.ts";
import { withoutKeys } from "../../shared/without-keys.ts";
import type { FailureDetails, FailureKind } from "../../shared/failures.ts";
import { drainingFailure } from "./call.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Call } from "./call.ts";
import { fetchInit } from "./fetch-init.ts";
import type { ReadingOn } from "./in-flight.ts";
import { cappedAnswer, cutAnswer, fullBody } from "../wire/full-body.ts";

export interface UpstreamRequest {
  url: string;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | FormData;
  /** Makes the call where the provider has a protocol of its own; address, headers and body are then its business. */
  adapter?: (send: UpstreamFetch, signal: AbortSignal, underWay: () => void) => Promise<Response>;
  /** Puts right what the provider is known to count wrong in its answers. */
  correct?: (response: Response) => Promise<Response>;
  /** Address of an outgoing proxy; "" = none. */
  proxy: string;
  /** Judges each address before it is called. */
  reach: (url: string) => EgressTarget | Promise<EgressTarget>;
}

export interface AttemptLimits {
  /** Until the answer's status line; 0 = only the deadline counts. */
  firstByteMs: number;
  /** What is left of the deadline over all attempts. */
  deadlineMs: number;
  /** The largest answer that is kept in full. */
  maxAnswerBytes: number;
}

/** An upstream that answered 200; the body has not been read. */
export interface Opened {
  response: Response;
  isStream: boolean;
  abort(): void;
  /** The failure that a broken read of the body means. */
  explain(error: unknown): AttemptFailure;
  /** The first event of a stream is there: what it thinks from here on is no matter of the attempts' deadline. */
  begun: () => void;
  /** Call once the answer has been read in full or is relayed under timers of its own. */
  settled(): void;
}

/** An upstream's refusal in its own words, unscrubbed: for decisions and for the administrators' log only. */
export interface UpstreamRefusal {
  status: number;
  message: string;
  type: string;
  code: string;
}

/** A failed attempt: the public failure, how it reflects on the channel, and the upstream's own words. */
export class AttemptFailure extends Error {
  /** What the upstream says that the attempt used all the same: it bills that. */
  usage: Usage | undefined;

  constructor(
    readonly failure: Failure,
    readonly verdict: Verdict,
    readonly refusal: UpstreamRefusal | undefined,
  ) {
    super(failure.code);
  }
}

const MAX_ERROR_BYTES = 64 * 1024;
/** Lists of models and tasks; more is no answer to a small call. */
const MAX_SMALL_BYTES = 32 * 1024 * 1024;
const IDENTIFIER = /^[\w.:-]{1,64}$/;

function verdictOf(failure: Failure): Verdict {
  switch (failure.kind) {
    case "upstream-auth":
    case "upstream-quota":
      return "rejected";
    case "upstream-limit":
      return "limited";
    case "upstream-down":
    case "upstream-timeout":
    case "broken-stream":
      return "down";
    default:
      return "ok";
  }
}

/** Notes what the upstream's words say of its usage: it bills that also where they are no answer. */
export function withUsage<Thrown>(thrown: Thrown, dialect: Dialect, body: unknown): Thrown {
  const said = thrown instanceof AttemptFailure ? asObject(body) : undefined;
  const raw = said?.["usage"] ?? said?.["usageMetadata"];
  if (thrown instanceof AttemptFailure && raw) thrown.usage ??= dialect.decodeUsage?.(raw) ?? undefined;
  return thrown;
}

/** What attempts threw, without what only the choice of the next one needs. */
export function failureIn(thrown: unknown): unknown {
  return thrown instanceof AttemptFailure ? thrown.failure : thrown;
}

/** Wraps a failure that began inside the gateway's own handling of the attempt. */
export function attemptFailure(failure: Failure): AttemptFailure {
  return new AttemptFailure(failure, verdictOf(failure), undefined);
}

/** An upstream's error answer, as far as it was read. */
interface RefusedAnswer {
  /** Whose words the body is in. */
  dialect: Dialect;
  channel: Pick<Channel, "statusCodeMapping">;
  status: number;
  body: unknown;
  /** Seconds, as text (`retryAfterOf`). */
  retryAfter?: string | null;
}

/**
 * What is about the gateway's own account at the upstream: no fault of the client, who would look at its own key. The
 * status holds unless the channel maps the upstream's.
 */
const ACCOUNT_STATUS: Readonly<Partial<Record<FailureKind, number>>> = {
  "upstream-auth": 502,
  "upstream-quota": 502,
};
/** What such an upstream means that answers 400 to it: Google does for bad keys, DashScope for overdue accounts. */
const MEANT_STATUS: Readonly<Partial<Record<FailureKind, number>>> = {
  "upstream-auth": 401,
  "upstream-quota": 402,
};

const SATURATED = "upstream_saturated";

/** The status that decides what an upstream's answer does to retries and channels: as the operator's mapping has it. */
function decidingStatus(
  { statusCodeMapping }: Pick<Channel, "statusCodeMapping">,
  kind: FailureKind,
  status: number,
): number {
  return statusCodeMapping.get(status) ?? (status === 400 ? (MEANT_STATUS[kind] ?? status) : status);
}

/** Type, code and field for the client: the upstream's own words where they are plain identifiers, and about the request. */
function wireWords(
  base: Failure,
  read: ReturnType<typeof readErrorBody>,
  { status, body, isSaturated }: Pick<RefusedAnswer, "status" | "body"> & { isSaturated: boolean },
): Pick<FailureDetails, "type" | "wireCode" | "param"> {
  const { type, param } = read;
  const hasOwnWords = typeof body !== "string" && read.message !== "";
  const words = {
    type: type !== undefined && IDENTIFIER.test(type) ? type : "upstream_error",
    param: param !== undefined && IDENTIFIER.test(param) ? param : hasOwnWords ? "" : String(status),
  };
  if (base.kind === "context-length")
    return { ...words, type: base.type ?? words.type, wireCode: base.wireCode ?? base.code };
  if (ACCOUNT_STATUS[base.kind] !== undefined)
    return { type: "upstream_error", wireCode: isSaturated ? SATURATED : base.code, param: "" };
  const code = String(read.code ?? "");
  return {
    ...words,
    wireCode: IDENTIFIER.test(code) ? code : hasOwnWords ? base.code : "bad_response_status_code",
  };
}

/**
 * The public failure for an upstream's error answer. The status is the upstream's after the channel's mapping, type and
 * code are the upstream's own words where they are plain identifiers, the text is what the dialect cleared for the
 * public; a saturated upstream gets a sentence of ours, and trouble with our account a status and a code of ours.
 */
export function upstreamFailure(answer: RefusedAnswer): AttemptFailure {
  const { dialect, channel, status, body, retryAfter = null } = answer;
  const read = readErrorBody(body);
  const base =
    dialect.decodeFailure?.(status, body, retryAfter) ?? new Failure("upstream-down", "upstream_down");
  const { kind } = base;
  const deciding = decidingStatus(channel, kind, status);
  const own = ACCOUNT_STATUS[kind] ?? (kind === "context-length" ? base.status : undefined);
  const isSaturated = deciding === 429;
  const isOwn = own !== undefined && !isSaturated && !channel.statusCodeMapping.has(status);
  const details: FailureDetails = {
    status: isOwn ? own : deciding >= 400 ? deciding : 500,
    ...wireWords(base, read, { status, body, isSaturated }),
    params: base.params,
    internal: base.internal ?? "",
    upstreamStatus: status,
    upstreamText: typeof body === "string" ? "" : scrub(read.message),
    retryable: base.retryable,
  };
  if (base.text !== undefined && base.text !== "" && !isSaturated) details.text = base.text;
  // Google writes it into the body.
  const wait = retrySeconds(retryAfter) ?? base.retryAfterSeconds;
  if (wait !== undefined) details.retryAfterSeconds = wait;
  const failure = new Failure(kind, isSaturated ? SATURATED : base.code, details);
  const refusal = {
    status: deciding,
    message: read.message,
    type: read.type ?? "",
    code: String(read.code ?? ""),
  };
  return new AttemptFailure(failure, verdictOf(base), refusal);
}

/**
 * Seconds that an upstream asks to wait, as text: OpenAI's header in milliseconds, a number of seconds, or a date
 * (RFC 9110, 10.2.3). Null when it asks for nothing.
 */
export function retryAfterOf(headers: Headers, nowMs = Date.now()): string | null {
  const millis = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(millis) && millis >= 0) return String(millis / 1000);
  const value = headers.get("retry-after");
  if (value === null || value.trim() === "" || Number.isFinite(Number(value))) return value;
  const dateMs = Date.parse(value);
  // Beside the upstream's own clock, where it tells it: ours may have been set wrong.
  const upstreamNowMs = Date.parse(headers.get("date") ?? "");
  const sinceMs = Number.isNaN(upstreamNowMs) ? nowMs : upstreamNowMs;
  return Number.isNaN(dateMs) ? null : String(Math.max(0, dateMs - sinceMs) / 1000);
}

/** The body as text, up to a size; `isHalfFine`: what came before a break or the cap is an answer, too. */
async function cappedText(response: Response, maxBytes: number, isHalfFine: boolean): Promise<string> {
  if (!response.body) return "";
  const reader = response.body.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      size += value.length;
      if (size >= maxBytes) {
        await reader.cancel();
        if (!isHalfFine) throw new Error("the answer is too large");
        break;
      }
    }
  } catch (error) {
    if (!isHalfFine) throw error;
  }
  return Buffer.concat(parts).toString("utf8");
}

/** What it says, without the key that it was asked with. */
async function errorBody(response: Response, key: string): Promise<unknown> {
  const text = withoutKeys(await cappedText(response, MAX_ERROR_BYTES, true), [key]);
  return parseJson(text) ?? text;
}

/** What is passed on as it comes: event streams in their several framings. Anything else is read in full. */
const STREAM_TYPES = /event-?stream|ndjson|stream\+json|jsonl/i;

function isStreamed({ status, headers }: Response): boolean {
  return status === 200 && STREAM_TYPES.test(headers.get("content-type") ?? "");
}

/** For adapters, which read answers in full, each in its own way. */
function boundedAnswer(response: Response, maxBytes: number): Response {
  if (isStreamed(response)) return response;
  return response.status >= 400 ? cutAnswer(response, MAX_ERROR_BYTES) : cappedAnswer(response, maxBytes);
}

type AbortCause = "first-byte" | "deadline" | "client-gone" | "hang-up" | "draining";

/** What ends an attempt before its answer is complete: its timers, a client that is gone for long, the end of the process. */
interface AttemptWatch {
  signal: AbortSignal;
  abort(why: AbortCause): void;
  /**
   * The status line of an answer is there, or what it will be is made and paid for: a stream gets the timers of stream.ts,
   * anything else has the deadline.
   */
  answered(isStream: boolean): void;
  begun: () => void;
  settled: () => void;
  explain: (error: unknown) => AttemptFailure;
}

function watchAttempt(
  { firstByteMs, deadlineMs }: AttemptLimits,
  call: Pick<Call, "request" | "body" | "hangUp" | "release">,
  readingOn: ReadingOn,
): AttemptWatch {
  const clientSignal = call.request.signal;
  const controller = new AbortController();
  const startedMs = performance.now();
  let cause: AbortCause | undefined;
  const abort = (why: AbortCause): void => {
    cause ??= why;
    controller.abort();
  };
  const isFirstByteTighter = firstByteMs > 0 && firstByteMs < deadlineMs;
  let isAnswered = false;
  // One timer for both limits: most answers are over before the first one, and setting another costs each of them.
  const onFirstByteDue = (): void => {
    if (!isAnswered) return abort("first-byte");
    const leftMs = Math.max(1, deadlineMs - (performance.now() - startedMs));
    timer = setTimeout(() => abort("deadline"), leftMs);
  };
  let timer = isFirstByteTighter
    ? setTimeout(onFirstByteDue, firstByteMs)
    : setTimeout(() => abort("deadline"), deadlineMs);
  let patience: ReturnType<typeof setTimeout> | undefined;
  let isReadOn = false;
  const onGone = (): void => {
    isReadOn = true;
    patience = setTimeout(() => abort("client-gone"), readingOn.begin(call));
    call.release?.();
  };
  clientSignal.addEventListener("abort", onGone, { once: true });
  call.hangUp = abort;
  return {
    signal: controller.signal,
    abort,
    answered(isStream) {
      if (isStream) clearTimeout(timer);
      else isAnswered = true;
    },
    begun: () => clearTimeout(timer),
    settled() {
      clearTimeout(timer);
      if (patience) clearTimeout(patience);
      clientSignal.removeEventListener("abort", onGone);
      call.hangUp = undefined;
      call.release = undefined;
      if (isReadOn) readingOn.end(call);
      isReadOn = false;
    },
    explain: (error) => explained(error, cause, clientSignal),
  };
}

/** The failure that a broken attempt means, by what ended it. */
function explained(error: unknown, cause: AbortCause | undefined, clientSignal: AbortSignal): AttemptFailure {
  // The reader of a stream hangs up before it says why.
  if (error instanceof Failure && (cause === undefined || cause === "hang-up")) return attemptFailure(error);
  if (cause === "draining") return attemptFailure(drainingFailure());
  // Also where a limit of ours ended the wait: no answer came, and nobody is there to read of the limit.
  if (cause !== undefined && cause !== "hang-up" && clientSignal.aborted)
    return attemptFailure(new Failure("client", "client_gone", { status: 499 }));
  if (cause === "deadline")
    return attemptFailure(new Failure("upstream-timeout", "deadline_exceeded", { type: "upstream_error" }));
  if (cause === "first-byte")
    return attemptFailure(new Failure("upstream-timeout", "upstream_timeout", { type: "upstream_error" }));
  return attemptFailure(
    new Failure("upstream-down", "do_request_failed", {
      status: 500,
      type: "new_api_error",
      internal: scrub(error instanceof Error ? error.message : String(error)),
      retryable: true,
      cause: error,
    }),
  );
}

/** For adapters, which may send several requests. */
function sendFor(request: UpstreamRequest, signal: AbortSignal, maxAnswerBytes: number): UpstreamFetch {
  return async (url, init) => {
    const { url: target, host } = await request.reach(url);
    // What an adapter says beside these three holds too.
    const answer = await fetch(target, { ...init, ...fetchInit(request, init, host, signal) });
    return boundedAnswer(unpacked(answer), maxAnswerBytes);
  };
}

/** The request itself. Waited for also where its address is known: calls that came together go on together (lockstep.ts). */
async function sendPlain(request: UpstreamRequest, signal: AbortSignal): Promise<Response> {
  const { url, headers, body } = request;
  const { url: target, host } = await request.reach(url);
  return unpacked(await fetch(target, fetchInit(request, { method: "POST", headers, body }, host, signal)));
}

interface UpstreamAttempt {
  request: UpstreamRequest;
  limits: AttemptLimits;
  /** Whose words a refusal is in. */
  dialect: Dialect;
  channel: Pick<Channel, "statusCodeMapping">;
  /** The channel's key that it is asked with. */
  key: string;
  call: Pick<Call, "request" | "body" | "hangUp" | "release">;
  readingOn: ReadingOn;
}

/**
 * Sends the request; resolves with a 200 answer whose body is unread, throws an AttemptFailure for anything else. A client
 * that leaves does not end it: the upstream bills what it was asked, and is read on for a while.
 */
export async function attempt({
  request,
  limits,
  dialect,
  channel,
  key,
  call,
  readingOn,
}: UpstreamAttempt): Promise<Opened> {
  const watch = watchAttempt(limits, call, readingOn);
  const { signal, begun, settled, explain } = watch;
  let response: Response;
  let isStream: boolean;
  try {
    response = await (request.adapter
      ? request.adapter(sendFor(request, signal, limits.maxAnswerBytes), signal, () => watch.answered(false))
      : sendPlain(request, signal));
    if (response.status !== 200) {
      const body = await errorBody(response, key);
      const retryAfter = retryAfterOf(response.headers);
      const failed = upstreamFailure({ dialect, channel, status: response.status, body, retryAfter });
      throw withUsage(failed, dialect, body);
    }
    isStream = (response.headers.get("content-type") ?? "").includes("text/event-stream");
    watch.answered(isStream);
    if (request.correct) response = await request.correct(boundedAnswer(response, limits.maxAnswerBytes));
  } catch (error) {
    settled();
    if (error instanceof AttemptFailure) throw error;
    throw explain(error);
  }
  return { response, isStream, abort: () => watch.abort("hang-up"), explain, begun, settled };
}

/** The complete body of an opened answer; a break and one above the cap become the failure of the attempt. */
export async function readFull(opened: Opened, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await fullBody(opened.response, maxBytes);
  } catch (error) {
    opened.abort();
    throw opened.explain(error);
  } finally {
    opened.settled();
  }
}

export interface SmallRequest {
  url: string;
  method?: "GET" | "POST";
  headers: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  /** Address of an outgoing proxy; "" = none. */
  proxy: string;
  /** Judges the address before it is called. */
  reach: (url: string) => EgressTarget | Promise<EgressTarget>;
  timeoutMs: number;
}

/** A small call at a channel's own address: lists, balances, tasks. Throws do_request_failed when nobody answers. */
export async function askUpstream(
  request: SmallRequest,
): Promise<{ status: number; headers: Headers; text: string }> {
  const { url, method = "GET", headers, body, proxy, timeoutMs } = request;
  const { url: target, host } = await request.reach(url);
  try {
    const response = await fetch(target, {
      ...AS_SENT,
      method,
      headers: host === undefined ? headers : { ...headers, host },
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
      ...(body === undefined ? {} : { body }),
      ...(proxy === "" ? {} : { proxy }),
    } as RequestInit);
    return {
      status: response.status,
      headers: response.headers,
      text: await cappedText(unpacked(response), MAX_SMALL_BYTES, false),
    };
  } catch (error) {
    throw new Failure("upstream-down", "do_request_failed", { internal: scrub(String(error)), cause: error });
  }
}
