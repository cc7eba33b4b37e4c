// Calls that this process may let in without a question: far from the edge of a limit the server gives some in advance and counts
// them as taken until it is told what became of them, so that no limit is passed. Most calls of a busy key then ask nobody.
// Refuses to be used past a second, beyond what was given, under limits that have changed since, or once the server has fallen.
import type { Clock } from "../deps.ts";
import { BLOCK_MS, NO_TOLD } from "./shared-scripts.ts";
import type { AskedOwner, ToldOwner } from "./shared-scripts.ts";

/** Whoever asks twice in this time is given some in advance, and twice as many each time that they are used up. */
const SOON_MS = 2000;
const [FEWEST, MOST] = [8, 64];
/** Whoever was given none does not ask for any again so soon: near an edge each call asks for itself. */
const NONE_MS = 500;
/** Owners that are remembered; who asks no more makes room. */
const MOST_OWNERS = 10_000;
/** So many owners in one word at the most. */
const MOST_TOLD = 200;

/** Open calls, the units that they hold, and their tokens. */
interface Figures {
  calls: number;
  held: number;
  tokens: number;
}

/** What one call takes. */
interface CallAmounts {
  units: number;
  tokens: number;
}

/** Given in advance: so many calls, all of them together. */
interface Block extends Figures {
  /** As it asked: other limits make it void. */
  of: AskedOwner;
  /** What of it has not been used: calls, their units and tokens. */
  left: number;
  unitsLeft: number;
  tokensLeft: number;
  /** Of the server; their requests count with it. */
  moment: number;
  untilMs: number;
  upSinceMs: number;
}

interface OwnerState {
  askedMs: number;
  noneUntilMs: number;
  /** How many are asked for. */
  size: number;
  /** Whoever comes while some are asked for waits for them; resolves to false where there was no answer. */
  pending: Promise<boolean> | undefined;
  /** What the server has on record without the block, as far as it has answered; what is asked after it may stand, or not. */
  base: Figures;
  asked: Figures[];
  /** As it stands here. */
  now: Figures;
  block: Block | undefined;
  /** What is still to be told: only its sums count. */
  kept: ToldOwner | undefined;
  missed: (() => void)[];
}

/** An answer, as far as blocks go: `given` by the places of the owners. */
interface BlockAnswer {
  units: number;
  moment: number;
  given: readonly number[];
}

/** A question that is about to be sent. */
export interface BlockQuestion {
  owners: AskedOwner[];
  /** Undefined: there was no answer. */
  answered(answer: BlockAnswer | "refused" | undefined): void;
  /** The answer came after that: what it gave goes back. */
  late(moment: number, given: readonly number[]): void;
}

export interface SharedBlocks {
  /** It is one of those given in advance; of a call that goes on (`begins` false) its amounts are. */
  take(owner: AskedOwner, begins: boolean, amounts: CallAmounts): boolean;
  /** It was taken, and the call did not begin. */
  giveBack(owner: AskedOwner): void;
  /** Of the server: what was taken counts with it; 0: it is not known. */
  momentOf(owner: AskedOwner): number;
  /** Some in advance are on their way for one of these: try again then; false: there was no answer. */
  pendingOf(owners: readonly AskedOwner[]): Promise<boolean> | undefined;
  /** Who waited, with the figures that stand by now: others were asked about meanwhile. */
  renewed(owner: AskedOwner): AskedOwner;
  question(owners: readonly AskedOwner[], begins: boolean, amounts: CallAmounts): BlockQuestion;
  /** True: it is told later, with others. */
  keep(owner: ToldOwner, missed: () => void): boolean;
  /** The server knows nothing of what it gave. */
  forget(): void;
  /** Tells of what is over; of all where it is the end. */
  look(isEnd: boolean): void;
}

interface BlockDeps {
  clock: Pick<Clock, "monotonicMs">;
  /** On the steady clock: since when the server is asked; undefined: it is away. */
  upSinceMs: () => number | undefined;
  send: (owners: readonly ToldOwner[], missed: () => void) => void;
}

const NO_ANSWER = { units: 0, moment: 0, lefts: [] as readonly number[] };
const NONE: Figures = { calls: 0, held: 0, tokens: 0 };

const isSameLimit = (one: AskedOwner, other: AskedOwner): boolean =>
  one.maxRequests === other.maxRequests &&
  one.maxSuccesses === other.maxSuccesses &&
  one.maxTokens === other.maxTokens &&
  one.maxCalls === other.maxCalls &&
  one.budget === other.budget &&
  one.windowMs === other.windowMs &&
  one.period === other.period &&
  one.periodEnd === other.periodEnd;

/** As it stands with one call more. */
const withCall = (owner: AskedOwner, begins: boolean, { units, tokens }: CallAmounts): Figures => ({
  calls: owner.calls + (begins ? 1 : 0),
  held: owner.held + units,
  tokens: owner.tokens + tokens,
});

const lesser = (one: Figures, other: Figures): Figures => ({
  calls: Math.min(one.calls, other.calls),
  held: Math.min(one.held, other.held),
  tokens: Math.min(one.tokens, other.tokens),
});

const greater = (one: Figures, other: Figures): Figures => ({
  calls: Math.max(one.calls, other.calls),
  held: Math.max(one.held, other.held),
  tokens: Math.max(one.tokens, other.tokens),
});

/** What was given bears these figures, and what has ended without being told beside them. */
function bears(
  { block, base: answered, asked, kept }: OwnerState,
  owner: AskedOwner,
  { calls, held, tokens }: Figures,
): boolean {
  if (!block) return false;
  const base = asked.length === 0 ? answered : asked.reduce(lesser, answered);
  const { maxSuccesses, maxCalls, maxTokens, budget } = owner;
  if (maxCalls + maxSuccesses > 0 && calls + (kept?.successes ?? 0) > base.calls + block.calls) return false;
  if (budget > 0 && held + (kept?.units ?? 0) > base.held + block.held) return false;
  return maxTokens === 0 || tokens + (kept?.tokensUsed ?? 0) <= base.tokens + block.tokens;
}

const newState = (): OwnerState => ({
  askedMs: -Infinity,
  noneUntilMs: -Infinity,
  size: 0,
  pending: undefined,
  base: NONE,
  asked: [],
  now: NONE,
  block: undefined,
  kept: undefined,
  missed: [],
});

/** Ends the block; what has to be told of it. */
function wordOf(key: string, state: OwnerState): ToldOwner {
  const { block, kept, now } = state;
  const left = block?.left ?? 0;
  state.block = state.kept = undefined;
  return {
    ...(kept ?? NO_TOLD),
    ...now,
    key,
    windowMs: block?.of.windowMs ?? kept?.windowMs ?? 0,
    isBlockOver: true,
    ...(block && block.of.maxRequests > 0 && left > 0
      ? { undoneMoment: block.moment, undone: left, maxRequests: block.of.maxRequests }
      : {}),
  };
}

/** Whatever was asked before, this is what the server has. */
function told(state: OwnerState): void {
  state.base = state.now;
  state.asked = [];
}

interface HeardAnswer {
  /** It was asked with these, and has these by now; `isKnown`: it answered. */
  figures: Figures;
  granted: Figures | undefined;
  isKnown: boolean;
}

/** Answers come in the order of their questions; one that was overtaken by a word says nothing. */
function heard(state: OwnerState, { figures, granted, isKnown }: HeardAnswer): void {
  const at = state.asked.indexOf(figures);
  if (at < 0) return;
  state.asked.splice(at, 1);
  if (granted) state.base = granted;
  else if (!isKnown) state.base = lesser(state.base, figures);
}

export function createSharedBlocks(deps: BlockDeps): SharedBlocks {
  return new Blocks(deps);
}

class Blocks implements SharedBlocks {
  readonly #states = new Map<string, OwnerState>();
  /** Those that have a block. */
  readonly #live = new Map<string, OwnerState>();
  /** Owners of which a block that nobody has here may stand there: its answer, or the word of its end, was not heard. */
  readonly #behind = new Set<string>();
  /** Of what the server knows: it may have been emptied. */
  #epoch = 0;

  constructor(private readonly deps: BlockDeps) {}

  take(owner: AskedOwner, begins: boolean, { units, tokens }: CallAmounts): boolean {
    const state = this.#states.get(owner.key);
    const block = state?.block;
    if (!state || !block || !this.#isLive(state) || !isSameLimit(block.of, owner)) return false;
    if (begins && block.left < 1) return false;
    if (owner.budget > 0 && units > block.unitsLeft) return false;
    if (owner.maxTokens > 0 && Math.max(tokens, owner.wantedTokens) > block.tokensLeft) return false;
    state.now = greater(state.now, withCall(owner, begins, { units, tokens }));
    if (begins) block.left -= 1;
    block.unitsLeft -= units;
    block.tokensLeft -= tokens;
    return true;
  }

  giveBack({ key }: AskedOwner): void {
    const block = this.#states.get(key)?.block;
    if (block) block.left += 1;
  }

  momentOf({ key }: AskedOwner): number {
    return this.#states.get(key)?.block?.moment ?? 0;
  }

  pendingOf(owners: readonly AskedOwner[]): Promise<boolean> | undefined {
    for (const { key } of owners) {
      const pending = this.#states.get(key)?.pending;
      if (pending) return pending;
    }
    return undefined;
  }

  renewed(owner: AskedOwner): AskedOwner {
    const now = this.#states.get(owner.key)?.now ?? NONE;
    const { calls, held, tokens } = owner;
    return { ...owner, ...greater({ calls, held, tokens }, now) };
  }

  question(owners: readonly AskedOwner[], begins: boolean, amounts: CallAmounts): BlockQuestion {
    const { clock, upSinceMs } = this.deps;
    const given = { untilMs: clock.monotonicMs() + BLOCK_MS, upSinceMs: upSinceMs() ?? -Infinity };
    const epoch = this.#epoch;
    const states = owners.map(({ key }) => this.#stateOf(key));
    const wanted = states.map((state) => (begins ? this.#wantedOf(state) : 0));
    this.#end(owners.flatMap(({ key }, at) => (states[at]?.block ? [[key, states[at]]] : [])));
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const asking = owners.map((owner, at) => {
      const state = states[at] ?? newState();
      state.now = withCall(owner, begins, amounts);
      state.asked.push(state.now);
      if (wanted[at]) state.pending = promise;
      return { owner, state, figures: state.now };
    });
    return {
      owners: owners.map((owner, at) => (wanted[at] ? { ...owner, block: wanted[at] } : owner)),
      answered: (answer) => {
        const { units, moment, lefts } =
          answer === undefined || answer === "refused" ? NO_ANSWER : { ...answer, lefts: answer.given };
        for (const [at, { owner, state, figures }] of asking.entries()) {
          const granted = moment > 0 ? withCall(owner, begins, { ...amounts, units }) : undefined;
          heard(state, { figures, granted, isKnown: answer !== undefined });
          if (!wanted[at]) continue;
          if (answer === undefined && given.upSinceMs > -Infinity) this.#behind.add(owner.key);
          const left = lefts[at] ?? 0;
          const all = { calls: left, held: left * units, tokens: left * amounts.tokens };
          const unused = { left, unitsLeft: all.held, tokensLeft: all.tokens };
          const block: Block = { ...given, ...all, ...unused, of: owner, moment: moment + BLOCK_MS };
          this.#give(state, block, epoch !== this.#epoch || given.upSinceMs !== upSinceMs());
        }
        resolve(answer !== undefined);
      },
      late: (moment, lefts) => {
        // The requests in it; the block itself goes with what is left behind.
        const words = asking.flatMap(({ owner: { key, windowMs, maxRequests }, state }, at): ToldOwner[] => {
          const undone = wanted[at] ? (lefts[at] ?? 0) : 0;
          if (undone === 0 || maxRequests === 0) return [];
          told(state);
          const of = { undoneMoment: moment + BLOCK_MS, undone, maxRequests };
          return [{ ...NO_TOLD, ...state.now, key, windowMs, ...of }];
        });
        this.#sendOver(words);
      },
    };
  }

  keep(owner: ToldOwner, missed: () => void): boolean {
    const { key, calls, held, tokens } = owner;
    const state = this.#states.get(key);
    if (!state) return false;
    const { block } = state;
    state.now = { calls, held, tokens };
    if (!block) {
      told(state);
      return false;
    }
    block.left += owner.undone;
    const { kept } = state;
    state.kept = {
      ...owner,
      undone: 0,
      undoneMoment: 0,
      successes: owner.successes + (kept?.successes ?? 0),
      maxSuccesses: owner.maxSuccesses || (kept?.maxSuccesses ?? 0),
      tokensUsed: owner.tokensUsed + (kept?.tokensUsed ?? 0),
      units: owner.units + (kept?.units ?? 0),
    };
    // Whoever tells of it hears of all that was lost by one word.
    if (state.missed.length === 0) state.missed.push(missed);
    if (!this.#isLive(state) || !bears(state, block.of, state.now)) this.#end([[key, state]]);
    return true;
  }

  forget(): void {
    this.#epoch += 1;
    // The requests in it are gone with the rest.
    for (const { block } of this.#live.values()) if (block) block.left = 0;
    this.#endAll([...this.#live]);
  }

  look(isEnd: boolean): void {
    const ended = [...this.#live].filter(([, state]) => isEnd || !this.#isLive(state));
    for (const [, state] of ended)
      if (state.block && state.block.left * 2 > state.block.calls)
        state.size = Math.max(FEWEST, Math.floor(state.size / 2));
    this.#endAll(ended);
    if (this.deps.upSinceMs() === undefined) return;
    const behind = [...this.#behind].flatMap((key) => this.#behindOf(key) ?? []);
    for (let at = 0; at < behind.length; at += MOST_TOLD) this.#sendOver(behind.slice(at, at + MOST_TOLD));
  }

  #isLive({ block }: OwnerState): boolean {
    const { clock, upSinceMs } = this.deps;
    return block !== undefined && clock.monotonicMs() < block.untilMs && block.upSinceMs === upSinceMs();
  }

  #stateOf(key: string): OwnerState {
    const states = this.#states;
    let state = states.get(key);
    if (state) return state;
    if (states.size >= MOST_OWNERS)
      for (const [other, { block, pending }] of states) if (!block && !pending) states.delete(other);
    states.set(key, (state = newState()));
    return state;
  }

  #endAll(ended: readonly [string, OwnerState][]): void {
    for (let at = 0; at < ended.length; at += MOST_TOLD) this.#end(ended.slice(at, at + MOST_TOLD));
  }

  /** What was given and not heard of; nobody's figures here change by it. */
  #sendOver(words: readonly ToldOwner[]): void {
    if (words.length > 0)
      this.deps.send(words, () => {
        for (const { key, isBlockOver } of words) {
          const state = this.#states.get(key);
          if (state) state.base = NONE;
          if (isBlockOver) this.#behind.add(key);
        }
      });
  }

  /** Of what is left behind; undefined: of nothing, or some are asked for again and may stand in its place. */
  #behindOf(key: string): ToldOwner | undefined {
    const state = this.#states.get(key);
    if (state?.block || state?.pending || !this.#behind.delete(key) || !state) return undefined;
    told(state);
    return { ...NO_TOLD, ...state.now, key, windowMs: 0, isBlockOver: true };
  }

  /** One word for all of them. */
  #end(ended: readonly [string, OwnerState][]): void {
    if (ended.length === 0) return;
    const missed = ended.flatMap(([, state]) => state.missed);
    const words = ended.map(([key, state]) => wordOf(key, state));
    for (const [key, state] of ended) {
      this.#live.delete(key);
      state.missed = [];
      told(state);
    }
    this.deps.send(words, () => {
      for (const [, state] of ended) state.base = NONE;
      for (const [key] of ended) this.#behind.add(key);
      missed.forEach((each) => each());
    });
  }

  /** How many more are asked for. */
  #wantedOf(state: OwnerState): number {
    const nowMs = this.deps.clock.monotonicMs();
    const isSoon = nowMs - state.askedMs < SOON_MS;
    state.askedMs = nowMs;
    if (state.pending || !isSoon || nowMs < state.noneUntilMs) return 0;
    if (state.size === 0) state.size = FEWEST;
    // One that is in force and did not suffice.
    else if (this.#isLive(state)) state.size = Math.min(MOST, state.size * 2);
    return state.size;
  }

  #give(state: OwnerState, block: Block, isVoid: boolean): void {
    state.pending = undefined;
    if (block.left === 0) {
      state.noneUntilMs = this.deps.clock.monotonicMs() + NONE_MS;
      return;
    }
    state.block = block;
    // It stands in the place of what was there.
    this.#behind.delete(block.of.key);
    this.#live.set(block.of.key, state);
    if (isVoid) this.#end([[block.of.key, state]]);
  }
}
