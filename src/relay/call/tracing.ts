// What the spans of a call tell: which provider answered, with which model, how much of what, and what went wrong. Costs a call
// nothing that nobody traces. Refuses texts unless the operator asks for them, and headers always.
import type { Deps } from "../../core/deps.ts";
import type { Channel } from "../../core/channels/rows.ts";
import { ATTRIBUTE, operationName } from "../../observe/names.ts";
import { newSpanId, traceparentOf } from "../../observe/trace-context.ts";
import type { CallTrace } from "../../observe/traces.ts";
import { asList, asObject } from "../../protocol/json.ts";
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

/** The upstream reads whose child its own span is, where its channel says so. Undefined: nobody is told. */
export function traceHeader(channel: Channel, { record, request }: Call): string | undefined {
  if (channel.setting.send_traceparent !== true) return undefined;
  const { trace } = record;
  // Where nobody traces here, the client's own trace goes through.
  if (!trace) return request.headers.get("traceparent") ?? undefined;
  return traceparentOf({ traceId: trace.traceId, spanId: trace.attemptId, isSampled: trace.isSampled });
}

/** The answer's own words for itself, in the dialect that it came in. */
function answerAttributes(json: unknown): Attributes {
  const answer = asObject(json);
  if (!answer) return {};
  const model = answer["model"] ?? answer["modelVersion"];
  const id = answer["id"] ?? answer["responseId"];
  const reasons = [
    answer["stop_reason"],
    answer["status"],
    ...[...asList(answer["choices"]), ...asList(answer["candidates"])].map(
      (each) => asObject(each)?.["finish_reason"] ?? asObject(each)?.["finishReason"],
    ),
  ].filter((each) => typeof each === "string");
  return {
    ...(typeof model === "string" ? { [ATTRIBUTE.responseModel]: model } : {}),
    ...(typeof id === "string" ? { [ATTRIBUTE.responseId]: id } : {}),
    ...(reasons.length > 0 ? { [ATTRIBUTE.finishReasons]: reasons } : {}),
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

export interface TracedEnd {
  channel: Channel;
  /** "" = nothing went wrong. */
  error: string;
  usage: Usage | undefined;
  /** The whole answer, where it was JSON. */
  json?: unknown;
  upstreamId?: string | undefined;
}

/** An answered call, to its last byte. */
export function traceCall(
  { observer }: Pick<Deps, "observer">,
  call: Call,
  { channel, error, usage, json, upstreamId }: TracedEnd,
): void {
  const { traces } = observer;
  const { trace } = call.record;
  if (!traces || !trace?.isSampled) return;
  const provider = providerName(channel.type);
  const operation = operationName(call.endpoint.name);
  traces.ended(trace, {
    operation,
    model: call.model,
    startedMs: call.startedMs,
    endedMs: performance.now(),
    error,
    attributes: {
      [ATTRIBUTE.operation]: operation,
      [ATTRIBUTE.provider]: provider,
      [ATTRIBUTE.system]: provider,
      [ATTRIBUTE.requestModel]: call.model,
      [ATTRIBUTE.requestId]: call.requestId,
      [ATTRIBUTE.channel]: channel.id,
      ...(upstreamId === undefined ? {} : { [ATTRIBUTE.responseId]: upstreamId }),
      ...answerAttributes(json),
      ...(usage ? usageAttributes(usage) : {}),
      ...(call.charged === undefined ? {} : { [ATTRIBUTE.cost]: call.charged / call.price.quotaPerUnit }),
      ...(traces.showsContent ? contentAttributes(call, json) : {}),
    },
  });
}

/** A request that was refused, or that every channel failed. */
export function traceRefusal(
  { observer }: Pick<Deps, "observer">,
  trace: CallTrace | undefined,
  refused: { endpoint: string; model: string; requestId: string; startedMs: number; error: string },
): void {
  if (!trace) return;
  const operation = operationName(refused.endpoint);
  const { model, requestId, startedMs, error } = refused;
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
