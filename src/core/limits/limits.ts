// Budgets and limits of keys and users as calls meet them: one place for every surface, asked when a call's amount is held.
// Refuses a call that would pass one, before anything is held for it; calls without limits cost two looks at a field.
import type { Failure } from "../../shared/failures.ts";
import { budgetPeriodAt, limitsInForce, WARN_SHARE } from "../../shared/key-limits.ts";
import type { KeyLimits, LimitFields } from "../../shared/key-limits.ts";
import type { Deps, TokenAccount, UserAccount } from "../deps.ts";
import type { RateRule } from "../kit/rate-limit.ts";
import { createSharedWire } from "../kit/shared-wire.ts";
import type { NodePlace } from "../kit/node-share.ts";
import { emptyLease, leaseOf, refuseOverLimit } from "./lease.ts";
import { statesOf } from "./minute-states.ts";
import type { LimitStates } from "./minute-states.ts";
import { OwnerUse } from "./owner-use.ts";
import type { OwnerKind } from "./owner-use.ts";
import { periodUse } from "./period-use.ts";
import type { Spender } from "./period-use.ts";
import { budgetRefusal } from "./refusals.ts";
import { createSharedLimits } from "./shared-limits.ts";
import { sharedSide } from "./shared-side.ts";
import type { RateClaim } from "./shared-rates.ts";
import { startSharing } from "./shared-use.ts";

interface Payers {
  user: UserAccount;
  token: TokenAccount | undefined;
}

/** What a call wants to hold. */
export interface EnterRequest extends Payers {
  /** Units; as much of them as there is, down to `least`. */
  amount: number;
  least: number;
  /** That it will read, as far as is known, and together with an answer of the usual length; 0 where it counts none. */
  promptTokens: number;
  tokens: number;
  /** Belongs to a call that has entered: budgets alone are looked at. */
  isPart?: boolean;
  /** Under the rate of the site; undefined: there is none, or it was asked about already. */
  rate?: RateClaim | undefined;
}

/** A call's place under the limits of its key and user; every way of its end gives it back. */
export interface LimitLease {
  /** What the budgets let it hold. */
  readonly amount: number;
  owners(): OwnerUse[];
  /** All processes together let it hold so much; `moment`: when it was counted for them. */
  granted(units: number, moment: number): void;
  /** Of so many units that it holds more by now, how many the budgets leave over all processes; undefined: nobody says. */
  more(units: number, tokens: number): Promise<number | undefined> | undefined;
  /** The same where nobody answered: what other processes told last decides. */
  unanswered(units: number): number;
  /** How much more the budgets let it hold. */
  free(): number;
  /** It holds so many units, and counts so many tokens, more or less than it did. */
  change(units: number, tokens?: number): void;
  /** It counts for this owner too; `moment` is that of its request in the owner's minute, where it counts as one. */
  join(owner: OwnerUse, moment?: number): void;
  /** Once: it was settled with so many tokens and units, or charged nobody. */
  end(tokens: number, units: number): void;
  /** Once, in the place of `end`: it never began, and was no request either. */
  cancel(): void;
}

/** A call that holds its amount: those of before a limit was set count under it, too. */
interface OpenCall extends Payers {
  readonly amount: number;
  lease: LimitLease | undefined;
}

/** A budget as people are shown it. */
export interface BudgetUse {
  limits: KeyLimits;
  /** Units of the period so far, without open calls. */
  spent: number;
  /** Unix seconds. */
  start: number;
  end: number;
}

/** A budget of which a large part is spent: its owner is told once a period. */
export interface BudgetWarning {
  kind: OwnerKind;
  user: UserAccount;
  token: TokenAccount | undefined;
  use: BudgetUse;
}

/**
 * The one interface of all limits. What stands behind it is this process's memory, on PostgreSQL a row a node that is
 * exchanged twice a second, and where the site has a Valkey one question to it a call, which makes limits exact over all.
 */
export interface LimitBook {
  /** Reads what the first call of a period needs; undefined where nothing has to be read. Call before `free` and `enter`. */
  ready(payers: Payers): Promise<void> | undefined;
  /** What the budgets leave; Infinity without any. */
  free(payers: Payers): number;
  /** Throws `budget_exceeded` or `key_limit_exceeded`; undefined where nothing is limited. */
  enter(request: EnterRequest): LimitLease | undefined;
  /**
   * Asks for all processes whether a call that `enter` let in may begin: its limits and the site's rate in one question.
   * Undefined: nobody has to be waited for. Rejects with the refusal, and the lease is given back then.
   */
  confirm(request: EnterRequest, lease: LimitLease | undefined): Promise<void> | undefined;
  /** The same of the site's rate alone, for whatever holds nothing. */
  confirmRate(rate: RateClaim): Promise<void> | undefined;
  /** The site's rate as this process keeps it by itself: its share, while a Valkey that the site has is away. */
  rateHere(rate: RateClaim): RateRule;
  /** A request under the site's rate has ended; once for each that was admitted here. */
  rateEnded(rate: RateClaim, isSuccess: boolean): void;
  /** Which of the living processes this one is. */
  placeBy(place: () => NodePlace): void;
  /** Undefined where no limit of a minute is in force. */
  states(payers: Payers): LimitStates | undefined;
  /** Why a call of these payers cannot hold more, where a budget is the reason. */
  refusal(payers: Payers): Failure | undefined;
  /** Those that are in force for a user: their own, else their group's, else everybody's. */
  limitsOfUser(user: Pick<UserAccount, "group" | "limits">): KeyLimits | undefined;
  /** Who is told of budgets that run out. */
  warnBy(tell: (warning: BudgetWarning) => void): void;
  /** Tells the other nodes and hears them now, as it does twice a second; at once where there is one node. Never rejects. */
  exchange(): Promise<void>;
  /** Where the calls are found that are open when a limit is set. */
  watch(open: Iterable<OpenCall>): void;
  /** What brings settled calls into the tables: without it a late one of an earlier period would count in the next. */
  readAfter(entered: () => Promise<void>): void;
  close(): Promise<void>;
}

export type LimitBookDeps = Pick<Deps, "db" | "valkey" | "clock" | "logger" | "options" | "nodeId">;

/** Owners that nobody asks for make room from here on. */
const MAX_OWNERS = 50_000;
const LOOKS = 64;
/** On several nodes late entries of an earlier period are told apart this often. */
const REREAD_MS = 30_000;

const NONE: OwnerUse[] = [];

/** Owners in memory, found by key or user; those that nobody asks for make room. `adopt` is told of each new one. */
function createOwners(
  { clock }: Pick<Deps, "clock">,
  adopt: (owner: OwnerUse) => void,
  isShared: () => boolean,
) {
  const kinds = { user: new Map<number, OwnerUse>(), token: new Map<number, OwnerUse>() };
  return {
    *all(): Generator<OwnerUse> {
      yield* kinds.user.values();
      yield* kinds.token.values();
    },
    find: (kind: OwnerKind, id: number): OwnerUse | undefined => kinds[kind].get(id),
    of(kind: OwnerKind, account: UserAccount | TokenAccount, limits: KeyLimits): OwnerUse {
      const owners = kinds[kind];
      let found = owners.get(account.id);
      if (!found) {
        if (owners.size >= MAX_OWNERS) makeRoom(owners, clock.monotonicMs());
        owners.set(account.id, (found = new OwnerUse(kind, account, limits, isShared)));
      }
      found.account = account;
      found.limits = limits;
      found.askedMs = clock.monotonicMs();
      if (found.hasMissed) {
        found.hasMissed = false;
        adopt(found);
      }
      return found;
    },
    /** A call begins without a limit of theirs: if one is set again, those that are open are looked for. */
    pass({ user, token }: Payers, limited: readonly OwnerUse[]): void {
      if (kinds.user.size + kinds.token.size === 0) return;
      const ofUser = kinds.user.get(user.id);
      if (ofUser && !limited.includes(ofUser)) ofUser.hasMissed = true;
      const ofToken = token && kinds.token.get(token.id);
      if (ofToken && !limited.includes(ofToken)) ofToken.hasMissed = true;
    },
  };
}

function makeRoom(owners: Map<number, OwnerUse>, nowMs: number): void {
  let looks = LOOKS;
  for (const [id, each] of owners) {
    if (looks-- <= 0) return;
    owners.delete(id);
    if (each.isBusy(nowMs)) owners.set(id, each);
  }
}

/** What the site says for users; worked out again when an operator changes it. */
function siteLimits({ options }: Pick<Deps, "options">) {
  let groups: Readonly<Record<string, LimitFields>> = {};
  let ofAll: LimitFields = {};
  let isNone = true;
  return ({ group, limits }: Pick<UserAccount, "group" | "limits">): KeyLimits | undefined => {
    const nowGroups = options.get("KeyLimitsGroup");
    const nowAll = options.get("KeyLimitsDefault");
    if (nowGroups !== groups || nowAll !== ofAll) {
      groups = nowGroups;
      ofAll = nowAll;
      isNone = Object.keys(groups).length + Object.keys(ofAll).length === 0;
    }
    if (isNone && !limits) return undefined;
    return limitsInForce([limits, Object.hasOwn(groups, group) ? groups[group] : undefined, ofAll]);
  };
}

/** Reads the sums of periods, each once, and again where they may have changed behind the account's counter. */
function createPeriodReader({ db, clock, options, logger }: LimitBookDeps, look: (each: OwnerUse) => void) {
  const isShared = db.kind === "postgres";
  const cutOf = ({ budgetPeriod }: KeyLimits): string => `${budgetPeriod} ${options.get("site.time_zone")}`;

  const isOfNow = ({ period, cut, limits }: OwnerUse): boolean => {
    const nowMs = clock.nowMs();
    return (
      period !== undefined &&
      nowMs >= period.start * 1000 &&
      nowMs < period.end * 1000 &&
      cut === cutOf(limits)
    );
  };

  let entered: () => Promise<void> = async () => undefined;

  async function readPeriod(each: OwnerUse): Promise<void> {
    const { account, kind, limits } = each;
    const zone = options.get("site.time_zone");
    const period = budgetPeriodAt(clock.nowMs(), limits.budgetPeriod, zone);
    const spender =
      kind === "token"
        ? { userId: (account as TokenAccount).userId, tokenId: account.id }
        : { userId: account.id, tokenId: 0 };
    try {
      await entered();
      const use = await periodUse(db, spender, period.start);
      if (!use) return;
      if (isShared) each.sawUsed(use.usedQuota, clock.monotonicMs());
      each.read(period, `${limits.budgetPeriod} ${zone}`, use, clock.monotonicMs());
      look(each);
    } catch (error) {
      // What is known goes on counting; without it nobody may spend.
      if (!isOfNow(each)) throw error;
      each.readMs = clock.monotonicMs();
      logger.warn("a budget could not be read anew", { owner: each.key, error: String(error) });
    }
  }

  return {
    isRead(each: OwnerUse): boolean {
      if (each.limits.budgetQuota === 0) return true;
      const isStale = isShared && clock.monotonicMs() - each.readMs > REREAD_MS;
      return isOfNow(each) && !isStale && !each.hasFallen();
    },
    read: (each: OwnerUse): Promise<void> =>
      (each.reading ??= readPeriod(each).finally(() => {
        each.reading = undefined;
      })),
    readAfter(first: () => Promise<void>): void {
      entered = first;
    },
  };
}

/** What is spent of a budget by now, as the tables have it; undefined where there is no budget. */
export async function budgetUse(
  { db, clock, options }: Pick<Deps, "db" | "clock" | "options">,
  spender: Spender,
  limits: KeyLimits | undefined,
): Promise<BudgetUse | undefined> {
  if (!limits || limits.budgetQuota === 0) return undefined;
  const period = budgetPeriodAt(clock.nowMs(), limits.budgetPeriod, options.get("site.time_zone"));
  const use = await periodUse(db, spender, period.start);
  return { limits, spent: use?.spent ?? 0, ...period };
}

export function createLimitBook(deps: LimitBookDeps): LimitBook {
  const { db, clock } = deps;
  let open: Iterable<OpenCall> = [];
  const known = createOwners(deps, adopt, () => shared?.isUp() ?? false);
  const { valkey } = deps;
  const shared =
    valkey &&
    createSharedLimits({
      wire: createSharedWire(valkey, clock),
      clock,
      all: () => known.all(),
      isAlone: db.kind === "sqlite",
    });
  const sharing =
    db.kind === "postgres"
      ? startSharing(deps, known, () => {
          // Other nodes ask for owners that nobody asks for here: their calls have to be told all the same.
          for (const call of open) ownersOf(call);
        })
      : undefined;
  const limitsOfUser = siteLimits(deps);
  const reader = createPeriodReader(deps, look);
  let tell: ((warning: BudgetWarning) => void) | undefined;

  /** The key first: it is what its owner can change. */
  function ownersOf({ user, token }: Payers): OwnerUse[] {
    const ofUser = limitsOfUser(user);
    const ofKey = token?.keyLimits;
    if (!ofUser && !ofKey) return NONE;
    const all: OwnerUse[] = [];
    if (token && ofKey) all.push(known.of("token", token, ofKey));
    if (ofUser) all.push(known.of("user", user, ofUser));
    return all;
  }

  /** Calls that began before the owner had a limit. */
  function adopt(owner: OwnerUse): void {
    for (const call of open) {
      const payer = owner.kind === "token" ? call.token : call.user;
      if (payer?.id !== owner.account.id) continue;
      call.lease ??= emptyLease(call.amount, 0, { clock, look, shared });
      call.lease.join(owner);
    }
  }

  function look(each: OwnerUse): void {
    const { limits, period, account, kind } = each;
    if (!tell || !period || limits.budgetQuota === 0 || each.warnedOf === period.start) return;
    const spent = each.spent();
    if (spent < limits.budgetQuota * WARN_SHARE) return;
    each.warnedOf = period.start;
    const token = kind === "token" ? (account as TokenAccount) : undefined;
    tell({ kind, user: token?.user ?? (account as UserAccount), token, use: { limits, spent, ...period } });
  }

  return {
    limitsOfUser,
    ready(payers) {
      const unread = ownersOf(payers).filter((each) => !reader.isRead(each));
      return unread.length === 0 ? undefined : Promise.all(unread.map(reader.read)).then(() => undefined);
    },
    free: (payers) => ownersOf(payers).reduce((least, each) => Math.min(least, each.free()), Infinity),
    enter(request) {
      const found = ownersOf(request);
      known.pass(request, found);
      if (found.length === 0) return undefined;
      const nowMs = clock.monotonicMs();
      if (request.isPart !== true) for (const each of found) refuseOverLimit(each, request, nowMs);
      const short = found.find((each) => each.free() <= 0 || each.free() < request.least);
      if (short) throw budgetRefusal(deps, short, request.least);
      return leaseOf(found, request, { clock, look, shared });
    },
    ...sharedSide(deps, shared),
    states: (payers) => statesOf(ownersOf(payers), clock.monotonicMs()),
    refusal(payers) {
      const short = ownersOf(payers).find((each) => each.free() <= 0);
      return short && budgetRefusal(deps, short, 1);
    },
    async exchange() {
      // One that is under way may have read before whoever calls had written.
      await sharing?.round();
      await sharing?.round();
    },
    watch(calls) {
      open = calls;
    },
    readAfter: (entered) => reader.readAfter(entered),
    warnBy(told) {
      tell = told;
    },
    async close() {
      shared?.close();
      await sharing?.close();
    },
  };
}
