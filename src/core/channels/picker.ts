// Picks the channel for an attempt: highest priority first, smooth weighted round robin inside, health as a veto.
// Refuses channels that already failed in this request; channels that cool down only while another one can serve.
import type { Channel } from "./rows.ts";
import { isSameAccess } from "./keyring.ts";
import type { Routing, Tier, TierEntry } from "./routing.ts";

/** What an attempt says about the health of its channel. */
export type Verdict =
  /** It answered; also when it refused the caller's request. */
  | "ok"
  /** Overloaded, broken, unreachable, too slow. */
  | "down"
  /** Its key or its account does not work. */
  | "rejected"
  /** It asked to be left alone for a while. */
  | "limited";

export interface Picker {
  /**
   * The next channel for this request, or undefined when none is left. `accepts` leaves out channels that cannot
   * serve the call at all.
   */
  pick(
    group: string,
    model: string,
    excluded: ReadonlySet<number>,
    nowMs: number,
    accepts?: (channel: Channel) => boolean,
  ): Channel | undefined;
  /** Records how an attempt went. `retryAfterSeconds`: what a limited upstream asked for. */
  report(channelId: number, verdict: Verdict, nowMs: number, retryAfterSeconds?: number): void;
  /** Until when (steady clock) the channel is left alone, 0 = it is not. */
  coolingUntilMs(channelId: number): number;
}

interface Health {
  /** As it stood when it was last judged. */
  channel: Channel;
  /** Failures in a row. */
  failures: number;
  /** The channel rests until then (steady clock); 0 = healthy. */
  openUntilMs: number;
  /** Length of the last rest: the next one doubles it. */
  restMs: number;
  /** A probe is under way and holds the others off until then. */
  probeUntilMs: number;
}

/** "down" answers in a row before a channel rests. */
const FAILURES_TO_REST = 3;
const FIRST_REST_MS = 5_000;
const LONGEST_REST_MS = 120_000;
const REJECTED_REST_MS = 30_000;
const LIMITED_REST_MS = 5_000;
/** An upstream may not switch a channel off for longer than this. */
const LONGEST_RETRY_AFTER_MS = 600_000;
/** A probe that never reports back blocks the channel no longer than this. */
const PROBE_MS = 30_000;

/** Smooth weighted round robin: everyone gains its share, the leader serves and pays the sum. Order never clumps. */
function rotate(entries: readonly TierEntry[]): TierEntry | undefined {
  let best: TierEntry | undefined;
  let sum = 0;
  for (const entry of entries) {
    entry.current += entry.share;
    sum += entry.share;
    if (!best || entry.current > best.current) best = entry;
  }
  if (best) best.current -= sum;
  return best;
}

/** Whether an edit left alone what decides about success: address, keys, account, proxy and form of the call. */
function isCalledAlike(a: Channel, b: Channel): boolean {
  return (
    isSameAccess(a, b) &&
    a.status === b.status &&
    a.organization === b.organization &&
    a.other === b.other &&
    Bun.deepEquals(a.setting, b.setting) &&
    Bun.deepEquals(a.modelMapping, b.modelMapping) &&
    Bun.deepEquals(a.paramOverride, b.paramOverride)
  );
}

export function createPicker(routing: Pick<Routing, "tiers" | "channel" | "onChange">): Picker {
  /** Only channels with a recent failure have an entry, so the size follows the trouble. */
  const health = new Map<number, Health>();
  // A channel that is called otherwise now gets a fresh start, other edits wake nobody; a deleted one leaves nothing behind.
  routing.onChange((ids) => {
    for (const id of ids) {
      const state = health.get(id);
      const channel = routing.channel(id);
      if (!state) continue;
      if (channel && isCalledAlike(state.channel, channel)) state.channel = channel;
      else health.delete(id);
    }
  });

  /** Whether the channel may serve now; a rest that is over lets exactly one probe through. */
  function isReady(id: number, nowMs: number): boolean {
    const state = health.get(id);
    if (!state || state.openUntilMs === 0) return true;
    return nowMs >= state.openUntilMs && nowMs >= state.probeUntilMs;
  }

  function take(entry: TierEntry, nowMs: number): Channel {
    const state = health.get(entry.channel.id);
    if (state && state.openUntilMs !== 0) state.probeUntilMs = nowMs + PROBE_MS;
    return entry.channel;
  }

  function usable(
    tier: Tier,
    excluded: ReadonlySet<number>,
    accepts: ((channel: Channel) => boolean) | undefined,
  ): readonly TierEntry[] {
    if (excluded.size === 0 && !accepts) return tier.entries;
    return tier.entries.filter(
      ({ channel }) => !excluded.has(channel.id) && (accepts === undefined || accepts(channel)),
    );
  }

  /** Everyone rests: the one whose rest ends first serves, because a refusal would help nobody. */
  function leastTired(tiers: readonly (readonly TierEntry[])[]): TierEntry | undefined {
    let best: TierEntry | undefined;
    for (const entries of tiers) {
      for (const entry of entries) {
        const until = health.get(entry.channel.id)?.openUntilMs ?? 0;
        if (!best || until < (health.get(best.channel.id)?.openUntilMs ?? 0)) best = entry;
      }
    }
    return best;
  }

  return {
    pick(group, model, excluded, nowMs, accepts) {
      const candidates: (readonly TierEntry[])[] = [];
      for (const tier of routing.tiers(group, model)) {
        const entries = usable(tier, excluded, accepts);
        if (entries.length === 0) continue;
        const ready =
          health.size === 0 ? entries : entries.filter(({ channel }) => isReady(channel.id, nowMs));
        const chosen = rotate(ready);
        if (chosen) return take(chosen, nowMs);
        candidates.push(entries);
      }
      const chosen = leastTired(candidates);
      return chosen && take(chosen, nowMs);
    },
    report(channelId, verdict, nowMs, retryAfterSeconds) {
      if (verdict === "ok") {
        if (health.size > 0) health.delete(channelId);
        return;
      }
      const channel = routing.channel(channelId);
      if (!channel) return;
      let state = health.get(channelId);
      if (!state) {
        state = { channel, failures: 0, openUntilMs: 0, restMs: 0, probeUntilMs: 0 };
        health.set(channelId, state);
      }
      const wasResting = state.openUntilMs !== 0;
      state.failures += 1;
      state.probeUntilMs = 0;
      const rest = (ms: number): void => {
        state.restMs = Math.min(ms, LONGEST_REST_MS);
        state.openUntilMs = Math.max(state.openUntilMs, nowMs + state.restMs);
      };
      if (verdict === "limited") {
        const requestedMs = Math.min((retryAfterSeconds ?? 0) * 1000, LONGEST_RETRY_AFTER_MS);
        if (requestedMs > 0) state.openUntilMs = Math.max(state.openUntilMs, nowMs + requestedMs);
        else rest(Math.max(LIMITED_REST_MS, wasResting ? state.restMs * 2 : 0));
      } else if (verdict === "rejected") {
        rest(wasResting ? Math.max(state.restMs * 2, REJECTED_REST_MS) : REJECTED_REST_MS);
      } else if (wasResting || state.failures >= FAILURES_TO_REST) {
        rest(state.restMs > 0 ? state.restMs * 2 : FIRST_REST_MS);
      }
    },
    coolingUntilMs: (channelId) => health.get(channelId)?.openUntilMs ?? 0,
  };
}
