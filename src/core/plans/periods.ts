// Plans by the clock: at the moment a period ends or begins for whoever calls then, within a minute for everybody else, and
// an hourly sharing out of use, so that lists show what is left.
import { and, asc, exists, gt, isNull, lte, ne, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { NOW } from "../../db/moments.ts";
import type { Moment } from "../../db/moments.ts";
import { nowSeconds, settlePlans } from "./purse.ts";
import type { PlanDeps } from "./purse.ts";

const ROUND = 200;

/** Brings one account's plans up to now; memory and other nodes follow. */
export async function renewPlans(deps: PlanDeps, userId: number): Promise<void> {
  // Calls that are settled count in the period that they were made in.
  await deps.ledger.entered();
  await deps.ledger.atomic((tx, credit) => settlePlans({ tx, deps, credit, userId, now: nowSeconds(deps) }));
  // Also where nobody was credited: until when the plans stand is in the row.
  await deps.accounts.usersCharged([userId]);
}

async function renewEach(deps: PlanDeps, ids: readonly { id: number }[]): Promise<void> {
  for (const { id } of ids) {
    await renewPlans(deps, id).catch((error: unknown) => {
      deps.logger.error("plans could not be renewed", { user: id, error: String(error) });
    });
  }
}

/** Its constants stand in the text: a partial index is used where the statement itself says that it suffices. */
function isDue({ db }: Pick<PlanDeps, "db">, now: Moment): SQL | undefined {
  const { users } = db.t;
  return and(gt(users.planUntil, sql`0`), lte(users.planUntil, now), isNull(users.deletedAt));
}

/** Condition: somebody's period has ended, or a plan begins. */
export function plansWait(deps: Pick<PlanDeps, "db">): SQL {
  const some = deps.db.orm.select({ one: sql`1` }).from(deps.db.t.users);
  return exists(some.where(isDue(deps, NOW)));
}

/** Everybody whose period has ended or whose plan begins. Runs by a job. */
export async function renewDuePlans(deps: PlanDeps): Promise<void> {
  const { users } = deps.db.t;
  for (let after = 0; ;) {
    const due = await deps.db.orm
      .select({ id: users.id })
      .from(users)
      .where(and(isDue(deps, nowSeconds(deps)), gt(users.id, after)))
      .orderBy(asc(users.id))
      .limit(ROUND);
    await renewEach(deps, due);
    const last = due.at(-1);
    if (!last || due.length < ROUND) return;
    after = last.id;
  }
}

/** Everybody whose use has grown since it was shared out. Runs by a job. */
export async function allocatePlans(deps: PlanDeps): Promise<void> {
  const { users } = deps.db.t;
  for (let after = 0; ;) {
    const used = await deps.db.orm
      .select({ id: users.id })
      .from(users)
      .where(
        and(
          gt(users.planUntil, sql`0`),
          ne(users.usedQuota, users.planMark),
          gt(users.id, after),
          isNull(users.deletedAt),
        ),
      )
      .orderBy(asc(users.id))
      .limit(ROUND);
    await renewEach(deps, used);
    const last = used.at(-1);
    if (!last || used.length < ROUND) return;
    after = last.id;
  }
}
