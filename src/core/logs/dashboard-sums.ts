// What the dashboard reads of the sums: its lines by time, who leads, and what the leaders used by time.
// Refuses to read a user's far-flung sums twice, and to add up figures that are not drawn.
import { and, inArray, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import type { Step, Stretch } from "../../shared/local-time.ts";
import { sumParts } from "./coarse.ts";
import type { SumField, SumPart } from "./coarse.ts";
import { dayOf, unitOf } from "./coarse-days.ts";
import type { DashboardQuery, Dimension, Figure } from "./dashboard.ts";
import { HOUR_SECONDS } from "./filter.ts";
import type { LogFilter } from "./filter.ts";

/** A chart has no more series of its own. */
const MOST_SERIES = 8;

/** What a dashboard covers, in the units of its bars. */
export interface Span {
  from: number;
  to: number;
  step: Step;
  stretches: readonly Stretch[];
  /** Of the bars. */
  zone: string;
  filter: LogFilter;
}

/** The field that makes a series. */
const SERIES_FIELD = {
  model: "modelName",
  user: "userId",
  channel: "channelId",
  key: "tokenId",
} as const satisfies Record<Dimension, SumField>;

export function tokenSum(table: SumPart["table"]): SQL {
  return sql`${table.promptTokens} + ${table.completionTokens}`;
}

const figureOf = (table: SumPart["table"], figure: Figure): SQL | PgColumn =>
  ({ quota: table.quota, count: table.count, tokens: tokenSum(table) })[figure];

type Ids = readonly (string | number)[];

interface Ranking {
  /** Those that lead, the largest first, and how many there are in all. */
  own: Ids;
  size: number;
  /** What each of them used in the hours that a part covers, by the hours' bounds. */
  byHours: ReadonlyMap<string, readonly Ranked[]>;
}

interface Ranked {
  id: string | number;
  value: number;
}

const boundsOf = ({ hours }: SumPart): string => `${hours?.from}-${hours?.to}`;

/** A number of a statement by hand. */
const number = (name: string) => sql`d.${sql.identifier(name)}`.mapWith(Number);

/** The leaders of what was made ready as `used`, with the figure of each and how many more there are. */
const LEADERS = sql`leaders as (select id as leader, sum(value) as total, count(*) over () as size
  from used group by id having sum(value) > 0 order by 2 desc, 1 limit ${sql.raw(String(MOST_SERIES))})`;

/** Who leads: the database ranks all users and keys of a site, however many, and tells the few that are drawn. */
async function ranking(db: Database, query: DashboardQuery, { from, to, filter }: Span): Promise<Ranking> {
  const field = SERIES_FIELD[query.by];
  const parts = await sumParts(db, { filter, from, to, by: [field] });
  if (parts.length === 0) return { own: [], size: 0, byHours: new Map() };
  const sums = parts.map(({ table, where }, at) => {
    const column = table[field] as PgColumn;
    const value = sumOf(figureOf(table, query.figure)).as("value");
    const part = sql`${sql.raw(String(at))}`.as("part");
    const sum = db.reader
      .select({ part, id: sql`${column}`.as("id"), value })
      .from(table as PgTable)
      .where(where)
      .groupBy(column);
    return sql`select * from ${sum} as ${sql.raw(`of${at}`)}`;
  });
  const rows = await db.reader
    .select({
      part: number("part"),
      id: sql<string | number>`d.id`,
      value: number("value"),
      total: number("total"),
      size: number("size"),
    })
    .from(
      sql`(with used as materialized (${sql.join(sums, sql` union all `)}), ${LEADERS}
        select used.*, total, size from used join leaders on leader = used.id) as d`,
    );
  const byHours = parts.flatMap((part, at) =>
    part.hours ? [[boundsOf(part), rows.filter((row) => row.part === at)] as const] : [],
  );
  return { own: inRank(rows), size: rows[0]?.size ?? 0, byHours: new Map(byHours) };
}

/** The ids of leaders, the largest first. */
function inRank(rows: readonly { id: string | number; total: number }[]): Ids {
  return [...new Map(rows.map(({ id, total }) => [id, total]))]
    .sort(([a, x], [b, y]) => y - x || (typeof a === "number" ? a - Number(b) : a < String(b) ? -1 : 1))
    .map(([id]) => id);
}

/** How the sums are asked for that make up bars. */
const timeOf = ({ step, zone }: Span) => (step === "hour" ? { isHourly: true } : { zone });

/** What a part sums up by unit of time. */
function linesOf(db: Database, { table, where, time, isDays }: SumPart, { step, stretches }: Span) {
  const inner = db.reader
    .select({
      unit: sql`${isDays ? time : unitOf(time, step, stretches)}`.as("unit"),
      quota: table.quota,
      count: table.count,
      tokens: tokenSum(table).as("tokens"),
      ms: table.useTimeMs,
      errors: table.errorCount,
    })
    .from(table as PgTable)
    .where(where)
    .as("found");
  return db.reader
    .select({
      unit: inner.unit,
      quota: sumOf(inner.quota),
      count: sumOf(inner.count),
      tokens: sumOf(sql`${inner.tokens}`),
      ms: sumOf(inner.ms),
      errors: sumOf(inner.errors),
    })
    .from(inner)
    .groupBy(inner.unit);
}

/** One figure of a part by unit of time and by the field that makes the series. */
function valuesOf(
  db: Database,
  { table, where, time, isDays }: SumPart,
  { step, stretches }: Span,
  { by, figure }: DashboardQuery,
) {
  const inner = db.reader
    .select({
      unit: sql`${isDays ? time : unitOf(time, step, stretches)}`.as("unit"),
      id: sql`${table[SERIES_FIELD[by]]}`.as("id"),
      value: sql`${figureOf(table, figure)}`.as("value"),
    })
    .from(table as PgTable)
    .where(where)
    .as("found");
  return db.reader
    .select({
      unit: inner.unit,
      id: sql<string | number>`${inner.id}`.as("id"),
      value: sumOf(sql`${inner.value}`).as("value"),
    })
    .from(inner)
    .groupBy(inner.unit, inner.id);
}

/** What was used by unit of time: without series, so that the coarsest sums do. */
export async function linesByUnit(db: Database, span: Span) {
  const { from, to, filter } = span;
  const parts = await sumParts(db, { filter, from, to, ...timeOf(span) });
  return (await Promise.all(parts.map((part) => linesOf(db, part, span)))).flat();
}

interface UnitValue {
  unit: unknown;
  id: string | number;
  /** Of the figure that the chart is split by. */
  value: number;
}

interface Leaders {
  /** Those that lead, the largest first, and how many there are in all. */
  own: Ids;
  size: number;
  /** What they used by unit of time. */
  rows: UnitValue[];
}

/** Who leads, and with what. */
export async function leadersByUnit(db: Database, query: DashboardQuery, span: Span): Promise<Leaders> {
  const { from, to, filter } = span;
  const field = SERIES_FIELD[query.by];
  const parts = await sumParts(db, { filter, from, to, by: [field], ...timeOf(span) });
  const [only] = parts;
  if (filter.userId !== undefined && only && parts.length === 1) return leadersAtOnce(db, query, span, only);
  const { own, size, byHours } = await ranking(db, query, span);
  if (own.length === 0) return { own, size, rows: [] };
  const found = await Promise.all(
    parts.map(async (part) => {
      const unit = onlyDayOf(part, span);
      const known = unit === undefined ? undefined : byHours.get(boundsOf(part));
      if (known) return known.map((row) => ({ ...row, unit }));
      const column = part.table[field] as PgColumn;
      return valuesOf(db, { ...part, where: and(part.each, inArray(column, [...own])) }, span, query);
    }),
  );
  return { own, size, rows: found.flat() };
}

/**
 * The day of the hours of a part, as days are counted in sums; undefined where there are several, or hours are drawn. A range that
 * begins within a day reads up to a day's hours of everybody, which is enough to do once: for the ranking.
 */
function onlyDayOf({ hours }: SumPart, { step, zone }: Span): number | undefined {
  if (!hours || step === "hour") return undefined;
  const day = dayOf(zone, hours.from);
  return dayOf(zone, hours.to - HOUR_SECONDS) === day ? day : undefined;
}

/** The same of a user's sums: they lie far apart, so that they are read once for rank and bars. */
async function leadersAtOnce(
  db: Database,
  query: DashboardQuery,
  span: Span,
  part: SumPart,
): Promise<Leaders> {
  const units = valuesOf(db, part, span, query);
  const rows = await db.reader
    .select({
      unit: sql`d.unit`,
      id: sql<string | number>`d.id`,
      value: number("value"),
      total: number("total"),
      size: number("size"),
    })
    .from(
      sql`(with used as materialized ${units}, ${LEADERS}
        select used.*, total, size from used join leaders on leader = used.id) as d`,
    );
  return { own: inRank(rows), size: rows[0]?.size ?? 0, rows };
}
