// Where a caller stands under the limits of a minute, for the headers of an answer: of key and user the one that leaves least.
import { MINUTE_MS } from "./minute.ts";
import type { Minute } from "./minute.ts";
import type { OwnerUse } from "./owner-use.ts";

interface MinuteState {
  limit: number;
  remaining: number;
  /** Until all of it is there again, if nothing else is asked for. */
  resetMs: number;
}

export interface LimitStates {
  requests: MinuteState | undefined;
  tokens: MinuteState | undefined;
}

/** Undefined where no limit of a minute is in force. */
export function statesOf(owners: readonly OwnerUse[], nowMs: number): LimitStates | undefined {
  let requests: MinuteState | undefined;
  let tokens: MinuteState | undefined;
  for (const owner of owners) {
    const { limits, elsewhere, openTokens } = owner;
    if (limits.rpmLimit > 0)
      requests = narrower(requests, stateOf(owner.requests, limits.rpmLimit, elsewhere.requests, nowMs));
    if (limits.tpmLimit > 0)
      tokens = narrower(tokens, stateOf(owner.tokens, limits.tpmLimit, openTokens + elsewhere.tokens, nowMs));
  }
  return requests || tokens ? { requests, tokens } : undefined;
}

function stateOf(minute: Minute, limit: number, beside: number, nowMs: number): MinuteState {
  return {
    limit,
    remaining: Math.max(0, limit - minute.sum(nowMs) - beside),
    resetMs: beside > 0 ? MINUTE_MS : minute.waitMs(0, nowMs),
  };
}

function narrower(one: MinuteState | undefined, other: MinuteState): MinuteState {
  return one && one.remaining <= other.remaining ? one : other;
}
