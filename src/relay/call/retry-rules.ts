// Whether another channel may be asked after a failed attempt: by the operator's list of statuses, but for what no list may
// change. Refuses to ask again what another channel cannot make good.
import type { FailureCode } from "../../shared/failure-codes.ts";
import type { AttemptFailure } from "./attempt.ts";

/** Statuses that another channel cannot make good, or that must not be asked twice. */
const FINAL_STATUSES: ReadonlySet<number> = new Set([408, 504, 524]);
const FINAL_CODES: ReadonlySet<FailureCode> = new Set([
  // One deadline stands over all attempts: a timer that fired a moment early leaves no time for another one.
  "deadline_exceeded",
  // Made and paid for already.
  "upstream_picture_lost",
]);
const ANTHROPIC_TYPE = 14;

/**
 * By the mapped status, as operators know it from the status mapping; `statuses`: after which of them a call goes on (the
 * option AutomaticRetryStatusCodes).
 */
export function mayRetry(
  failed: AttemptFailure,
  channelType: number,
  statuses: ReadonlySet<number>,
): boolean {
  const { failure, refusal } = failed;
  // Asking elsewhere for what one provider refuses on principle endangers the operator's other accounts.
  if (failure.kind === "upstream-refusal") return false;
  // The client has to know: it shortens its conversation, and another channel of the model takes no more either.
  if (failure.kind === "context-length") return false;
  if (FINAL_CODES.has(failure.code)) return false;
  // The gateway's own findings (unreachable, too slow, cut off) carry no upstream status.
  if (failure.upstreamStatus === undefined) return failure.kind !== "client" && failure.kind !== "internal";
  // The client's status may be one of ours.
  const status = refusal !== undefined && refusal.status >= 400 ? refusal.status : failure.status;
  if (status >= 200 && status < 300) return false;
  if (status === 400) return channelType === ANTHROPIC_TYPE;
  return !FINAL_STATUSES.has(status) && statuses.has(status);
}
