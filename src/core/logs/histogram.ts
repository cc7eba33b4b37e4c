// How many rows a log list has over time, errors apart: the strip above the usage log.
// Refuses to scan raw rows of long ranges where the hourly sums know the answer, and more than 120 buckets.
import { desc, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows, sumOf } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";
import {
  consumeWhere,
  HOUR_SECONDS,
  isSummed,
  rareWhere,
  rawWhere,
  rollupWhere,
  splitRange,
  wantsConsume,
  wantsRare,
} from "./filter.ts";
import type { LogFilter } from "./filter.ts";
import { clearedBefore } from "./statistics.ts";

interface LogBucket {
  /** Unix seconds of its start. */
  at: number;
  /** Rows that are no errors. */
  count: number;
  errors: number;
}

export interface LogHistogram {
  /** Start of the first bucket, Unix seconds. */
  from: number;
  /** Length of a bucket in seconds. */
  step: number;
  /** Every bucket of the range, in order, empty ones too. */
  buckets: LogBucket[];
  /** More rows than could be read: the oldest buckets are too low. */
  isCut: boolean;
}

const MINUTE = 60;
const DAY = 24 * HOUR_SECONDS;
/** Up to here the raw rows are read, bucket by bucket of minutes. */
const RAW_SECONDS = 2 * HOUR_SECONDS;
const STEPS = [1, 2, 5, 10, 30].map((minutes) => minutes * MINUTE);
const HOUR_STEPS = [1, 2, 3, 6, 12, 24, 2 * 24, 7 * 24, 30 * 24, 365 * 24].map(
  (hours) => hours * HOUR_SECONDS,
);
const MOST_BUCKETS = 60;
/** Rows that are read at most where only raw rows can tell. */
const MAX_RAW = 500_000;

function stepFor(seconds: number, steps: readonly number[]): number {
  const found = steps.find((step) => seconds / step <= MOST_BUCKETS);
  return found ?? Math.ceil(seconds / MOST_BUCKETS / DAY) * DAY;
}

interface Counted {
  at: number;
  type: number;
  total: number;
}

/** Counts by bucket and type, straight from the rows. */
async function countRaw(
  { db }: Pick<Deps, "db">,
  where: SQL | undefined,
  from: number,
  step: number,
): Promise<Counted[]> {
  const { logs } = db.t;
  const inner = db.reader
    .select({
      at: sql<number>`(${logs.createdAt} - (${logs.createdAt} - ${sql.raw(String(from))}) % ${sql.raw(String(step))})`.as(
        "bucket",
      ),
      type: logs.type,
    })
    .from(logs)
    .where(where)
    .orderBy(desc(logs.createdAt))
    .limit(MAX_RAW)
    .as("found");
  const rows = await db.reader
    .select({ at: inner.at, type: inner.type, total: countRows() })
    .from(inner)
    .groupBy(inner.at, inner.type);
  return rows.map((row) => ({ at: Number(row.at), type: Number(row.type), total: row.total }));
}

/** Calls of whole hours from the hourly sums. */
async function countSummed(
  { db }: Pick<Deps, "db">,
  filter: LogFilter,
  from: number,
  to: number,
): Promise<Counted[]> {
  const { rollups } = db.t;
  const rows = await db.reader
    .select({ hour: rollups.hour, total: sumOf(rollups.loggedCount) })
    .from(rollups)
    .where(rollupWhere(db, filter, from, to))
    .groupBy(rollups.hour);
  return rows.map((row) => ({ at: row.hour, type: LogType.consume, total: row.total }));
}

/**
 * Rows of the filter by time. The range begins at the start of its first minute or hour; a range without an end (a
 * filter's default) is the caller's to bound.
 */
export async function logHistogram(deps: Pick<Deps, "db">, filter: LogFilter): Promise<LogHistogram> {
  const { db } = deps;
  const seconds = Math.max(0, filter.to - filter.from);
  const isShort = seconds <= RAW_SECONDS;
  const unit = isShort ? MINUTE : HOUR_SECONDS;
  const start = filter.from - (filter.from % unit);
  const step = stepFor(filter.to - start, isShort ? STEPS : HOUR_STEPS);
  const size = Math.ceil((filter.to - start) / step);
  const buckets: LogBucket[] = Array.from({ length: size }, (_, index) => ({
    at: start + index * step,
    count: 0,
    errors: 0,
  }));
  let isCut = false;
  const add = (counted: readonly Counted[]) => {
    if (counted.reduce((sum, { total }) => sum + total, 0) >= MAX_RAW) isCut = true;
    for (const { at, type, total } of counted) {
      const bucket = buckets[Math.floor((at - start) / step)];
      if (!bucket) continue;
      if (type === LogType.error) bucket.errors += total;
      else bucket.count += total;
    }
  };
  if (isShort || !isSummed(filter)) {
    add(await countRaw(deps, rawWhere(db, filter, filter.from, filter.to), start, step));
    return { from: start, step, buckets, isCut };
  }
  // Sums outlive the rows that were cleared; the list does not show these any more.
  const from = Math.max(filter.from, await clearedBefore(deps));
  if (wantsConsume(filter) && from < filter.to) {
    const { fullHours, edges } = splitRange(from, filter.to);
    add(await countSummed(deps, filter, fullHours.from, fullHours.to));
    isCut = false;
    for (const edge of edges)
      add(await countRaw(deps, consumeWhere(db, filter, edge.from, edge.to), start, step));
  }
  if (wantsRare(filter)) {
    add(await countRaw(deps, rareWhere(db, filter, filter.from, filter.to), start, step));
  }
  return { from: start, step, buckets, isCut };
}
