// An administrator's hand on another's plan: by rank, under the daily ceiling of balances, and root hears of it.
// Refuses the own rank and higher ones, the own account among them, and what is worth more than the day has left.
import { and, eq, isNull } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Steps } from "../../db/database.ts";
import { Role } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import type { AuditActor } from "../logs/audit.ts";
import { openCeilingSteps } from "../users/balance-changes.ts";
import { assertOutranks } from "../users/rank.ts";
import type { PlanDeps, PlanWork } from "./purse.ts";

export type HandDeps = PlanDeps & Pick<Deps, "inbox">;

/** Whose plan it is. */
export interface PlanOwner {
  id: number;
  username: string;
  role: number;
  /** Units of the balance. */
  quota: number;
}

/** The account as the transaction sees it. Throws `user_missing`, `user_rank_update`. */
export function* ownerSteps({ tx, deps, userId }: PlanWork, by: AuditActor): Steps<PlanOwner> {
  const { users } = deps.db.t;
  const [owner] = yield* q(
    tx
      .select({ id: users.id, username: users.username, role: users.role, quota: users.quota })
      .from(users)
      .where(and(eq(users.id, userId), isNull(users.deletedAt))),
  );
  if (!owner) throw refuse("user_missing");
  assertOutranks(by, owner, "user_rank_update");
  return owner;
}

/** Counts `worth`, in units, against the administrator's day. Throws `quota_ceiling`. */
export function* countSteps({ tx }: PlanWork, deps: PlanDeps, by: AuditActor, worth: number): Steps<void> {
  const ceiling = yield* openCeilingSteps(tx, deps, by);
  ceiling.take(Math.abs(worth));
  yield* ceiling.keepSteps();
}

/** Root hears of it, unless it was root. */
export function tellRootOfPlan(
  { inbox }: Pick<Deps, "inbox">,
  by: AuditActor,
  owner: PlanOwner,
  what: { id: number; title: string; isGiven: boolean },
): void {
  if (by.role >= Role.root) return;
  const params = {
    admin: by.username,
    admin_id: by.id,
    user: owner.username,
    user_id: owner.id,
    what: `${what.isGiven ? "+" : "−"} ${what.title}`,
  };
  inbox.raise({
    kind: "plan_by_hand",
    subject: `${by.id}:${owner.id}:${what.isGiven ? "given" : "ended"}:${what.id}`,
    params,
  });
}
