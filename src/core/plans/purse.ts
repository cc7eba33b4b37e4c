// The books of running plans: use is shared out among their periods, periods end and begin, and the account's row says what
// of its balance is whose. All of it are steps of one transaction under the lock of the user's row.
// Refuses to give or to take back twice: each period's credits carry its number.
import { and, eq, inArray, sql } from "drizzle-orm";
import { q, sumOf } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { periodAt, shareOut } from "../../shared/plan-terms.ts";
import type { PlanReset } from "../../shared/plan-terms.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import type { Credit, Deps } from "../deps.ts";

export type PlanRow = Schema["plans"]["$inferSelect"];
export type UserPlanRow = Schema["userPlans"]["$inferSelect"];
export type PeriodRow = Schema["planPeriods"]["$inferSelect"];

export type PlanDeps = Pick<Deps, "db" | "clock" | "ledger" | "options" | "accounts" | "logger">;

export type CreditSteps = (entry: Credit) => Steps<void>;

/** One transaction that changes the plans of one account. */
export interface PlanWork {
  tx: Orm;
  deps: Pick<PlanDeps, "db" | "ledger">;
  credit: CreditSteps;
  userId: number;
  /** Unix seconds. */
  now: number;
}

/** What of an account's plans runs or waits. */
export interface Purse {
  plans: UserPlanRow[];
  open: PeriodRow[];
}

export const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

const UNFINISHED = ["waiting", "active"];

/** Locks the user's row; undefined: no such user. */
function* lockUser({ tx, deps, userId }: PlanWork) {
  const { users } = deps.db.t;
  const [user] = yield* q(
    tx
      .update(users)
      .set({ id: sql`${users.id}` })
      .where(eq(users.id, userId))
      .returning({ mark: users.planMark, used: users.usedQuota, until: users.planUntil }),
  );
  return user;
}

function* readPurse({ tx, deps, userId }: PlanWork): Steps<Purse> {
  const { planPeriods, userPlans } = deps.db.t;
  const plans = yield* q(
    tx
      .select()
      .from(userPlans)
      .where(and(eq(userPlans.userId, userId), inArray(userPlans.status, UNFINISHED)))
      .orderBy(userPlans.id),
  );
  const open = yield* q(
    tx
      .select()
      .from(planPeriods)
      .where(and(eq(planPeriods.userId, userId), eq(planPeriods.closedAt, 0)))
      .orderBy(planPeriods.id),
  );
  return { plans, open };
}

/** Takes what is left of the period back and closes it. Call with its use shared out. */
export function* closePeriod(work: PlanWork, period: PeriodRow): Steps<void> {
  const { tx, deps, credit, userId, now } = work;
  const { planPeriods } = deps.db.t;
  const left = period.quota - period.used;
  if (left > 0) {
    const ref = `${period.userPlanId}:${period.no}`;
    yield* credit({ userId, amount: -left, kind: "plan_end", ref });
  }
  yield* q(
    tx
      .update(planPeriods)
      .set({ closedAt: now })
      .where(eq(planPeriods.id, period.id))
      .returning({ id: planPeriods.id }),
  );
}

/** Begins the period that `now` falls into and gives its quota. */
export function* openPeriod(work: PlanWork, plan: UserPlanRow): Steps<PeriodRow[]> {
  const { tx, deps, credit, userId, now } = work;
  const { planPeriods, userPlans } = deps.db.t;
  const no = plan.periodNo + 1;
  const { startsAt, endsAt, zone, quota } = plan;
  const period = periodAt({ startsAt, endsAt, zone, reset: plan.reset as PlanReset }, now);
  yield* q(
    tx
      .update(userPlans)
      .set({ status: "active", periodNo: no })
      .where(eq(userPlans.id, plan.id))
      .returning({ id: userPlans.id }),
  );
  const rows = yield* q(
    tx
      .insert(planPeriods)
      .values({ userPlanId: plan.id, userId, no, quota, ...period })
      .returning(),
  );
  yield* credit({ userId, amount: quota, kind: "plan", ref: `${plan.id}:${no}` });
  return rows;
}

export function* setStatus(
  { tx, deps }: PlanWork,
  id: number,
  set: Partial<UserPlanRow> & { status: string },
): Steps<void> {
  const { userPlans } = deps.db.t;
  yield* q(tx.update(userPlans).set(set).where(eq(userPlans.id, id)).returning({ id: userPlans.id }));
}

/** Use since the mark goes to the periods that run, by what lapses first; the rest of it is the wallet's. */
function* allocate(work: PlanWork, use: number, open: PeriodRow[]): Steps<PeriodRow[]> {
  const { tx, deps } = work;
  const { planPeriods } = deps.db.t;
  const changed = shareOut(use, open);
  for (const [id, used] of changed)
    yield* q(
      tx.update(planPeriods).set({ used }).where(eq(planPeriods.id, id)).returning({ id: planPeriods.id }),
    );
  return open.map((period) => ({ ...period, used: changed.get(period.id) ?? period.used }));
}

/**
 * Brings an account's plans up to now: shares use out, ends what is over, begins what is due. Answers what runs and waits
 * then; follow every further change by `writePurse`. Undefined: no such user.
 */
export function* settlePlans(work: PlanWork): Steps<Purse | undefined> {
  const { tx, deps, userId, now } = work;
  const user = yield* lockUser(work);
  if (!user) return undefined;
  const before = yield* readPurse(work);
  const open = yield* allocate(work, user.until === 0 ? 0 : user.used - user.mark, before.open);
  for (const period of open) {
    if (period.endsAt > now) continue;
    yield* closePeriod(work, period);
    const plan = before.plans.find(({ id }) => id === period.userPlanId);
    if (!plan) continue;
    if (plan.endsAt > now) yield* openPeriod(work, plan);
    else yield* setStatus(work, plan.id, { status: "ended" });
  }
  for (const plan of before.plans) {
    if (plan.status !== "waiting" || plan.startsAt > now) continue;
    if (plan.endsAt > now) yield* openPeriod(work, plan);
    else yield* setStatus(work, plan.id, { status: "ended" });
  }
  const purse = yield* writePurse(work);
  // Another plan runs, or none: the account's group and whether it may use its wallet may be others. A next period is a credit.
  if (activeOf(before.plans) !== activeOf(purse.plans)) deps.ledger.changed(tx, userId);
  return purse;
}

const activeOf = (plans: readonly UserPlanRow[]): string =>
  plans
    .filter(({ status }) => status === "active")
    .map(({ id }) => id)
    .join();

/** The newest running plan that names a group. */
function groupOf(plans: readonly UserPlanRow[]): string {
  return plans.findLast(({ status, group }) => status === "active" && group !== "")?.group ?? "";
}

/** Writes into the user's row what memory and audit read of its plans. Call at the end of every change of them. */
export function* writePurse(work: PlanWork): Steps<Purse> {
  const { tx, deps, userId } = work;
  const { reservations, users } = deps.db.t;
  const purse = yield* readPurse(work);
  const { plans, open } = purse;
  // What nodes that share a database hold as rows has left the balance, and is still the wallet's or a plan's.
  const [held] =
    deps.db.kind === "postgres"
      ? yield* q(
          tx
            .select({ amount: sumOf(reservations.amount) })
            .from(reservations)
            .where(eq(reservations.userId, userId)),
        )
      : [];
  const left = open.reduce((sum, { quota, used }) => sum + quota - used, 0);
  const moments = [
    ...open.map(({ endsAt }) => endsAt),
    ...plans.filter(({ status }) => status === "waiting").map(({ startsAt }) => startsAt),
  ];
  const rest = (held?.amount ?? 0) - left;
  yield* q(
    tx
      .update(users)
      .set({
        planMark: sql`${users.usedQuota}`,
        planWallet: sql`${users.quota} + ${rest}`,
        planStrict: plans.some(({ status, overflow }) => status === "active" && !overflow),
        planUntil: moments.length === 0 ? 0 : Math.min(...moments),
        planGroup: groupOf(plans),
      })
      .where(eq(users.id, userId))
      .returning({ id: users.id }),
  );
  return purse;
}
