// Which keys rest, each for itself, or for one model where only that was too much for it. What is durable of a key (on, off)
// stands in its row; rests are of this node and of this run. A rest belongs to the account: equal keys of two channels for one
// origin share it.
import { upstreamModel } from "./rows.ts";
import type { Channel } from "./rows.ts";
import { atMostEachMinute } from "./tidying.ts";

/** "down": a model fails with this key (key-cells.ts). */
type RestReason = "rejected" | "limited" | "by_hand" | "down";

/** A rest that is going on, or is over. */
export interface KeyRest {
  /** On the steady clock. */
  restsUntilMs: number;
  reason: RestReason | "";
  /** What the upstream said, scrubbed. */
  detail: string;
}

export interface TakenRest extends KeyRest {
  /** When it was found to be needed (steady clock): the answer of a call that began before says nothing of it. */
  sinceMs: number;
  /** By hand until then (steady clock), whatever is answered; 0: nobody did. */
  heldUntilMs: number;
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

export interface NewRest {
  reason: RestReason;
  /** Absent: `restMs` is a first rest, doubled as long as nothing succeeds. */
  untilUpstream?: boolean;
  restMs: number;
  detail: string;
  /** When the call began that failed (steady clock); absent: now. */
  beganMs?: number | undefined;
  /** As requested; absent: the key rests for all of them. */
  model?: string;
}

/** Models are those of requests; "" for what is asked without one. */
export interface KeyRests {
  /** Nothing rests anywhere, or did lately: nobody need be asked about. */
  isCalm(nowMs: number): boolean;
  /** Of the key's rests the one that ends last, over or not; `name` is the model's at the upstream. */
  latest(channel: Channel, index: number, name: string): TakenRest | undefined;
  /** Puts one key to rest. */
  take(channel: Channel, index: number, rest: NewRest, nowMs: number): void;
  /** The provider rejected this key. */
  isRejected(channel: Channel, index: number): boolean;
  /**
   * A key that answered a call that began then (steady clock) needs no more rest, for this model or for all; what began later
   * stays, and what was taken by hand until its time.
   */
  wake(channel: Channel, index: number, model: string, beganMs: number): void;
  /** A key that was switched on, or is let go on by hand: nothing of its rests is left. */
  wakeWhole(channel: Channel, index: number): void;
  /** Why the key rests for the model now; undefined where it does not. */
  restOf(channel: Channel, index: number, model: string, nowMs: number): KeyRest | undefined;
  /** Every key of the channel. */
  states(channel: Channel): KeyState[];
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

export function createKeyRests(): KeyRests {
  const rests = new Map<string, Rests>();
  const tidy = atMostEachMinute((nowMs) => sweep(rests, nowMs));
  return {
    isCalm(nowMs) {
      if (rests.size > 0) tidy(nowMs);
      return rests.size === 0;
    },
    latest(channel, index, name) {
      const own = rests.size === 0 ? undefined : rests.get(accountOf(channel, index));
      if (!own) return undefined;
      const ofModel = own.models.get(name);
      return untilOf(channel, ofModel) > untilOf(channel, own.whole) ? ofModel : own.whole;
    },
    take(channel, index, { model, ...failure }, nowMs) {
      const account = accountOf(channel, index);
      if (account === "") return;
      sweep(rests, nowMs);
      let own = rests.get(account);
      if (!own) rests.set(account, (own = { whole: undefined, models: new Map() }));
      const name = model === undefined ? "" : upstreamModel(channel, model);
      const before = model === undefined ? own.whole : own.models.get(name);
      const rest = restAfter(before, failure, channel.id, nowMs);
      if (model === undefined) own.whole = rest;
      else restModel(own.models, name, rest);
    },
    isRejected: (channel, index) => rests.get(accountOf(channel, index))?.whole?.reason === "rejected",
    wake(channel, index, model, beganMs) {
      const account = accountOf(channel, index);
      const own = rests.get(account);
      if (!own) return;
      own.whole = restLeft(own.whole, beganMs);
      const name = upstreamModel(channel, model);
      if (!restLeft(own.models.get(name), beganMs)) own.models.delete(name);
      if (!own.whole && own.models.size === 0) rests.delete(account);
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
  { reason, restMs, detail, untilUpstream = false, beganMs = Infinity }: Omit<NewRest, "model">,
  channelId: number,
  nowMs: number,
): TakenRest {
  const isAsked = untilUpstream && reason === "limited";
  if (before && isOld(before, reason, beganMs)) {
    const untilMs = nowMs + restMs;
    // Only the time that its upstream asks for is news. Since when it rests stays: a call that tried it later knows more.
    return isAsked && untilMs > before.restsUntilMs
      ? { ...before, reason, detail, restsUntilMs: untilMs, isAsked }
      : before;
  }
  const isKnown = before !== undefined && before.restsUntilMs > nowMs;
  // Calls that were under way when it began to rest say nothing new.
  if (isKnown) {
    const isHeldLonger = before.heldUntilMs >= nowMs + restMs;
    return {
      restsUntilMs: Math.max(before.restsUntilMs, nowMs + restMs),
      restMs: before.restMs,
      ...(isHeldLonger ? byHand(before.heldUntilMs) : { reason, detail, heldUntilMs: before.heldUntilMs }),
      sinceMs: nowMs,
      channelId,
      isAsked: isAsked || before.isAsked,
    };
  }
  const isRepeated = !untilUpstream && before?.reason === reason && reason === "limited";
  const ms = isRepeated ? Math.min(Math.max(2 * before.restMs, restMs), LONGEST_DOUBLED_MS) : restMs;
  const heldUntilMs = reason === "by_hand" ? nowMs + ms : 0;
  return {
    restsUntilMs: nowMs + ms,
    restMs: ms,
    reason,
    detail,
    channelId,
    isAsked,
    sinceMs: nowMs,
    heldUntilMs,
  };
}

/** A call that began before the rest met the same, or what its rest has covered; that a key is rejected is news. */
function isOld(before: TakenRest, reason: RestReason, beganMs: number): boolean {
  return before.sinceMs > beganMs && (reason === "limited" || reason === before.reason);
}

const byHand = (heldUntilMs: number) => ({ reason: "by_hand", detail: "", heldUntilMs }) as const;

/** What stays of a rest when a call was answered that began then. */
function restLeft(rest: TakenRest | undefined, beganMs: number): TakenRest | undefined {
  if (!rest || rest.sinceMs > beganMs) return rest;
  const { heldUntilMs } = rest;
  return heldUntilMs > beganMs
    ? { ...rest, ...byHand(heldUntilMs), restsUntilMs: heldUntilMs, isAsked: false }
    : undefined;
}

function stateOf(rests: Rests | undefined, index: number): KeyState {
  const { whole, models } = rests ?? NO_RESTS;
  const { restsUntilMs = 0, reason = "", detail = "" } = whole ?? {};
  return { index, restsUntilMs, reason, detail, models };
}

function accountOf(channel: Channel, index: number): string {
  return channel.keyRows[index]?.account ?? "";
}

/** A channel's only key is judged by the channel's own health, but for what other channels met with it. */
export function untilOf({ id, keys }: Channel, rest: TakenRest | undefined): number {
  if (!rest || (keys.length < 2 && rest.channelId === id && rest.reason !== "by_hand")) return 0;
  return rest.restsUntilMs;
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
