// Several keys of one channel: they take turns, and one that fails rests on its own while the others go on; for one model
// where only that was too much for it. Refuses to keep anything across restarts: a rested key is tried again, and rested
// again when it still fails.
import { upstreamModel } from "./rows.ts";
import type { Channel } from "./rows.ts";

type RestReason = "rejected" | "limited";

/** A rest that is going on, or is over. */
export interface KeyRest {
  /** On the steady clock. */
  restsUntilMs: number;
  reason: RestReason | "";
  /** What the upstream said, scrubbed. */
  detail: string;
}

export interface KeyState extends KeyRest {
  /** Place of the key in the channel's list, from 0. */
  index: number;
  /** Rests of single models, by their names at the upstream; those that are over too. */
  models: ReadonlyMap<string, KeyRest>;
}

interface NewRest {
  reason: RestReason;
  restMs: number;
  detail: string;
  /** As requested; absent: the key rests for all of them. */
  model?: string;
}

/** Models are those of requests; "" for what is asked without one. */
export interface Keyring {
  /** The next key whose turn it is; a rested one only when all of them rest. */
  next(channel: Channel, model: string, nowMs: number): { key: string; index: number };
  /** The first key that does not rest, for what should stay with one account; leaves the turns as they are. */
  first(channel: Channel, model: string, nowMs: number): { key: string; index: number };
  /** Puts one key to rest. Returns whether another key of the channel is still fit for the model. */
  rest(channel: Channel, index: number, rest: NewRest, nowMs: number): boolean;
  /** Whether the provider rejected every key of the channel; a lone key stands for its channel. */
  areAllRejected(channel: Channel): boolean;
  /** A key that answered needs no more rest, for this model or for all. */
  wake(channel: Channel, index: number, model: string): void;
  /** Why the key rests for the model now; undefined where it does not. */
  restOf(channel: Channel, index: number, model: string, nowMs: number): KeyRest | undefined;
  /** Every key of the channel. */
  states(channel: Channel): KeyState[];
}

/** The rests of one key. */
interface Rests {
  whole: KeyRest | undefined;
  readonly models: Map<string, KeyRest>;
}

interface Ring {
  /** The channel these states belong to: with other keys or another address it starts anew, after other edits not. */
  channel: Channel;
  turn: number;
  /** By the key's place; only keys that rest, or did. */
  rests: Map<number, Rests>;
}

const NO_MODELS: ReadonlyMap<string, KeyRest> = new Map();
/** Of one key: only whoever names channels may ask for models that are not on their lists. */
const MAX_MODELS = 1000;

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
    if (!ring) rings.set(channel.id, (ring = { channel, turn: 0, rests: new Map() }));
    return ring;
  }

  /** From this place on, the first key that works; where all of them rest, the one whose rest ends first. */
  function fitIndex({ rests, channel }: Ring, model: string, from: number, nowMs: number): number {
    if (rests.size === 0) return from;
    const { length: count } = channel.keys;
    const name = upstreamModel(channel, model);
    let soonest = from;
    let soonestMs = Infinity;
    for (let step = 0; step < count; step++) {
      const index = (from + step) % count;
      const untilMs = restsUntil(rests.get(index), name);
      if (untilMs <= nowMs) return index;
      if (untilMs >= soonestMs) continue;
      soonestMs = untilMs;
      soonest = index;
    }
    return soonest;
  }

  return {
    next(channel, model, nowMs) {
      const { keys } = channel;
      if (keys.length < 2) return { key: keys[0] ?? "", index: 0 };
      const ring = ringOf(channel);
      const index = fitIndex(ring, model, ring.turn, nowMs);
      // A key that rests is no turn: the others come as they would have.
      const isFit =
        ring.rests.size === 0 || restsUntil(ring.rests.get(index), upstreamModel(channel, model)) <= nowMs;
      if (isFit) ring.turn = (index + 1) % keys.length;
      return { key: keys[index] ?? "", index };
    },
    first(channel, model, nowMs) {
      const { keys } = channel;
      const index = keys.length < 2 ? 0 : fitIndex(ringOf(channel), model, 0, nowMs);
      return { key: keys[index] ?? "", index };
    },
    rest(channel, index, { reason, restMs, detail, model }, nowMs) {
      if (channel.keys.length < 2) return false;
      const { rests } = ringOf(channel);
      let own = rests.get(index);
      if (!own) rests.set(index, (own = { whole: undefined, models: new Map() }));
      const rest = { restsUntilMs: nowMs + restMs, reason, detail };
      const name = model === undefined ? "" : upstreamModel(channel, model);
      if (model === undefined) own.whole = rest;
      else restModel(own.models, name, rest);
      return channel.keys.some((_, at) => restsUntil(rests.get(at), name) <= nowMs);
    },
    areAllRejected(channel) {
      if (channel.keys.length < 2) return true;
      const { rests } = ringOf(channel);
      return channel.keys.every((_, at) => rests.get(at)?.whole?.reason === "rejected");
    },
    wake(channel, index, model) {
      const rests = channel.keys.length > 1 ? rings.get(channel.id)?.rests : undefined;
      const own = rests?.get(index);
      if (!own) return;
      own.whole = undefined;
      own.models.delete(upstreamModel(channel, model));
      if (own.models.size === 0) rests?.delete(index);
    },
    restOf(channel, index, model, nowMs) {
      const own = channel.keys.length > 1 ? ringOf(channel).rests.get(index) : undefined;
      if (own?.whole && own.whole.restsUntilMs > nowMs) return own.whole;
      const rest = own?.models.get(upstreamModel(channel, model));
      return rest && rest.restsUntilMs > nowMs ? rest : undefined;
    },
    states(channel) {
      const { rests } = ringOf(channel);
      return channel.keys.map((_, index) => {
        const { whole, models = NO_MODELS } = rests.get(index) ?? {};
        return { index, restsUntilMs: 0, reason: "", detail: "", ...whole, models };
      });
    },
  };
}

function restModel(models: Map<string, KeyRest>, name: string, rest: KeyRest): void {
  const [oldest] = models.keys();
  if (models.size >= MAX_MODELS && oldest !== undefined) models.delete(oldest);
  models.set(name, rest);
}

/** 0 where it does not rest; `name` is the model's at the upstream. */
function restsUntil(own: Rests | undefined, name: string): number {
  if (!own) return 0;
  return Math.max(own.whole?.restsUntilMs ?? 0, own.models.get(name)?.restsUntilMs ?? 0);
}
