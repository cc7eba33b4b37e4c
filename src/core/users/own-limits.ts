// The budget and limits that are in force for a user, or that a key has, with what is spent of the budget, as the wire has them.
// Refuses administrators who look at a same or higher rank.
import type { BudgetPeriod, KeyLimits } from "../../shared/key-limits.ts";
import type { Deps, TokenAccount, UserAccount } from "../deps.ts";
import { budgetUse } from "../limits/limits.ts";
import type { Spender } from "../limits/period-use.ts";
import { getUserFor } from "./users.ts";

/** In force for a user over all keys: their own, else their group's, else everybody's; 0 = no such limit. */
export interface OwnLimits {
  /** Units in a period. */
  budget_quota: number;
  budget_period: BudgetPeriod;
  /** Requests, and tokens, in any 60 seconds. */
  rpm_limit: number;
  tpm_limit: number;
  /** Calls at once. */
  max_concurrency: number;
  /** Of the budget in this period, and when the next begins (Unix seconds); 0 without one. */
  budget_used: number;
  budget_resets_at: number;
}

/** null where nothing limits the user. */
export async function ownLimits(
  deps: Deps,
  user: Pick<UserAccount, "id" | "group" | "limits">,
): Promise<OwnLimits | null> {
  const limits = deps.limits.limitsOfUser(user);
  if (!limits) return null;
  return limitsWithUse(deps, { userId: user.id, tokenId: 0 }, limits);
}

/** null where nothing limits the key by itself. */
export async function limitsOfKey(
  deps: Deps,
  { id, user, keyLimits }: Pick<TokenAccount, "id" | "user" | "keyLimits">,
): Promise<OwnLimits | null> {
  return keyLimits ? limitsWithUse(deps, { userId: user.id, tokenId: id }, keyLimits) : null;
}

async function limitsWithUse(deps: Deps, spender: Spender, limits: KeyLimits): Promise<OwnLimits> {
  // What was answered is in the tables, wherever they are.
  await deps.ledger.entered();
  const use = await budgetUse(deps, spender, limits);
  return {
    budget_quota: limits.budgetQuota,
    budget_period: limits.budgetPeriod,
    rpm_limit: limits.rpmLimit,
    tpm_limit: limits.tpmLimit,
    max_concurrency: limits.maxConcurrency,
    budget_used: use?.spent ?? 0,
    budget_resets_at: use?.end ?? 0,
  };
}

/** Refuses as getUserFor does. */
export async function limitsOfUser(
  deps: Deps,
  actor: UserAccount,
  userId: number,
): Promise<OwnLimits | null> {
  const row = await getUserFor(deps, actor, userId);
  return ownLimits(deps, { id: row.id, group: row.group, limits: row.limits ?? undefined });
}
