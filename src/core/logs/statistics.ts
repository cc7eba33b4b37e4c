// Figures over the log: counts, quota, rates and the dashboard's series, from hourly sums wherever these know the answer.
// Refuses to scan raw rows of whole hours, except for filters that the hourly sums do not know.
import { and, asc, desc, eq, gt, lt, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { countRows, sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { bounded } from "./bounds.ts";
import { countsOverTime, errorsOf, isDaily, sumParts, totalOf } from "./coarse.ts";
import { dayOf, hoursOfDay } from "./coarse-days.ts";
import { coarseState } from "./coarse-state.ts";
import {
  askedOf,
  consumeWhere,
  END_OF_TIME,
  errorWhere,
  HOUR_SECONDS,
  isRareScan,
  isSummed,
  rareWhere,
  rawWhere,
  splitRange,
  uncountedWhere,
  wantsCalls,
  wantsConsume,
  wantsErrors,
  wantsUncounted,
} from "./filter.ts";
import type { LogFilter } from "./filter.ts";

type StatDeps = Pick<Deps, "db">;

export const CLEARED_MARK = "logs:clearedBefore";

/** A count of rows that no sum knows ends here. */
export const MOST_COUNTED = 10_000;
const HOURS_PER_QUERY = 500;

/** The moment before which log rows were deleted; their hourly sums remain. */
export async function clearedBefore({ db }: StatDeps): Promise<number> {
  const { marks } = db.t;
  const [mark] = await db.orm.select({ value: marks.value }).from(marks).where(eq(marks.key, CLEARED_MARK));
  return mark?.value ?? 0;
}

async function countRaw({ db }: StatDeps, where: SQL | undefined): Promise<number> {
  const [row] = await db.reader.select({ total: countRows() }).from(db.t.logs).where(where);
  return row?.total ?? 0;
}

export interface LogCount {
  total: number;
  /** There are more: they were not counted. */
  isMore: boolean;
}

/** Number of rows a list has, of a bounded filter: from the sums, or counted to MOST_COUNTED where these do not know. */
export async function countLogs(deps: StatDeps, filter: LogFilter): Promise<LogCount> {
  const { db } = deps;
  const { logs } = db.t;
  const counted = async (where: SQL | undefined): Promise<LogCount> => {
    const found = db.reader
      .select({ one: sql<number>`1`.as("one") })
      .from(logs)
      .where(where)
      .limit(MOST_COUNTED + 1)
      .as("found");
    const [row] = await db.reader.select({ total: countRows() }).from(found);
    const total = row?.total ?? 0;
    return { total: Math.min(total, MOST_COUNTED), isMore: total > MOST_COUNTED };
  };
  if (!isSummed(filter)) return counted(rawWhere(db, filter, filter.from, filter.to));
  const from = Math.max(filter.from, await clearedBefore(deps));
  let total = 0;
  if (wantsCalls(filter) && from < filter.to) {
    const { fullHours, edges } = splitRange(from, filter.to);
    const asked = { filter, ...fullHours };
    if (wantsConsume(filter)) total += await totalOf(db, asked, (table) => table.loggedCount);
    if (wantsErrors(filter)) total += await totalOf(db, asked, (table) => errorsOf(table, filter));
    for (const edge of edges) {
      if (wantsConsume(filter)) total += await countRaw(deps, consumeWhere(db, filter, edge.from, edge.to));
      if (wantsErrors(filter)) total += await countRaw(deps, errorWhere(db, filter, edge.from, edge.to));
    }
  }
  if (!wantsUncounted(filter)) return { total, isMore: false };
  const where = uncountedWhere(db, filter, filter.from, filter.to);
  // Errors of a name that no channel serves may be many.
  const rare =
    isRareScan(filter) || filter.modelName !== undefined
      ? await counted(where)
      : { total: await countRaw(deps, where), isMore: false };
  return { total: total + rare.total, isMore: rare.isMore };
}

/** A stretch of time and how many rows of a list lie in it. */
interface Segment {
  from: number;
  to: number;
  count: number;
  /** Rows of it that come before the page: they were skipped before it, or are to be skipped in it. */
  skip: number;
  /** Of a time that was cleared: only what was spared is there. */
  isRare?: boolean;
}

/**
 * The stretches in which a filter has rows behind the `offset` newest, newest first: lets a list jump to a page without
 * walking to it. Days whose rows all lie before the page are not looked into.
 */
export async function* segmentsOf(
  deps: StatDeps,
  filter: LogFilter,
  offset: number,
): AsyncGenerator<Segment> {
  const { db } = deps;
  const cleared = Math.min(await clearedBefore(deps), filter.to);
  const from = Math.max(filter.from, cleared);
  const walk: Walk = { deps, filter, left: offset, rare: new Map() };
  if (from < filter.to) yield* liveSegments(walk, from);
  // What was spared: calls and errors are gone.
  if (from === filter.from || !wantsUncounted(filter)) return;
  const count = await countRaw(deps, rareWhere(db, filter, filter.from, from));
  const last = take(walk, { from: filter.from, to: from, count });
  if (last) yield { ...last, isRare: true };
}

interface Walk {
  deps: StatDeps;
  filter: LogFilter;
  /** Rows that are still to be skipped. */
  left: number;
  /** Rows by hour that no sum counts. */
  rare: ReadonlyMap<number, number>;
}

/** The stretch if the page may have rows of it; else it is skipped. */
function take(walk: Walk, stretch: Omit<Segment, "skip">): Segment | undefined {
  const skip = walk.left;
  walk.left = Math.max(0, walk.left - stretch.count);
  return stretch.count > skip ? { ...stretch, skip } : undefined;
}

async function* liveSegments(walk: Walk, from: number): AsyncGenerator<Segment> {
  const { deps, filter } = walk;
  const { db } = deps;
  const { fullHours, edges } = splitRange(from, filter.to);
  const ofEdge = async (edge: { from: number; to: number }) =>
    take(walk, { ...edge, count: await countRaw(deps, rawWhere(db, filter, edge.from, edge.to)) });
  const upper = edges.at(-1);
  const hasUpper = upper !== undefined && upper.from >= fullHours.to;
  const above = hasUpper && (await ofEdge(upper));
  if (above) yield above;
  if (fullHours.from < fullHours.to) {
    if (wantsUncounted(filter)) walk.rare = await uncountedByHour(deps, filter, fullHours);
    yield* (isDaily(filter) ? dailySegments : hourlySegments)(walk, fullHours);
  }
  const lower = edges[0];
  const below = lower !== undefined && !(hasUpper && lower === upper) && (await ofEdge(lower));
  if (below) yield below;
}

async function uncountedByHour(
  { db }: StatDeps,
  filter: LogFilter,
  { from, to }: { from: number; to: number },
): Promise<Map<number, number>> {
  const { logs } = db.t;
  const hour = sql`(${logs.createdAt} - ${logs.createdAt} % ${sql.raw(String(HOUR_SECONDS))})`;
  const rows = await db.reader
    .select({ hour: hour.mapWith(Number), total: countRows() })
    .from(logs)
    .where(uncountedWhere(db, filter, from, to))
    .groupBy(hour);
  return new Map(rows.map((row) => [row.hour, row.total]));
}

/** What the sums know by the day only: days that hold nothing of the page are passed over. */
async function* dailySegments(
  walk: Walk,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Segment> {
  const { filter, deps } = walk;
  const zone = (await coarseState(deps.db))?.zone ?? "UTC";
  const days = new Map<number, number>();
  const add = (day: number, total: number) => days.set(day, (days.get(day) ?? 0) + total);
  const calls = wantsCalls(filter) ? await countsOverTime(deps.db, { filter, from, to }) : [];
  for (const { at, isDays, ...counts } of calls) add(isDays ? at : dayOf(zone, at), askedOf(filter, counts));
  for (const [hour, total] of walk.rare) add(dayOf(zone, hour), total);
  for (const [day, count] of [...days].sort(([a], [b]) => b - a)) {
    if (count <= walk.left) {
      walk.left -= count;
      continue;
    }
    const hours = hoursOfDay(zone, day);
    yield* hourlySegments(walk, { from: Math.max(from, hours.from), to: Math.min(to, hours.to) });
  }
}

async function* hourlySegments(
  walk: Walk,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Segment> {
  const { filter, deps } = walk;
  const [newest] = wantsCalls(filter) ? await newestHour(deps, to) : [];
  let end = Math.min(
    to,
    Math.max(newest === undefined ? from : newest + HOUR_SECONDS, lastOf(walk.rare, from)),
  );
  while (end > from) {
    const start = Math.max(from, end - HOURS_PER_QUERY * HOUR_SECONDS);
    const calls = wantsCalls(filter)
      ? await countsOverTime(deps.db, { filter, from: start, to: end, isHourly: true })
      : [];
    const counts = new Map(calls.map(({ at, ...found }) => [at, askedOf(filter, found)]));
    for (const [hour, total] of walk.rare) {
      if (hour >= start && hour < end) counts.set(hour, (counts.get(hour) ?? 0) + total);
    }
    for (const [hour, count] of [...counts].sort(([a], [b]) => b - a)) {
      const segment = take(walk, { from: hour, to: hour + HOUR_SECONDS, count });
      if (segment) yield segment;
    }
    end = start;
    const earlier = wantsCalls(filter) ? await newestHour(deps, end) : [];
    // Years without a call are passed over.
    const next = earlier[0] === undefined ? from : earlier[0] + HOUR_SECONDS;
    const rareBefore = lastOf(new Map([...walk.rare].filter(([hour]) => hour < start)), from);
    end = Math.min(end, Math.max(next, rareBefore));
  }
}

/** The end of the last hour with rare rows. */
function lastOf(rare: ReadonlyMap<number, number>, otherwise: number): number {
  let last = otherwise;
  for (const hour of rare.keys()) last = Math.max(last, hour + HOUR_SECONDS);
  return last;
}

/** The newest hour with calls before the moment. */
async function newestHour({ db }: StatDeps, before: number): Promise<number[]> {
  const { rollups } = db.t;
  const rows = await db.reader
    .select({ hour: rollups.hour })
    .from(rollups)
    .where(lt(rollups.hour, before))
    .orderBy(desc(rollups.hour))
    .limit(1);
  return rows.map(({ hour }) => hour);
}

export interface LogStat {
  /** Whole units over the range. */
  quota: number;
  /** Calls and tokens of the last 60 seconds, whatever the range. */
  rpm: number;
  tpm: number;
}

/** Figures of consumption; the type of the filter does not matter. */
export async function logStat(deps: Pick<Deps, "db" | "clock">, asked: LogFilter): Promise<LogStat> {
  const { db } = deps;
  const { logs } = db.t;
  // Nothing rare is summed up here: no need to bound it.
  const { filter } = await bounded(deps, { ...asked, type: LogType.consume });
  const now = Math.floor(deps.clock.nowMs() / 1000);
  const quotaBetween = async (from: number, to: number): Promise<number> => {
    const [row] = await db.reader
      .select({ quota: sumOf(logs.quota) })
      .from(logs)
      .where(consumeWhere(db, filter, from, to));
    return row?.quota ?? 0;
  };
  let quota = 0;
  if (isSummed(filter)) {
    const { fullHours, edges } = splitRange(filter.from, filter.to);
    quota = await totalOf(db, { filter, ...fullHours }, (table) => table.quota);
    for (const edge of edges) quota += await quotaBetween(edge.from, edge.to);
  } else quota = await quotaBetween(filter.from, filter.to);
  const [last] = await db.reader
    .select({ rpm: countRows(), tpm: sumOf(sql`${logs.promptTokens} + ${logs.completionTokens}`) })
    .from(logs)
    .where(consumeWhere(db, filter, now - 60, END_OF_TIME));
  return { quota, rpm: last?.rpm ?? 0, tpm: last?.tpm ?? 0 };
}

/** One model's use in one hour, as dashboards draw it. */
export interface QuotaDataJson {
  id: number;
  user_id: number;
  username: string;
  model_name: string;
  /** Unix seconds of the start of the hour. */
  created_at: number;
  token_used: number;
  count: number;
  quota: number;
}

const MAX_SELF_SECONDS = 2_592_000;
const MAX_SERIES_ROWS = 100_000;
/** Rows that one query should bring. */
const SERIES_PIECE = 1500;

export interface SeriesQuery {
  /** One user's series; undefined: summed over all users. */
  user?: Pick<UserAccount, "id" | "username"> | undefined;
  /** Unix seconds, both included. */
  from: number;
  to: number;
}

/** Hourly use by model, oldest first. The hours that the range touches count in full. */
export async function quotaSeries({ db }: StatDeps, query: SeriesQuery): Promise<QuotaDataJson[]> {
  const { user } = query;
  const to = Math.ceil((query.to + 1) / HOUR_SECONDS) * HOUR_SECONDS;
  const series: QuotaDataJson[] = [];
  let hours = 24;
  // In pieces, because the event loop has other things to do than to make all of it ready.
  for (let from = query.from - (query.from % HOUR_SECONDS); from < to && series.length < MAX_SERIES_ROWS;) {
    const end = Math.min(to, from + hours * HOUR_SECONDS);
    const rows = await usedBetween(db, { type: 0, from, to: end, ...(user ? { userId: user.id } : {}) });
    for (const row of rows.slice(0, MAX_SERIES_ROWS - series.length))
      series.push({
        id: series.length + 1,
        user_id: user?.id ?? 0,
        username: user?.username ?? "",
        model_name: row.modelName,
        created_at: row.hour,
        token_used: row.tokens,
        count: row.count,
        quota: row.quota,
      });
    from = end;
    hours = Math.max(1, Math.floor(hours * Math.min(4, SERIES_PIECE / Math.max(1, rows.length))));
  }
  return series;
}

/** Use by hour and model of a filter's whole hours, oldest first. */
async function usedBetween(db: Database, filter: LogFilter) {
  const { from, to } = filter;
  const parts = await sumParts(db, { filter, from, to, by: ["modelName"], isHourly: true });
  const found = await Promise.all(
    parts.map(({ table, where, time }) => {
      const model = table.modelName as PgColumn;
      return (
        db.reader
          .select({
            hour: sql<number>`${time}`.mapWith(Number).as("at"),
            modelName: sql<string>`${model}`.as("model"),
            tokens: sumOf(sql`${table.promptTokens} + ${table.completionTokens}`),
            count: sumOf(table.count),
            quota: sumOf(table.quota),
          })
          .from(table as PgTable)
          // Errors alone, or what a failed attempt cost, are no use.
          .where(and(where, gt(table.count, 0)))
          .groupBy(time, model)
          .orderBy(asc(time), asc(model))
          .limit(MAX_SERIES_ROWS)
      );
    }),
  );
  // Parts follow each other in time.
  return found.flat();
}

/** The caller's own series, of at most one month. */
export async function ownSeries(
  deps: StatDeps,
  user: UserAccount,
  from: number,
  to: number,
): Promise<QuotaDataJson[]> {
  assertOwnRange(from, to);
  return quotaSeries(deps, { user, from, to });
}

/** Users look at one month at most; administrators at any range. Unix seconds, both included. */
export function assertOwnRange(from: number, to: number): void {
  if (to - from > MAX_SELF_SECONDS) throw refuse("data_range_long");
}
