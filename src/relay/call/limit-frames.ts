// How a stream ends that the balance cuts short: as if the answer had reached its limit, in the client's dialect.
import { DIALECTS } from "../../protocol/dialects.ts";
import { asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import type { Usage } from "../../shared/usage.ts";
import { completionTokens, promptTokens } from "../../shared/usage.ts";
import type { PassedFrame } from "../wire/stream-allowance.ts";
import { answerContext } from "./answer.ts";
import { promptsIn } from "../endpoints/choices.ts";
import type { Call } from "./call.ts";

export interface LimitEnd {
  /** As charged. */
  usage: Usage;
  nowMs: number;
  /** What the client has of the stream. */
  first: PassedFrame | undefined;
  last: PassedFrame | undefined;
}

/**
 * The frames that end a passed-through stream as if the answer had reached its limit: what is open is closed, the usage
 * is the charged one.
 */
export function limitFrames(call: Call, { usage, nowMs, first, last }: LimitEnd): string {
  const { endpoint } = call;
  // Sound and pictures have no word for it.
  if (endpoint.meterStream) return "";
  const head = asObject(parseJson(first?.data ?? "")) ?? {};
  if (endpoint.name === "completions") return completionFrames(call, usage, nowMs, head);
  const context = { ...answerContext(call, nowMs), framing: "sse" as const };
  const encoder = DIALECTS[endpoint.dialect].encodeStream(context);
  const { id, createdAt } = headOf(head);
  // What the encoder says of a beginning the client has already, unless nothing has reached it.
  const begin = encoder.push({
    type: "start",
    ...(id === undefined ? {} : { id }),
    ...(createdAt === undefined ? {} : { createdAt }),
  });
  // Only Responses streams are numbered.
  const number = asNumber(asObject(parseJson(last?.data ?? ""))?.["sequence_number"]);
  const numbered = (frames: string): string =>
    number === undefined
      ? frames
      : frames.replace(/"sequence_number":\d+/, `"sequence_number":${number + 1}`);
  const others = Array.from({ length: Math.max(0, choicesIn(call) - 1) }, (_, at) => at + 1);
  return (
    (first === undefined ? begin : "") +
    openBlockEnd(last) +
    encoder.push({ type: "usage", usage }) +
    numbered(
      encoder.push({
        type: "finish",
        reason: "length",
        raw: null,
        ...(others.length === 0
          ? {}
          : { others: others.map((choice) => ({ choice, reason: "length" as const, raw: null })) }),
      }),
    )
  );
}

/** The id and time of the answer, where its first frame has them: beside its fields, or in the answer that it announces. */
function headOf(head: Record<string, unknown>): { id?: string; createdAt?: number } {
  const inner = asObject(head["response"]) ?? head;
  const id = asString(inner["id"]) ?? asString(inner["responseId"]);
  const createdAt = asNumber(inner["created"]) ?? asNumber(inner["created_at"]);
  return { ...(id === undefined ? {} : { id }), ...(createdAt === undefined ? {} : { createdAt }) };
}

/** How many answers were asked for, also by a rule of the channel. */
export function choicesIn({ body, billed = body.json }: Call): number {
  const { n } = billed;
  return (typeof n === "number" && n > 1 ? n : 1) * promptsIn(billed);
}

/** Anthropic's clients want every block closed before the message ends. */
function openBlockEnd(last: PassedFrame | undefined): string {
  if (!last || !/^content_block_(?:start|delta)$/.test(last.event)) return "";
  const index = asNumber(asObject(parseJson(last.data))?.["index"]) ?? 0;
  return `event: content_block_stop\ndata: ${JSON.stringify({ type: "content_block_stop", index })}\n\n`;
}

/** The same as one element of a JSON array, in which Google's clients without event streams get theirs. */
export function limitElement(call: Call, usage: Usage, nowMs: number): string {
  const frames = limitFrames(call, { usage, nowMs, first: { event: "", data: "{}" }, last: undefined });
  return frames.slice(frames.indexOf("{")).trim();
}

/** All of a stream that ends before it has begun, because its one chunk is not paid. */
export function limitBody(call: Call, usage: Usage, nowMs: number): string {
  if (call.wantsArray) return `[${limitElement(call, usage, nowMs)}]`;
  return limitFrames(call, { usage, nowMs, first: undefined, last: undefined });
}

/** Legacy completions have no encoder: they are passed through only. */
function completionFrames(call: Call, usage: Usage, nowMs: number, head: Record<string, unknown>): string {
  const { id, createdAt } = headOf(head);
  const lead = {
    id: id ?? `cmpl-${call.requestId}`,
    object: "text_completion",
    created: createdAt ?? Math.floor(nowMs / 1000),
    model: call.model,
  };
  const frame = (fields: object): string => `data: ${JSON.stringify({ ...lead, ...fields })}\n\n`;
  let frames = "";
  for (let index = 0; index < choicesIn(call); index++)
    frames += frame({ choices: [{ index, text: "", logprobs: null, finish_reason: "length" }] });
  if (call.wantsUsage) {
    const prompt = promptTokens(usage);
    const completion = completionTokens(usage);
    const counts = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
    };
    frames += frame({ choices: [], usage: counts });
  }
  return `${frames}data: [DONE]\n\n`;
}
