// What a caller hears whose amount cannot be reserved, in figures as the site shows them.
import { Failure } from "../../shared/failures.ts";
import { shortQuotaText } from "../../shared/money.ts";
import type { Deps } from "../deps.ts";
import { quotaDisplay } from "../options/store.ts";
import type { Shortage } from "./reservation-rows.ts";

/** Holds of calls end within seconds. */
const HELD_RETRY_SECONDS = 2;

/** Nothing may be promised: what the call will cost cannot be written down. */
export function ledgerDown(): Failure {
  return new Failure("internal", "ledger_down", { status: 503 });
}

/** Where open holds alone are in the way, coming again helps. */
export function refusalOf(
  options: Deps["options"],
  { userFree, userWithoutHolds, planFloor, tokenFree, tokenWithoutHolds }: Shortage,
  least: number,
): Failure {
  const isShort = (free: number) => free <= 0 || free < least;
  if (isShort(userFree) && isShort(userWithoutHolds))
    return userShort(options, { available: userFree, amount: least, isPlan: planFloor > 0 });
  if (isShort(tokenFree) && isShort(tokenWithoutHolds)) return tokenShort(options, tokenFree, least);
  return new Failure("limit", "quota_held", { retryAfterSeconds: HELD_RETRY_SECONDS });
}

/** The balance does not pay the amount. */
export function userShort(
  options: Deps["options"],
  { available, amount, isPlan }: { available: number; amount: number; isPlan: boolean },
): Failure {
  const wireCode = "insufficient_user_quota";
  // The wallet may be full: it is the plan that keeps calls to its own quota.
  if (isPlan) return new Failure("quota", "plan_quota_used", { wireCode });
  if (available <= 0) return new Failure("quota", "user_quota_empty", { wireCode });
  return new Failure("quota", "user_quota_short", { wireCode, params: figures(options, available, amount) });
}

function tokenShort(options: Deps["options"], available: number, amount: number): Failure {
  const params = figures(options, available, amount);
  return new Failure("quota", "token_quota_short", { wireCode: "pre_consume_token_quota_failed", params });
}

function figures(options: Deps["options"], available: number, amount: number): { A: string; B: string } {
  const display = quotaDisplay(options);
  return { A: shortQuotaText(available, display), B: shortQuotaText(amount, display) };
}
