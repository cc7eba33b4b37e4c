// Plans of accounts: bought from the wallet, begun for a paid order or by an administrator, ended before their time.
// Refuses more purchases than a plan allows, and to pay a plan with what other plans give.
import { and, eq, isNull, ne } from "drizzle-orm";
import { countRows, q } from "../../db/database.ts";
import type { Steps } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import { logQuotaText, MAX_QUOTA } from "../../shared/money.ts";
import { momentAfter, periodsIn } from "../../shared/plan-terms.ts";
import type { PlanReset, PlanUnit } from "../../shared/plan-terms.ts";
import type { UserAccount } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { planBegun } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";
import { countSteps, ownerSteps, tellRootOfPlan } from "./by-hand.ts";
import type { HandDeps } from "./by-hand.ts";
import { closePeriod, nowSeconds, openPeriod, setStatus, settlePlans, writePurse } from "./purse.ts";
import type { PlanDeps, PlanRow, PlanWork, Purse, UserPlanRow } from "./purse.ts";

/** The terms that a purchase keeps, whatever becomes of the plan. */
export interface PlanTerms extends Pick<
  PlanRow,
  | "title"
  | "durationUnit"
  | "durationCount"
  | "reset"
  | "quota"
  | "group"
  | "overflow"
  | "stack"
  | "maxPerUser"
> {
  planId: number;
  zone: string;
}

export function termsOf({ options }: Pick<PlanDeps, "options">, plan: PlanRow): PlanTerms {
  const { id, title, durationUnit, durationCount, reset, quota, group, overflow, stack, maxPerUser } = plan;
  return {
    planId: id,
    title,
    durationUnit,
    durationCount,
    reset,
    quota,
    group,
    overflow,
    stack,
    maxPerUser,
    zone: options.get("site.time_zone"),
  };
}

/** Where the site sells nothing, it sells no plans. */
export function arePlansSold({ options }: Pick<PlanDeps, "options">): boolean {
  return !options.get("SelfUseModeEnabled") && !options.get("DemoSiteEnabled");
}

/** A plan that is on sale. Throws `plan_missing`, `plan_not_sold`. */
export async function soldPlan(deps: Pick<PlanDeps, "db" | "options">, id: number): Promise<PlanRow> {
  const { plans } = deps.db.t;
  const [plan] = await deps.db.orm
    .select()
    .from(plans)
    .where(and(eq(plans.id, id), isNull(plans.deletedAt)));
  if (!plan) throw refuse("plan_missing");
  if (!plan.enabled || !arePlansSold(deps)) throw refuse("plan_not_sold");
  return plan;
}

/** How often the account has bought the plan; what was refunded does not count. */
function* purchasesOf(
  { tx, deps, userId }: Pick<PlanWork, "tx" | "deps" | "userId">,
  planId: number,
): Steps<number> {
  const { userPlans } = deps.db.t;
  const [row] = yield* q(
    tx
      .select({ count: countRows() })
      .from(userPlans)
      .where(
        and(eq(userPlans.userId, userId), eq(userPlans.planId, planId), ne(userPlans.status, "refunded")),
      ),
  );
  return row?.count ?? 0;
}

interface Begin {
  source: "wallet" | "order" | "admin";
  tradeNo?: string;
  paidQuota?: number;
  /** However many of the plan the account has. */
  isUnlimited?: boolean;
}

/**
 * The plan's row, and its first period where it begins at once: another one of a plan that extends waits for the end of the
 * last. Call after `settlePlans`. Throws `plan_limit`, `quota_out_of_range`.
 */
function* beginPlan(
  work: PlanWork,
  purse: Purse,
  terms: PlanTerms,
  { source, tradeNo = "", paidQuota = 0, isUnlimited = false }: Begin,
): Steps<UserPlanRow> {
  const { tx, deps, userId, now } = work;
  const { userPlans } = deps.db.t;
  const { maxPerUser, ...kept } = terms;
  if (!isUnlimited && maxPerUser > 0 && (yield* purchasesOf(work, terms.planId)) >= maxPerUser)
    throw refuse("plan_limit");
  const before = terms.stack === "extend" ? purse.plans.filter(({ planId }) => planId === terms.planId) : [];
  const startsAt = Math.max(now, ...before.map(({ endsAt }) => endsAt));
  const endsAt = momentAfter(startsAt, terms.durationUnit as PlanUnit, terms.durationCount, terms.zone);
  const [row] = yield* q(
    tx
      .insert(userPlans)
      .values({
        ...kept,
        userId,
        source,
        tradeNo,
        paidQuota,
        startsAt,
        endsAt,
        status: "waiting",
        createdAt: now,
      })
      .returning(),
  );
  if (!row) throw refuse("internal_error");
  if (startsAt <= now) {
    yield* openPeriod(work, row);
    deps.ledger.changed(tx, userId);
  }
  yield* writePurse(work);
  return row;
}

/** The row of the log that tells an account of its new plan. */
function* tellBegun(
  { tx, deps, userId }: PlanWork,
  options: PlanDeps["options"],
  row: UserPlanRow,
): Steps<void> {
  const { users } = deps.db.t;
  const [user] = yield* q(tx.select({ username: users.username }).from(users).where(eq(users.id, userId)));
  yield* deps.ledger.logSteps(tx, {
    type: LogType.topUp,
    userId,
    username: user?.username ?? "",
    content: planBegun(row.title, logQuotaText(row.quota, quotaDisplay(options))),
    quota: row.quota,
    other: { plan: row.title, user_plan_id: row.id, ...(row.tradeNo ? { trade_no: row.tradeNo } : {}) },
  });
}

/**
 * Buys a plan with the wallet: price, plan and first period in one transaction. Throws `plan_missing`, `plan_not_sold`,
 * `plan_no_wallet`, `plan_balance_short`, `plan_limit`.
 */
export async function buyFromWallet(
  deps: PlanDeps,
  actor: UserAccount,
  planId: number,
): Promise<UserPlanRow> {
  const plan = await soldPlan(deps, planId);
  if (plan.walletPrice <= 0) throw refuse("plan_no_wallet");
  // Open calls may still need what they hold.
  if (deps.ledger.available({ user: actor, token: undefined }) + actor.planFloor < plan.walletPrice)
    throw refuse("plan_balance_short");
  const { users } = deps.db.t;
  await deps.ledger.entered();
  return deps.ledger.atomic(function* (tx, credit) {
    const work: PlanWork = { tx, deps, credit, userId: actor.id, now: nowSeconds(deps) };
    const purse = yield* settlePlans(work);
    const [user] = yield* q(
      tx
        .select({ wallet: users.planWallet, quota: users.quota })
        .from(users)
        .where(and(eq(users.id, actor.id), isNull(users.deletedAt))),
    );
    if (!purse || !user) throw refuse("user_missing");
    if (Math.min(user.wallet, user.quota) < plan.walletPrice) throw refuse("plan_balance_short");
    const paidQuota = plan.walletPrice;
    const row = yield* beginPlan(work, purse, termsOf(deps, plan), { source: "wallet", paidQuota });
    yield* credit({ userId: actor.id, amount: -paidQuota, kind: "plan_buy", ref: String(row.id) });
    yield* tellBegun(work, deps.options, row);
    return row;
  });
}

/** Why an order of the plan cannot be fulfilled; undefined: it can. Call in the order's transaction. */
export function* planMisfit(
  work: Pick<PlanWork, "tx" | "deps" | "userId">,
  terms: PlanTerms,
): Steps<string | undefined> {
  const isFull = terms.maxPerUser > 0 && (yield* purchasesOf(work, terms.planId)) >= terms.maxPerUser;
  return isFull ? "plan_limit" : undefined;
}

/**
 * Begins what an order has paid. Call in the transaction that credits the order. `isByHand`: root has looked at the money that
 * came, and the limit of the plan is what put the order before root. Throws `user_missing`, `plan_limit`.
 */
export function* beginOrdered(
  work: PlanWork,
  options: PlanDeps["options"],
  terms: PlanTerms,
  { tradeNo, isByHand }: { tradeNo: string; isByHand: boolean },
): Steps<void> {
  const purse = yield* settlePlans(work);
  if (!purse) throw refuse("user_missing");
  const row = yield* beginPlan(work, purse, terms, { source: "order", tradeNo, isUnlimited: isByHand });
  yield* tellBegun(work, options, row);
}

/**
 * An administrator gives a plan away, also one that is not on sale. Against the day counts what it gives over its whole time.
 * Throws `plan_missing`, `plan_limit`, `user_missing`, `user_rank_update`, `quota_ceiling`.
 */
export async function grantPlan(
  deps: HandDeps,
  by: AuditActor,
  { userId, planId, reason }: { userId: number; planId: number; reason: string },
): Promise<UserPlanRow> {
  const { plans } = deps.db.t;
  await deps.ledger.entered();
  const given = await deps.ledger.atomic(function* (tx, credit) {
    const [plan] = yield* q(
      tx
        .select()
        .from(plans)
        .where(and(eq(plans.id, planId), isNull(plans.deletedAt))),
    );
    if (!plan) throw refuse("plan_missing");
    const work: PlanWork = { tx, deps, credit, userId, now: nowSeconds(deps) };
    const purse = yield* settlePlans(work);
    const user = yield* ownerSteps(work, by);
    if (!purse) throw refuse("user_missing");
    if (user.quota + plan.quota > MAX_QUOTA) throw refuse("quota_out_of_range");
    const row = yield* beginPlan(work, purse, termsOf(deps, plan), { source: "admin" });
    yield* countSteps(work, deps, by, wholeQuota(row));
    yield* tellBegun(work, deps.options, row);
    const params = { plan: plan.title, reason };
    yield* auditSteps(tx, deps, { user, action: "plan.grant", params, by });
    return { row, user };
  });
  tellRootOfPlan(deps, by, given.user, { id: given.row.id, title: given.row.title, isGiven: true });
  return given.row;
}

/** Units that a plan gives over all its periods. */
function wholeQuota({ quota, durationUnit, durationCount, reset, startsAt, zone }: UserPlanRow): number {
  const terms = { durationUnit: durationUnit as PlanUnit, durationCount, reset: reset as PlanReset };
  return quota * periodsIn(terms, startsAt, zone);
}

/** Later ones of the same plan begin where the last that is left ends. */
function* pullForward(work: PlanWork, { plans }: Purse, gone: UserPlanRow): Steps<void> {
  const same = plans.filter(({ planId, id }) => planId === gone.planId && id !== gone.id);
  const running = same.filter(({ status, stack }) => status === "active" && stack === "extend");
  let from = Math.max(work.now, ...running.map(({ endsAt }) => endsAt));
  for (const plan of same
    .filter(({ status }) => status === "waiting")
    .toSorted((a, b) => a.startsAt - b.startsAt)) {
    if (plan.startsAt > from) {
      const endsAt = momentAfter(from, plan.durationUnit as PlanUnit, plan.durationCount, plan.zone);
      const moved = { ...plan, startsAt: from, endsAt };
      yield* setStatus(work, plan.id, { status: "waiting", startsAt: from, endsAt });
      if (from <= work.now) yield* openPeriod(work, moved);
      from = endsAt;
    } else from = plan.endsAt;
  }
}

/** Ends a plan now: what is left of its period goes, later ones of the same plan move up. Answers what was ever used of it. */
function* endPlan(
  work: PlanWork,
  purse: Purse,
  plan: UserPlanRow,
  status: "cancelled" | "refunded",
): Steps<number> {
  const { tx, deps, userId, now } = work;
  const { planPeriods } = deps.db.t;
  deps.ledger.changed(tx, userId);
  const isRunning = purse.plans.some(({ id }) => id === plan.id);
  for (const period of purse.open) if (period.userPlanId === plan.id) yield* closePeriod(work, period);
  yield* setStatus(work, plan.id, { status, ...(isRunning ? { cancelledAt: now } : {}) });
  if (isRunning) yield* pullForward(work, purse, plan);
  yield* writePurse(work);
  const periods = yield* q(
    tx.select({ used: planPeriods.used }).from(planPeriods).where(eq(planPeriods.userPlanId, plan.id)),
  );
  return periods.reduce((sum, { used }) => sum + used, 0);
}

interface Cancel {
  userId: number;
  userPlanId: number;
  /** An administrator's; undefined: the owner cancels. */
  by?: AuditActor;
  reason?: string;
  /** The wallet gets the price back, less all that was used of the plan. */
  isRefund?: boolean;
}

/**
 * Throws `plan_missing`, `plan_over` where it neither runs nor waits, `plan_no_refund` where the wallet did not pay; of an
 * administrator also `user_rank_update`, and `quota_ceiling`: what the balance loses or the wallet gets counts, the larger one.
 */
export async function cancelPlan(
  deps: HandDeps,
  { userId, userPlanId, by, reason = "", isRefund = false }: Cancel,
): Promise<void> {
  await deps.ledger.entered();
  const told = await deps.ledger.atomic(function* (tx, credit) {
    const work: PlanWork = { tx, deps, credit, userId, now: nowSeconds(deps) };
    const purse = yield* settlePlans(work);
    const user = by && (yield* ownerSteps(work, by));
    const plan = yield* planOf(work, eq(deps.db.t.userPlans.id, userPlanId));
    if (!purse || !plan) throw refuse("plan_missing");
    if (!purse.plans.some(({ id }) => id === plan.id)) throw refuse("plan_over");
    if (isRefund && plan.source !== "wallet") throw refuse("plan_no_refund");
    const open = purse.open.filter(({ userPlanId: of }) => of === plan.id);
    const left = open.reduce((sum, period) => sum + period.quota - period.used, 0);
    const used = yield* endPlan(work, purse, plan, isRefund ? "refunded" : "cancelled");
    const back = isRefund ? plan.paidQuota - used : 0;
    if (back !== 0) yield* credit({ userId, amount: back, kind: "refund", ref: `plan:${plan.id}` });
    if (!by || !user) return undefined;
    yield* countSteps(work, deps, by, Math.max(left, Math.abs(back)));
    const action = isRefund ? "plan.refund" : "plan.cancel";
    yield* auditSteps(tx, deps, { user, action, params: { plan: plan.title, reason }, by });
    return { by, user, title: plan.title, id: plan.id };
  });
  if (told) tellRootOfPlan(deps, told.by, told.user, { id: told.id, title: told.title, isGiven: false });
}

function* planOf(
  { tx, deps, userId }: PlanWork,
  which: ReturnType<typeof eq>,
): Steps<UserPlanRow | undefined> {
  const { userPlans } = deps.db.t;
  const [plan] = yield* q(
    tx
      .select()
      .from(userPlans)
      .where(and(which, eq(userPlans.userId, userId))),
  );
  return plan;
}

/**
 * The money of a plan's order went back: the plan ends. Answers the units that were ever used of it, which the wallet owes at a
 * full refund. Call in the transaction of the refund.
 */
export function* refundOrdered(work: PlanWork, tradeNo: string): Steps<number> {
  const purse = yield* settlePlans(work);
  const plan = yield* planOf(work, eq(work.deps.db.t.userPlans.tradeNo, tradeNo));
  if (!purse || !plan) return 0;
  return yield* endPlan(work, purse, plan, "refunded");
}
