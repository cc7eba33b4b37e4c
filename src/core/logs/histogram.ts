// How many rows a log list has over time, errors apart: the strip above the usage log.
// Refuses to scan raw rows of long ranges where the hourly sums know the answer, and more than 120 buckets.
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";
import { bounded } from "./bounds.ts";
import { countsOverTime, isDaily } from "./coarse.ts";
import { firstHourOf, hoursOfDay } from "./coarse-days.ts";
import { coarseState } from "./coarse-state.ts";
import {
  consumeWhere,
  errorWhere,
  HOUR_SECONDS,
  isSummed,
  rawWhere,
  splitRange,
  uncountedWhere,
  wantsCalls,
  wantsConsume,
  wantsErrors,
  wantsUncounted,
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
const DAY_STEPS = HOUR_STEPS.filter((step) => step % DAY === 0);
/** Where only days are summed, hours are read up to here. */
const HOURLY_SECONDS = 7 * DAY + HOUR_SECONDS;
const MOST_BUCKETS = 60;

function stepFor(seconds: number, steps: readonly number[]): number {
  const found = steps.find((step) => seconds / step <= MOST_BUCKETS);
  return found ?? Math.ceil(seconds / MOST_BUCKETS / DAY) * DAY;
}

interface Counted {
  at: number;
  type: number;
  total: number;
}

/** Counts by unit of time and type, straight from the rows. */
async function countRaw({ db }: Pick<Deps, "db">, where: SQL | undefined, unit: number): Promise<Counted[]> {
  const { logs } = db.t;
  const at = sql`(${logs.createdAt} - ${logs.createdAt} % ${sql.raw(String(unit))})`;
  const rows = await db.reader
    .select({ at: at.mapWith(Number), type: logs.type, total: countRows() })
    .from(logs)
    .where(where)
    .groupBy(at, logs.type);
  return rows.map((row) => ({ at: row.at, type: Number(row.type), total: row.total }));
}

/** Starts of the buckets: of one length from the start, or whole days of the zone, which are not all of one length. */
function startsOf(start: number, to: number, step: number, zone: string): number[] {
  const starts: number[] = [];
  for (let at = start; at < to;) {
    starts.push(at);
    at = step % DAY === 0 ? firstHourOf(zone, at + step + 2 * HOUR_SECONDS) : at + step;
  }
  return starts;
}

/**
 * Rows of the filter by time. The range begins at the start of its first minute, hour or day; a range without an end (a
 * filter's default) is the caller's to bound.
 */
export async function logHistogram(deps: Pick<Deps, "db">, asked: LogFilter): Promise<LogHistogram> {
  const { db } = deps;
  const { filter, isCut } = await bounded(deps, asked);
  const zone = (await coarseState(db))?.zone ?? "UTC";
  const seconds = Math.max(0, asked.to - asked.from);
  const isShort = seconds <= RAW_SECONDS;
  const unit = isShort ? MINUTE : HOUR_SECONDS;
  const steps = isShort ? STEPS : isDaily(filter) && seconds > HOURLY_SECONDS ? DAY_STEPS : HOUR_STEPS;
  const begin = asked.from - (asked.from % unit);
  const step = stepFor(asked.to - begin, steps);
  const start = step % DAY === 0 ? firstHourOf(zone, begin) : begin;
  const starts = startsOf(start, asked.to, step, zone);
  const buckets: LogBucket[] = starts.map((at) => ({ at, count: 0, errors: 0 }));
  const add = (counted: readonly Counted[]) => {
    for (const { at, type, total } of counted) {
      const bucket = buckets[starts.findLastIndex((each) => each <= at)];
      if (!bucket) continue;
      if (type === LogType.error) bucket.errors += total;
      else bucket.count += total;
    }
  };
  const drawn = { from: start, step, buckets, isCut };
  if (isShort || !isSummed(filter)) {
    add(await countRaw(deps, rawWhere(db, filter, filter.from, filter.to), unit));
    return drawn;
  }
  // Sums outlive the rows that were cleared; the list does not show these any more.
  const from = Math.max(filter.from, await clearedBefore(deps));
  if (wantsCalls(filter) && from < filter.to) {
    const { fullHours, edges } = splitRange(from, filter.to);
    const time = step % DAY === 0 ? { zone } : { isHourly: true };
    for (const { at, isDays, calls, errors } of await countsOverTime(db, { filter, ...fullHours, ...time })) {
      const begun = isDays ? hoursOfDay(zone, at).from : at;
      if (wantsConsume(filter)) add([{ at: begun, type: LogType.consume, total: calls }]);
      if (wantsErrors(filter)) add([{ at: begun, type: LogType.error, total: errors }]);
    }
    for (const edge of edges) {
      if (wantsConsume(filter)) add(await countRaw(deps, consumeWhere(db, filter, edge.from, edge.to), unit));
      if (wantsErrors(filter)) add(await countRaw(deps, errorWhere(db, filter, edge.from, edge.to), unit));
    }
  }
  if (wantsUncounted(filter))
    add(await countRaw(deps, uncountedWhere(db, filter, filter.from, filter.to), unit));
  return drawn;
}
