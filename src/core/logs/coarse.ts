// Which tables answer for a stretch of whole hours: the coarsest sums that know every field, hourly ones at the edges.
// Refuses to count an hour twice: the parts lie side by side.
import { and, desc, eq, gte, lt, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { dayOf, hoursOfDay, wholeDays } from "./coarse-days.ts";
import { coarseState } from "./coarse-state.ts";
import type { CoarseState } from "./coarse-sums.ts";
import { modelCondition, rollupWhere } from "./filter.ts";
import type { LogFilter } from "./filter.ts";

/** Columns that every table of sums has, and those that only some have. */
type SumColumns = Record<
  | "count"
  | "quota"
  | "promptTokens"
  | "completionTokens"
  | "useTimeMs"
  | "loggedCount"
  | "costNanos"
  | "costCount"
  | "costQuota"
  | "lostNanos"
  | "cacheInput"
  | "cacheRead"
  | "cacheSaved"
  | "errorCount",
  PgColumn
> &
  Partial<Record<SumField, PgColumn>>;

/** A table and the rows of it that answer for a part of the range. */
export interface SumPart {
  table: PgTable & SumColumns;
  where: SQL | undefined;
  /** The same with its days one by one: for few values of the field that stands behind the day in the key. */
  each: SQL | undefined;
  /** The start of the hour, Unix seconds; or the day, in seconds of the local clock. */
  time: PgColumn;
  isDays: boolean;
  /** What hours it covers, Unix seconds, the end not included; undefined: whole days. */
  hours: { from: number; to: number } | undefined;
}

const DAY = 86_400;
/** More days than these are read as a range. */
const MOST_DAYS = 400;

/** What a figure is split by besides time. */
export type SumField = "modelName" | "userId" | "channelId" | "tokenId" | "group";

export interface SumQuery {
  filter: LogFilter;
  /** Whole hours, Unix seconds, the end not included. */
  from: number;
  to: number;
  /** Fields that are grouped by, besides those of the filter. */
  by?: readonly SumField[];
  /** Sums by hour are wanted: days do not do. */
  isHourly?: boolean;
  /** Sums by day are wanted, of this zone: other days do not do. */
  zone?: string;
}

const narrowing = [
  ["userId", "userId"],
  ["tokenId", "tokenId"],
  ["tokenIds", "tokenId"],
  ["owners", "userId"],
  ["modelName", "modelName"],
  ["channelId", "channelId"],
  ["group", "group"],
] as const satisfies readonly (readonly [keyof LogFilter, SumField])[];

/** The fields that the sums must know. */
function fieldsOf({ filter, by = [] }: SumQuery): Set<SumField> {
  const fields = new Set(by);
  for (const [name, field] of narrowing) if (filter[name] !== undefined) fields.add(field);
  return fields;
}

const isWithin = (fields: ReadonlySet<SumField>, known: readonly SumField[]): boolean =>
  [...fields].every((field) => known.includes(field));

/** The filter on a table that knows its fields. */
function narrow(table: SumColumns, filter: LogFilter): (SQL | undefined)[] {
  const { userId, modelName, channelId, tokenId, group } = table;
  return [
    filter.tokenId !== undefined && tokenId ? eq(tokenId, filter.tokenId) : undefined,
    filter.userId !== undefined && userId ? eq(userId, filter.userId) : undefined,
    filter.channelId !== undefined && channelId ? eq(channelId, filter.channelId) : undefined,
    filter.group !== undefined && group ? eq(group, filter.group) : undefined,
    filter.modelName !== undefined && modelName ? modelCondition(modelName, filter.modelName) : undefined,
  ];
}

function finePart(db: Database, { filter }: SumQuery, from: number, to: number): SumPart[] {
  if (from >= to) return [];
  const { rollups } = db.t;
  const where = rollupWhere(db, filter, from, to);
  return [{ table: rollups, where, each: where, time: rollups.hour, isDays: false, hours: { from, to } }];
}

/** Hours from the sums by model. */
function modelPart(db: Database, { filter }: SumQuery, from: number, to: number): SumPart[] {
  if (from >= to) return [];
  const { rollupsByModel } = db.t;
  const { hour } = rollupsByModel;
  const where = and(gte(hour, from), lt(hour, to), ...narrow(rollupsByModel, filter));
  return [{ table: rollupsByModel, where, each: where, time: hour, isDays: false, hours: { from, to } }];
}

type DayTable = Database["t"]["rollupsByUser" | "rollupsByUserModel" | "rollupsByToken" | "rollupsByChannel"];

/** Whole days, given as the table counts them: from included, to not included. */
function dayPart(table: DayTable, filter: LogFilter, from: number, to: number): SumPart[] {
  const { day } = table;
  const own = narrow(table, filter);
  const range = and(gte(day, from), lt(day, to), ...own);
  const days = Array.from({ length: Math.min((to - from) / DAY, MOST_DAYS + 1) }, (_, at) => from + at * DAY);
  const each = days.length > MOST_DAYS ? range : and(sql`${day} in (${sql.raw(days.join(", "))})`, ...own);
  // A user or a key has one row a day, or one for each model or key of the user.
  const isOne = filter.userId !== undefined || filter.tokenId !== undefined;
  return [{ table, where: isOne ? each : range, each, time: day, isDays: true, hours: undefined }];
}

/** The hours that lie behind no others: a day with its last hour among them is whole. */
async function newestHour(db: Database): Promise<number> {
  const { rollupsByModel } = db.t;
  const [newest] = await db.orm
    .select({ hour: rollupsByModel.hour })
    .from(rollupsByModel)
    .orderBy(desc(rollupsByModel.hour))
    .limit(1);
  return newest?.hour ?? 0;
}

/** Parts of the range, each with the coarsest table that knows what is asked. */
export async function sumParts(db: Database, query: SumQuery): Promise<SumPart[]> {
  // Only days ask where the newest hour lies.
  const [state, newest] = await Promise.all([coarseState(db), query.isHourly ? 0 : newestHour(db)]);
  return partsOf(db, state, newest, query);
}

function partsOf(db: Database, state: CoarseState | undefined, newest: number, query: SumQuery): SumPart[] {
  const { filter, from, to } = query;
  if (from >= to) return [];
  const fields = fieldsOf(query);
  const known = Math.max(from, state?.fromHour ?? Infinity);
  if (!state || known >= to) return finePart(db, query, from, to);
  const hours = (begin: number, end: number): SumPart[] =>
    isWithin(fields, ["modelName"])
      ? [
          ...finePart(db, query, begin, Math.min(known, end)),
          ...modelPart(db, query, Math.max(begin, known), end),
        ]
      : finePart(db, query, begin, end);
  const table = dayTable(db, fields, filter);
  const isOtherZone = query.zone !== undefined && query.zone !== state.zone;
  if (!table || query.isHourly || isOtherZone) return hours(from, to);
  const { zone } = state;
  // Today is whole as far as it has come, and behind it lies nothing.
  const isToday = newest < to;
  const days = wholeDays(zone, known, isToday ? hoursOfDay(zone, dayOf(zone, newest)).to : to);
  if (days.from >= days.to) return hours(from, to);
  return [
    ...hours(from, days.from),
    ...dayPart(table, filter, dayOf(zone, days.from), dayOf(zone, days.to)),
    ...(isToday ? [] : hours(days.to, to)),
  ];
}

/** The sums by day that know the fields; undefined: none. */
function dayTable(
  { t }: Database,
  fields: ReadonlySet<SumField>,
  { tokenIds, userId }: LogFilter,
): DayTable | undefined {
  if (isWithin(fields, ["modelName", "channelId", "group"])) return t.rollupsByChannel;
  if (isWithin(fields, ["userId"])) return t.rollupsByUser;
  // A list of keys comes with whose they are, and these have an index of their own.
  if (tokenIds !== undefined) return undefined;
  if (isWithin(fields, ["tokenId", "userId"])) return t.rollupsByToken;
  // Without a user in the filter the days of all users would be read.
  return userId !== undefined && isWithin(fields, ["userId", "modelName"]) ? t.rollupsByUserModel : undefined;
}

/** Errors that a sum knows as the filter asks for them: those without a model may bear any name in their rows. */
export function errorsOf({ errorCount, modelName }: SumColumns, filter: LogFilter): PgColumn | SQL {
  return filter.modelName === undefined || !modelName
    ? errorCount
    : sql`case when ${modelName} = '' then 0 else ${errorCount} end`;
}

/** One sum over all parts. */
export async function totalOf(
  db: Database,
  query: SumQuery,
  value: (table: SumColumns) => PgColumn | SQL,
): Promise<number> {
  const parts = await sumParts(db, query);
  const found = await Promise.all(
    parts.map(({ table, where }) =>
      db.reader
        .select({ total: sumOf(value(table)) })
        .from(table)
        .where(where),
    ),
  );
  return found.reduce((sum, [row]) => sum + (row?.total ?? 0), 0);
}

/** Whether only sums by day know the filter's fields: by the hour it would be all hourly sums that are read. */
export function isDaily(filter: LogFilter): boolean {
  const fields = fieldsOf({ filter, from: 0, to: 0 });
  return isWithin(fields, ["modelName", "channelId", "group"]) && !isWithin(fields, ["modelName"]);
}

interface TimedCount {
  /** Start of the hour, Unix seconds, or of the day in seconds of the local clock. */
  at: number;
  isDays: boolean;
  /** Rows that calls left in the log, and that failed ones did. */
  calls: number;
  errors: number;
}

/** Logged calls and errors by hour, or by day where only these are quick, in no order. */
export async function countsOverTime(db: Database, query: SumQuery): Promise<TimedCount[]> {
  const parts = await sumParts(db, query);
  const found = await Promise.all(
    parts.map(async ({ table, where, time, isDays }) => {
      const rows = await db.reader
        .select({ at: time, calls: sumOf(table.loggedCount), errors: sumOf(errorsOf(table, query.filter)) })
        .from(table as PgTable)
        .where(where)
        .groupBy(time);
      return rows.map(({ at, ...counts }) => ({ at: Number(at), isDays, ...counts }));
    }),
  );
  return found.flat();
}
