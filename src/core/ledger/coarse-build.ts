// Fills the coarse sums from the hourly ones, newest hours first: once for a database that had none, and anew when the
// site counts its days in another zone. Refuses long transactions: a step is some hours, and calls are settled in between.
import { and, asc, desc, eq, exists, getTableColumns, gt, gte, lt, lte, ne, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { q, sumOf } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { stretchesOf } from "../../shared/local-time.ts";
import type { Deps } from "../deps.ts";
import { dayOf, unitOf } from "../logs/coarse-days.ts";
import { COARSE, DAYS_ROW, isSum } from "../logs/coarse-sums.ts";
import type { CoarseState, CoarseTable } from "../logs/coarse-sums.ts";
import { coarseState, heldState } from "../logs/coarse-state.ts";
import { END_OF_TIME, HOUR_SECONDS } from "../logs/filter.ts";

type BuildDeps = Pick<Deps, "db" | "clock" | "options">;

/**
 * A step that is quicker is doubled, one that is slower is halved: the embedded database serves nobody meanwhile. On PostgreSQL
 * settlements alone wait for it, and its round trips and commit take longer by themselves than the embedded one's whole step.
 */
const STEP_MS = { sqlite: { quick: 4, slow: 10 }, postgres: { quick: 40, slow: 100 } } as const;
const MOST_HOURS = 31 * 24;
/** Of what is dropped: hours of few rows say nothing of the next ones, and a deletion cannot be cut once it has begun. */
const MOST_DROPPED_HOURS = 48;
/** Between two steps, so that others come to their turn. */
const PAUSE_MS = 10;

/** Lets others come to their turn. */
export type Pause = (ms: number) => Promise<unknown>;

/** Condition: the coarse sums are not as the site wants them; names the value that `coarseValues` gives. */
export function coarseWaits({ db }: Pick<BuildDeps, "db">): SQL {
  const { rollupDays } = db.t;
  const zone = sql.placeholder("zone");
  const some = db.orm.select({ one: sql`1` }).from(rollupDays);
  return exists(
    some.where(and(eq(rollupDays.id, DAYS_ROW), or(gt(rollupDays.fromHour, 0), ne(rollupDays.zone, zone)))),
  );
}

/** Makes the zone's calendar, which takes 12 ms once: here nobody waits for it. */
export function coarseValues({ options }: Pick<BuildDeps, "options">): { zone: string } {
  const zone = options.get("site.time_zone");
  dayOf(zone, 0);
  return { zone };
}

/**
 * Brings the coarse sums up to what the site wants. Nothing to do, nearly always (`coarseWaits`): one row is read. May be called by
 * several nodes at once, and ended at any moment; the next call goes on.
 */
export async function buildCoarse(
  { db, clock, options }: BuildDeps,
  pause: Pause = Bun.sleep,
): Promise<void> {
  const zone = options.get("site.time_zone");
  let state = await coarseState(db);
  if (state && state.zone !== zone) {
    await setState(db, { zone, fromHour: END_OF_TIME });
    state = { zone, fromHour: END_OF_TIME };
  }
  let hours = 1;
  let wasDropping = false;
  while (state && state.fromHour > 0) {
    const startedMs = clock.monotonicMs();
    const { fromHour } = state;
    const isDropping = fromHour === END_OF_TIME && (await dropOldest(db, hours));
    // What an hour costs to delete says nothing of what it costs to fill.
    if (wasDropping && !isDropping) hours = 1;
    if (!isDropping) await fillBefore(db, state, hours);
    wasDropping = isDropping;
    const tookMs = clock.monotonicMs() - startedMs;
    const { quick, slow } = STEP_MS[db.kind];
    if (tookMs < quick) hours = Math.min(isDropping ? MOST_DROPPED_HOURS : MOST_HOURS, hours * 2);
    else if (tookMs > slow) hours = Math.max(1, hours >> 1);
    await pause(PAUSE_MS);
    state = await coarseState(db);
  }
}

async function setState(db: Database, to: CoarseState): Promise<void> {
  await db.atomic(function* (tx) {
    yield* heldState(db, tx, "update");
    yield* writeState(db, tx, to);
  });
}

function* writeState(db: Database, tx: Orm, to: CoarseState): Steps<void> {
  const { rollupDays } = db.t;
  yield* q(tx.update(rollupDays).set(to).where(eq(rollupDays.id, DAYS_ROW)).returning({ id: rollupDays.id }));
}

/** The table's columns by the key's and the sums' names; a table of the schema has them all. */
function columnsOf(db: Database, { table }: CoarseTable): Record<string, PgColumn> {
  return getTableColumns(db.t[table] as PgTable) as Record<string, PgColumn>;
}

/** Deletes the oldest rows of an earlier zone, so many hours from the first on, table by table; false when there are none left. */
async function dropOldest(db: Database, hours: number): Promise<boolean> {
  let isFound = false;
  for (const coarse of COARSE) {
    const time = columnsOf(db, coarse)[coarse.key[0]] as PgColumn;
    const table = db.t[coarse.table] as PgTable;
    isFound =
      (await db.atomic(function* (tx) {
        const state = yield* heldState(db, tx, "update");
        if (state?.fromHour !== END_OF_TIME) return false;
        const [oldest] = yield* q(tx.select({ at: time }).from(table).orderBy(asc(time)).limit(1));
        if (!oldest) return false;
        yield* q(tx.delete(table).where(lte(time, Number(oldest.at) + (hours - 1) * HOUR_SECONDS)));
        return true;
      })) || isFound;
  }
  return isFound;
}

/** Adds the last hours before the state's and moves it there; to 0 when there are none. */
async function fillBefore(db: Database, known: CoarseState, hours: number): Promise<void> {
  const { rollups } = db.t;
  await db.atomic(function* (tx) {
    const state = yield* heldState(db, tx, "update");
    // Another node was quicker, or the zone is another by now.
    if (state?.zone !== known.zone || state.fromHour !== known.fromHour) return;
    const { zone, fromHour } = state;
    const [last] = yield* q(
      tx
        .select({ hour: rollups.hour })
        .from(rollups)
        .where(lt(rollups.hour, fromHour))
        .orderBy(desc(rollups.hour))
        .limit(1),
    );
    if (!last) {
      yield* writeState(db, tx, { zone, fromHour: 0 });
      return;
    }
    const from = Math.max(0, last.hour - (hours - 1) * HOUR_SECONDS);
    for (const coarse of COARSE)
      yield* addHours(db, tx, coarse, { zone, from, to: last.hour + HOUR_SECONDS });
    yield* writeState(db, tx, { zone, fromHour: from });
  });
}

function* addHours(
  db: Database,
  tx: Orm,
  coarse: CoarseTable,
  { zone, from, to }: { zone: string; from: number; to: number },
): Steps<void> {
  const { rollups } = db.t;
  const columns = columnsOf(db, coarse);
  const fine = getTableColumns(rollups) as Record<string, PgColumn>;
  const valueOf = (field: string): SQL | PgColumn => {
    if (field === "day") return unitOf(rollups.hour, "day", stretchesOf(from, to, zone));
    const column = fine[field] as PgColumn;
    return isSum(field) ? sumOf(column) : column;
  };
  const fields = Object.keys(columns);
  const selection = Object.fromEntries(
    fields.map((field) => {
      const value = valueOf(field);
      return [field, sql`${value}`.as(field)];
    }),
  );
  const sums = fields.filter(isSum);
  const found = tx
    .select(selection)
    .from(rollups)
    .where(and(gte(rollups.hour, from), lt(rollups.hour, to)))
    .groupBy(...coarse.key.map((field) => sql`${valueOf(field)}`));
  yield* q(
    tx
      .insert(db.t[coarse.table] as PgTable)
      .select(found as never)
      .onConflictDoUpdate({
        target: coarse.key.map((field) => columns[field] as PgColumn),
        set: Object.fromEntries(
          sums.map((field) => {
            const column = columns[field] as PgColumn;
            return [field, sql`${column} + excluded.${sql.identifier(snake(field))}`];
          }),
        ),
      }),
  );
}

const snake = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
