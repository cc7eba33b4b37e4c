// Limits as all processes of a site keep them through its Valkey: one question when a call begins, a word that nobody waits
// for when it ends. Refuses to decide without an answer: what this process knows decides then (lease.ts), and what could not
// be told, or was forgotten, is told again, as whole figures, every two seconds.
import { lookEvery } from "../../db/look-around.ts";
import type { Clock } from "../deps.ts";
import { NO_ASKED, NO_TOLD } from "../kit/shared-scripts.ts";
import type { SharedWire, WireAnswer } from "../kit/shared-wire.ts";
import type { AskedOwner, ToldOwner } from "../kit/shared-scripts.ts";
import { MINUTE_MS } from "./minute.ts";
import type { OwnerUse } from "./owner-use.ts";
import { createSharedRates } from "./shared-rates.ts";
import type { RateClaim, SharedRates } from "./shared-rates.ts";

const BEAT_MS = 2000;
/** So many owners in one word at the most. */
const MOST_TOLD = 200;
/** The server forgets what is open after an hour without a word. */
const AGAIN_MS = 20 * 60_000;
/** A sum of the database that was read within this time is the present one. */
const FRESH_MS = 2000;

/** What a call takes when it begins. */
export interface SharedClaim {
  owners: readonly OwnerUse[];
  rate: RateClaim | undefined;
  /** Units that it holds already, and the fewest that serve it. */
  amount: number;
  least: number;
  /** That it is counted with, and what it has to find room for under a limit. */
  tokens: number;
  wantedTokens: (limit: number) => number;
}

/** `owner` undefined: the rate of the site refuses. */
export type SharedRefused = Pick<Extract<WireAnswer, { kind: "refused" }>, "kind" | "why" | "waitMs"> & {
  owner: OwnerUse | undefined;
};
type SharedAnswer = Extract<WireAnswer, { kind: "granted" }> | SharedRefused;

export interface SharedLimits {
  /** Answers are to be had, and count what all processes have open: what others do need not be guessed. */
  isUp(): boolean;
  /** Undefined: there is no answer. The owners' own figures have the call in them already. At once where nobody had to be asked. */
  ask(claim: SharedClaim): Promise<SharedAnswer | undefined> | SharedAnswer | undefined;
  /** Units of these, held here already, that the budgets leave; undefined: all of them, as nobody had to be asked, or no answer. */
  more(owners: readonly OwnerUse[], units: number, tokens: number): Promise<number | undefined> | undefined;
  /** A call has ended, and was settled with so much. */
  ended(owners: readonly OwnerUse[], used: { tokens: number; units: number }): void;
  /** It never began. */
  undo(owners: readonly OwnerUse[], moment: number): void;
  rateEnded: SharedRates["end"];
  close(): void;
}

interface SharedLimitsDeps {
  wire: SharedWire;
  clock: Clock;
  /** Those that this process knows. */
  all: () => Iterable<OwnerUse>;
  /** The counters of accounts are this process's own: nobody else writes them. */
  isAlone: boolean;
}

const keyOf = ({ kind, account }: OwnerUse): string => `lim:${kind}:${account.id}`;
const figuresOf = ({ calls, held, openTokens }: OwnerUse): string => `${calls} ${held} ${openTokens}`;
/** What is open matters to others only under these. */
const tellsOpen = ({ limits }: OwnerUse): boolean =>
  limits.maxConcurrency > 0 || limits.tpmLimit > 0 || limits.budgetQuota > 0;

function toldOf(owner: OwnerUse, more: Partial<ToldOwner>): ToldOwner {
  const { calls, held, openTokens: tokens } = owner;
  return { ...NO_TOLD, calls, held, tokens, key: keyOf(owner), windowMs: MINUTE_MS, ...more };
}

/** The owner as it stands here, without the call that asks and is counted in it. */
function askedOf(
  { clock, isAlone }: Pick<SharedLimitsDeps, "clock" | "isAlone">,
  owner: OwnerUse,
  { amount, tokens, wantedTokens }: Pick<SharedClaim, "amount" | "tokens" | "wantedTokens">,
): AskedOwner {
  const { limits, period } = owner;
  const { budgetQuota, tpmLimit } = limits;
  const isFresh = isAlone || clock.monotonicMs() - owner.seenMs < FRESH_MS;
  return {
    ...NO_ASKED,
    key: keyOf(owner),
    windowMs: MINUTE_MS,
    maxRequests: limits.rpmLimit,
    maxTokens: tpmLimit,
    maxCalls: limits.maxConcurrency,
    budget: budgetQuota,
    calls: owner.calls - 1,
    held: owner.held - amount,
    tokens: owner.openTokens - tokens,
    wantedTokens: tpmLimit > 0 ? wantedTokens(tpmLimit) : 0,
    ...(budgetQuota > 0 && period
      ? { period: period.start, periodEnd: period.end, spent: owner.spent(), isFresh }
      : {}),
  };
}

export function createSharedLimits(deps: SharedLimitsDeps): SharedLimits {
  const { wire, clock, all } = deps;
  const rates = createSharedRates(wire);

  /** When all was told, whatever was known of it. */
  let againMs = clock.monotonicMs();

  function forget(owners: readonly OwnerUse[]): void {
    for (const each of owners) each.told = "";
  }

  function tell(owners: readonly OwnerUse[], more: (owner: OwnerUse) => Partial<ToldOwner>): void {
    for (const each of owners) each.told = figuresOf(each);
    const told = owners.map((each) => toldOf(each, more(each)));
    wire.tell(told, () => forget(owners));
  }

  /** What stands in the server otherwise than it is here; also a word of nobody says that this process lives. */
  function beat(): void {
    if (!wire.isUp()) return;
    const nowMs = clock.monotonicMs();
    const isAgain = nowMs - againMs > AGAIN_MS;
    if (wire.wasForgotten() || isAgain) {
      againMs = nowMs;
      rates.forget();
      for (const each of all()) if (each.calls > 0) each.told = "";
    }
    let isBusy = rates.repeat(MOST_TOLD);
    const late: OwnerUse[] = [];
    for (const each of all()) {
      if (!tellsOpen(each)) continue;
      if (each.calls > 0) isBusy = true;
      if (each.told !== figuresOf(each)) late.push(each);
    }
    if (isBusy) tell([], () => ({}));
    for (let at = 0; at < late.length; at += MOST_TOLD) tell(late.slice(at, at + MOST_TOLD), () => ({}));
  }

  wire.tellAgainBy(beat);
  const stop = lookEvery(BEAT_MS, beat);

  return {
    isUp: () => wire.isSettled(),
    ask(claim) {
      const { owners, rate, amount: units, least, tokens } = claim;
      // The rate first: whatever refuses the call after it, it was a request.
      const asked = owners.map((each) => askedOf(deps, each, claim));
      if (rate) asked.unshift(rates.asked(rate));
      const found = wire.ask("begin", asked, { units, least, tokens });
      if (!found) return undefined;
      // The next one is asked with this one counted.
      if (rate) rates.begin(rate);
      for (const each of owners) each.told = figuresOf(each);
      if (!(found instanceof Promise)) return found.kind === "granted" ? found : undefined;
      return found.then((answer) => {
        if (answer?.kind === "granted") return answer;
        forget(owners);
        if (!answer) return undefined;
        const { kind, place, why, waitMs } = answer;
        const owner = owners[place - (rate ? 1 : 0)];
        if (rate) rates.refuse(rate, owner === undefined);
        return { kind, owner, why, waitMs };
      });
    },
    more(owners, units, tokens) {
      const budgeted = owners.filter(({ limits }) => limits.budgetQuota > 0);
      if (budgeted.length === 0) return undefined;
      const claim = { amount: units, tokens, wantedTokens: () => 0 };
      // The call itself is one of those that are open.
      const asked = budgeted.map((each) => ({ ...askedOf(deps, each, claim), calls: each.calls }));
      const unitsOf = (answer: WireAnswer | undefined) =>
        answer && (answer.kind === "granted" ? answer.units : 0);
      const found = wire.ask("more", asked, { units, least: 1, tokens });
      return found instanceof Promise ? found.then(unitsOf) : undefined;
    },
    ended(owners, { tokens, units }) {
      const told = owners.filter(tellsOpen);
      const nowSeconds = clock.nowMs() / 1000;
      const isOfNow = ({ limits, period }: OwnerUse) =>
        limits.budgetQuota > 0 && period !== undefined && nowSeconds < period.end;
      if (told.length > 0)
        tell(told, (owner) => ({
          tokensUsed: owner.limits.tpmLimit > 0 ? tokens : 0,
          ...(isOfNow(owner) ? { units } : {}),
        }));
    },
    undo(owners, moment) {
      if (owners.length > 0)
        tell(owners, ({ limits }) => ({ undoneMoment: moment, undone: 1, maxRequests: limits.rpmLimit }));
    },
    rateEnded: (claim, isSuccess) => rates.end(claim, isSuccess),
    close() {
      stop();
      wire.close();
    },
  };
}
