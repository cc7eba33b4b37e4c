// Several keys of one channel: which of them a call gets, and which of them rest, each for itself, or for one model where only
// that was too much for it. What is durable of a key (on, off) stands in its row; rests are of this node and of this run.
// A rest belongs to the account: equal keys of two channels for one origin share it.
import { KeyStatus } from "../../shared/enums.ts";
import type { CapState } from "./caps.ts";
import { upstreamModel } from "./rows.ts";
import type { Channel } from "./rows.ts";

type RestReason = "rejected" | "limited" | "by_hand";

/** A rest that is going on, or is over. */
export interface KeyRest {
  /** On the steady clock. */
  restsUntilMs: number;
  reason: RestReason | "";
  /** What the upstream said, scrubbed. */
  detail: string;
}

interface TakenRest extends KeyRest {
  /** How long: the next one without a word of the upstream doubles it. */
  restMs: number;
  /** Whose call it was that failed. */
  channelId: number;
  /** The upstream itself named the end of it: the key is not asked before. */
  isAsked: boolean;
}

export interface KeyState extends KeyRest {
  /** Place of the key in the channel's list, from 0. */
  index: number;
  /** Rests of single models, by their names at the upstream; those that are over too. */
  models: ReadonlyMap<string, KeyRest>;
}

interface NewRest {
  reason: RestReason;
  /** Absent: `restMs` is a first rest, doubled as long as nothing succeeds. */
  untilUpstream?: boolean;
  restMs: number;
  detail: string;
  /** As requested; absent: the key rests for all of them. */
  model?: string;
}

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
  isCalm(): boolean;
  fitness(channel: Channel, model: string, nowMs: number, tokens?: number): Fitness;
  /**
   * The next key by the channel's mode; a resting one only where nothing else is on. `sticky` is what the mode "affinity" goes
   * by. Undefined: every key is off or full.
   */
  next(
    channel: Channel,
    model: string,
    nowMs: number,
    wanted?: { sticky?: string; tokens?: number },
  ): ChosenKey | undefined;
  /** The first key that does not rest, for what should stay with one account; leaves the turns as they are. */
  first(channel: Channel, model: string, nowMs: number, tokens?: number): ChosenKey | undefined;
  /** Puts one key to rest. Returns whether another key of the channel is still fit for the model. */
  rest(channel: Channel, index: number, rest: NewRest, nowMs: number): boolean;
  /** Whether the provider rejected every key of the channel that is on; a lone key stands for its channel. */
  areAllRejected(channel: Channel): boolean;
  /** A key that answered needs no more rest, for this model or for all. */
  wake(channel: Channel, index: number, model: string): void;
  /** A key that was switched on, or is let go on by hand: nothing of its rests is left. */
  wakeWhole(channel: Channel, index: number): void;
  /** When the first key that is on is fit for the model again (steady clock); 0: one is. Infinity: none is on. */
  fitAtMs(channel: Channel, model: string, nowMs: number): number;
  /** Why the key rests for the model now; undefined where it does not. */
  restOf(channel: Channel, index: number, model: string, nowMs: number): KeyRest | undefined;
  /** Every key of the channel. */
  states(channel: Channel): KeyState[];
}

/** A key that may be chosen, and how it is. */
interface Found {
  index: number;
  fitness: "fit" | "resting" | "patient";
}

/** The rests of one account. */
interface Rests {
  whole: TakenRest | undefined;
  readonly models: Map<string, TakenRest>;
}

const NO_RESTS: Rests = { whole: undefined, models: new Map() };
/** Of one key: only whoever names channels may ask for models that are not on their lists. */
const MAX_MODELS = 1000;
/** A rest that nobody doubles is ten minutes. */
const LONGEST_DOUBLED_MS = 600_000;
/** Rests that ended so long ago are forgotten. */
const FORGET_MS = 3_600_000;

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

export function createKeyring(caps: CapState, random: () => number = Math.random): Keyring {
  const rests = new Map<string, Rests>();
  /** Whose turn it is, by channel. */
  const turns = new Map<number, number>();

  /** The rest that ends last, over or not; `name` is the model's at the upstream. */
  function restIn(channel: Channel, index: number, name: string): TakenRest | undefined {
    const own = rests.size === 0 ? undefined : rests.get(channel.keyRows[index]?.account ?? "");
    if (!own) return undefined;
    const ofModel = own.models.get(name);
    return untilOf(channel, ofModel) > untilOf(channel, own.whole) ? ofModel : own.whole;
  }

  /** 0 where it does not rest. */
  function restsUntil(channel: Channel, index: number, name: string): number {
    return untilOf(channel, restIn(channel, index, name));
  }

  function hasRoom(channel: Channel, index: number, tokens: number, nowMs: number): boolean {
    return !channel.isCapped || caps.hasRoom(channel, index, tokens, nowMs);
  }

  /**
   * In this order, the first key that is fit; where all that are on rest, the one whose rest ends first of those that may be
   * asked all the same. Whom its upstream refuses comes after whom it wants to wait.
   */
  function choose(
    channel: Channel,
    name: string,
    nowMs: number,
    { order, tokens }: { order: (step: number) => number; tokens: number },
  ): Found | undefined {
    const { length: count } = channel.keys;
    let best: Found | undefined;
    let bestRank = Infinity;
    let bestMs = Infinity;
    for (let step = 0; step < count; step++) {
      const index = order(step);
      if (!isOn(channel, index) || !hasRoom(channel, index, tokens, nowMs)) continue;
      const rest = restIn(channel, index, name);
      const untilMs = untilOf(channel, rest);
      if (!rest || untilMs <= nowMs) return { index, fitness: "fit" };
      const rank = rest.isAsked ? 1 : rest.reason === "limited" ? 0 : 2;
      if (rank > bestRank || (rank === bestRank && untilMs >= bestMs)) continue;
      bestRank = rank;
      bestMs = untilMs;
      best = { index, fitness: rest.isAsked ? "patient" : "resting" };
    }
    return best;
  }

  function inOrder(channel: Channel, name: string, nowMs: number, from: number, tokens: number) {
    const { length: count } = channel.keys;
    return choose(channel, name, nowMs, { order: (step) => (from + step) % count, tokens });
  }

  return {
    isCalm: () => rests.size === 0,
    fitness(channel, model, nowMs, tokens = 0) {
      const name = upstreamModel(channel, model);
      const found = inOrder(channel, name, nowMs, 0, tokens);
      if (found) return found.fitness;
      return channel.keyRows.some((_, index) => isOn(channel, index)) ? "full" : "off";
    },
    next(channel, model, nowMs, { sticky = "", tokens = 0 } = {}) {
      const { keys, keyMode } = channel;
      if (keys.length < 2) {
        const isOpen = isOn(channel, 0) && hasRoom(channel, 0, tokens, nowMs);
        return isOpen ? keyAt(channel, 0) : undefined;
      }
      const name = upstreamModel(channel, model);
      if (keyMode === "affinity") {
        const order = rendezvous(channel, sticky);
        const found = choose(channel, name, nowMs, { order: (step) => order[step] ?? 0, tokens });
        return found && keyAt(channel, found.index);
      }
      const isPolling = keyMode === "polling";
      const from = isPolling
        ? (turns.get(channel.id) ?? 0) % keys.length
        : Math.floor(random() * keys.length) % keys.length;
      const found = inOrder(channel, name, nowMs, from, tokens);
      // A key that rests is no turn: the others come as they would have.
      if (found && isPolling && found.fitness === "fit")
        turns.set(channel.id, (found.index + 1) % keys.length);
      return found && keyAt(channel, found.index);
    },
    first(channel, model, nowMs, tokens = 0) {
      const found = inOrder(channel, upstreamModel(channel, model), nowMs, 0, tokens);
      return found && keyAt(channel, found.index);
    },
    rest(channel, index, { reason, restMs, detail, model, untilUpstream = false }, nowMs) {
      const account = accountOf(channel, index);
      if (account === "") return false;
      sweep(rests, nowMs);
      let own = rests.get(account);
      if (!own) rests.set(account, (own = { whole: undefined, models: new Map() }));
      const name = model === undefined ? "" : upstreamModel(channel, model);
      const before = model === undefined ? own.whole : own.models.get(name);
      const rest = restAfter(before, { reason, restMs, detail, untilUpstream }, channel.id, nowMs);
      if (model === undefined) own.whole = rest;
      else restModel(own.models, name, rest);
      if (channel.keys.length < 2) return false;
      return channel.keys.some((_, at) => isOn(channel, at) && restsUntil(channel, at, name) <= nowMs);
    },
    areAllRejected(channel) {
      if (channel.keys.length < 2) return true;
      return channel.keyRows.every(
        ({ account }, at) => !isOn(channel, at) || rests.get(account)?.whole?.reason === "rejected",
      );
    },
    fitAtMs(channel, model, nowMs) {
      const name = upstreamModel(channel, model);
      let soonestMs = Infinity;
      for (let index = 0; index < channel.keys.length && soonestMs > nowMs; index++)
        if (isOn(channel, index)) soonestMs = Math.min(soonestMs, restsUntil(channel, index, name));
      return soonestMs > nowMs ? soonestMs : 0;
    },
    wake(channel, index, model) {
      const account = accountOf(channel, index);
      const own = rests.get(account);
      if (!own) return;
      own.whole = undefined;
      own.models.delete(upstreamModel(channel, model));
      if (own.models.size === 0) rests.delete(account);
    },
    wakeWhole(channel, index) {
      rests.delete(accountOf(channel, index));
    },
    restOf(channel, index, model, nowMs) {
      const own = rests.size === 0 ? undefined : rests.get(accountOf(channel, index));
      if (!own) return undefined;
      if (untilOf(channel, own.whole) > nowMs) return own.whole;
      const rest = own.models.get(upstreamModel(channel, model));
      return untilOf(channel, rest) > nowMs ? rest : undefined;
    },
    states(channel) {
      return channel.keyRows.map(({ account }, index) => stateOf(rests.get(account), index));
    },
  };
}

/** What rests after one more failure: doubled where the upstream names no time and nothing succeeded since the last. */
function restAfter(
  before: TakenRest | undefined,
  { reason, restMs, detail, untilUpstream = false }: Omit<NewRest, "model">,
  channelId: number,
  nowMs: number,
): TakenRest {
  const isAsked = untilUpstream && reason === "limited";
  const isKnown = before !== undefined && before.restsUntilMs > nowMs;
  // Calls that were under way when it began to rest say nothing new.
  if (isKnown)
    return {
      restsUntilMs: Math.max(before.restsUntilMs, nowMs + restMs),
      restMs: before.restMs,
      reason,
      detail,
      channelId,
      isAsked: isAsked || before.isAsked,
    };
  const isRepeated = !untilUpstream && before?.reason === reason && reason === "limited";
  const ms = isRepeated ? Math.min(Math.max(2 * before.restMs, restMs), LONGEST_DOUBLED_MS) : restMs;
  return { restsUntilMs: nowMs + ms, restMs: ms, reason, detail, channelId, isAsked };
}

function stateOf(rests: Rests | undefined, index: number): KeyState {
  const { whole, models } = rests ?? NO_RESTS;
  const { restsUntilMs = 0, reason = "", detail = "" } = whole ?? {};
  return { index, restsUntilMs, reason, detail, models };
}

function isOn(channel: Channel, index: number): boolean {
  return channel.areAllOn || channel.keyRows[index]?.status === KeyStatus.on;
}

function accountOf(channel: Channel, index: number): string {
  return channel.keyRows[index]?.account ?? "";
}

const keyAt = (channel: Channel, index: number): ChosenKey => ({ key: channel.keys[index] ?? "", index });

/** A channel's only key is judged by the channel's own health, but for what other channels met with it. */
function untilOf({ id, keys }: Channel, rest: TakenRest | undefined): number {
  if (!rest || (keys.length < 2 && rest.channelId === id && rest.reason !== "by_hand")) return 0;
  return rest.restsUntilMs;
}

/** Places of the keys by falling weight for this value: one that drops out moves only those that were its own. */
function rendezvous({ keyRows }: Channel, sticky: string): number[] {
  return keyRows
    .map(({ hash }, index) => ({ index, weight: Bun.hash.wyhash(`${sticky} ${hash}`) }))
    .sort((a, b) => (a.weight < b.weight ? 1 : a.weight > b.weight ? -1 : 0))
    .map(({ index }) => index);
}

function restModel(models: Map<string, TakenRest>, name: string, rest: TakenRest): void {
  const [oldest] = models.keys();
  if (models.size >= MAX_MODELS && oldest !== undefined) models.delete(oldest);
  models.set(name, rest);
}

/** Accounts that nobody meets any more leave nothing behind. */
function sweep(rests: Map<string, Rests>, nowMs: number): void {
  for (const [account, { whole, models }] of rests) {
    for (const [name, rest] of models) if (rest.restsUntilMs + FORGET_MS < nowMs) models.delete(name);
    if (models.size === 0 && (whole?.restsUntilMs ?? 0) + FORGET_MS < nowMs) rests.delete(account);
  }
}
