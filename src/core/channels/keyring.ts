// Several keys of one channel: which of them a call gets. What of them rests, and why, stands in key-rests.ts (what providers ask
// for or refuse) and key-cells.ts (what fails).
import { KeyStatus } from "../../shared/enums.ts";
import type { CapState } from "./caps.ts";
import type { Breaker } from "./breaker.ts";
import { createKeyCells } from "./key-cells.ts";
import type { FailedWithKey, KeyCells } from "./key-cells.ts";
import { createKeyRests, untilOf } from "./key-rests.ts";
import type { KeyRest, KeyRests, KeyState, NewRest } from "./key-rests.ts";
import { upstreamModel } from "./rows.ts";
import type { Channel } from "./rows.ts";
import type { Routing } from "./routing.ts";

export interface ChosenKey {
  key: string;
  index: number;
}

/**
 * Whether a channel can be asked now: some key is fit, all of them rest, all that work asked to be left alone until a time that
 * they named, or what is awake is full.
 */
type Fitness = "fit" | "resting" | "patient" | "full" | "off";

/** Models are those of requests; "" for what is asked without one. */
export interface Keyring {
  /** Nothing rests anywhere: nobody need be asked about. */
  isCalm(nowMs: number): boolean;
  fitness(channel: Channel, model: string, nowMs: number, tokens?: number): Fitness;
  /**
   * The next key by the channel's mode; a resting one only where nothing else is on. `sticky` is what the mode "affinity" goes
   * by; `isPeek`: nobody is asked, turns and trials stay as they are. Undefined: every key is off or full.
   */
  next(
    channel: Channel,
    model: string,
    nowMs: number,
    wanted?: { sticky?: string; tokens?: number; isPeek?: boolean },
  ): ChosenKey | undefined;
  /** The first key that does not rest, for what should stay with one account; leaves the turns as they are. */
  first(
    channel: Channel,
    model: string,
    nowMs: number,
    tokens?: number,
    isPeek?: boolean,
  ): ChosenKey | undefined;
  /** A key that its caller chose is asked: where its rest is over, this is the call that finds out. */
  take(channel: Channel, index: number, model: string, nowMs: number): void;
  /** Puts one key to rest. Returns whether another key of the channel is still fit for the model. */
  rest(channel: Channel, index: number, rest: NewRest, nowMs: number): boolean;
  /** Whether the provider rejected every key of the channel that is on; a lone key stands for its channel. */
  areAllRejected(channel: Channel): boolean;
  /**
   * A key that answered a call that began then (steady clock) needs no more rest, for this model or for all; what began later
   * stays, and what was taken by hand until its time.
   */
  wake(channel: Channel, index: number, model: string, beganMs: number): void;
  /** A call that began then is being answered, and `succeeded` or `failed` tells how that ended. */
  opened(channel: Channel, index: number, model: string, beganMs: number): void;
  succeeded(channel: Channel, index: number, model: string, beganMs: number, nowMs: number): void;
  /**
   * The model failed with this key (down, too slow, cut off). True: it rests for the model because of that while another key of
   * the channel is fit, so that nothing is said of the channel.
   */
  failed(channel: Channel, index: number, model: string, how: FailedWithKey): boolean;
  /** The call ended without a word on the key. */
  abandoned(channel: Channel, index: number, model: string, beganMs: number): void;
  /** Models (by their names at the upstream) that failed with the key alone, and that no call is trying out. */
  untried(channel: Channel, index: number, nowMs: number): string[];
  /** When the rest of a model that failed with the key ends, or ended: changed by each call that found out. 0: it has none. */
  downUntil(channel: Channel, index: number, model: string): number;
  /** A key that was switched on, or is let go on by hand: nothing of its rests is left. */
  wakeWhole(channel: Channel, index: number): void;
  /** When the first key that is on is fit for the model again (steady clock); 0: one is. Infinity: none is on. */
  fitAtMs(channel: Channel, model: string, nowMs: number): number;
  /** Why the key rests for the model now; undefined where it does not. */
  restOf(channel: Channel, index: number, model: string, nowMs: number): KeyRest | undefined;
  /** Every key of the channel; at a time, without the failures that are over then. */
  states(channel: Channel, nowMs?: number): KeyState[];
}

/** A key that may be chosen, and how it is. */
interface Found {
  index: number;
  fitness: "fit" | "resting" | "patient";
}

/** Who is looked at, in which order, and how large the call is. */
interface Look {
  order: (step: number) => number;
  tokens: number;
}

/** Whether two versions of a channel go to the same place with the same keys. */
export function isSameAccess(a: Channel, b: Channel): boolean {
  return (
    a.baseUrl === b.baseUrl &&
    a.type === b.type &&
    a.keyRows.length === b.keyRows.length &&
    a.keyRows.every(({ account, status }, at) => {
      const other = b.keyRows[at];
      return account === other?.account && status === other.status;
    })
  );
}

/** What a look at the keys of a channel needs. */
interface Ring {
  rests: KeyRests;
  cells: KeyCells;
  caps: CapState;
}

/** 0 where it does not rest; `name` is the model's at the upstream. */
function restsUntil(
  { rests, cells }: Ring,
  channel: Channel,
  index: number,
  name: string,
  nowMs: number,
): number {
  if (rests.isCalm(nowMs) && cells.isCalm(nowMs)) return 0;
  return Math.max(
    untilOf(channel, rests.latest(channel, index, name)),
    cells.restsUntil(channel, index, name, nowMs),
  );
}

/**
 * In its order, the first key that is fit; where all that are on rest, the one whose rest ends first of those that may be asked
 * all the same. Whom its upstream refuses comes after whom it wants to wait.
 */
function choose(ring: Ring, channel: Channel, name: string, nowMs: number, look: Look): Found | undefined {
  const { length: count } = channel.keys;
  let best: Found | undefined;
  let bestRank = Infinity;
  let bestMs = Infinity;
  for (let step = 0; step < count; step++) {
    const index = look.order(step);
    if (!isOn(channel, index) || !hasRoom(ring, channel, index, look.tokens, nowMs)) continue;
    const untilMs = restsUntil(ring, channel, index, name, nowMs);
    if (untilMs <= nowMs) return { index, fitness: "fit" };
    const rest = ring.rests.latest(channel, index, name);
    const isAsked = rest?.isAsked === true && rest.restsUntilMs > nowMs;
    const isRefused = rest !== undefined && rest.restsUntilMs > nowMs && rest.reason !== "limited";
    const rank = isAsked ? 1 : isRefused ? 2 : 0;
    if (rank > bestRank || (rank === bestRank && untilMs >= bestMs)) continue;
    bestRank = rank;
    bestMs = untilMs;
    best = { index, fitness: isAsked ? "patient" : "resting" };
  }
  return best;
}

/** From one place on, all round. */
function inOrder(count: number, from: number, tokens: number): Look {
  return { order: (step) => (from + step) % count, tokens };
}

function hasRoom({ caps }: Ring, channel: Channel, index: number, tokens: number, nowMs: number): boolean {
  return !channel.isCapped || caps.hasRoom(channel, index, tokens, nowMs);
}

function isAnyFit(ring: Ring, channel: Channel, name: string, nowMs: number): boolean {
  return channel.keys.some(
    (_, at) => isOn(channel, at) && restsUntil(ring, channel, at, name, nowMs) <= nowMs,
  );
}

export function createKeyring(caps: CapState, random: () => number = Math.random): Keyring {
  const rests = createKeyRests();
  const cells = createKeyCells();
  const ring: Ring = { rests, cells, caps };
  /** Whose turn it is, by channel. */
  const turns = new Map<number, number>();

  function turnIn(channel: Channel, isPolling: boolean): number {
    const { length: count } = channel.keys;
    return isPolling ? (turns.get(channel.id) ?? 0) % count : Math.floor(random() * count) % count;
  }

  /** The key is asked: where its rest is over it is the one call that finds out. */
  function taken(channel: Channel, found: Found, name: string, nowMs: number, isPeek: boolean): ChosenKey {
    if (!isPeek && !cells.isCalm(nowMs)) cells.take(channel, found.index, name, nowMs);
    return keyAt(channel, found.index);
  }

  return {
    isCalm: (nowMs) => rests.isCalm(nowMs) && cells.isCalm(nowMs),
    fitness(channel, model, nowMs, tokens = 0) {
      const name = upstreamModel(channel, model);
      const found = choose(ring, channel, name, nowMs, inOrder(channel.keys.length, 0, tokens));
      if (found) return found.fitness;
      return channel.keyRows.some((_, index) => isOn(channel, index)) ? "full" : "off";
    },
    next(channel, model, nowMs, { sticky = "", tokens = 0, isPeek = false } = {}) {
      const { keys, keyMode } = channel;
      if (keys.length < 2) {
        const isOpen = isOn(channel, 0) && hasRoom(ring, channel, 0, tokens, nowMs);
        return isOpen ? keyAt(channel, 0) : undefined;
      }
      const name = upstreamModel(channel, model);
      if (keyMode === "affinity") {
        const order = rendezvous(channel, sticky);
        const look: Look = { order: (step) => order[step] ?? 0, tokens };
        const found = choose(ring, channel, name, nowMs, look);
        return found && taken(channel, found, name, nowMs, isPeek);
      }
      const isPolling = keyMode === "polling";
      const look = inOrder(keys.length, turnIn(channel, isPolling), tokens);
      const found = choose(ring, channel, name, nowMs, look);
      // A key that rests is no turn: the others come as they would have.
      if (!isPeek && found && isPolling && found.fitness === "fit")
        turns.set(channel.id, (found.index + 1) % keys.length);
      return found && taken(channel, found, name, nowMs, isPeek);
    },
    first(channel, model, nowMs, tokens = 0, isPeek = false) {
      const name = upstreamModel(channel, model);
      const found = choose(ring, channel, name, nowMs, inOrder(channel.keys.length, 0, tokens));
      return found && taken(channel, found, name, nowMs, isPeek);
    },
    take(channel, index, model, nowMs) {
      if (!cells.isCalm(nowMs)) cells.take(channel, index, upstreamModel(channel, model), nowMs);
    },
    rest(channel, index, rest, nowMs) {
      rests.take(channel, index, rest, nowMs);
      const name = rest.model === undefined ? "" : upstreamModel(channel, rest.model);
      return channel.keys.length > 1 && isAnyFit(ring, channel, name, nowMs);
    },
    areAllRejected(channel) {
      if (channel.keys.length < 2) return true;
      return channel.keyRows.every((_, at) => !isOn(channel, at) || rests.isRejected(channel, at));
    },
    fitAtMs(channel, model, nowMs) {
      const name = upstreamModel(channel, model);
      let soonestMs = Infinity;
      for (let index = 0; index < channel.keys.length && soonestMs > nowMs; index++)
        if (isOn(channel, index))
          soonestMs = Math.min(soonestMs, restsUntil(ring, channel, index, name, nowMs));
      return soonestMs > nowMs ? soonestMs : 0;
    },
    wake: (channel, index, model, beganMs) => rests.wake(channel, index, model, beganMs),
    opened: (channel, index, model, beganMs) => cells.opened(channel, index, model, beganMs),
    succeeded: (channel, index, model, beganMs, nowMs) =>
      cells.succeeded(channel, index, model, beganMs, nowMs),
    failed(channel, index, model, how) {
      cells.failed(channel, index, model, how);
      const name = upstreamModel(channel, model);
      const { nowMs } = how;
      const isResting = cells.restsUntil(channel, index, name, nowMs) > nowMs;
      return isResting && isAnyFit(ring, channel, name, nowMs);
    },
    abandoned: (channel, index, model, beganMs) => cells.abandoned(channel, index, model, beganMs),
    untried: (channel, index, nowMs) => cells.untried(channel, index, nowMs),
    downUntil: (channel, index, model) => cells.openUntil(channel, index, model),
    wakeWhole(channel, index) {
      rests.wakeWhole(channel, index);
      cells.wake(channel, index);
    },
    restOf(channel, index, model, nowMs) {
      const rest = rests.restOf(channel, index, model, nowMs);
      if (rest || cells.isCalm(nowMs)) return rest;
      const restsUntilMs = cells.restsUntil(channel, index, upstreamModel(channel, model), nowMs);
      return restsUntilMs > nowMs ? { restsUntilMs, reason: "down", detail: "" } : undefined;
    },
    states: (channel, nowMs = 0) =>
      rests.states(channel).map((state) => withCells(state, cells.rests(channel, state.index, nowMs))),
  };
}

/**
 * Lets keys be asked again that are switched on, by whoever and on whichever node: what they rest for is from before. Goes by
 * their rows alone; one that was off and on again between two looks bears another time.
 */
export function wakeSwitchedOn(
  keyring: Pick<Keyring, "wakeWhole">,
  routing: Pick<Routing, "channels" | "channel" | "onChange">,
): void {
  const known = new Map([...routing.channels()].map(({ id, keyRows }) => [id, keyRows]));
  routing.onChange((ids) => {
    for (const id of ids) {
      const channel = routing.channel(id);
      const before = new Map(known.get(id)?.map((key) => [key.id, key]));
      if (!channel) {
        known.delete(id);
        continue;
      }
      known.set(id, channel.keyRows);
      for (const [index, { id: keyId, status, statusTime }] of channel.keyRows.entries()) {
        const was = before.get(keyId);
        if (!was || status !== KeyStatus.on) continue;
        if (was.status !== status || was.statusTime !== statusTime) keyring.wakeWhole(channel, index);
      }
    }
  });
}

/** With the models that fail with this key. */
function withCells(state: KeyState, down: ReadonlyMap<string, Breaker>): KeyState {
  if (down.size === 0) return state;
  const models = new Map(state.models);
  for (const [name, { openUntilMs, detail }] of down)
    if ((models.get(name)?.restsUntilMs ?? 0) < openUntilMs)
      models.set(name, { restsUntilMs: openUntilMs, reason: "down", detail });
  return { ...state, models };
}

function isOn(channel: Channel, index: number): boolean {
  return channel.areAllOn || channel.keyRows[index]?.status === KeyStatus.on;
}

const keyAt = (channel: Channel, index: number): ChosenKey => ({ key: channel.keys[index] ?? "", index });

/** Places of the keys by falling weight for this value: one that drops out moves only those that were its own. */
function rendezvous({ keyRows }: Channel, sticky: string): number[] {
  return keyRows
    .map(({ hash }, index) => ({ index, weight: Bun.hash.wyhash(`${sticky} ${hash}`) }))
    .sort((a, b) => (a.weight < b.weight ? 1 : a.weight > b.weight ? -1 : 0))
    .map(({ index }) => index);
}
