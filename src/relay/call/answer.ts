// What an attempt hands on: a full answer, read and understood, or a stream whose first event is there; and the ids and
// options that answers are written with.
import type { Answer as CanonicalAnswer } from "../../protocol/assemble.ts";
import { createUnwrapper, customNames, takesCustomTools, unwrapAnswer } from "../../protocol/custom-tools.ts";
import type { AnswerContext, StreamDecoder } from "../../protocol/dialect.ts";
import type { AnswerMeter } from "../../protocol/openai-text.ts";
import type { Call } from "./call.ts";
import { conversationOf } from "./call.ts";
import { viewOf } from "./exchange.ts";
import type { Plan } from "./plan.ts";
import type { OutputCounter } from "../meter/meter.ts";
import type { ByteRelay } from "../wire/stream-bytes.ts";
import { publicText } from "../wire/render-failure.ts";
import type { StreamConversion } from "../wire/stream-convert.ts";
import type { StreamRelay } from "../wire/stream.ts";

/** A plain answer, read in full and understood. */
export interface FullAnswer {
  kind: "full";
  call: Call;
  plan: Plan;
  response: Response;
  bytes: Uint8Array<ArrayBuffer>;
  json: unknown;
  meter: AnswerMeter;
  /** In canonical form, where it was read so. */
  canonical?: CanonicalAnswer;
  /** The bytes are not what the client gets: the upstream answered in another form than was requested. */
  isGathered?: boolean;
}

/** A stream whose first event is there; `relay.ended` says how it ended. */
export interface StreamAnswer {
  kind: "stream";
  call: Call;
  plan: Plan;
  response: Response;
  relay: StreamRelay;
  /** What passed so far. */
  output: OutputCounter;
  /** Where the client gets another form than the upstream sends. */
  conversion: StreamConversion | undefined;
  contentType: string;
  firstByteMs: number;
}

/** An answer that is no text: passed on as it comes; `relay.ended` says how it ended. */
export interface BytesAnswer {
  kind: "bytes";
  call: Call;
  plan: Plan;
  response: Response;
  relay: ByteRelay;
}

export type Answer = FullAnswer | StreamAnswer | BytesAnswer;

/** Ids of answers, which clients show in their logs: they carry the request's own id. */
const ENVELOPE_PREFIXES: ReadonlySet<string> = new Set(["chatcmpl-", "resp_", "msg_"]);

function newIdFor(call: Call): (prefix: string) => string {
  const used = new Set<string>();
  return (prefix) => {
    if (ENVELOPE_PREFIXES.has(prefix) && !used.has(prefix)) {
      used.add(prefix);
      return prefix + call.requestId;
    }
    return prefix + crypto.randomUUID().replaceAll("-", "").slice(0, 24);
  };
}

/** Names of the client's free-text tools, where the upstream got them as functions. */
function customTools(call: Call, plan: Plan): ReadonlySet<string> | undefined {
  if (!plan.isConverted || call.endpoint.dialect === plan.dialect.name) return undefined;
  if (takesCustomTools(plan.dialect.name, plan.upstreamModel)) return undefined;
  if (!call.body.text.includes('"custom"')) return undefined;
  const names = customNames(conversationOf(call));
  return names.size > 0 ? names : undefined;
}

/** Reads the upstream's stream as the client's tools are called. */
export function streamDecoder(call: Call, plan: Plan): StreamDecoder {
  const decoder = plan.dialect.decodeStream({ newId: newIdFor(call) });
  const names = customTools(call, plan);
  if (!names) return decoder;
  const unwrap = createUnwrapper(names);
  return {
    usageSoFar: () => decoder.usageSoFar(),
    push: (frame) => decoder.push(frame).flatMap(unwrap),
    end: () => decoder.end().flatMap(unwrap),
  };
}

/** Reads the upstream's full answer likewise; throws the upstream's failure. */
export function decodeFull(call: Call, plan: Plan, json: unknown): CanonicalAnswer {
  const answer = plan.dialect.decodeAnswer(json, { newId: newIdFor(call) });
  const names = customTools(call, plan);
  return names ? unwrapAnswer(answer, names) : answer;
}

/** How an answer is written for the client of this call. */
export function answerContext(call: Call, nowMs: number): AnswerContext {
  return {
    newId: newIdFor(call),
    nowSeconds: Math.floor(nowMs / 1000),
    model: call.model,
    includeUsage: call.wantsUsage,
    framing: call.wantsArray ? "json-array" : "sse",
    promptTokens: call.prompt.tokens,
    failureText: (failure) => publicText(failure, viewOf(call)),
    ...(call.endpoint.dialect === "openai-responses" ? { request: conversationOf(call) } : {}),
  };
}
