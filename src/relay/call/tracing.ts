// What the spans of a call tell: which provider answered, with which model, how much of what, and what went wrong. Costs a call
// nothing that nobody traces. Refuses texts unless the operator asks for them, and headers always.
import type { Deps } from "../../core/deps.ts";
import type { Channel } from "../../core/channels/rows.ts";
import { ATTRIBUTE, operationName } from "../../observe/names.ts";
import { newRecord } from "../../observe/record.ts";
import type { CallRecord, StreamWords } from "../../observe/record.ts";
import { newSpanId, traceparentOf } from "../../observe/trace-context.ts";
import type { CallTrace } from "../../observe/traces.ts";
import type { StreamMeter } from "../../protocol/dialect.ts";
import { asList, asObject, asString, parseJson } from "../../protocol/json.ts";
import { providerName } from "../../providers/telemetry.ts";
import { completionTokens, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Call } from "./call.ts";
import type { ToldAttempt } from "./telling.ts";

type Attributes = Record<string, string | number | string[]>;

/** Fields that hold what was asked, in the order in which dialects have them. */
const PROMPT_FIELDS = ["messages", "input", "contents", "prompt"];
const ANSWER_FIELDS = ["choices", "output", "content", "candidates"];
/** Of one text: prompts may be long, and the receiver bounds a batch. */
const MOST_CHARACTERS = 32_768;

/** Of a request that has just come in, in its client's trace where it names one. */
export function beginRecord({ observer }: Pick<Deps, "observer">, { headers }: Request): CallRecord {
  return newRecord(observer.traces?.begin(headers.get("traceparent")));
}

/** The upstream reads whose child its own span is, where its channel says so. Undefined: nobody is told. */
export function traceHeader(channel: Channel, { record, request }: Call): string | undefined {
  if (channel.setting.send_traceparent !== true) return undefined;
  const { trace } = record;
  // Where nobody traces here, the client's own trace goes through.
  if (!trace) return request.headers.get("traceparent") ?? undefined;
  return traceparentOf({ traceId: trace.traceId, spanId: trace.attemptId, isSampled: trace.isSampled });
}

/** An answer's own words for itself, in the dialect that it came in. */
function wordsOf(answer: Readonly<Record<string, unknown>>): StreamWords {
  const reasons = [
    answer["stop_reason"],
    answer["status"],
    ...[...asList(answer["choices"]), ...asList(answer["candidates"])].map(
      (each) => asObject(each)?.["finish_reason"] ?? asObject(each)?.["finishReason"],
    ),
  ].filter((each) => typeof each === "string");
  return {
    model: asString(answer["model"] ?? answer["modelVersion"]),
    id: asString(answer["id"] ?? answer["responseId"]),
    reasons,
  };
}

function wordAttributes(words: StreamWords | undefined): Attributes {
  if (!words) return {};
  const { model, id, reasons } = words;
  return {
    ...(model === undefined ? {} : { [ATTRIBUTE.responseModel]: model }),
    ...(id === undefined ? {} : { [ATTRIBUTE.responseId]: id }),
    ...(reasons.length > 0 ? { [ATTRIBUTE.finishReasons]: reasons } : {}),
  };
}

function answerAttributes(json: unknown): Attributes {
  const answer = asObject(json);
  return wordAttributes(answer && wordsOf(answer));
}

/** Frames in which a stream may still say which model answers. */
const MOST_OPENING = 8;
const MOST_REASONS = 128;
/** A frame that may say why the stream ends. Within a text each of these quotes has a backslash before it. */
const ENDING =
  /"(?:finish_reason|stop_reason|finishReason)"\s*:\s*"|"response\.(?:completed|incomplete|failed)"/;

/** What a frame says: by itself (chat, Gemini), or with the answer in it, begun or whole (Messages, Responses). */
function wordsIn(data: string): StreamWords | undefined {
  const frame = asObject(parseJson(data));
  if (!frame) return undefined;
  const inner = asObject(frame["response"]) ?? asObject(frame["message"]) ?? asObject(frame["delta"]);
  const found = wordsOf(inner ?? frame);
  // Until its last event a response is "in_progress".
  return ENDING.test(data) ? found : { ...found, reasons: [] };
}

/** Reads along a stream that is traced; any other one keeps its meter. */
export function traceStream({ record }: Pick<Call, "record">, meter: StreamMeter): void {
  if (record.trace?.isSampled !== true) return;
  const words: StreamWords = { model: undefined, id: undefined, reasons: [] };
  record.words = words;
  let opening = MOST_OPENING;
  const push = meter.push.bind(meter);
  // Its words are looked for in every frame.
  meter.skim = undefined;
  meter.push = (frame) => {
    push(frame);
    const opens = words.model === undefined && opening-- > 0;
    if (!opens && !ENDING.test(frame.data)) return;
    const found = wordsIn(frame.data);
    words.model ??= found?.model;
    words.id ??= found?.id;
    if (found && words.reasons.length < MOST_REASONS) words.reasons.push(...found.reasons);
  };
}

function textOf(json: Readonly<Record<string, unknown>> | undefined, fields: readonly string[]): string {
  const found = fields.find((field) => json?.[field] !== undefined);
  return found === undefined ? "" : JSON.stringify(json?.[found]).slice(0, MOST_CHARACTERS);
}

function contentAttributes({ body }: Call, json: unknown): Attributes {
  const asked = textOf(body.json, PROMPT_FIELDS);
  const answered = textOf(asObject(json), ANSWER_FIELDS);
  return {
    ...(asked === "" ? {} : { [ATTRIBUTE.inputMessages]: asked }),
    ...(answered === "" ? {} : { [ATTRIBUTE.outputMessages]: answered }),
  };
}

function usageAttributes(usage: Usage): Attributes {
  return {
    [ATTRIBUTE.inputTokens]: promptTokens(usage),
    [ATTRIBUTE.outputTokens]: completionTokens(usage),
    [ATTRIBUTE.cacheReadTokens]: usage.input.cacheRead,
  };
}

/** A request that is over, as its span tells it. */
interface TracedEnd {
  endpoint: string;
  model: string;
  requestId: string;
  /** performance.now() of the start. */
  startedMs: number;
  /** "" = nothing went wrong. */
  error: string;
  /** That answered. */
  channel?: Channel | undefined;
  usage?: Usage | undefined;
  /** Dollars. */
  cost?: number | undefined;
  more?: Attributes;
}

/** Also of a request that was refused, or that every channel failed. */
export function traceEnd(
  { observer }: Pick<Deps, "observer">,
  trace: CallTrace | undefined,
  { endpoint, model, requestId, startedMs, error, channel, usage, cost, more }: TracedEnd,
): void {
  if (!trace?.isSampled) return;
  const operation = operationName(endpoint);
  const provider = channel && providerName(channel.type);
  observer.traces?.ended(trace, {
    operation,
    model,
    startedMs,
    endedMs: performance.now(),
    error,
    attributes: {
      [ATTRIBUTE.operation]: operation,
      [ATTRIBUTE.requestModel]: model,
      [ATTRIBUTE.requestId]: requestId,
      ...(provider === undefined ? {} : { [ATTRIBUTE.provider]: provider, [ATTRIBUTE.system]: provider }),
      ...(channel ? { [ATTRIBUTE.channel]: channel.id } : {}),
      ...(usage ? usageAttributes(usage) : {}),
      ...(cost === undefined ? {} : { [ATTRIBUTE.cost]: cost }),
      ...more,
    },
  });
}

interface TracedAnswer extends Pick<TracedEnd, "error" | "usage"> {
  channel: Channel;
  /** The whole answer, where it was JSON. */
  json?: unknown;
  upstreamId?: string | undefined;
}

/** An answered call, to its last byte. */
export function traceCall(
  deps: Pick<Deps, "observer">,
  call: Call,
  { json, upstreamId, ...answered }: TracedAnswer,
): void {
  const { record, endpoint, model, requestId, startedMs, charged, price } = call;
  if (!record.trace?.isSampled) return;
  traceEnd(deps, record.trace, {
    ...answered,
    endpoint: endpoint.name,
    model,
    requestId,
    startedMs,
    cost: charged === undefined ? undefined : charged / price.quotaPerUnit,
    more: {
      ...(upstreamId === undefined ? {} : { [ATTRIBUTE.responseId]: upstreamId }),
      ...(json === undefined ? wordAttributes(record.words) : answerAttributes(json)),
      ...(deps.observer.traces?.showsContent === true ? contentAttributes(call, json) : {}),
    },
  });
}

/** An attempt has its answer, or failed; `endAttempt` says when a stream was over. */
export function traceAttempt({ record, channel, model, note, startedMs }: ToldAttempt): void {
  const trace = record?.trace;
  if (!trace?.isSampled) return;
  trace.attempts.push({
    spanId: trace.attemptId,
    channel: channel.id,
    provider: providerName(channel.type),
    model,
    startedMs,
    endedMs: performance.now(),
    error: note === undefined || note.code === "ok" ? "" : note.code,
    status: note?.code === "ok" ? 200 : note?.status,
  });
  trace.attemptId = newSpanId();
}

/** The stream of the last attempt is over. */
export function endAttempt(trace: CallTrace | undefined, error: string): void {
  const last = trace?.attempts.at(-1);
  if (!last) return;
  last.endedMs = performance.now();
  last.error = error;
}
