// API keys as their owners see them: the row opened, with what is spent of its budget.
// A key that was sealed under another encryption key shows as empty.
import { isBudgetPeriod } from "../../shared/key-limits.ts";
import type { BudgetPeriod } from "../../shared/key-limits.ts";
import type { Deps } from "../deps.ts";
import { budgetUse } from "../limits/limits.ts";
import { keyLimitsOf } from "./account-rows.ts";
import type { TokenRow } from "./account-rows.ts";

/** An API key as its owner sees it. */
export interface TokenJson {
  id: number;
  user_id: number;
  /** In clear, without `sk-`. */
  key: string;
  status: number;
  name: string;
  created_time: number;
  /** Unix seconds; null until it is used. */
  accessed_time: number | null;
  expired_time: number;
  remain_quota: number;
  unlimited_quota: boolean;
  model_limits_enabled: boolean;
  model_limits: string;
  allow_ips: string;
  used_quota: number;
  /** † Units that the key may spend in a period; this and the limits: 0 = none. */
  budget_quota: number;
  budget_period: BudgetPeriod;
  /** † Requests, and tokens, in any 60 seconds. */
  rpm_limit: number;
  tpm_limit: number;
  /** † Calls at once. */
  max_concurrency: number;
  /** † Of the budget in this period, and when the next begins (Unix seconds); 0 without one. */
  budget_used: number;
  budget_resets_at: number;
  group: string;
  /** With the group `auto`: the groups that are tried, in their order, separated by commas; empty: the site's. */
  auto_groups: string;
  /** The most that one call may cost, in units; 0: no cap. */
  max_quota: number;
  /** Until when the secret before the present one is taken, too (Unix seconds); 0: it is not. */
  previous_until: number;
  DeletedAt: null;
}

/** A key that was sealed under another encryption key shows as empty; the row stays usable for everything else. */
export function openKey(deps: Deps, row: TokenRow): string {
  try {
    return deps.seal.open("token", row.keySealed);
  } catch {
    return "";
  }
}

function tokenJson(deps: Deps, row: TokenRow): TokenJson {
  return {
    id: row.id,
    user_id: row.userId,
    key: openKey(deps, row),
    status: row.status,
    name: row.name,
    created_time: row.createdTime,
    accessed_time: row.accessedTime > 0 ? row.accessedTime : null,
    expired_time: row.expiredTime,
    remain_quota: row.remainQuota,
    unlimited_quota: row.unlimitedQuota,
    model_limits_enabled: row.modelLimitsEnabled,
    model_limits: row.modelLimits,
    allow_ips: row.allowIps,
    used_quota: row.usedQuota,
    budget_quota: row.budgetQuota,
    budget_period: isBudgetPeriod(row.budgetPeriod) ? row.budgetPeriod : "month",
    rpm_limit: row.rpmLimit,
    tpm_limit: row.tpmLimit,
    max_concurrency: row.maxConcurrency,
    budget_used: 0,
    budget_resets_at: 0,
    group: row.group,
    auto_groups: row.autoGroups,
    max_quota: row.maxQuota,
    previous_until: row.previousUntil > Math.floor(deps.clock.nowMs() / 1000) ? row.previousUntil : 0,
    DeletedAt: null,
  };
}

/** With what is spent of its budget. */
export async function tokenWithUse(deps: Deps, row: TokenRow): Promise<TokenJson> {
  const json = tokenJson(deps, row);
  const use = await budgetUse(deps, { userId: row.userId, tokenId: row.id }, keyLimitsOf(row));
  return use ? { ...json, budget_used: use.spent, budget_resets_at: use.end } : json;
}
