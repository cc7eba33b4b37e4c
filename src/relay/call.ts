// One relayed call as its stages pass it on: who asks for what, at which price, and what has happened so far.
// Holds types only.
import type { Channel } from "../core/channel-rows.ts";
import type { Reservation } from "../core/deps.ts";
import type { ModelPricing } from "../core/prices.ts";
import type { Caller } from "./admission.ts";
import type { Endpoint } from "./endpoints.ts";
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
  readonly body: RelayBody;
  /** As requested: limits, price and log go by this name. */
  readonly model: string;
  readonly prompt: PromptSize;
  readonly pricing: ModelPricing;
  readonly groupRatio: number;
  readonly reservation: Reservation;
  readonly wantsStream: boolean;
  /** The client asked for the usage frame of the stream. */
  readonly wantsUsage: boolean;
  /** performance.now() of the start. */
  readonly startedMs: number;
  readonly attempts: AttemptNote[];
  readonly pinned: Channel | undefined;
}
