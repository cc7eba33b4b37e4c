// Which tables answer for a stretch of whole hours: the coarsest sums that know every field, hourly ones at the edges.
// Refuses to count an hour twice: the parts lie side by side.
import { and, eq, gte, lt } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { dayOf, wholeDays } from "./coarse-days.ts";
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
  | "cacheSaved",
  PgColumn
> &
  Partial<Record<SumField, PgColumn>>;

/** A table and the rows of it that answer for a part of the range. */
export interface SumPart {
  table: PgTable & SumColumns;
  where: SQL | undefined;
  /** The start of the hour, Unix seconds; or the day, in seconds of the local clock. */
  time: PgColumn;
  isDays: boolean;
}

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
  const { userId, modelName, channelId, group } = table;
  return [
    filter.userId !== undefined && userId ? eq(userId, filter.userId) : undefined,
    filter.channelId !== undefined && channelId ? eq(channelId, filter.channelId) : undefined,
    filter.group !== undefined && group ? eq(group, filter.group) : undefined,
    filter.modelName !== undefined && modelName ? modelCondition(modelName, filter.modelName) : undefined,
  ];
}

function finePart(db: Database, { filter }: SumQuery, from: number, to: number): SumPart[] {
  if (from >= to) return [];
  const { rollups } = db.t;
  return [{ table: rollups, where: rollupWhere(db, filter, from, to), time: rollups.hour, isDays: false }];
}

/** Parts of the range, each with the coarsest table that knows what is asked. */
export async function sumParts(db: Database, query: SumQuery): Promise<SumPart[]> {
  return partsOf(db, await coarseState(db), query);
}

function partsOf(db: Database, state: CoarseState | undefined, query: SumQuery): SumPart[] {
  const { filter, from, to } = query;
  if (from >= to) return [];
  const fields = fieldsOf(query);
  const { rollupsByModel, rollupsByUser, rollupsByChannel } = db.t;
  const known = Math.max(from, state?.fromHour ?? Infinity);
  if (!state || known >= to) return finePart(db, query, from, to);
  if (isWithin(fields, ["modelName"]) && query.zone === undefined) {
    const { hour } = rollupsByModel;
    const where = and(gte(hour, known), lt(hour, to), ...narrow(rollupsByModel, filter));
    return [...finePart(db, query, from, known), { table: rollupsByModel, where, time: hour, isDays: false }];
  }
  const ofUser = isWithin(fields, ["userId"]);
  const ofChannel = isWithin(fields, ["modelName", "channelId", "group"]);
  const isOtherZone = query.zone !== undefined && query.zone !== state.zone;
  if ((!ofUser && !ofChannel) || query.isHourly || isOtherZone) return finePart(db, query, from, to);
  const days = wholeDays(state.zone, known, to);
  if (days.from >= days.to) return finePart(db, query, from, to);
  const table = ofUser ? rollupsByUser : rollupsByChannel;
  const { day } = table;
  const where = and(
    gte(day, dayOf(state.zone, days.from)),
    lt(day, dayOf(state.zone, days.to)),
    ...narrow(table, filter),
  );
  return [
    ...finePart(db, query, from, days.from),
    { table, where, time: day, isDays: true },
    ...finePart(db, query, days.to, to),
  ];
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
  /** Rows that the calls left in the log. */
  total: number;
}

/** Logged calls by hour, or by day where only these are quick, in no order. */
export async function countsOverTime(db: Database, query: SumQuery): Promise<TimedCount[]> {
  const parts = await sumParts(db, query);
  const found = await Promise.all(
    parts.map(async ({ table, where, time, isDays }) => {
      const rows = await db.reader
        .select({ at: time, total: sumOf(table.loggedCount) })
        .from(table as PgTable)
        .where(where)
        .groupBy(time);
      return rows.map(({ at, total }) => ({ at: Number(at), isDays, total }));
    }),
  );
  return found.flat();
}
