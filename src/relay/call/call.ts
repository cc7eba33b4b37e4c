// One relayed call as its stages pass it on: who requests what, at which price, and what has happened so far.
// Holds what is worked out once for all attempts; an attempt changes nothing but the group of an automatic key.
import type { Channel } from "../../core/channels/rows.ts";
import type { Lease } from "../../core/channels/caps.ts";
import type { Reservation } from "../../core/deps.ts";
import type { OptionStore } from "../../core/options/store.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import type { CanonicalRequest } from "../../protocol/canonical.ts";
import type { CallRecord } from "../../observe/record.ts";
import type { Indexed } from "../../shared/indexed-set.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import { Failure } from "../../shared/failures.ts";
import type { Sealer } from "../../core/kit/seal.ts";
import type { Caller } from "./admission.ts";
import type { CallAffinity } from "./affinity.ts";
import type { GroupTerms } from "./auto-group.ts";
import type { CallHold, HoldRequest } from "./hold.ts";
import { itemOpener } from "./item-references.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { PromptSize } from "../meter/meter.ts";
import type { RelayBody } from "../wire/read-body.ts";

/** One try at one channel, for the log's waterfall. */
export interface AttemptNote {
  channel: number;
  ms: number;
  /** "ok" or the failure's code. */
  code: string;
  /** Status the upstream answered with, where it answered. */
  status?: number;
}

/** Why the gateway itself ends a call before its time. */
type HangUpReason = "draining";

export interface Call extends Indexed {
  /** Its place under the caps of the channel and key that it is asked of. */
  lease?: Lease | undefined;
  /** When the attempt that has it began (steady clock). */
  beganMs?: number | undefined;
  readonly request: Request;
  readonly requestId: string;
  /** For the language of what the gateway itself says. */
  readonly options: Pick<OptionStore, "get">;
  readonly endpoint: Endpoint;
  readonly caller: Caller;
  /** As the client wrote it: checked, counted, screened. */
  readonly body: RelayBody;
  /** In the operation's own form; the same object unless the endpoint rewrites it. */
  readonly sent: RelayBody;
  /** As requested: limits, price and log go by this name. */
  readonly model: string;
  readonly prompt: PromptSize;
  /** Of an automatic key every group that may serve; undefined: only the one below. */
  readonly groups: readonly GroupTerms[] | undefined;
  /** Whose channel is asked. It changes by `serveIn` alone, with price and hold. */
  group: string;
  /** Frozen when the call was reserved: whatever is changed meanwhile, this is what it is charged by. */
  price: CallPrice;
  /** What the hold was worked out from; undefined: nothing is held. */
  readonly asked: HoldRequest | undefined;
  /** Price and hold as they were before a channel's rules changed what they follow from. */
  unruled: { price: CallPrice; hold: CallHold } | undefined;
  /** What is counted for the charge in place of the client's body: what was sent, where rules changed it. */
  billed: Record<string, unknown> | undefined;
  /** Of the attempt before. */
  lastFailure: Failure | undefined;
  readonly reservation: Reservation;
  hold: CallHold;
  readonly wantsStream: boolean;
  /** The client wants a JSON array in place of an event stream (Gemini without alt=sse). */
  readonly wantsArray: boolean;
  /** The client asked for the usage frame of the stream. */
  readonly wantsUsage: boolean;
  /** performance.now() of the start. */
  readonly startedMs: number;
  /** What is told of it when it is over. */
  readonly record: CallRecord;
  /** Units, once it is settled. */
  charged: number | undefined;
  readonly attempts: AttemptNote[];
  readonly pinned: Channel | undefined;
  /** Place of the only key of `pinned` that can serve the call: it goes on from a response that this account stores. */
  readonly pinnedKey: number | undefined;
  /** Where its session stays; undefined: it has none, or nothing is to choose. Known when the attempts begin. */
  affinity: CallAffinity | undefined;
  /** One channel called on purpose: what it answers says nothing about its health, its keys or its status. */
  readonly isTest: boolean;
  /** Ends what is under way at once: it is settled for what it did, and the client gets the failure. Set by who reads the upstream. */
  hangUp: ((why: HangUpReason) => void) | undefined;
  /** The status line of its stream has left before the answer, with a sign of life. */
  isBegun: boolean;
  /** Nothing is won any more by holding the first frames of its stream back. Set by who holds them. */
  release: (() => void) | undefined;
}

/** Whether the answer goes on when its attempt has succeeded: its end says more of the channel's health. */
export function endsLater({ wantsStream, endpoint }: Pick<Call, "wantsStream" | "endpoint">): boolean {
  return wantsStream || endpoint.answers === "bytes";
}

/** What a client gets whose call the end of the process cuts short. */
export function drainingFailure(): Failure {
  return new Failure("no-channel", "server_draining", { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

/** A restart takes about that long. */
const RETRY_AFTER_SECONDS = 5;

interface Conversation {
  request: CanonicalRequest;
  /** Sealed references were put back. */
  isOpened: boolean;
}

const conversations = new WeakMap<Call, Conversation>();

/**
 * The request in canonical form, decoded once for all attempts. Throws client failures for malformed bodies. Whoever
 * sends it upstream gives `seal`, by which references to earlier items are put back.
 */
export function conversationOf(call: Call, seal?: Sealer): CanonicalRequest {
  const known = conversations.get(call);
  const mayRefer = call.endpoint.dialect === "openai-responses";
  if (known && (known.isOpened || !seal || !mayRefer)) return known.request;
  const request = DIALECTS[call.endpoint.dialect].decodeRequest(call.body.json, {
    model: call.model,
    stream: call.wantsStream,
    ...(seal && mayRefer ? { openItems: itemOpener(seal, call.caller.user.id) } : {}),
  });
  conversations.set(call, { request, isOpened: seal !== undefined });
  return request;
}
