// How a stream ends, as the relay saw it; the table of charges goes by the same words.
import type { Failure } from "../../shared/failures.ts";
import type { PassedFrame } from "./stream-allowance.ts";

export type StreamEndReason =
  /** The terminal event was seen. */
  | "completed"
  /** The upstream closed or broke off before it. */
  | "upstream-cut"
  /** The upstream sent an error object. */
  | "error-in-stream"
  /** The upstream was silent for too long. */
  | "upstream-stall"
  /** The client left. */
  | "client-gone"
  /** The client left, and nothing came for as long as the upstream was read on. */
  | "abandoned"
  /** The process has to stop. */
  | "draining"
  /** The balance could not pay the next chunk. */
  | "balance"
  /** The next chunk would have cost more than the call may. */
  | "max-cost";

/** Ends that look to the client as if the answer had reached its limit. */
export function isCut(reason: string): boolean {
  return reason === "balance" || reason === "max-cost";
}

export interface StreamEnd {
  reason: StreamEndReason;
  failure: Failure | undefined;
  /** Where a chunk is not paid, however it ended: the share of what was counted that went on before it. */
  deliveredShare?: number;
  /** With it: output tokens that the hold pays in the end. */
  paidTokens?: number;
  /** isCut: the first frame that the client has of the stream, and the last that says something. */
  first?: PassedFrame | undefined;
  last?: PassedFrame | undefined;
}

/**
 * How a stream ended that its client had left and that was read on: whatever the rest of it was, nobody received it, but
 * only what came can be paid for.
 */
export function endOfLeaving(ended: StreamEnd | undefined, sawText: boolean): StreamEnd {
  if (ended && (isCut(ended.reason) || ended.reason === "draining")) return ended;
  return { reason: reasonOfLeaving(ended?.reason, sawText), failure: undefined };
}

function reasonOfLeaving(ended: StreamEndReason | undefined, sawText: boolean): StreamEndReason {
  if (sawText) return "client-gone";
  // Silence is no answer, an error is one.
  if (ended === "abandoned" || ended === "upstream-stall") return "abandoned";
  return ended === "error-in-stream" ? ended : "client-gone";
}
