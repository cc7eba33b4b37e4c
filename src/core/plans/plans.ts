// Plans as the site sells them: what an administrator makes, changes and takes away.
// Refuses terms that could not be kept, and to touch what was bought: that keeps the terms of its purchase.
import { and, asc, eq, isNull, ne } from "drizzle-orm";
import { countRows, q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { currencyPlaces, minorOf, minorText } from "../../shared/currencies.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { isQuota } from "../../shared/money.ts";
import { charactersIn } from "../../shared/name-limits.ts";
import { MAX_PLAN_DESCRIPTION, MAX_PLAN_TITLE, MOST_OF_UNIT } from "../../shared/plan-terms.ts";
import type { PlanReset, PlanStack, PlanUnit } from "../../shared/plan-terms.ts";
import type { Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { nowSeconds } from "./purse.ts";
import type { PlanDeps, PlanRow } from "./purse.ts";

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

const MAX_PLAN_QUOTA = 1e15;
const MOST_PER_USER = 1_000_000;

export function fieldsOf(row: PlanRow): PlanFields {
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
function planColumns({ options }: Pick<Deps, "options">, sent: PlanFields) {
  const title = sent.title.trim();
  const length = charactersIn(title);
  if (length === 0 || length > MAX_PLAN_TITLE) throw wrong("plan_title", "title");
  const description = sent.description.trim();
  if (charactersIn(description) > MAX_PLAN_DESCRIPTION) throw wrong("plan_description", "description");
  const price = sent.price.trim();
  const currency = price === "" ? "" : sent.currency.trim().toUpperCase();
  if (price !== "" && currencyPlaces(currency) === undefined) throw wrong("plan_price", "currency");
  const priceMinor = price === "" ? 0 : minorOf(price, currency);
  if (priceMinor === undefined || (price !== "" && priceMinor === 0)) throw wrong("plan_price", "price");
  const isUnits = (units: number) => isQuota(units) && units >= 0 && units <= MAX_PLAN_QUOTA;
  if (!isUnits(sent.wallet_price)) throw wrong("quota_out_of_range", "wallet_price");
  if (!isUnits(sent.quota) || sent.quota === 0) throw wrong("quota_out_of_range", "quota");
  if (priceMinor === 0 && sent.wallet_price === 0) throw wrong("plan_no_price", "price");
  const { duration_unit: durationUnit, duration_count: durationCount } = sent;
  if (!Number.isInteger(durationCount) || durationCount < 1 || durationCount > MOST_OF_UNIT[durationUnit])
    throw wrong("plan_duration", "duration_count");
  if (sent.group !== "" && !Object.hasOwn(options.get("GroupRatio"), sent.group))
    throw wrong("plan_group", "group");
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

function* refuseTaken(tx: Orm, { db }: Pick<Deps, "db">, title: string, but: number): Steps<void> {
  const { plans } = db.t;
  const [other] = yield* q(
    tx
      .select({ id: plans.id })
      .from(plans)
      .where(and(eq(plans.title, title), isNull(plans.deletedAt), ne(plans.id, but))),
  );
  if (other) throw wrong("plan_title_taken", "title");
}

/** Steps of it; `id` 0: a new one. Throws as `planColumns`, `plan_title_taken`, `plan_missing`. */
function* savePlanSteps(
  tx: Orm,
  deps: Pick<PlanDeps, "db" | "clock" | "ledger" | "options">,
  { id, fields, by }: { id: number; fields: PlanFields; by: AuditActor },
): Steps<number> {
  const { plans } = deps.db.t;
  const columns = planColumns(deps, fields);
  yield* refuseTaken(tx, deps, columns.title, id);
  const now = nowSeconds(deps);
  const user = { id: by.id, username: by.username };
  if (id === 0) {
    const [made] = yield* q(
      tx
        .insert(plans)
        .values({ ...columns, createdAt: now, updatedAt: now })
        .returning({ id: plans.id }),
    );
    yield* auditSteps(tx, deps, { user, action: "plan.create", params: { plan: columns.title }, by });
    return made?.id ?? 0;
  }
  const isIt = and(eq(plans.id, id), isNull(plans.deletedAt));
  const [before] = yield* q(tx.select().from(plans).where(isIt));
  if (!before) throw refuse("plan_missing");
  const changed = (Object.keys(columns) as (keyof typeof columns)[]).filter(
    (key) => columns[key] !== before[key],
  );
  if (changed.length === 0) return id;
  yield* q(
    tx
      .update(plans)
      .set({ ...columns, updatedAt: now })
      .where(isIt)
      .returning({ id: plans.id }),
  );
  const params = { plan: columns.title, fields: changed.join(", ") };
  yield* auditSteps(tx, deps, { user, action: "plan.update", params, by });
  return id;
}

export async function createPlan(deps: PlanDeps, by: AuditActor, fields: PlanFields): Promise<number> {
  return deps.db.atomic((tx) => savePlanSteps(tx, deps, { id: 0, fields, by }));
}

/** What is not named stays. */
export async function updatePlan(
  deps: PlanDeps,
  by: AuditActor,
  id: number,
  fields: Partial<PlanFields>,
): Promise<void> {
  const { plans } = deps.db.t;
  await deps.db.atomic(function* (tx) {
    const [before] = yield* q(
      tx
        .select()
        .from(plans)
        .where(and(eq(plans.id, id), isNull(plans.deletedAt))),
    );
    if (!before) throw refuse("plan_missing");
    return yield* savePlanSteps(tx, deps, { id, fields: { ...fieldsOf(before), ...fields }, by });
  });
}

/** Steps of it: nobody buys it any more; what was bought goes on. Throws `plan_missing`. */
function* removePlanSteps(
  tx: Orm,
  deps: Pick<PlanDeps, "db" | "clock" | "ledger">,
  { id, by }: { id: number; by: AuditActor },
): Steps<void> {
  const { plans } = deps.db.t;
  const [gone] = yield* q(
    tx
      .update(plans)
      .set({ deletedAt: nowSeconds(deps), enabled: false })
      .where(and(eq(plans.id, id), isNull(plans.deletedAt)))
      .returning({ title: plans.title }),
  );
  if (!gone) throw refuse("plan_missing");
  const user = { id: by.id, username: by.username };
  yield* auditSteps(tx, deps, { user, action: "plan.delete", params: { plan: gone.title }, by });
}

export async function removePlan(deps: PlanDeps, by: AuditActor, id: number): Promise<void> {
  await deps.db.atomic((tx) => removePlanSteps(tx, deps, { id, by }));
}
