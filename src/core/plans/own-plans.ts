// The plans of one account as its owner and administrators see them: what runs, how much is left, what there was.
// Refuses to wait for the next sharing out: use since the last one is shared out for the eye.
import { and, desc, eq, inArray, isNull, notInArray } from "drizzle-orm";
import { sumOf } from "../../db/database.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { refuse } from "../../shared/failures.ts";
import { shareOut } from "../../shared/plan-terms.ts";
import type { PlanReset, PlanStack } from "../../shared/plan-terms.ts";
import { assertOutranks } from "../users/rank.ts";
import type { PeriodRow, UserPlanRow } from "./purse.ts";

const MOST_PAST = 50;
const UNFINISHED = ["waiting", "active"];

function userPlanJson(
  row: UserPlanRow,
  periods: readonly PeriodRow[],
  shown: Map<number, number>,
  past: number,
) {
  const period = periods.find(({ userPlanId }) => userPlanId === row.id);
  const used = period ? (shown.get(period.id) ?? period.used) : 0;
  return {
    id: row.id,
    plan_id: row.planId,
    title: row.title,
    status: row.status,
    /** Units of each period. */
    quota: row.quota,
    reset: row.reset as PlanReset,
    group: row.group,
    overflow: row.overflow,
    stack: row.stack as PlanStack,
    source: row.source,
    trade_no: row.tradeNo,
    paid_quota: row.paidQuota,
    starts_at: row.startsAt,
    ends_at: row.endsAt,
    created_at: row.createdAt,
    /** 0: it ran its time, or still does. */
    cancelled_at: row.cancelledAt,
    /** Units that were ever used of it. */
    used_total: past + used,
    /** The one that runs; null: none does. */
    period: period
      ? { no: period.no, starts_at: period.startsAt, ends_at: period.endsAt, quota: period.quota, used }
      : null,
  };
}

/** As administrators see them: of themselves and of lower ranks. Throws `user_missing`, `user_rank_read`. */
export async function plansFor(
  { db }: Pick<Deps, "db">,
  viewer: Pick<UserAccount, "id" | "role">,
  userId: number,
) {
  const { users } = db.t;
  const [user] = await db.orm.select({ role: users.role }).from(users).where(eq(users.id, userId));
  if (!user) throw refuse("user_missing");
  if (viewer.id !== userId) assertOutranks(viewer, user, "user_rank_read");
  return plansOf({ db }, userId);
}

/** Newest first: what runs and waits, then what is over. Throws `user_missing`. */
export async function plansOf({ db }: Pick<Deps, "db">, userId: number) {
  const { planPeriods, userPlans, users } = db.t;
  const [user] = await db.orm
    .select({
      quota: users.quota,
      used: users.usedQuota,
      mark: users.planMark,
      until: users.planUntil,
    })
    .from(users)
    .where(and(eq(users.id, userId), isNull(users.deletedAt)));
  if (!user) throw refuse("user_missing");
  const isOwn = eq(userPlans.userId, userId);
  const running = await db.orm
    .select()
    .from(userPlans)
    .where(and(isOwn, inArray(userPlans.status, UNFINISHED)))
    .orderBy(desc(userPlans.id));
  const past = await db.orm
    .select()
    .from(userPlans)
    .where(and(isOwn, notInArray(userPlans.status, UNFINISHED)))
    .orderBy(desc(userPlans.id))
    .limit(MOST_PAST);
  const open = await db.orm
    .select()
    .from(planPeriods)
    .where(and(eq(planPeriods.userId, userId), eq(planPeriods.closedAt, 0)));
  const rows = [...running, ...past];
  const ids = rows.map(({ id }) => id);
  const sums =
    ids.length === 0
      ? []
      : await db.orm
          .select({ id: planPeriods.userPlanId, used: sumOf(planPeriods.used) })
          .from(planPeriods)
          .where(inArray(planPeriods.userPlanId, ids))
          .groupBy(planPeriods.userPlanId);
  const openUsed = new Map(open.map(({ userPlanId, used }) => [userPlanId, used]));
  const pastOf = new Map(sums.map(({ id, used }) => [id, used - (openUsed.get(id) ?? 0)]));
  const shown = shareOut(user.until === 0 ? 0 : user.used - user.mark, open);
  const items = rows.map((row) => userPlanJson(row, open, shown, pastOf.get(row.id) ?? 0));
  const left = items.reduce((sum, { period }) => sum + (period ? period.quota - period.used : 0), 0);
  return {
    items,
    /** Units that running periods have left, part of the balance. */
    left,
    balance: user.quota,
  };
}
