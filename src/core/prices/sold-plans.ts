// Plans that the site sells, as a part of its prices: read as entries by id, written back in the block that records them.
// Refuses a title twice, and to touch what was bought: that keeps the terms of its purchase.
import { and, asc, eq, inArray, isNull, ne } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { SOLD_PLANS } from "../../shared/price-desk.ts";
import type { Deps } from "../deps.ts";
import type { OptionAuthor } from "../options/store.ts";
import { fieldsOf, planColumns } from "../plans/plans.ts";
import type { PlanColumns, PlanFields } from "../plans/plans.ts";
import type { PlanRow } from "../plans/purse.ts";
import type { PriceChange } from "./changes.ts";
import { lockPrices } from "./price-lock.ts";

/** Those on the list, by id. */
export const plansOnSale = ({ t: { plans } }: Pick<Database, "t">, orm: Orm) =>
  orm.select().from(plans).where(isNull(plans.deletedAt)).orderBy(asc(plans.id));

/** As the text of an option would hold them: terms by id. */
export function plansText(rows: readonly PlanRow[]): string {
  return JSON.stringify(Object.fromEntries(rows.map((row) => [row.id, fieldsOf(row)])));
}

export interface PlanWrite {
  /** 0: a new one. */
  id: number;
  /** Undefined: nobody buys it any more; what was bought goes on. */
  columns: PlanColumns | undefined;
}

const ID = /^[1-9]\d{0,14}$/;

/** What changes of prices write of plans; `writesOf` has judged their terms. */
export function planWritesOf(changes: readonly PriceChange[]): PlanWrite[] {
  return changes
    .filter(({ key }) => key === SOLD_PLANS)
    .map(({ name, after }) => ({
      id: ID.test(name) ? Number(name) : 0,
      columns: after === null ? undefined : planColumns(() => true, after as PlanFields),
    }));
}

type WriteDeps = Pick<Deps, "db" | "clock">;

/**
 * Writes them inside the block, behind the lock of prices; answers what the history is told. A plan that was taken away comes
 * back as the row that it was, so that what was bought of it still counts. Throws `plan_title_taken`, `plan_missing`.
 */
export function* writePlanSteps(
  deps: WriteDeps,
  tx: Orm,
  writes: readonly PlanWrite[],
): Steps<PriceChange[]> {
  const { plans } = deps.db.t;
  const ids = writes.map(({ id }) => id).filter((id) => id > 0);
  const rows = ids.length === 0 ? [] : yield* q(tx.select().from(plans).where(inArray(plans.id, ids)));
  const known = new Map(rows.map((row) => [row.id, row]));
  const changes: PriceChange[] = [];
  // Titles that go are free for those that come.
  for (const write of writes.toSorted(
    (a, b) => Number(a.columns !== undefined) - Number(b.columns !== undefined),
  )) {
    const row = known.get(write.id);
    if (write.id > 0 && !row) throw refuse("plan_missing");
    const before = row && row.deletedAt === null ? fieldsOf(row) : null;
    const after = write.columns ? fieldsOf(write.columns) : null;
    if (Bun.deepEquals(before, after)) continue;
    const id = yield* writeRow(deps, tx, write);
    changes.push({ key: SOLD_PLANS, name: String(id), before, after });
  }
  return changes;
}

function* writeRow({ db, clock }: WriteDeps, tx: Orm, { id, columns }: PlanWrite): Steps<number> {
  const { plans } = db.t;
  const now = Math.floor(clock.nowMs() / 1000);
  if (columns) {
    const [other] = yield* q(
      tx
        .select({ id: plans.id })
        .from(plans)
        .where(and(eq(plans.title, columns.title), isNull(plans.deletedAt), ne(plans.id, id))),
    );
    if (other) throw new Failure("client", "plan_title_taken", { param: "title" });
  }
  if (id === 0 && columns) {
    const [made] = yield* q(
      tx
        .insert(plans)
        .values({ ...columns, createdAt: now, updatedAt: now })
        .returning({ id: plans.id }),
    );
    return made?.id ?? 0;
  }
  const set = columns ? { ...columns, updatedAt: now, deletedAt: null } : { deletedAt: now, enabled: false };
  yield* q(tx.update(plans).set(set).where(eq(plans.id, id)).returning({ id: plans.id }));
  return id;
}

type PlanDeps = Pick<Deps, "db" | "clock" | "options">;

/** The terms of a plan on the list, inside the block. Throws `plan_missing`. */
function* termsInside({ t: { plans } }: Database, tx: Orm, id: number): Steps<PlanFields> {
  const [row] = yield* q(
    tx
      .select()
      .from(plans)
      .where(and(eq(plans.id, id), isNull(plans.deletedAt))),
  );
  if (!row) throw refuse("plan_missing");
  return fieldsOf(row);
}

/** Throws what `planColumns` throws, `plan_title_taken`, `plan_missing`. Answers the id. */
function savePlan(
  deps: PlanDeps,
  author: OptionAuthor,
  id: number,
  terms: (before: PlanFields | undefined) => PlanFields | undefined,
): Promise<number> {
  return deps.options.write(
    function* (tx) {
      yield* lockPrices(deps.db, tx);
      const after = terms(id === 0 ? undefined : yield* termsInside(deps.db, tx, id));
      const ratios = deps.options.get("GroupRatio");
      const columns = after && planColumns((group) => Object.hasOwn(ratios, group), after);
      const beside = yield* writePlanSteps(deps, tx, [{ id, columns }]);
      return { writes: [], beside, value: id === 0 ? Number(beside[0]?.name) : id };
    },
    { ...author, kind: "plans" },
  );
}

/** Answers the id of the new plan. */
export function createPlan(deps: PlanDeps, author: OptionAuthor, fields: PlanFields): Promise<number> {
  return savePlan(deps, author, 0, () => fields);
}

/** What is not named stays. */
export async function updatePlan(
  deps: PlanDeps,
  author: OptionAuthor,
  id: number,
  fields: Partial<PlanFields>,
): Promise<void> {
  await savePlan(deps, author, id, (before) => ({ ...(before as PlanFields), ...fields }));
}

/** Nobody buys it any more; what was bought goes on. */
export async function removePlan(deps: PlanDeps, author: OptionAuthor, id: number): Promise<void> {
  await savePlan(deps, author, id, () => undefined);
}
