// One relayed call as its stages pass it on: who asks for what, at which price, and what has happened so far.
// Holds what is worked out once for all attempts, and nothing that an attempt changes.
import type { Channel } from "../core/channel-rows.ts";
import type { Reservation } from "../core/deps.ts";
import type { ModelPricing } from "../core/prices.ts";
import type { CanonicalRequest } from "../protocol/canonical.ts";
import { DIALECTS } from "../protocol/dialects.ts";
import type { Caller } from "./admission.ts";
import type { Endpoint } from "./endpoint.ts";
import type { PromptSize } from "./meter.ts";
import type { RelayBody } from "./read-body.ts";

/** One try at one channel, for the log's waterfall. */
export interface AttemptNote {
  channel: number;
  ms: number;
  /** "ok" or the failure's code. */
  code: string;
  /** Status the upstream answered with, where it answered. */
  status?: number;
}

export interface Call {
  readonly request: Request;
  readonly requestId: string;
  readonly endpoint: Endpoint;
  readonly caller: Caller;
  /** As the client wrote it: checked, counted, screened. */
  readonly body: RelayBody;
  /** In the operation's own form; the same object unless the endpoint rewrites it. */
  readonly sent: RelayBody;
  /** As requested: limits, price and log go by this name. */
  readonly model: string;
  readonly prompt: PromptSize;
  readonly pricing: ModelPricing;
  readonly groupRatio: number;
  readonly reservation: Reservation;
  readonly wantsStream: boolean;
  /** The client wants a JSON array in place of an event stream (Gemini without alt=sse). */
  readonly wantsArray: boolean;
  /** The client asked for the usage frame of the stream. */
  readonly wantsUsage: boolean;
  /** performance.now() of the start. */
  readonly startedMs: number;
  readonly attempts: AttemptNote[];
  readonly pinned: Channel | undefined;
}

const conversations = new WeakMap<Call, CanonicalRequest>();

/** The request in canonical form, decoded once for all attempts. Throws client failures for malformed bodies. */
export function conversationOf(call: Call): CanonicalRequest {
  let request = conversations.get(call);
  if (!request) {
    const context = { model: call.model, stream: call.wantsStream };
    request = DIALECTS[call.endpoint.dialect].decodeRequest(call.body.json, context);
    conversations.set(call, request);
  }
  return request;
}
