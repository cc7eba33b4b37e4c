// The hold of a stream, lengthened before more of it goes on than is paid for; and the stream's clean end where that stops.
// Refuses to pass on what neither the hold nor the balance covers: the chunk is neither delivered nor charged.
import type { Reservation } from "../../core/deps.ts";
import { STEP_TOKENS, unitsForMore } from "../../core/prices/holds.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import { asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import type { Usage } from "../../shared/usage.ts";
import { completionTokens, promptTokens } from "../../shared/usage.ts";
import { answerContext } from "./answer.ts";
import type { Call } from "./call.ts";
import type { CallHold } from "./hold.ts";
import type { Tap } from "../meter/meter.ts";
import { UNHELD } from "../wire/stream-allowance.ts";
import type { PassedFrame, StreamHold } from "../wire/stream-allowance.ts";

/** The next step is taken so many tokens ahead, so that few chunks have to be counted one by one. */
const AHEAD_TOKENS = 256;

export function createStreamHold(
  reservation: Pick<Reservation, "grow">,
  { tokens: first, outputRate }: CallHold,
  tap: Pick<Tap, "countedTokens" | "outputTokens" | "tokensPerUnit">,
  promptDebt: () => Promise<number>,
): StreamHold {
  if (outputRate <= 0) return UNHELD;
  let tokens = first;
  /** A step ahead was refused: the next is asked for when it is due. */
  let isShort = false;
  let freeChars = Math.floor(tokens / tap.tokensPerUnit);

  async function grow(wanted: number): Promise<void> {
    const units = unitsForMore(outputRate, wanted);
    const added = await reservation.grow(units);
    tokens += added >= units ? wanted : added / outputRate;
    if (added >= units) return;
    // From here on every unit counts, and so does the prompt's estimate.
    if (!isShort) tokens -= Math.max(0, await promptDebt()) / outputRate;
    isShort = true;
  }

  return {
    get freeChars() {
      return freeChars;
    },
    get paidTokens() {
      return tokens;
    },
    async cover(chars) {
      // With nothing left to grow by, every token counts.
      const counted = await (isShort ? tap.outputTokens() : tap.countedTokens());
      if (counted > tokens) await grow(Math.max(STEP_TOKENS, counted - tokens + AHEAD_TOKENS));
      else if (!isShort && tokens - counted < AHEAD_TOKENS) await grow(STEP_TOKENS);
      if (counted > tokens) return false;
      freeChars = chars + Math.floor((tokens - counted) / tap.tokensPerUnit);
      return true;
    },
  };
}

/** Whether a whole answer is paid that came where a stream was asked for: it is one chunk, and its hold has to follow. */
export async function coverWhole(
  { hold, reservation }: Call,
  countTokens: () => Promise<number>,
): Promise<boolean> {
  if (!hold.grows || hold.outputRate <= 0) return true;
  const tokens = await countTokens();
  if (tokens <= hold.tokens) return true;
  const units = unitsForMore(hold.outputRate, tokens - hold.tokens);
  return (await reservation.grow(units)) >= units;
}

/**
 * The frames that end a passed-through stream as if the answer had reached its limit: what is open is closed, the usage
 * is the charged one. `first` and `last` are what the client has of the stream.
 */
export function limitFrames(
  call: Call,
  usage: Usage,
  nowMs: number,
  first: PassedFrame | undefined,
  last: PassedFrame | undefined,
): string {
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

export function choicesIn({ body }: Call): number {
  const { n } = body.json;
  return typeof n === "number" && n > 1 ? n : 1;
}

/** Anthropic's clients want every block closed before the message ends. */
function openBlockEnd(last: PassedFrame | undefined): string {
  if (!last || !/^content_block_(?:start|delta)$/.test(last.event)) return "";
  const index = asNumber(asObject(parseJson(last.data))?.["index"]) ?? 0;
  return `event: content_block_stop\ndata: ${JSON.stringify({ type: "content_block_stop", index })}\n\n`;
}

/** The same as one element of a JSON array, in which Google's clients without event streams get theirs. */
export function limitElement(call: Call, usage: Usage, nowMs: number): string {
  const frames = limitFrames(call, usage, nowMs, { event: "", data: "{}" }, undefined);
  return frames.slice(frames.indexOf("{")).trim();
}

/** The whole of a stream that ends before it has begun, because its one chunk is not paid. */
export function limitBody(call: Call, usage: Usage, nowMs: number): string {
  if (call.wantsArray) return `[${limitElement(call, usage, nowMs)}]`;
  return limitFrames(call, usage, nowMs, undefined, undefined);
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
