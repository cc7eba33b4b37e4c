// What administrators note about an account: a remark and a mark for another look. Never in the owner's own answers.
// Refuses a same or higher rank; and whoever is not root to lift the mark, which may stand for a disputed payment.
import { eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { Role } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";

export interface UserNotes {
  remark?: string | undefined;
  flagged?: boolean | undefined;
}

/** The trail's row of a changed note. What it says stays between administrators: the owner reads this row. */
export function* noteSteps(
  tx: Orm,
  deps: Parameters<typeof auditSteps>[1],
  user: { id: number; username: string },
  by: AuditActor,
): Steps<void> {
  yield* auditSteps(tx, deps, {
    user,
    action: "user.update",
    params: { fields: "notes" },
    by,
    content: "管理员更新了用户资料",
  });
}

export async function writeNotes(
  deps: Pick<Deps, "db" | "ledger" | "accounts">,
  by: AuditActor,
  id: number,
  { remark, flagged }: UserNotes,
): Promise<void> {
  const { users } = deps.db.t;
  const set = {
    ...(remark === undefined ? {} : { remark: remark.trim() }),
    ...(flagged === undefined ? {} : { flagged }),
  };
  if (Object.keys(set).length === 0) return;
  await deps.db.atomic(function* (tx) {
    const [row] = yield* q(tx.select().from(users).where(eq(users.id, id)));
    if (!row) throw refuse("user_missing");
    if (by.role < Role.root && row.role >= by.role) throw refuse("user_rank_update");
    if (by.role < Role.root && row.flagged && flagged === false) throw refuse("user_flag_root");
    yield* q(tx.update(users).set(set).where(eq(users.id, id)).returning({ id: users.id }));
    yield* noteSteps(tx, deps, row, by);
  });
  // The mark holds the account's keys: every node hears of it.
  if (flagged !== undefined) await deps.accounts.userChanged(id);
}
