// The one way in which administrators change balances: a difference with a reason, an entry of the books, a row of the trail.
// Refuses to take more than there is, and sums beyond the exact integers.
import { eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import { isQuota, logQuotaText, MAX_QUOTA } from "../../shared/money.ts";
import type { Credit, Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { quotaChanged } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";

export interface AdminCredit {
  by: AuditActor;
  user: { id: number; username: string };
  /** How the balance changes, whatever is spent meanwhile. */
  change: number;
  reason?: string;
  /** Of the entry: a second one with the same ref fails the transaction. */
  ref?: string;
}

/** Quota units that a balance may have, as administrators write it. */
export function checkedBalance(quota: number): number {
  if (!isQuota(quota) || Math.abs(quota) > MAX_QUOTA / 2) throw refuse("quota_out_of_range");
  return quota;
}

/** Steps of `ledger.atomic`, whose `credit` is handed on; answers the balance before and after. */
export function* creditByAdmin(
  tx: Orm,
  credit: (entry: Credit) => Steps<void>,
  deps: Pick<Deps, "db" | "ledger" | "options">,
  { by, user, change, reason = "", ref }: AdminCredit,
): Steps<{ before: number; after: number }> {
  checkedBalance(change);
  const { users } = deps.db.t;
  const [current] = yield* q(tx.select({ quota: users.quota }).from(users).where(eq(users.id, user.id)));
  if (!current) throw refuse("user_missing");
  const before = current.quota;
  const after = before + change;
  if (change === 0) return { before, after };
  // Only calls bring a balance below zero; whoever is there may come up a part of the way.
  if (after < 0 && change < 0) throw refuse("quota_out_of_range");
  checkedBalance(after);
  yield* credit({ userId: user.id, amount: change, kind: "admin", ...(ref === undefined ? {} : { ref }) });
  const display = quotaDisplay(deps.options);
  const content = quotaChanged(logQuotaText(before, display), logQuotaText(after, display));
  yield* auditSteps(tx, deps, {
    type: LogType.manage,
    user,
    action: "user.quota",
    params: { before, after, change, ...(reason === "" ? {} : { reason }) },
    by,
    content: reason === "" ? content : `${content}，原因：${reason}`,
  });
  return { before, after };
}
