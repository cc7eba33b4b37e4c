// Limits as all processes of a site keep them through its Valkey: one question when a call begins, a word that nobody waits
// for when it ends. Refuses to decide without an answer: what this process knows decides then (lease.ts), and what could not
// be told is told again, as whole figures, every two seconds.
import { randomBytes } from "node:crypto";
import { lookEvery } from "../../db/look-around.ts";
import type { Valkey, ValkeyScript } from "../../db/valkey.ts";
import type { Clock } from "../deps.ts";
import type { RateRule } from "../kit/rate-limit.ts";
import { MINUTE_MS } from "./minute.ts";
import type { OwnerUse } from "./owner-use.ts";
import { ASK, PROCESSES, SHARED_REFUSALS, TELL } from "./shared-scripts.ts";
import type { AskedOwner, ToldOwner } from "./shared-scripts.ts";

const BEAT_MS = 2000;
/** So many owners in one word at the most. */
const MOST_TOLD = 200;
/** The server forgets what is open after an hour without a word. */
const AGAIN_MS = 20 * 60_000;
/** A sum of the database that was read within this time is the present one. */
const FRESH_MS = 2000;

const BEGIN = 1;
const MORE = 0;
const COUNT = 2;

/** A request under the site's rate; one for each that counts. */
export interface RateClaim {
  readonly rule: RateRule;
  readonly userId: number;
  /**
   * What all processes know of it. `open`: it takes the place of a success until its end; `counted`: as a request, and no
   * more; `refused`: it counts nowhere. Absent: nothing.
   */
  shared?: "open" | "counted" | "refused";
}

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

/** `moment`: of the server, by which the request can be taken back. */
export type SharedAnswer =
  | { kind: "granted"; units: number; moment: number }
  | {
      kind: "refused";
      /** Undefined: the rate of the site. */
      owner: OwnerUse | undefined;
      why: (typeof SHARED_REFUSALS)[number];
      /** 0: a call that is open may end at any time. */
      waitMs: number;
    };

export interface SharedLimits {
  /** Answers are to be had: what other processes do need not be guessed. */
  isUp(): boolean;
  /** Undefined: there is no answer. The owners' own figures have the call in them already. */
  ask(claim: SharedClaim): Promise<SharedAnswer | undefined> | undefined;
  /** Units of these, held here already, that the budgets leave; undefined: no budget, or no answer. */
  more(owners: readonly OwnerUse[], units: number, tokens: number): Promise<number | undefined> | undefined;
  /** A call has ended, and was settled with so much. */
  ended(owners: readonly OwnerUse[], used: { tokens: number; units: number }): void;
  /** It never began. */
  undo(owners: readonly OwnerUse[], moment: number): void;
  /** Once for each that was admitted here; one that nobody was asked about is counted. */
  rateEnded(claim: RateClaim, isSuccess: boolean): void;
  close(): void;
}

interface SharedLimitsDeps {
  valkey: Valkey;
  clock: Clock;
  /** Those that this process knows. */
  all: () => Iterable<OwnerUse>;
  /** The counters of accounts are this process's own: nobody else writes them. */
  isAlone: boolean;
}

/** Requests of one user that are under way here. */
interface OpenRate {
  calls: number;
  told: string;
}

const NO_PERIOD = { period: 0, spent: 0, isFresh: false };
const NOTHING = { calls: 0, held: 0, tokens: 0 };
const NOTHING_TOLD = {
  successes: 0,
  maxSuccesses: 0,
  tokensUsed: 0,
  units: 0,
  period: 0,
  undoneMoment: 0,
  maxRequests: 0,
};

const rateKey = (userId: number): string => `lim:rate:${userId}`;
const ownerKey = ({ kind, account }: OwnerUse): string => `lim:${kind}:${account.id}`;
const figuresOf = ({ calls, held, tokens }: typeof NOTHING): string => `${calls} ${held} ${tokens}`;
/** What is open matters to others only under these. */
const tellsOpen = ({ limits }: OwnerUse): boolean =>
  limits.maxConcurrency > 0 || limits.tpmLimit > 0 || limits.budgetQuota > 0;

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
    each.spent,
    each.isFresh ? 1 : 0,
  ]);
}

function toldArgs(owners: readonly ToldOwner[]): number[] {
  return owners.flatMap((each) => [
    each.windowMs,
    each.successes,
    each.maxSuccesses,
    each.tokensUsed,
    each.units,
    each.period,
    each.calls,
    each.held,
    each.tokens,
    each.undoneMoment,
    each.maxRequests,
  ]);
}

const openOf = ({ calls, held, openTokens }: OwnerUse): typeof NOTHING => ({
  calls,
  held,
  tokens: openTokens,
});

export function createSharedLimits(deps: SharedLimitsDeps): SharedLimits {
  const { valkey, clock, all } = deps;
  /** Another one than before with each start: places of a process that was killed are not taken for its successor's. */
  const self = randomBytes(8).toString("base64url");
  const rates = new Map<number, OpenRate>();

  const run = <T>(
    script: ValkeyScript,
    owners: readonly { key: string }[],
    args: readonly (string | number)[],
  ): Promise<T | undefined> | undefined =>
    valkey.run<T>(script, [PROCESSES, ...owners.map(({ key }) => key)], args);

  function tell(owners: readonly ToldOwner[], missed: () => void): void {
    const told = run<number>(TELL, owners, [self, ...toldArgs(owners)]);
    if (!told) return missed();
    void told.then((answer) => (answer === undefined ? missed() : undefined));
  }

  function askedOf(owner: OwnerUse, { amount, tokens, wantedTokens }: SharedClaim): AskedOwner {
    const { limits, period } = owner;
    const { budgetQuota, tpmLimit } = limits;
    const nowMs = clock.monotonicMs();
    return {
      key: ownerKey(owner),
      windowMs: MINUTE_MS,
      maxRequests: limits.rpmLimit,
      maxSuccesses: 0,
      maxTokens: tpmLimit,
      maxCalls: limits.maxConcurrency,
      budget: budgetQuota,
      calls: owner.calls - 1,
      held: owner.held - amount,
      tokens: owner.openTokens - tokens,
      wantedTokens: tpmLimit > 0 ? wantedTokens(tpmLimit) : 0,
      ...(budgetQuota > 0 && period
        ? {
            period: period.start,
            spent: owner.spent(),
            isFresh: deps.isAlone || nowMs - owner.seenMs < FRESH_MS,
          }
        : NO_PERIOD),
    };
  }

  function askedRate({ rule, userId }: RateClaim): AskedOwner {
    return {
      ...NOTHING,
      ...NO_PERIOD,
      key: rateKey(userId),
      windowMs: rule.windowMs,
      maxRequests: rule.total,
      maxSuccesses: rule.success,
      maxTokens: 0,
      maxCalls: 0,
      budget: 0,
      calls: rates.get(userId)?.calls ?? 0,
      wantedTokens: 0,
    };
  }

  function beginRate(claim: RateClaim): void {
    claim.shared = "open";
    const open = rates.get(claim.userId);
    if (open) open.calls += 1;
    else rates.set(claim.userId, { calls: 1, told: "" });
  }

  function endRate({ userId }: RateClaim): typeof NOTHING {
    const open = rates.get(userId);
    if (!open) return NOTHING;
    open.calls -= 1;
    open.told = "";
    if (open.calls > 0) return { ...NOTHING, calls: open.calls };
    rates.delete(userId);
    return NOTHING;
  }

  function tellRate(claim: RateClaim, more: Partial<ToldOwner>): void {
    const open = endRate(claim);
    const { rule, userId } = claim;
    const told = { ...NOTHING_TOLD, ...open, key: rateKey(userId), windowMs: rule.windowMs, ...more };
    // The last one is kept until it could be told.
    tell([told], () => {
      if (!rates.has(userId)) rates.set(userId, { calls: 0, told: "" });
    });
  }

  const toldOf = (owner: OwnerUse): ToldOwner => ({
    ...NOTHING_TOLD,
    ...openOf(owner),
    key: ownerKey(owner),
    windowMs: MINUTE_MS,
  });

  function tellOwners(owners: readonly OwnerUse[], more: (owner: OwnerUse) => Partial<ToldOwner>): void {
    for (const each of owners) each.told = figuresOf(openOf(each));
    const told = owners.map((each) => ({ ...toldOf(each), ...more(each) }));
    tell(told, () => {
      for (const each of owners) each.told = "";
    });
  }

  /** What stands in the server otherwise than it is here. */
  function beat(): void {
    if (!valkey.state().isUp) return;
    const nowMs = clock.monotonicMs();
    let isBusy = false;
    const owners: OwnerUse[] = [];
    for (const each of all()) {
      if (!tellsOpen(each)) continue;
      if (each.calls > 0) isBusy = true;
      const isOld = each.calls > 0 && nowMs - each.toldMs > AGAIN_MS;
      if (!isOld && each.told === figuresOf(openOf(each))) continue;
      each.toldMs = nowMs;
      if (owners.push(each) >= MOST_TOLD) break;
    }
    const late: ToldOwner[] = [];
    for (const [userId, open] of rates) {
      if (open.calls > 0) isBusy = true;
      const figures = String(open.calls);
      if (open.told === figures || late.length >= MOST_TOLD) continue;
      open.told = figures;
      if (open.calls === 0) rates.delete(userId);
      const key = rateKey(userId);
      late.push({ ...NOTHING_TOLD, ...NOTHING, calls: open.calls, key, windowMs: MINUTE_MS });
    }
    if (owners.length > 0) tellOwners(owners, () => ({}));
    // Also a word of nobody says that this process lives.
    if (late.length > 0 || (isBusy && owners.length === 0)) tell(late, () => undefined);
  }
  const stop = lookEvery(BEAT_MS, beat);

  return {
    isUp: () => valkey.state().isUp,
    ask(claim) {
      const { owners, rate, amount, least, tokens } = claim;
      // The rate first: whatever refuses the call after it, it was a request.
      const asked = [...(rate ? [askedRate(rate)] : []), ...owners.map((each) => askedOf(each, claim))];
      const found = run<number[]>(ASK, asked, [self, BEGIN, amount, least, tokens, ...askedArgs(asked)]);
      // The next one is asked with this one counted.
      if (found && rate) beginRate(rate);
      for (const each of owners) each.told = figuresOf(openOf(each));
      return found?.then((answer): SharedAnswer | undefined => {
        if (!answer) {
          for (const each of owners) each.told = "";
          return undefined;
        }
        const [place = 0, second = 0, third = 0] = answer;
        if (place === 0) return { kind: "granted", units: second, moment: third };
        const owner = owners[place - (rate ? 2 : 1)];
        if (rate) {
          endRate(rate);
          rate.shared = owner ? "counted" : "refused";
        }
        for (const each of owners) each.told = "";
        return { kind: "refused", owner, why: SHARED_REFUSALS[second - 1] ?? "calls", waitMs: third };
      });
    },
    more(owners, units, tokens) {
      const budgeted = owners.filter(({ limits }) => limits.budgetQuota > 0);
      if (budgeted.length === 0) return undefined;
      const claim = { owners, rate: undefined, amount: units, least: 1, tokens, wantedTokens: () => 0 };
      // The call itself is one of those that are open.
      const asked = budgeted.map((each) => ({ ...askedOf(each, claim), calls: each.calls }));
      const words = [self, MORE, units, 1, tokens, ...askedArgs(asked)];
      return run<number[]>(ASK, asked, words)?.then(
        (answer) => answer && (answer[0] === 0 ? (answer[1] ?? 0) : 0),
      );
    },
    ended(owners, { tokens, units }) {
      const told = owners.filter(tellsOpen);
      if (told.length === 0) return;
      const nowSeconds = clock.nowMs() / 1000;
      tellOwners(told, ({ limits, period }) => ({
        tokensUsed: limits.tpmLimit > 0 ? tokens : 0,
        ...(limits.budgetQuota > 0 && period && nowSeconds < period.end
          ? { units, period: period.start }
          : {}),
      }));
    },
    undo(owners, moment) {
      if (owners.length > 0)
        tellOwners(owners, ({ limits }) => ({ undoneMoment: moment, maxRequests: limits.rpmLimit }));
    },
    rateEnded(claim, isSuccess) {
      const { shared } = claim;
      if (shared === undefined) {
        // It never came so far as to be asked about.
        const asked = [askedRate(claim)];
        void run<number[]>(ASK, asked, [self, COUNT, 0, 0, 0, ...askedArgs(asked)]);
        beginRate(claim);
      } else if (shared !== "open") return;
      claim.shared = "counted";
      tellRate(claim, { successes: isSuccess ? 1 : 0, maxSuccesses: claim.rule.success });
    },
    close: stop,
  };
}
