// Plans as the site sells them: their terms, and the list with what was sold. They are written where prices are
// (prices/sold-plans.ts). Refuses terms that could not be kept.
import { asc, isNull } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import { currencyPlaces, minorText, payableOf } from "../../shared/currencies.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { isQuota } from "../../shared/money.ts";
import { charactersIn } from "../../shared/name-limits.ts";
import {
  MAX_PLAN_DESCRIPTION,
  MAX_PLAN_TITLE,
  MOST_OF_UNIT,
  PLAN_RESETS,
  PLAN_STACKS,
  PLAN_UNITS,
} from "../../shared/plan-terms.ts";
import type { PlanReset, PlanStack, PlanUnit } from "../../shared/plan-terms.ts";
import type { Deps } from "../deps.ts";
import type { PlanRow } from "./purse.ts";

/** As the wire and settings files have a plan's terms. */
export interface PlanFields {
  title: string;
  description: string;
  /** Decimal text of the currency, `73.00`; empty: not sold for money. */
  price: string;
  /** ISO code, upper case; empty where there is no price. */
  currency: string;
  /** Units of the wallet; 0: not sold from the balance. */
  wallet_price: number;
  duration_unit: PlanUnit;
  duration_count: number;
  reset: PlanReset;
  /** Units of each period. */
  quota: number;
  group: string;
  overflow: boolean;
  max_per_user: number;
  stack: PlanStack;
  enabled: boolean;
}

export const PLAN_DEFAULTS: Omit<PlanFields, "title" | "quota" | "duration_unit"> = {
  description: "",
  price: "",
  currency: "",
  wallet_price: 0,
  duration_count: 1,
  reset: "none",
  group: "",
  overflow: true,
  max_per_user: 0,
  stack: "extend",
  enabled: true,
};

/** A text, a whole number that is not negative, a switch, or one of these. */
export type PlanFieldKind = "text" | "int" | "flag" | readonly string[];

/** Every term but the title, in the order in which files show them. */
export const PLAN_FIELDS = {
  description: "text",
  price: "text",
  currency: "text",
  wallet_price: "int",
  duration_unit: PLAN_UNITS,
  duration_count: "int",
  reset: PLAN_RESETS,
  quota: "int",
  group: "text",
  overflow: "flag",
  max_per_user: "int",
  stack: PLAN_STACKS,
  enabled: "flag",
} as const satisfies Record<Exclude<keyof PlanFields, "title">, PlanFieldKind>;

export function isOfPlanField(kind: PlanFieldKind, value: unknown): boolean {
  if (kind === "text") return typeof value === "string";
  if (kind === "flag") return typeof value === "boolean";
  if (kind === "int") return Number.isSafeInteger(value) && Number(value) >= 0;
  return kind.some((each) => each === value);
}

const MAX_PLAN_QUOTA = 1e15;
const MOST_PER_USER = 1_000_000;

export function fieldsOf(row: Pick<PlanRow, keyof PlanColumns>): PlanFields {
  return {
    title: row.title,
    description: row.description,
    price: row.priceMinor > 0 ? minorText(row.priceMinor, row.currency) : "",
    currency: row.currency,
    wallet_price: row.walletPrice,
    duration_unit: row.durationUnit as PlanUnit,
    duration_count: row.durationCount,
    reset: row.reset as PlanReset,
    quota: row.quota,
    group: row.group,
    overflow: row.overflow,
    max_per_user: row.maxPerUser,
    stack: row.stack as PlanStack,
    enabled: row.enabled,
  };
}

const wrong = (code: Parameters<typeof refuse>[0], param: string): Failure =>
  new Failure("client", code, { param });

/** The columns of a plan. Throws `plan_title`, `plan_price`, `plan_no_price`, `plan_duration`, `plan_group`, `quota_out_of_range`. */
export function planColumns(isGroup: (group: string) => boolean, sent: PlanFields) {
  const title = sent.title.trim();
  const length = charactersIn(title);
  if (length === 0 || length > MAX_PLAN_TITLE) throw wrong("plan_title", "title");
  const description = sent.description.trim();
  if (charactersIn(description) > MAX_PLAN_DESCRIPTION) throw wrong("plan_description", "description");
  const price = sent.price.trim();
  const currency = price === "" ? "" : sent.currency.trim().toUpperCase();
  if (price !== "" && currencyPlaces(currency) === undefined) throw wrong("plan_price", "currency");
  const priceMinor = price === "" ? 0 : payableOf(price, currency);
  if (priceMinor === undefined || (price !== "" && priceMinor === 0)) throw wrong("plan_price", "price");
  const isUnits = (units: number) => isQuota(units) && units >= 0 && units <= MAX_PLAN_QUOTA;
  if (!isUnits(sent.wallet_price)) throw wrong("quota_out_of_range", "wallet_price");
  if (!isUnits(sent.quota) || sent.quota === 0) throw wrong("quota_out_of_range", "quota");
  if (priceMinor === 0 && sent.wallet_price === 0) throw wrong("plan_no_price", "price");
  const { duration_unit: durationUnit, duration_count: durationCount } = sent;
  if (!Number.isInteger(durationCount) || durationCount < 1 || durationCount > MOST_OF_UNIT[durationUnit])
    throw wrong("plan_duration", "duration_count");
  if (sent.group !== "" && !isGroup(sent.group)) throw wrong("plan_group", "group");
  const { max_per_user: maxPerUser } = sent;
  if (!Number.isInteger(maxPerUser) || maxPerUser < 0 || maxPerUser > MOST_PER_USER)
    throw wrong("plan_max", "max_per_user");
  return {
    title,
    description,
    priceMinor,
    currency,
    durationUnit,
    durationCount,
    maxPerUser,
    walletPrice: sent.wallet_price,
    reset: sent.reset,
    quota: sent.quota,
    group: sent.group,
    overflow: sent.overflow,
    stack: sent.stack,
    enabled: sent.enabled,
  };
}

export type PlanColumns = ReturnType<typeof planColumns>;

/** All that are not taken away, with how many of each were sold and run. */
export async function listPlans({ db }: Pick<Deps, "db">) {
  const { plans, userPlans } = db.t;
  const rows = await db.orm.select().from(plans).where(isNull(plans.deletedAt)).orderBy(asc(plans.id));
  const counts = await db.orm
    .select({ planId: userPlans.planId, status: userPlans.status, count: countRows() })
    .from(userPlans)
    .groupBy(userPlans.planId, userPlans.status);
  const countOf = (id: number, is: (status: string) => boolean) =>
    counts
      .filter(({ planId, status }) => planId === id && is(status))
      .reduce((sum, { count }) => sum + count, 0);
  return rows.map((row) => ({
    id: row.id,
    ...fieldsOf(row),
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    sold: countOf(row.id, (status) => status !== "refunded"),
    running: countOf(row.id, (status) => status === "active" || status === "waiting"),
  }));
}
