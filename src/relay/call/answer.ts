// What an attempt hands on: a full answer, read and understood, or a stream whose first event is there; and the ids and
// options that answers are written with.
import type { Answer as CanonicalAnswer } from "../../protocol/assemble.ts";
import { clientNames, createUnwrapper, unwrapAnswer } from "../../protocol/client-tools.ts";
import type { ClientTool } from "../../protocol/client-tools.ts";
import { takesCustomTools } from "../../protocol/custom-tools.ts";
import type { AnswerContext, StreamDecoder } from "../../protocol/dialect.ts";
import type { AnswerMeter } from "../../protocol/openai-text.ts";
import type { Sealer } from "../../core/kit/seal.ts";
import type { Call } from "./call.ts";
import { conversationOf } from "./call.ts";
import { viewOf } from "./exchange.ts";
import { itemSealer } from "./item-references.ts";
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

/** Only requests with one of these words have tools that are something else upstream. */
const UNLIKE_TOOLS: Readonly<Partial<Record<string, RegExp>>> = {
  "openai-chat": /"custom"/,
  "openai-responses": /"(?:custom|namespace|tool_search|local_shell|shell|apply_patch)"/,
};

/** The client's tools that the upstream got as something else: free-text tools, those of namespaces, shells. */
function unlikeTools(call: Call, plan: Plan): ReadonlyMap<string, ClientTool> | undefined {
  if (!plan.isConverted || call.endpoint.dialect === plan.dialect.name) return undefined;
  if (UNLIKE_TOOLS[call.endpoint.dialect]?.test(call.body.text) !== true) return undefined;
  return clientNames(conversationOf(call), takesCustomTools(plan.dialect.name, plan.upstreamModel));
}

/** Reads the upstream's stream as the client's tools are called. */
export function streamDecoder(call: Call, plan: Plan): StreamDecoder {
  const decoder = plan.dialect.decodeStream({ newId: newIdFor(call) });
  const names = unlikeTools(call, plan);
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
  const names = unlikeTools(call, plan);
  return names ? unwrapAnswer(answer, names) : answer;
}

/** Only what a client asked to be kept may be referred to; the default is that it is. */
function mayBeReferred({ endpoint, body }: Call): boolean {
  return endpoint.dialect === "openai-responses" && body.json["store"] !== false;
}

/** The AI SDK refers to every item that it got (7.0); others to none, or to what they cannot say again. */
const REFERS_ALWAYS = /\bai-sdk[-/]/;

function referring({ request, caller }: Call, seal: Sealer): Partial<AnswerContext> {
  const sealsAlways = REFERS_ALWAYS.test(request.headers.get("user-agent") ?? "");
  return { sealItems: itemSealer(seal, caller.user.id), sealsAlways };
}

/** How an answer is written for the client of this call. */
export function answerContext(call: Call, nowMs: number, seal?: Sealer): AnswerContext {
  return {
    ...(seal && mayBeReferred(call) ? referring(call, seal) : {}),
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
