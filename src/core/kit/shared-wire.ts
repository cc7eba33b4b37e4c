// How a process asks and tells about limits that all processes keep together (shared-scripts.ts): numbers in their order, under
// which name it is known, and what it was given in advance (shared-blocks.ts). Refuses to wait: no answer is `undefined`, as is one of
// a server that was emptied a moment ago; a word that was lost is the teller's to repeat, and so is all that is open once the
// server has forgotten this process.
import { randomBytes } from "node:crypto";
import type { Valkey } from "../../db/valkey.ts";
import type { Clock } from "../deps.ts";
import { lookEvery } from "../../db/look-around.ts";
import { createSharedBlocks } from "./shared-blocks.ts";
import type { BlockQuestion, SharedBlocks } from "./shared-blocks.ts";
import { ASK, LEAVE, NEWNESS, PROCESSES, SHARED_REFUSALS, TELL, UNSETTLED_MS } from "./shared-scripts.ts";
import type { AskedOwner, ToldOwner } from "./shared-scripts.ts";

/** What asks: a call that begins, one that wants more units, or a request that counts whatever the limits say. */
const MODES = { more: 0, begin: 1, count: 2 } as const;

/** What is taken of each owner: units, the fewest that serve, tokens. */
interface SharedAmounts {
  units: number;
  least: number;
  tokens: number;
}

/** `moment`: of the server, by which a request can be taken back. `place`: of the owner that refuses. `waitMs` 0: no saying. */
export type WireAnswer =
  | { kind: "granted"; units: number; moment: number }
  | { kind: "refused"; place: number; why: (typeof SHARED_REFUSALS)[number]; waitMs: number };

/** Within this time after the server is asked again all processes have told it what they have open. */
export const SETTLE_MS = 3000;

type MaybeAnswer = WireAnswer | undefined;

export interface SharedWire {
  /** It is asked. */
  isUp(): boolean;
  /** It is asked for so long that it knows what all processes have open. */
  isSettled(): boolean;
  /** The server may know nothing of what is open here, since the last time that this was asked. */
  wasForgotten(): boolean;
  /** Called as soon as the server has said that it knows nothing of this process. */
  tellAgainBy(tell: () => void): void;
  /** At once where all of it was given in advance. */
  ask(
    mode: keyof typeof MODES,
    owners: readonly AskedOwner[],
    amounts: SharedAmounts,
  ): Promise<MaybeAnswer> | MaybeAnswer;
  /** Nobody waits; `missed`: it was not heard. */
  tell(owners: readonly ToldOwner[], missed: () => void): void;
  /** Gives back what it has in advance, and counts among the processes no more. */
  close(): void;
}

function askedArgs(owners: readonly AskedOwner[]): number[] {
  return owners.flatMap((each) => [
    each.windowMs,
    each.maxRequests,
    each.maxSuccesses,
    each.maxTokens,
    each.maxCalls,
    each.budget,
    each.calls,
    each.held,
    each.tokens,
    each.wantedTokens,
    each.period,
    each.periodEnd,
    each.spent,
    each.isFresh ? 1 : 0,
    each.block,
  ]);
}

function toldArgs(owners: readonly ToldOwner[]): number[] {
  return owners.flatMap((each) => [
    each.windowMs,
    each.successes,
    each.maxSuccesses,
    each.tokensUsed,
    each.units,
    each.calls,
    each.held,
    each.tokens,
    each.undoneMoment,
    each.undone,
    each.maxRequests,
    each.isBlockOver ? 1 : 0,
  ]);
}

function readAnswer(answer: readonly number[]): WireAnswer {
  const [place = 0, second = 0, third = 0] = answer;
  if (place === 0) return { kind: "granted", units: second, moment: third };
  return { kind: "refused", place: place - 1, why: SHARED_REFUSALS[second - 1] ?? "calls", waitMs: third };
}

const LOOK_MS = 500;

export function createSharedWire(valkey: Valkey, clock: Pick<Clock, "monotonicMs">): SharedWire {
  return new Wire(valkey, clock);
}

class Wire implements SharedWire {
  /** Another one with each start: places of a process that was killed are not taken for its successor's. */
  readonly #self = randomBytes(8).toString("base64url");
  readonly #blocks: SharedBlocks;
  readonly #ends: (() => void)[] = [];
  #isForgotten = false;
  /** What was on its way when the server fell may have been the word that it had forgotten this process. */
  #seenUpMs = -Infinity;
  /** Others may not have told an emptied server yet what they have open. */
  #unsettledMs = -Infinity;
  #tellAgain: () => void = () => undefined;

  constructor(
    private readonly valkey: Valkey,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {
    this.#blocks = createSharedBlocks({
      clock,
      upSinceMs: () => (valkey.isUp() ? valkey.upSinceMs() : undefined),
      send: (owners, missed) => this.#send(owners, missed),
    });
    this.#ends.push(
      lookEvery(LOOK_MS, () => this.#blocks.look(false)),
      valkey.subscribe(
        PROCESSES,
        () => this.#heard(NEWNESS.emptied),
        () => undefined,
      ),
    );
    // The first process of a site finds its server empty: that is over before it has calls.
    this.#send([], () => undefined);
  }

  isUp(): boolean {
    return this.valkey.isUp();
  }

  isSettled(): boolean {
    const nowMs = this.clock.monotonicMs();
    return this.isUp() && nowMs >= this.#unsettledMs && nowMs - this.valkey.upSinceMs() >= SETTLE_MS;
  }

  wasForgotten(): boolean {
    const was = this.#isForgotten || this.#seenUpMs !== this.valkey.upSinceMs();
    this.#seenUpMs = this.valkey.upSinceMs();
    this.#isForgotten = false;
    return was;
  }

  tellAgainBy(tell: () => void): void {
    this.#tellAgain = tell;
  }

  ask(
    mode: keyof typeof MODES,
    owners: readonly AskedOwner[],
    amounts: SharedAmounts,
  ): Promise<MaybeAnswer> | MaybeAnswer {
    return this.#ask(mode, owners, { ...amounts, hasWaited: false });
  }

  /** Whoever comes while some are on their way in advance waits for them, once. */
  #ask(
    mode: keyof typeof MODES,
    owners: readonly AskedOwner[],
    amounts: SharedAmounts & { hasWaited: boolean },
  ): Promise<MaybeAnswer> | MaybeAnswer {
    const begins = mode === "begin";
    const blocks = this.#blocks;
    const isKnown = mode !== "count" && this.isUp();
    const rest = isKnown ? owners.filter((owner) => !blocks.take(owner, begins, amounts)) : owners;
    const [first] = owners;
    if (rest.length === 0 && first)
      return { kind: "granted", units: amounts.units, moment: blocks.momentOf(first) };
    const pending = isKnown && !amounts.hasWaited ? blocks.pendingOf(rest) : undefined;
    const late = { ...amounts, hasWaited: true };
    const found = pending
      ? pending.then((isAnswered) => (isAnswered ? this.#ask(mode, rest, late) : undefined))
      : this.#askNow(mode, amounts.hasWaited ? rest.map((owner) => blocks.renewed(owner)) : rest, amounts);
    return found?.then((answer) => {
      const refuser = answer?.kind === "refused" ? rest[answer.place] : undefined;
      // Who has no answer may begin all the same.
      if (answer?.kind !== "refused" || !refuser) return answer;
      // What the rate of the site has counted was a request, whoever refuses the call after it.
      for (const owner of owners)
        if (begins && !rest.includes(owner) && owner.maxSuccesses === 0) blocks.giveBack(owner);
      return { ...answer, place: owners.indexOf(refuser) };
    });
  }

  #askNow(
    mode: keyof typeof MODES,
    owners: readonly AskedOwner[],
    amounts: SharedAmounts,
  ): Promise<MaybeAnswer> | undefined {
    const asked = mode === "count" ? undefined : this.#blocks.question(owners, mode === "begin", amounts);
    const found = this.#question(mode, asked?.owners ?? owners, amounts, asked);
    if (!found) asked?.answered(undefined);
    return found?.then((answer) => this.#readFor(asked, answer));
  }

  #question(
    mode: keyof typeof MODES,
    owners: readonly AskedOwner[],
    { units, least, tokens }: SharedAmounts,
    asked: BlockQuestion | undefined,
  ): Promise<number[] | undefined> | undefined {
    const words = [this.#self, MODES[mode], units, least, tokens, ...askedArgs(owners)];
    return this.valkey.run<number[]>(ASK, keysOf(owners), words, (late) => {
      const [place, , moment = 0] = late;
      if (place === 0) asked?.late(moment, late.slice(4));
      this.#heard(late[3]);
    });
  }

  #readFor(asked: BlockQuestion | undefined, answer: number[] | undefined): MaybeAnswer {
    this.#heard(answer?.[3]);
    const read = answer && readAnswer(answer);
    if (!answer || !read) asked?.answered(undefined);
    else if (read.kind === "refused") asked?.answered("refused");
    else asked?.answered({ units: read.units, moment: read.moment, given: answer.slice(4) });
    // Nobody knows yet what the others have open; a refusal is true all the same.
    const isDoubtful = read?.kind === "granted" && this.clock.monotonicMs() < this.#unsettledMs;
    if (!isDoubtful) return read;
    this.valkey.disbelieve();
    return undefined;
  }

  tell(owners: readonly ToldOwner[], missed: () => void): void {
    const now = owners.filter((owner) => !this.#blocks.keep(owner, missed));
    if (now.length > 0 || owners.length === 0) this.#send(now, missed);
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#blocks.look(true);
    void this.valkey.run(LEAVE, [PROCESSES], [this.#self]);
  }

  #send(owners: readonly ToldOwner[], missed: () => void): void {
    const told = this.valkey.run<number>(TELL, keysOf(owners), [this.#self, ...toldArgs(owners)], (late) =>
      this.#heard(late),
    );
    if (!told) return missed();
    void told.then((answer) => {
      this.#heard(answer);
      if (answer === undefined) missed();
    });
  }

  #heard(newness: number | undefined): void {
    if (!newness) return;
    this.#isForgotten = true;
    if (newness === NEWNESS.emptied) this.#unsettledMs = this.clock.monotonicMs() + UNSETTLED_MS;
    this.#blocks.forget();
    this.#tellAgain();
  }
}

const keysOf = (owners: readonly { key: string }[]): string[] => [PROCESSES, ...owners.map(({ key }) => key)];
