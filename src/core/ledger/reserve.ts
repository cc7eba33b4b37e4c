// Reserves what a call may cost: from memory while the balance is far from zero, from the shared rows near it.
// Refuses a call that balance or key cannot pay.
import { refuse } from "../../shared/failures.ts";
import { isQuota, MAX_QUOTA } from "../../shared/money.ts";
import type { Deps, LedgerAccounts, ReserveRequest } from "../deps.ts";
import type { CommitGate } from "./durability.ts";
import type { LedgerHealth } from "./ledger-health.ts";
import type { LimitBook, LimitLease } from "../limits/limits.ts";
import { OUTAGE_MS } from "./outage.ts";
import type { OutageWatch } from "./outage.ts";
import { ledgerDown, refusalOf } from "./refusals.ts";
import { Hold } from "./reservation.ts";
import type { HoldKeeper } from "./reservation.ts";
import type { SharedReservations } from "./shared-reservations.ts";

export interface ReserveDeps {
  db: Pick<Deps["db"], "use">;
  options: Deps["options"];
  accounts: LedgerAccounts;
  health: LedgerHealth;
  keeper: HoldKeeper;
  outage: OutageWatch | undefined;
  /** Absent where nothing but balances counts. */
  limits: LimitBook | undefined;
  /** Only where several nodes share the database. */
  shared: SharedReservations | undefined;
  /** Only where answers wait for the database. */
  gate: CommitGate | undefined;
}

/** In an outage other nodes spend unseen: each may spend its share of what was last known. */
function shareOf(quota: number, outage: OutageWatch | undefined): number {
  if (!outage || quota <= 0 || outage.silentMs() < OUTAGE_MS) return quota;
  return Math.floor(quota / outage.nodesAlive());
}

/** What memory lets the call spend of the balances. */
export function availableTo(
  { user, token }: Pick<ReserveRequest, "user" | "token">,
  outage: OutageWatch | undefined,
): number {
  const ofUser = shareOf(user.quota - user.planFloor, outage) - user.reserved + user.returning;
  if (!token || token.unlimitedQuota) return ofUser;
  return Math.min(ofUser, shareOf(token.remainQuota, outage) - token.reserved + token.returning);
}

/**
 * Budgets and limits first: they are looked at in memory, and a call that they refuse holds nothing. A call whose body came so slowly
 * that the process went to rest behind its key's lookup wakes it again.
 */
export function reserve(deps: ReserveDeps, request: ReserveRequest): Hold | Promise<Hold> {
  const { accounts, health, limits } = deps;
  const caughtUp = deps.db.use();
  if (caughtUp) return caughtUp.then(() => reserve(deps, request));
  const unread = limits?.ready(request);
  if (unread) return unread.then(() => reserve(deps, request));
  const unsure = deps.gate?.ready();
  if (unsure) return unsure.then(() => reserve(deps, request));
  const { amount, unsure: inCase = 0, promptTokens = 0, tokens = promptTokens, rate } = request;
  const least = request.least ?? amount;
  if (!health.canRecord()) throw ledgerDown();
  if (!isQuota(amount) || amount < 0 || !(least >= 0 && least <= amount)) throw refuse("quota_out_of_range");
  const user = accounts.keepUser(request.user);
  const token = request.token && accounts.keepToken(request.token);
  const isPart = request.isPart === true;
  const entering = { user, token, amount, least, promptTokens, tokens, isPart, rate };
  const lease = limits?.enter(entering);
  const wanted = { requestId: request.requestId, user, token, amount, least, unsure: inCase };
  const asked = limits?.confirm(entering, lease);
  return asked ? asked.then(() => reserveUnder(deps, wanted, lease)) : reserveUnder(deps, wanted, lease);
}

function reserveUnder(
  deps: ReserveDeps,
  request: ReserveRequest & { least: number },
  lease: LimitLease | undefined,
): Hold | Promise<Hold> {
  if (!lease) return reserveBalance(deps, request, undefined);
  const wanted = { ...request, amount: lease.amount };
  try {
    const held = reserveBalance(deps, wanted, lease);
    return held instanceof Promise ? held.catch((error: unknown) => endAndThrow(lease, error)) : held;
  } catch (error) {
    return endAndThrow(lease, error);
  }
}

function endAndThrow(lease: LimitLease, error: unknown): never {
  lease.cancel();
  throw error;
}

function reserveBalance(
  { options, keeper, outage, shared }: ReserveDeps,
  { requestId, user, token, amount, least, unsure = 0 }: ReserveRequest & { least: number },
  lease: LimitLease | undefined,
): Hold | Promise<Hold> {
  const free = availableTo({ user, token }, outage);
  if (shared?.isNearZero(free, Math.max(least, amount - unsure)))
    return shared.reserve({ requestId, user, token, amount, least }, keeper, lease);
  if (free <= 0 || free < least) {
    const limited = token && !token.unlimitedQuota ? token : undefined;
    throw refusalOf(
      options,
      {
        userFree: user.quota - user.planFloor - user.reserved,
        userWithoutHolds: user.quota - user.planFloor - user.pending,
        planFloor: user.planFloor,
        tokenFree: limited ? limited.remainQuota - limited.reserved : MAX_QUOTA,
        tokenWithoutHolds: limited ? limited.remainQuota - limited.pending : MAX_QUOTA,
      },
      least,
    );
  }
  return new Hold(keeper, requestId, Math.min(amount, free), user, token, undefined, lease);
}
