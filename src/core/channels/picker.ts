// Picks the channel for an attempt: highest priority first, smooth weighted round robin inside, health as a veto.
// Refuses channels that already failed in this request; what rests serves only where nothing else can, and what asked for
// patience not before its time.
import { createChannelHealth } from "./health.ts";
import type { ChannelHealth } from "./health.ts";
import type { Channel } from "./rows.ts";
import type { Routing, Tier, TierEntry } from "./routing.ts";
import { createTraffic } from "./traffic.ts";
import type { Traffic } from "./traffic.ts";

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

/** A channel, and the group whose call it serves. */
export interface PickedChannel {
  channel: Channel;
  group: string;
}

export interface Picker extends ChannelHealth {
  /** What live calls found out, and when. */
  readonly traffic: Traffic;
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
    isPeek?: boolean,
  ): Channel | undefined;
  /**
   * The same over several groups in their order: the first one that has a channel which does not rest; where all rest, the one
   * whose rest ends first.
   */
  pickAmong(
    groups: readonly string[],
    model: string,
    excluded: ReadonlySet<number>,
    nowMs: number,
    accepts?: (channel: Channel) => boolean,
    isPeek?: boolean,
  ): PickedChannel | undefined;
}

/** Smooth weighted round robin: everyone gains its share, the leader serves and pays the sum. Order never clumps. */
function rotate(entries: readonly TierEntry[], isPeek: boolean): TierEntry | undefined {
  if (isPeek) return leader(entries);
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

/** Who would serve next. */
function leader(entries: readonly TierEntry[]): TierEntry | undefined {
  let best: TierEntry | undefined;
  for (const entry of entries)
    if (!best || entry.current + entry.share > best.current + best.share) best = entry;
  return best;
}

export function createPicker(routing: Pick<Routing, "tiers" | "channel" | "onChange">): Picker {
  const health = createChannelHealth(routing);
  const traffic = createTraffic();

  /**
   * Everyone rests: the one whose rest ends first serves, because a refusal would help nobody; but nobody who asked to be
   * left alone until then.
   */
  function leastTired(
    tiers: readonly (readonly TierEntry[])[],
    model: string,
    nowMs: number,
  ): Channel | undefined {
    let best: Channel | undefined;
    for (const entries of tiers)
      for (const { channel } of entries) {
        if (health.askedUntil(channel, model, nowMs) > 0) continue;
        if (!best || health.restsUntil(channel, model) < health.restsUntil(best, model)) best = channel;
      }
    return best;
  }

  /** The next that does not rest; those that do are added to `resting`. */
  function awake(
    tiers: readonly Tier[],
    { model, excluded, nowMs, accepts, isPeek }: Wanted,
    resting: (readonly TierEntry[])[],
  ): Channel | undefined {
    for (const tier of tiers) {
      const entries = usable(tier, excluded, accepts);
      if (entries.length === 0) continue;
      if (health.isCalm(nowMs)) return rotate(entries, isPeek)?.channel;
      const chosen = rotate(
        entries.filter(({ channel }) => health.isUsable(channel, model, nowMs)),
        isPeek,
      );
      if (chosen) {
        if (!isPeek) health.take(chosen.channel, model, nowMs);
        return chosen.channel;
      }
      resting.push(entries);
    }
    return undefined;
  }

  return {
    ...health,
    traffic,
    pick(group, model, excluded, nowMs, accepts, isPeek = false) {
      const resting: (readonly TierEntry[])[] = [];
      const found = awake(routing.tiers(group, model), { model, excluded, nowMs, accepts, isPeek }, resting);
      if (found) return found;
      const chosen = leastTired(resting, model, nowMs);
      if (chosen && !isPeek) health.take(chosen, model, nowMs);
      return chosen;
    },
    pickAmong(groups, model, excluded, nowMs, accepts, isPeek = false) {
      const resting: (readonly TierEntry[])[] = [];
      const groupOf = new Map<readonly TierEntry[], string>();
      for (const group of groups) {
        const from = resting.length;
        const channel = awake(
          routing.tiers(group, model),
          { model, excluded, nowMs, accepts, isPeek },
          resting,
        );
        if (channel) return { channel, group };
        for (const entries of resting.slice(from)) groupOf.set(entries, group);
      }
      const channel = leastTired(resting, model, nowMs);
      const entries = resting.find((each) => each.some((entry) => entry.channel === channel));
      const group = entries && groupOf.get(entries);
      if (!channel || group === undefined) return undefined;
      if (!isPeek) health.take(channel, model, nowMs);
      return { channel, group };
    },
  };
}

/** What a request asks of a channel. */
interface Wanted {
  model: string;
  excluded: ReadonlySet<number>;
  nowMs: number;
  accepts: ((channel: Channel) => boolean) | undefined;
  isPeek: boolean;
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
