// Plans of the later products and what accounts have of them: terms, running periods, and what they make of their owner.
// Refuses terms that cannot be kept here: such plans come switched off, and who runs one is named.
import { currencyPlaces } from "../../shared/currencies.ts";
import {
  MAX_PLAN_DESCRIPTION,
  MAX_PLAN_TITLE,
  momentAfter,
  MOST_OF_UNIT,
  periodAt,
  PLAN_UNITS,
} from "../../shared/plan-terms.ts";
import type { PlanReset, PlanUnit } from "../../shared/plan-terms.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import { flagOf, objectOf, secondsOf, smallOf, textOf, wholeOf } from "../values.ts";
import { minorOfAmount, quotaOfAmount } from "./orders.ts";
import type { PlanEffect } from "./users.ts";

export interface PlanFacts {
  notes: Notes;
  now: number;
  quotaPerUnit: number;
  /** Units of each period of a plan that had no limit; undefined: such plans come off. */
  unlimitedQuota: number | undefined;
  /** Titles so far. */
  titles: Set<string>;
}

export type MappedPlan = NewRow<"plans"> & { id: number; reset: string; durationUnit: string };

const DAY_HOURS = 24;
const DAY = 86_400;
const RESETS: Readonly<Record<string, PlanReset>> = { daily: "day", weekly: "week", monthly: "month" };

/** How long it runs; `isOdd`: not in whole days. */
function durationOf(row: SourceRow): { unit: PlanUnit; count: number; isOdd: boolean } {
  const unit = textOf(row, "duration_unit") || "month";
  const value = Math.max(1, smallOf(row, "duration_value", 1));
  const known = PLAN_UNITS.find((each) => each === unit);
  if (known) return { unit: known, count: Math.min(value, MOST_OF_UNIT[known]), isOdd: false };
  const seconds =
    unit === "hour" ? (value * DAY) / DAY_HOURS : Math.max(1, wholeOf(row, "custom_seconds", DAY));
  return {
    unit: "day",
    count: Math.min(Math.max(1, Math.ceil(seconds / DAY)), MOST_OF_UNIT.day),
    isOdd: seconds % DAY !== 0,
  };
}

function titleOf(row: SourceRow, id: number, { notes, titles }: PlanFacts): string {
  const found = textOf(row, "title").trim() || `plan ${id}`;
  const cut = Array.from(found)
    .slice(0, MAX_PLAN_TITLE - `#${id}`.length)
    .join("");
  const title = Array.from(found).length > MAX_PLAN_TITLE || titles.has(found) ? `${cut}#${id}` : found;
  titles.add(title);
  if (title !== found) notes.add("subscription_plans", "plan_title", id);
  return title;
}

export function mapPlan(row: SourceRow, facts: PlanFacts): MappedPlan {
  const { notes, now, quotaPerUnit, unlimitedQuota } = facts;
  const id = wholeOf(row, "id");
  notes.read("subscription_plans");
  const { unit, count, isOdd } = durationOf(row);
  const resetText = textOf(row, "quota_reset_period") || "never";
  // Where the duration cannot be kept, what runs goes on to its end without a reset.
  const reset: PlanReset = isOdd ? "none" : (RESETS[resetText] ?? "none");
  const isOddReset = resetText !== "never" && reset === "none";
  const total = wholeOf(row, "total_amount");
  const isUnlimited = total <= 0;
  if (isUnlimited && unlimitedQuota === undefined) notes.add("subscription_plans", "plan_unlimited", id);
  const currency = (textOf(row, "currency") || "USD").toUpperCase();
  const isKnownCurrency = currencyPlaces(currency) !== undefined;
  const price = textOf(row, "price_amount");
  const priceMinor = isKnownCurrency ? minorOfAmount(price, currency) : 0;
  const isOff = isOdd || isOddReset || !isKnownCurrency;
  if (isOff) notes.add("subscription_plans", "plan_off", id);
  const isPaidByBalance = flagOf(row, "allow_balance_pay");
  notes.carried("subscription_plans");
  return {
    id,
    title: titleOf(row, id, facts),
    description: Array.from(textOf(row, "subtitle")).slice(0, MAX_PLAN_DESCRIPTION).join(""),
    priceMinor,
    currency: priceMinor > 0 ? currency : "",
    walletPrice: isPaidByBalance ? quotaOfAmount(price, quotaPerUnit) : 0,
    durationUnit: unit,
    durationCount: count,
    reset,
    quota: isUnlimited ? (unlimitedQuota ?? 0) : total,
    group: textOf(row, "upgrade_group"),
    overflow: flagOf(row, "allow_wallet_overflow", true),
    maxPerUser: Math.max(0, smallOf(row, "max_purchase_per_user")),
    stack: "parallel",
    enabled: flagOf(row, "enabled", true) && !isOff && !(isUnlimited && unlimitedQuota === undefined),
    createdAt: secondsOf(row, "created_at") || now,
    updatedAt: secondsOf(row, "updated_at") || now,
  };
}

export interface RunningFacts {
  notes: Notes;
  now: number;
  zone: string;
  plans: ReadonlyMap<number, MappedPlan>;
  unlimitedQuota: number | undefined;
  /** The account's `billing_preference`; undefined: the account is not among those that came along. */
  preferenceOf: (userId: number) => string | undefined;
}

export interface MappedRunning {
  userPlan: NewRow<"userPlans"> & { id: number; group: string };
  period: Omit<NewRow<"planPeriods">, "id">;
  credit: Omit<NewRow<"credits">, "id">;
  /** The account's own group, which it wrote over; "": nobody knows. */
  ownGroup: string;
}

/** Undefined: it does not run. */
export function mapRunning(row: SourceRow, facts: RunningFacts): MappedRunning | undefined {
  const { notes, now, zone, plans, unlimitedQuota } = facts;
  const id = wholeOf(row, "id");
  const userId = wholeOf(row, "user_id");
  const endsAt = wholeOf(row, "end_time");
  notes.read("user_subscriptions");
  if (textOf(row, "status") !== "active" || endsAt <= now) return undefined;
  const preference = facts.preferenceOf(userId);
  const planId = wholeOf(row, "plan_id");
  const plan = plans.get(planId);
  const total = wholeOf(row, "amount_total");
  const quota = total > 0 ? total : (unlimitedQuota ?? 0);
  const problem =
    preference === undefined
      ? "user_gone"
      : !plan
        ? "plan_gone"
        : quota <= 0
          ? "plan_unlimited_holder"
          : undefined;
  if (problem || !plan) {
    notes.rejected("user_subscriptions", problem ?? "plan_gone", `${id} (${userId})`);
    return undefined;
  }
  const reset = plan.reset as PlanReset;
  const nextReset = wholeOf(row, "next_reset_time");
  const isReset = reset !== "none" && nextReset > 0;
  const anchor = isReset ? momentAfter(nextReset, reset, -1, zone) : 0;
  const startsAt = Math.min(anchor > 0 ? anchor : wholeOf(row, "start_time", now), endsAt - 1, now);
  const isOverdue = isReset && nextReset <= now;
  const used = isOverdue ? 0 : Math.max(0, Math.min(quota, wholeOf(row, "amount_used")));
  if (preference === "wallet_first" || preference === "wallet_only")
    notes.add("user_subscriptions", "plan_wallet_first", `${id} (${userId})`);
  const createdAt = secondsOf(row, "created_at") || startsAt;
  const period = periodAt({ startsAt, endsAt, reset, zone }, now);
  notes.carried("user_subscriptions");
  return {
    userPlan: {
      id,
      userId,
      planId,
      title: plan.title,
      durationUnit: plan.durationUnit,
      durationCount: plan.durationCount,
      reset,
      quota,
      group: textOf(row, "upgrade_group") || (plan.group ?? ""),
      overflow: preference === "subscription_only" ? false : (plan.overflow ?? true),
      stack: "parallel",
      zone,
      source: "import",
      startsAt,
      endsAt,
      status: "active",
      periodNo: 1,
      createdAt,
    },
    period: { userPlanId: id, userId, no: 1, ...period, quota, used },
    credit: { userId, amount: quota, kind: "plan", ref: `${id}:1`, createdAt },
    ownGroup: textOf(row, "downgrade_group") || textOf(row, "prev_user_group"),
  };
}

/** What plans that run make of each owner; in the order of their numbers, as the newest one's group counts. */
export function effectsOf(running: readonly MappedRunning[]): Map<number, PlanEffect> {
  const effects = new Map<number, PlanEffect>();
  for (const { userPlan, period, ownGroup } of running) {
    const used = period.used ?? 0;
    const before = effects.get(userPlan.userId);
    effects.set(userPlan.userId, {
      left: (before?.left ?? 0) + period.quota - used,
      used: (before?.used ?? 0) + used,
      until: before ? Math.min(before.until, period.endsAt) : period.endsAt,
      isStrict: before?.isStrict === true || !userPlan.overflow,
      planGroup: userPlan.group === "" ? (before?.planGroup ?? "") : userPlan.group,
      // The oldest plan that runs saw the account as it was before all of them.
      ownGroup: before && before.ownGroup !== "" ? before.ownGroup : userPlan.group === "" ? "" : ownGroup,
    });
  }
  return effects;
}

/** How an account wants to be charged, of its settings; "" where it says nothing. */
export function preferenceIn(row: SourceRow): string {
  const found = objectOf(row, "setting")["billing_preference"];
  return typeof found === "string" ? found : "";
}
