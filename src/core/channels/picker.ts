// Picks the channel for an attempt: highest priority first, smooth weighted round robin inside, health as a veto.
// Refuses channels that already failed in this request; what rests serves only where nothing else can.
import { createChannelHealth } from "./health.ts";
import type { ChannelHealth } from "./health.ts";
import type { Channel } from "./rows.ts";
import type { Routing, Tier, TierEntry } from "./routing.ts";

/** What an attempt says about the health of its channel. */
export type Verdict =
  /** It answered; also when it refused the caller's request. */
  | "ok"
  /** Overloaded, broken, unreachable, too slow, cut off. */
  | "down"
  /** Its key or its account does not work. */
  | "rejected"
  /** It asked to be left alone for a while. */
  | "limited";

export interface Picker extends ChannelHealth {
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
}

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

export function createPicker(routing: Pick<Routing, "tiers" | "channel" | "onChange">): Picker {
  const health = createChannelHealth(routing);

  /** Everyone rests: the one whose rest ends first serves, because a refusal would help nobody. */
  function leastTired(tiers: readonly (readonly TierEntry[])[], model: string): Channel | undefined {
    let best: Channel | undefined;
    for (const entries of tiers)
      for (const { channel } of entries)
        if (!best || health.restsUntil(channel, model) < health.restsUntil(best, model)) best = channel;
    return best;
  }

  return {
    ...health,
    pick(group, model, excluded, nowMs, accepts) {
      const candidates: (readonly TierEntry[])[] = [];
      for (const tier of routing.tiers(group, model)) {
        const entries = usable(tier, excluded, accepts);
        if (entries.length === 0) continue;
        if (health.isCalm()) return rotate(entries)?.channel;
        const chosen = rotate(entries.filter(({ channel }) => health.isUsable(channel, model, nowMs)));
        if (chosen) {
          health.take(chosen.channel, model, nowMs);
          return chosen.channel;
        }
        candidates.push(entries);
      }
      const chosen = leastTired(candidates, model);
      if (chosen) health.take(chosen, model, nowMs);
      return chosen;
    },
  };
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
