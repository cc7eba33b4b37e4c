// Figures over the log: counts, quota, rates and the dashboard's series, from hourly sums wherever these know the answer.
// Refuses to scan raw rows of whole hours, except for filters that the hourly sums do not know.
import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { countRows, sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { bounded } from "./bounds.ts";
import { errorsOf, sumParts, totalOf } from "./coarse.ts";
import {
  consumeWhere,
  END_OF_TIME,
  errorWhere,
  HOUR_SECONDS,
  isRareScan,
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

export type StatDeps = Pick<Deps, "db">;

export const CLEARED_MARK = "logs:clearedBefore";

/** A count of rows that no sum knows ends here. */
export const MOST_COUNTED = 10_000;

/** The moment before which log rows were deleted; their hourly sums remain. */
export async function clearedBefore({ db }: StatDeps): Promise<number> {
  const { marks } = db.t;
  const [mark] = await db.orm.select({ value: marks.value }).from(marks).where(eq(marks.key, CLEARED_MARK));
  return mark?.value ?? 0;
}

export async function countRaw({ db }: StatDeps, where: SQL | undefined): Promise<number> {
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
    total += await totalOf(db, { filter, ...fullHours }, (table) => {
      if (!wantsErrors(filter)) return table.loggedCount;
      const errors = errorsOf(table, filter);
      return wantsConsume(filter) ? sql`${table.loggedCount} + ${errors}` : errors;
    });
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

interface HourUse {
  hour: number;
  modelName: string;
  tokens: number;
  count: number;
  quota: number;
}

/**
 * Use by hour and model of a filter's whole hours, oldest first. An hour travels as one text: tens of thousands of rows of their
 * own cost the event loop three times as much as taking the texts apart.
 */
async function usedBetween(db: Database, filter: LogFilter): Promise<HourUse[]> {
  const { from, to } = filter;
  const parts = await sumParts(db, { filter, from, to, by: ["modelName"], isHourly: true });
  const found = await Promise.all(
    parts.map(({ table, where, time }) => {
      const model = table.modelName as PgColumn;
      // One row each in the sums by model: added up and grouped they cost PostgreSQL twice as much.
      const isOneEach = table === db.t.rollupsByModel;
      const sum = (value: SQL | PgColumn) => (isOneEach ? sql<number>`${value}` : sumOf(value));
      const rows = db.reader
        .select({
          hour: sql<number>`${time}`.as("at"),
          model: sql<string>`${model}`.as("model"),
          tokens: sum(sql`${table.promptTokens} + ${table.completionTokens}`).as("tokens"),
          count: sum(table.count).as("calls"),
          quota: sum(table.quota).as("quota"),
        })
        .from(table as PgTable)
        // Errors alone, or what a failed attempt cost, are no use.
        .where(and(where, gt(table.count, 0)))
        .$dynamic();
      const used = (isOneEach ? rows : rows.groupBy(time, model))
        .orderBy(asc(time), asc(model))
        .limit(MAX_SERIES_ROWS)
        .as("used");
      const row = sql`${used.model}, ${used.tokens}, ${used.count}, ${used.quota}`;
      const packed =
        db.kind === "postgres"
          ? sql<string>`cast(json_agg(json_build_array(${row}) order by ${used.model}) as text)`
          : sql<string>`json_group_array(json_array(${row}) order by ${used.model})`;
      return db.reader
        .select({ hour: sql<number>`${used.hour}`.mapWith(Number), packed })
        .from(used)
        .groupBy(used.hour)
        .orderBy(used.hour);
    }),
  );
  // Parts follow each other in time.
  return found
    .flat()
    .flatMap(({ hour, packed }) =>
      (JSON.parse(packed) as [string, number, number, number][]).map(
        ([modelName, tokens, count, quota]): HourUse => ({ hour, modelName, tokens, count, quota }),
      ),
    );
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
