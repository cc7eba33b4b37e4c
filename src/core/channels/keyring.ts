// Several keys of one channel: they take turns, and one that fails rests on its own while the others go on.
// Refuses to keep anything across restarts: a rested key is tried again, and rested again when it still fails.
import type { Channel } from "./rows.ts";

type RestReason = "rejected" | "limited";

interface KeyState {
  /** Place of the key in the channel's list, from 0. */
  index: number;
  /** On the steady clock; 0 = it works. */
  restsUntilMs: number;
  reason: RestReason | "";
  /** What the upstream said, scrubbed. */
  detail: string;
}

interface KeyRest {
  reason: RestReason;
  restMs: number;
  detail: string;
}

export interface Keyring {
  /** The next key whose turn it is; a rested one only when all of them rest. */
  next(channel: Channel, nowMs: number): { key: string; index: number };
  /** The first key that does not rest, for what should stay with one account; leaves the turns as they are. */
  first(channel: Channel, nowMs: number): { key: string; index: number };
  /** Puts one key to rest. Returns whether another key of the channel is still fit for service. */
  rest(channel: Channel, index: number, rest: KeyRest, nowMs: number): boolean;
  /** Whether the provider rejected every key of the channel; a lone key stands for its channel. */
  areAllRejected(channel: Channel): boolean;
  /** A key that answered needs no more rest. */
  wake(channel: Channel, index: number): void;
  states(channel: Channel): KeyState[];
}

interface Ring {
  /** The channel these states belong to: with other keys or another address it starts anew, after other edits not. */
  channel: Channel;
  turn: number;
  states: Map<number, KeyState>;
}

/** Whether two versions of a channel go to the same place with the same keys. */
export function isSameAccess(a: Channel, b: Channel): boolean {
  return (
    a.baseUrl === b.baseUrl &&
    a.type === b.type &&
    (a.keys === b.keys || (a.keys.length === b.keys.length && a.keys.every((key, i) => key === b.keys[i])))
  );
}

export function createKeyring(): Keyring {
  const rings = new Map<number, Ring>();

  function ringOf(channel: Channel): Ring {
    let ring = rings.get(channel.id);
    if (ring && ring.channel !== channel) {
      if (isSameAccess(ring.channel, channel)) ring.channel = channel;
      else ring = undefined;
    }
    if (!ring) rings.set(channel.id, (ring = { channel, turn: 0, states: new Map() }));
    return ring;
  }

  /** From this place on, the first key that works; where all of them rest, the one whose rest ends first. */
  function fitIndex({ states }: Ring, count: number, from: number, nowMs: number): number {
    let soonest = from;
    let soonestMs = Infinity;
    for (let step = 0; step < count; step++) {
      const index = (from + step) % count;
      const untilMs = states.get(index)?.restsUntilMs ?? 0;
      if (untilMs <= nowMs) return index;
      if (untilMs >= soonestMs) continue;
      soonestMs = untilMs;
      soonest = index;
    }
    return soonest;
  }

  return {
    next(channel, nowMs) {
      const { keys } = channel;
      if (keys.length < 2) return { key: keys[0] ?? "", index: 0 };
      const ring = ringOf(channel);
      const index = fitIndex(ring, keys.length, ring.turn, nowMs);
      // A key that rests is no turn: the others come as they would have.
      if ((ring.states.get(index)?.restsUntilMs ?? 0) <= nowMs) ring.turn = (index + 1) % keys.length;
      return { key: keys[index] ?? "", index };
    },
    first(channel, nowMs) {
      const { keys } = channel;
      const index = keys.length < 2 ? 0 : fitIndex(ringOf(channel), keys.length, 0, nowMs);
      return { key: keys[index] ?? "", index };
    },
    rest(channel, index, { reason, restMs, detail }, nowMs) {
      if (channel.keys.length < 2) return false;
      const { states } = ringOf(channel);
      states.set(index, { index, restsUntilMs: nowMs + restMs, reason, detail });
      return channel.keys.some((_, at) => (states.get(at)?.restsUntilMs ?? 0) <= nowMs);
    },
    areAllRejected(channel) {
      if (channel.keys.length < 2) return true;
      const { states } = ringOf(channel);
      return channel.keys.every((_, at) => states.get(at)?.reason === "rejected");
    },
    wake(channel, index) {
      if (channel.keys.length > 1) rings.get(channel.id)?.states.delete(index);
    },
    states(channel) {
      const ring = ringOf(channel);
      return channel.keys.map(
        (_, index) => ring.states.get(index) ?? { index, restsUntilMs: 0, reason: "", detail: "" },
      );
    },
  };
}
