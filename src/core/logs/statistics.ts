// Figures over the log: counts, quota, rates and the dashboard's series, from hourly sums wherever these know the answer.
// Refuses to scan raw rows of whole hours, except for filters that the hourly sums do not know.
import { asc, desc, eq, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows, sumOf } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import {
  consumeWhere,
  END_OF_TIME,
  HOUR_SECONDS,
  isSparse,
  isSummed,
  rareWhere,
  rawWhere,
  rollupWhere,
  splitRange,
  wantsConsume,
  wantsRare,
} from "./filter.ts";
import type { LogFilter } from "./filter.ts";

type StatDeps = Pick<Deps, "db">;

export const CLEARED_MARK = "logs:clearedBefore";

/** Rows that a count without hourly sums looks for at most. */
const MAX_COUNTED = 100_000;
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

/** Number of rows a list has; at most MAX_COUNTED where only raw rows can tell. */
export async function countLogs(deps: StatDeps, filter: LogFilter): Promise<number> {
  const { db } = deps;
  const { logs, rollups } = db.t;
  if (!isSummed(filter)) {
    const found = db.reader
      .select({ one: sql<number>`1`.as("one") })
      .from(logs)
      .where(rawWhere(db, filter, filter.from, filter.to))
      .limit(MAX_COUNTED)
      .as("found");
    const [row] = await db.reader.select({ total: countRows() }).from(found);
    return row?.total ?? 0;
  }
  // The index on user and time holds the answer by itself.
  if (filter.userId !== undefined && filter.type === 0 && !isSparse(filter)) {
    return countRaw(deps, rawWhere(db, filter, filter.from, filter.to));
  }
  const from = Math.max(filter.from, await clearedBefore(deps));
  let total = 0;
  if (wantsConsume(filter) && from < filter.to) {
    const { fullHours, edges } = splitRange(from, filter.to);
    const [row] = await db.reader
      .select({ total: sumOf(rollups.loggedCount) })
      .from(rollups)
      .where(rollupWhere(db, filter, fullHours.from, fullHours.to));
    total += row?.total ?? 0;
    for (const edge of edges) total += await countRaw(deps, consumeWhere(db, filter, edge.from, edge.to));
  }
  if (wantsRare(filter)) total += await countRaw(deps, rareWhere(db, filter, filter.from, filter.to));
  return total;
}

/** A stretch of time and how many rows of a list lie in it. */
export interface Segment {
  from: number;
  to: number;
  count: number;
  /** Of a time that was cleared: only what was spared is there. */
  isRare?: boolean;
}

/** The stretches in which a filter has rows, newest first: lets a list jump to a page without walking to it. */
export async function* segmentsOf(deps: StatDeps, filter: LogFilter): AsyncGenerator<Segment> {
  const { db } = deps;
  const cleared = Math.min(await clearedBefore(deps), filter.to);
  const from = Math.max(filter.from, cleared);
  if (from < filter.to) yield* liveSegments(deps, filter, from);
  if (from === filter.from || !wantsRare(filter)) return;
  const count = await countRaw(deps, rareWhere(db, filter, filter.from, from));
  if (count > 0) yield { from: filter.from, to: from, count, isRare: true };
}

async function* liveSegments(deps: StatDeps, filter: LogFilter, from: number): AsyncGenerator<Segment> {
  const { db } = deps;
  const { logs, rollups } = db.t;
  const { fullHours, edges } = splitRange(from, filter.to);
  const edgeSegment = async (edge: { from: number; to: number }): Promise<Segment> => ({
    ...edge,
    count: await countRaw(deps, rawWhere(db, filter, edge.from, edge.to)),
  });
  const upper = edges.at(-1);
  const hasUpper = upper !== undefined && upper.from >= fullHours.to;
  if (hasUpper) yield await edgeSegment(upper);

  const rare = new Map<number, number>();
  if (wantsRare(filter)) {
    const hour = sql`(${logs.createdAt} - ${logs.createdAt} % ${sql.raw(String(HOUR_SECONDS))})`;
    const rows = await db.reader
      .select({ hour: hour.mapWith(Number), total: countRows() })
      .from(logs)
      .where(rareWhere(db, filter, fullHours.from, fullHours.to))
      .groupBy(hour);
    for (const row of rows) rare.set(row.hour, row.total);
  }
  let end = fullHours.to;
  while (end > fullHours.from) {
    const part = wantsConsume(filter)
      ? await db.reader
          .select({ hour: rollups.hour, total: sumOf(rollups.loggedCount) })
          .from(rollups)
          .where(rollupWhere(db, filter, fullHours.from, end))
          .groupBy(rollups.hour)
          .orderBy(desc(rollups.hour))
          .limit(HOURS_PER_QUERY)
      : [];
    const start = part.length < HOURS_PER_QUERY ? fullHours.from : (part.at(-1)?.hour ?? fullHours.from);
    const counts = new Map(part.map((row) => [row.hour, row.total]));
    for (const [hour, total] of rare) {
      if (hour >= start && hour < end) counts.set(hour, (counts.get(hour) ?? 0) + total);
    }
    for (const [hour, count] of [...counts].sort(([a], [b]) => b - a)) {
      if (count > 0) yield { from: hour, to: hour + HOUR_SECONDS, count };
    }
    end = start;
  }
  const lower = edges[0];
  if (lower !== undefined && !(hasUpper && lower === upper)) yield await edgeSegment(lower);
}

export interface LogStat {
  /** Whole units over the range. */
  quota: number;
  /** Calls and tokens of the last 60 seconds, whatever the range. */
  rpm: number;
  tpm: number;
}

/** Figures of consumption; the type of the filter does not matter. */
export async function logStat(deps: Pick<Deps, "db" | "clock">, filter: LogFilter): Promise<LogStat> {
  const { db } = deps;
  const { logs, rollups } = db.t;
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
    const [row] = await db.reader
      .select({ quota: sumOf(rollups.quota) })
      .from(rollups)
      .where(rollupWhere(db, filter, fullHours.from, fullHours.to));
    quota = row?.quota ?? 0;
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

export interface SeriesQuery {
  /** One user's series; undefined: summed over all users. */
  user?: Pick<UserAccount, "id" | "username"> | undefined;
  /** Unix seconds, both included. */
  from: number;
  to: number;
}

/** Hourly use by model, oldest first. The hours that the range touches count in full. */
export async function quotaSeries({ db }: StatDeps, query: SeriesQuery): Promise<QuotaDataJson[]> {
  const { rollups } = db.t;
  const from = query.from - (query.from % HOUR_SECONDS);
  const filter: LogFilter = { type: 0, from, to: query.to + 1 };
  if (query.user) filter.userId = query.user.id;
  const rows = await db.reader
    .select({
      hour: rollups.hour,
      modelName: rollups.modelName,
      tokens: sumOf(sql`${rollups.promptTokens} + ${rollups.completionTokens}`),
      count: sumOf(rollups.count),
      quota: sumOf(rollups.quota),
    })
    .from(rollups)
    .where(rollupWhere(db, filter, filter.from, filter.to))
    .groupBy(rollups.hour, rollups.modelName)
    .orderBy(asc(rollups.hour), asc(rollups.modelName))
    .limit(MAX_SERIES_ROWS);
  return rows.map((row, index) => ({
    id: index + 1,
    user_id: query.user?.id ?? 0,
    username: query.user?.username ?? "",
    model_name: row.modelName,
    created_at: row.hour,
    token_used: row.tokens,
    count: row.count,
    quota: row.quota,
  }));
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
