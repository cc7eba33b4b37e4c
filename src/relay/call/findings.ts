// What an attempt found out, told to the health of key and channel: the key alone where it is the key, the channel's model where
// it is that. Refuses to find fault with a channel while another of its keys serves.
import type { Deps } from "../../core/deps.ts";
import type { Failure } from "../../shared/failures.ts";
import type { AttemptFailure } from "./attempt.ts";
import type { AttemptServices, ChannelAttempt } from "./channel-attempts.ts";

/** How long a key rests that its provider rejected, or asked to be patient with. */
const REJECTED_KEY_MS = 600_000;
const LIMITED_KEY_MS = 30_000;
const LONGEST_QUOTA_MS = 24 * 3_600_000;

type Told = Pick<AttemptServices, "deps" | "picker">;
type Asked = Pick<ChannelAttempt, "channel" | "keyIndex" | "beganMs">;

/** An upstream's word for a model that an account may not use, or does not have. */
const MISSING_MODEL = "model_not_found";

/** For administrators, scrubbed. */
export function detailOf({ internal, code }: Failure): string {
  return internal?.slice(0, 200) || code;
}

/** The key serves: what it rested for is over. `isBegun`: how the answer ends is told later. */
export function tellServed(
  { deps }: Told,
  { channel, keyIndex, beganMs }: Asked,
  model: string,
  isBegun: boolean,
): void {
  const { keyring, clock } = deps;
  keyring.wake(channel, keyIndex, model, beganMs);
  if (isBegun) keyring.opened(channel, keyIndex, model, beganMs);
  else keyring.succeeded(channel, keyIndex, model, beganMs, clock.monotonicMs());
}

/** Nothing was found out about channel and key. */
export function tellNothing(
  { deps, picker }: Told,
  { channel, keyIndex, beganMs }: Asked,
  model: string,
): void {
  picker.abandoned(channel, model, beganMs);
  deps.keyring.abandoned(channel, keyIndex, model, beganMs);
}

/** What the channel's model met; a channel none of whose keys is accepted has no model that works. */
export function tellFailed(
  told: Told,
  { channel, keyIndex, beganMs }: Asked,
  model: string,
  { verdict, failure }: AttemptFailure,
): void {
  const { deps, picker } = told;
  const nowMs = deps.clock.monotonicMs();
  // Nobody was asked: the channel itself is set up so that it cannot be.
  if (failure.kind === "no-channel") tellNothing(told, { channel, keyIndex, beganMs }, model);
  else if (verdict === "ok") {
    picker.succeeded(channel, model, beganMs, nowMs);
    deps.keyring.succeeded(channel, keyIndex, model, beganMs, nowMs);
  } else if (verdict === "down") {
    // The address itself, or the proxy before it: no status ever came.
    const isUnreached = failure.code === "do_request_failed";
    tellDown(told, { channel, keyIndex, beganMs }, model, { detail: detailOf(failure), isUnreached });
  }
  // Of several keys each rests for itself until its own time.
  else if (verdict === "limited" && channel.keys.length > 1)
    tellNothing(told, { channel, keyIndex, beganMs }, model);
  else {
    const isWhole = verdict === "rejected" && deps.keyring.areAllRejected(channel);
    const { retryAfterSeconds } = failure;
    const detail = detailOf(failure);
    const how = { reason: verdict, beganMs, isWhole, retryAfterSeconds, detail };
    picker.failed(channel, model, how, nowMs);
  }
}

/** The model is down, too slow or cut off, with this key: alone where others of the channel serve it. */
export function tellDown(
  { deps, picker }: Told,
  { channel, keyIndex, beganMs }: Asked,
  model: string,
  { detail, isUnreached = false }: { detail: string; isUnreached?: boolean },
): void {
  const nowMs = deps.clock.monotonicMs();
  const isOfKey = deps.keyring.failed(channel, keyIndex, model, { nowMs, beganMs, detail });
  const isClosed = picker.restsUntil(channel, model) === 0;
  if (!isOfKey || !isClosed)
    picker.failed(channel, model, { reason: "down", beganMs, detail, isUnreached }, nowMs);
}

/**
 * Rests the key of a failed attempt when it is the key that failed: for the model that it is too much for, or for all when
 * it is rejected. True when other keys of the channel go on.
 */
export function restKey(
  deps: Pick<Deps, "keyring" | "clock" | "caps">,
  { channel, keyIndex, beganMs }: Pick<ChannelAttempt, "channel" | "keyIndex"> & { beganMs?: number },
  model: string,
  { failure, verdict, refusal }: AttemptFailure,
): boolean {
  // Other keys may have the model: this one rests for it.
  const isMissing = verdict === "ok" && refusal?.code === MISSING_MODEL && channel.keys.length > 1;
  const reason = isMissing ? "rejected" : verdict;
  if (reason !== "rejected" && reason !== "limited") return false;
  const wantedMs = (failure.retryAfterSeconds ?? 0) * 1000;
  const id = channel.keyRows[keyIndex]?.id ?? 0;
  if (verdict === "limited") deps.caps.countLimited(id);
  // An account that is used up until tomorrow says so; who only asks for patience is believed ten minutes.
  const mostMs = failure.kind === "upstream-quota" ? LONGEST_QUOTA_MS : REJECTED_KEY_MS;
  const leastMs = reason === "rejected" ? REJECTED_KEY_MS : 1000;
  const restMs =
    wantedMs > 0
      ? Math.max(leastMs, Math.min(wantedMs, mostMs))
      : reason === "rejected"
        ? REJECTED_KEY_MS
        : LIMITED_KEY_MS;
  const detail = detailOf(failure);
  const untilUpstream = wantedMs > 0;
  const rest = {
    reason,
    restMs,
    detail,
    untilUpstream,
    beganMs,
    ...(reason === "limited" || isMissing ? { model } : {}),
  };
  return deps.keyring.rest(channel, keyIndex, rest, deps.clock.monotonicMs());
}
