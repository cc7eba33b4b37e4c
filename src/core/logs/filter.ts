// What a log list or statistic is asked for, and the conditions it becomes on log rows and on hourly sums.
// Refuses model patterns with many wildcards; everything in a search term but % stands for itself.
import { and, eq, gte, inArray, lt, ne, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";

export const HOUR_SECONDS = 3600;

/** Beyond every time that can stand in a row, and the start of an hour. */
export const END_OF_TIME = HOUR_SECONDS * 10_000_000;

export interface LogFilter {
  /** 0 = all types. */
  type: number;
  userId?: number;
  tokenId?: number;
  /** Exact; no part of any sum: `bounded` puts ids in its place, or bounds how many rows are read. */
  tokenName?: string;
  /** The keys that bear the name, and whose they are. */
  tokenIds?: readonly number[];
  owners?: readonly number[];
  /** Exact, or a pattern when it holds %. */
  modelName?: string;
  channelId?: number;
  group?: string;
  /** Exact: the rows of one call. Not part of the hourly sums either. */
  requestId?: string;
  /** Unix seconds, included. */
  from: number;
  /** Unix seconds, not included. */
  to: number;
}

const MAX_WILDCARDS = 4;
const RARE_TYPES = [
  LogType.unknown,
  LogType.topUp,
  LogType.manage,
  LogType.system,
  LogType.error,
  LogType.login,
];
/** Of these no sum knows how many there are. */
export const UNCOUNTED_TYPES = RARE_TYPES.filter((type) => type !== LogType.error);

export function modelCondition(column: PgColumn, name: string): SQL {
  if (!name.includes("%")) return eq(column, name);
  const pattern = name
    .toLowerCase()
    .replace(/%+/g, "%")
    .replace(/[\\_]/g, (c) => `\\${c}`);
  if (pattern.split("%").length - 1 > MAX_WILDCARDS) {
    throw new Failure("client", "wildcards_many", { params: { max: MAX_WILDCARDS }, param: "model_name" });
  }
  return sql`lower(${column}) like ${pattern} escape '\\'`;
}

/** Whether the hourly sums know every field of the filter. */
export function isSummed(filter: LogFilter): boolean {
  return filter.tokenName === undefined && filter.requestId === undefined;
}

/** Whether the filter narrows more than a user and a type do, so that matching rows may lie far apart. */
export function isSparse(filter: LogFilter): boolean {
  return (
    filter.modelName !== undefined ||
    filter.channelId !== undefined ||
    filter.group !== undefined ||
    filter.tokenId !== undefined ||
    filter.tokenIds !== undefined
  );
}

/** Whether rare rows have an index by a field of the filter besides their type. */
function hasRareIndex({ userId, modelName, channelId }: LogFilter): boolean {
  return (
    userId !== undefined || channelId !== undefined || (modelName !== undefined && !modelName.includes("%"))
  );
}

/** Whether rare rows would have to be read one by one. */
export function isRareScan(filter: LogFilter): boolean {
  if (hasRareIndex(filter)) return false;
  const { modelName, group, tokenName, tokenId, tokenIds } = filter;
  return [modelName, group, tokenName, tokenId, tokenIds].some((field) => field !== undefined);
}

export function wantsConsume(filter: LogFilter): boolean {
  return filter.type === 0 || filter.type === LogType.consume;
}

export function wantsErrors(filter: LogFilter): boolean {
  return filter.type === 0 || filter.type === LogType.error;
}

/** Whether the sums know how many rows of some type the filter asks for. */
export function wantsCalls(filter: LogFilter): boolean {
  return wantsConsume(filter) || wantsErrors(filter);
}

/** Whether the filter asks for rows that no sum counts as it asks: neither calls nor errors, or errors by a model's name. */
export function wantsUncounted(filter: LogFilter): boolean {
  return filter.type === LogType.error ? filter.modelName !== undefined : filter.type !== LogType.consume;
}

/** Of the logged calls and errors that a sum knows, those that the filter asks for. */
export function askedOf(filter: LogFilter, { calls, errors }: { calls: number; errors: number }): number {
  return (wantsConsume(filter) ? calls : 0) + (wantsErrors(filter) ? errors : 0);
}

function narrow(t: Database["t"]["logs"] | Database["t"]["rollups"], filter: LogFilter): (SQL | undefined)[] {
  return [
    filter.tokenId === undefined ? undefined : eq(t.tokenId, filter.tokenId),
    filter.tokenIds === undefined ? undefined : inArray(t.tokenId, [...filter.tokenIds]),
    filter.channelId === undefined ? undefined : eq(t.channelId, filter.channelId),
    filter.group === undefined ? undefined : eq(t.group, filter.group),
    filter.modelName === undefined ? undefined : modelCondition(t.modelName, filter.modelName),
  ];
}

/** Log rows of the filter between two moments, of any type it asks for: by time, or by user and time. */
export function rawWhere(db: Database, filter: LogFilter, from: number, to: number): SQL | undefined {
  const { logs } = db.t;
  if (filter.requestId !== undefined) return requestWhere(db, filter, from, to);
  const isRare = filter.type !== 0 && filter.type !== LogType.consume;
  if (isRare) return rareWhere(db, filter, from, to);
  return and(
    filter.userId === undefined ? undefined : eq(logs.userId, filter.userId),
    gte(logs.createdAt, from),
    lt(logs.createdAt, to),
    filter.type === 0 ? undefined : eq(logs.type, filter.type),
    filter.tokenName === undefined ? undefined : eq(logs.tokenName, filter.tokenName),
    ownersWhere(db, filter),
    ...narrow(logs, filter),
  );
}

/** The few rows of one call. The sums leave the planner no index but the request's, because walking another one takes longer. */
function requestWhere(db: Database, filter: LogFilter, from: number, to: number): SQL | undefined {
  const { logs } = db.t;
  return and(
    eq(logs.requestId, filter.requestId ?? ""),
    sql`(${logs.createdAt} + 0) >= ${from}`,
    sql`(${logs.createdAt} + 0) < ${to}`,
    filter.userId === undefined ? undefined : sql`(${logs.userId} + 0) = ${filter.userId}`,
    filter.type === 0 ? undefined : sql`(${logs.type} + 0) = ${filter.type}`,
    filter.tokenName === undefined ? undefined : eq(logs.tokenName, filter.tokenName),
    ...narrow(logs, filter),
  );
}

/** Consume rows only. */
export function consumeWhere(db: Database, filter: LogFilter, from: number, to: number): SQL | undefined {
  return rawWhere(db, { ...filter, type: LogType.consume }, from, to);
}

/** Error rows that the sums know as the filter asks for them. */
export function errorWhere(db: Database, filter: LogFilter, from: number, to: number): SQL | undefined {
  const { logs } = db.t;
  const where = rareWhere(db, { ...filter, type: LogType.error }, from, to);
  return filter.modelName === undefined ? where : and(where, ne(logs.channelId, 0), ne(logs.modelName, ""));
}

/** Rows that no sum counts, of a filter that asks for some. */
export function uncountedWhere(db: Database, filter: LogFilter, from: number, to: number): SQL | undefined {
  const { logs } = db.t;
  if (filter.modelName === undefined) return rareWhere(db, filter, from, to, UNCOUNTED_TYPES);
  // The sums have such errors without their model (errorSumName).
  const isNameless = or(eq(logs.channelId, 0), eq(logs.modelName, ""));
  return and(rareWhere(db, filter, from, to), or(sql`${logs.type} <> ${LogType.error}`, isNameless));
}

/** Every row but consume rows, or of one such type: the partial indexes of rare types. `types`: what "all" means. */
export function rareWhere(
  db: Database,
  filter: LogFilter,
  from: number,
  to: number,
  types: readonly number[] = RARE_TYPES,
): SQL | undefined {
  const { logs } = db.t;
  return and(
    // Stands there word for word so that both databases see that the partial index holds every row; with other words for
    // those of a user, a model or a channel, or SQLite takes the index of types alone.
    hasRareIndex(filter) ? sql`(${logs.type} + 0) <> 2` : sql`${logs.type} <> 2`,
    filter.type === 0 ? inArray(logs.type, [...types]) : eq(logs.type, filter.type),
    gte(logs.createdAt, from),
    lt(logs.createdAt, to),
    // The sum stands in the index too, and keeps SQLite from walking all calls of a busy user to find a few rare rows.
    filter.userId === undefined ? undefined : sql`(${logs.userId} + 0) = ${filter.userId}`,
    filter.tokenName === undefined ? undefined : eq(logs.tokenName, filter.tokenName),
    ownersWhere(db, filter),
    ...narrow(logs, filter),
  );
}

/** Whose keys are meant; no reason to walk these users' rows. */
function ownersWhere(db: Database, { owners }: LogFilter): SQL | undefined {
  return owners && inArray(sql`(${db.t.logs.userId} + 0)`, [...owners]);
}

/** Hourly sums of the filter for hours that begin between two moments. */
export function rollupWhere(db: Database, filter: LogFilter, from: number, to: number): SQL | undefined {
  const { rollups } = db.t;
  return and(
    filter.userId === undefined ? undefined : eq(rollups.userId, filter.userId),
    filter.owners === undefined ? undefined : inArray(rollups.userId, [...filter.owners]),
    gte(rollups.hour, from),
    lt(rollups.hour, to),
    ...narrow(rollups, filter),
  );
}

export interface SplitRange {
  /** Whole hours, from included, to not included; empty when from >= to. */
  fullHours: { from: number; to: number };
  /** What is left on both sides, in rising order. */
  edges: { from: number; to: number }[];
}

/** Cuts a range into whole hours, which the sums answer, and the pieces beside them. */
export function splitRange(from: number, to: number): SplitRange {
  const first = Math.ceil(from / HOUR_SECONDS) * HOUR_SECONDS;
  const last = Math.floor(to / HOUR_SECONDS) * HOUR_SECONDS;
  if (first >= last) return { fullHours: { from: first, to: first }, edges: from < to ? [{ from, to }] : [] };
  const edges: SplitRange["edges"] = [];
  if (from < first) edges.push({ from, to: first });
  if (last < to) edges.push({ from: last, to });
  return { fullHours: { from: first, to: last }, edges };
}
