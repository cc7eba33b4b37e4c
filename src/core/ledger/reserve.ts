// Reserves what a call may cost: from memory while the balance is far from zero, from the shared rows near it.
// Refuses a call that balance or key cannot pay.
import { refuse } from "../../shared/failures.ts";
import { isQuota, MAX_QUOTA } from "../../shared/money.ts";
import type { Deps, LedgerAccounts, ReserveRequest } from "../deps.ts";
import type { LedgerHealth } from "./ledger-health.ts";
import { OUTAGE_MS } from "./outage.ts";
import type { OutageWatch } from "./outage.ts";
import { ledgerDown, refusalOf } from "./refusals.ts";
import { Hold } from "./reservation.ts";
import type { HoldKeeper } from "./reservation.ts";
import type { SharedReservations } from "./shared-reservations.ts";

export interface ReserveDeps {
  options: Deps["options"];
  accounts: LedgerAccounts;
  health: LedgerHealth;
  keeper: HoldKeeper;
  outage: OutageWatch | undefined;
  /** Only where several nodes share the database. */
  shared: SharedReservations | undefined;
}

/** In an outage other nodes spend unseen: each may spend its share of what was last known. */
function shareOf(quota: number, outage: OutageWatch | undefined): number {
  if (!outage || quota <= 0 || outage.silentMs() < OUTAGE_MS) return quota;
  return Math.floor(quota / outage.nodesAlive());
}

/** What memory lets the call spend. */
export function availableTo(
  { user, token }: Pick<ReserveRequest, "user" | "token">,
  outage: OutageWatch | undefined,
): number {
  const ofUser = shareOf(user.quota - user.planFloor, outage) - user.reserved + user.returning;
  if (!token || token.unlimitedQuota) return ofUser;
  return Math.min(ofUser, shareOf(token.remainQuota, outage) - token.reserved + token.returning);
}

export function reserve(deps: ReserveDeps, request: ReserveRequest): Hold | Promise<Hold> {
  const { accounts, health, keeper, outage, shared } = deps;
  const { requestId, amount } = request;
  const least = request.least ?? amount;
  if (!health.canRecord()) throw ledgerDown();
  if (!isQuota(amount) || amount < 0 || !(least >= 0 && least <= amount)) throw refuse("quota_out_of_range");
  const user = accounts.keepUser(request.user);
  const token = request.token && accounts.keepToken(request.token);
  const free = availableTo({ user, token }, outage);
  if (shared?.isNearZero(free, amount))
    return shared.reserve({ requestId, user, token, amount, least }, keeper);
  if (free <= 0 || free < least) {
    const limited = token && !token.unlimitedQuota ? token : undefined;
    throw refusalOf(
      deps.options,
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
  return new Hold(keeper, requestId, Math.min(amount, free), user, token, undefined);
}
