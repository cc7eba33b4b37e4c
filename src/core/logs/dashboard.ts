// The dashboard's figures: use over time by model, user, channel or key, in bars of a calendar.
// Refuses to read raw rows, except the newest errors' reasons and the last unfinished hour of the comparison.
import { and, asc, desc, eq, gte, inArray, lt, sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import { countRows, sumOf } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { barsOf, bucketNumber, stepFor, stretchesOf } from "../../shared/local-time.ts";
import type { Step } from "../../shared/local-time.ts";
import type { Deps } from "../deps.ts";
import { inTurns } from "../kit/turns.ts";
import { sumParts } from "./coarse.ts";
import { leadersByUnit, linesByUnit, tokenSum } from "./dashboard-sums.ts";
import type { Span } from "./dashboard-sums.ts";
import { consumeWhere, HOUR_SECONDS, rareWhere, splitRange } from "./filter.ts";
import type { LogFilter } from "./filter.ts";

/** A chart has no more bars than this. */
const MOST_BARS = 120;

export const FIGURES = ["quota", "count", "tokens"] as const;
export type Figure = (typeof FIGURES)[number];

export const DIMENSIONS = ["model", "user", "channel", "key"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export interface DashboardQuery {
  /** Whose use; undefined: everybody's. */
  userId?: number | undefined;
  /** Unix seconds, widened to whole hours; the end is not included. */
  from: number;
  to: number;
  /** undefined: what suits the range. */
  step?: Step | undefined;
  /** What is split by the dimension, and decides who leads. */
  figure: Figure;
  by: Dimension;
  /** Name of the zone whose days and weeks are drawn. */
  zone: string;
}

interface Sums {
  /** Whole units. */
  quota: number;
  count: number;
  /** Prompt and completion. */
  tokens: number;
}

interface Series {
  /** The model's name, or the id as text. */
  id: string;
  /** What people call it; "" when it has no name (any more). */
  name: string;
  /** One per bar. */
  values: number[];
}

export interface Dashboard {
  /** The range that was counted, Unix seconds; the end is not included. */
  from: number;
  to: number;
  step: Step;
  by: Dimension;
  figure: Figure;
  /** Start of each bar. */
  at: number[];
  /** Whole units, calls, prompt and completion tokens: one per bar. */
  lines: Record<Figure, number[]>;
  /** The leaders of the figure, highest first; what is left to its line belongs to `otherSize` others. */
  series: Series[];
  otherSize: number;
  /** Per bar: failed calls, and the time that the counted calls took in milliseconds. */
  errors: number[];
  ms: number[];
  /** The same stretch of time before it, as far as this one has passed. */
  previous: Sums;
  /** Seconds of the range that have passed. */
  elapsed: number;
  /** Models that were refused because they had no price, and still have none. */
  unpriced: string[];
}

type DashboardDeps = Pick<Deps, "db" | "clock" | "options" | "prices">;

/** Errors that are looked through for them, the newest. */
const MOST_ERRORS_READ = 5000;
/** Models that are named to have been refused; the rest is in the log. */
const MOST_UNPRICED = 50;

/**
 * Use over time. The lines add up to what the log's rows of the same range do, and the series to no more than their line.
 * Throws `data_bars_many` when the step makes more than MOST_BARS bars.
 */
export async function dashboard(deps: DashboardDeps, query: DashboardQuery): Promise<Dashboard> {
  const { db } = deps;
  const from = query.from - (query.from % HOUR_SECONDS);
  const to = Math.max(from + HOUR_SECONDS, Math.ceil(query.to / HOUR_SECONDS) * HOUR_SECONDS);
  const step = query.step ?? stepFor(to - from);
  const bars = barsOf(from, to, step, query.zone, MOST_BARS);
  if (!bars) throw new Failure("client", "data_bars_many", { params: { max: MOST_BARS } });
  const filter: LogFilter = { type: 0, from, to };
  if (query.userId !== undefined) filter.userId = query.userId;
  const span: Span = {
    from,
    to,
    step,
    stretches: stretchesOf(from, to, query.zone),
    zone: query.zone,
    filter,
  };

  const nowSeconds = Math.floor(deps.clock.nowMs() / 1000);
  const elapsed = Math.min(Math.max(nowSeconds - from, 0), to - from);
  const [rows, { own, size, rows: leaders }, previous, unpriced] = await inTurns(
    () => linesByUnit(db, span),
    () => leadersByUnit(db, query, span),
    () => sumsBetween(deps, filter, from - (to - from), from - (to - from) + elapsed),
    () => refusedUnpriced(deps, span),
  );
  const names = await namesOf(deps, query.by, own);

  const zeros = (): number[] => Array.from(bars.at, () => 0);
  const series = own.map((id): Series => ({
    id: String(id),
    name: names.get(String(id)) ?? "",
    values: zeros(),
  }));
  const lines = { quota: zeros(), count: zeros(), tokens: zeros() };
  const [errors, ms] = [zeros(), zeros()];
  // Local days count as days of UTC here: their offset is already in them.
  const barOf = (unit: unknown): number =>
    Math.min(Math.max(bucketNumber(Number(unit), step, 0) - bars.first, 0), bars.at.length - 1);
  const add = (into: number[] | undefined, bar: number, amount: number): void => {
    if (into) into[bar] = (into[bar] ?? 0) + amount;
  };
  for (const row of rows) {
    const bar = barOf(row.unit);
    for (const figure of FIGURES) add(lines[figure], bar, row[figure]);
    add(ms, bar, row.ms);
    add(errors, bar, row.errors);
  }
  const barsOfSeries = new Map(series.map(({ id, values }) => [id, values]));
  for (const { id, unit, value } of leaders) add(barsOfSeries.get(String(id)), barOf(unit), value);
  raiseTo(lines[query.figure], series);
  return {
    from,
    to,
    step,
    by: query.by,
    figure: query.figure,
    at: bars.at,
    lines,
    series,
    otherSize: size - own.length,
    errors,
    ms,
    previous,
    elapsed,
    unpriced,
  };
}

/** What was used between the reading of a line and that of its series is in these alone: the line has at least what they have. */
function raiseTo(line: number[], series: readonly Series[]): void {
  for (const [bar, amount] of line.entries()) {
    const drawn = series.reduce((sum, { values }) => sum + (values[bar] ?? 0), 0);
    line[bar] = Math.max(amount, drawn);
  }
}

/**
 * Error rows are few, and say why in their JSON; who had no price was refused before any channel was asked. Sites that refuse
 * none any more have nothing to tell.
 */
async function refusedUnpriced(deps: DashboardDeps, { filter, from, to }: Span): Promise<string[]> {
  if (deps.options.get("SelfUseModeEnabled")) return [];
  const { logs } = deps.db.t;
  // A user's errors have an index of their own, in which the channel stands too: with other words, or it would not be taken.
  const isOfUser = filter.userId !== undefined;
  const narrowed: LogFilter = { ...filter, ...(isOfUser ? {} : { channelId: 0 }), type: LogType.error };
  const newest = deps.db.reader
    .select({ model: logs.modelName, other: logs.other })
    .from(logs)
    .where(
      and(rareWhere(deps.db, narrowed, from, to), isOfUser ? sql`(${logs.channelId} + 0) = 0` : undefined),
    )
    .orderBy(desc(logs.createdAt))
    .limit(MOST_ERRORS_READ)
    .as("newest");
  const rows = await deps.db.reader
    .selectDistinct({ model: newest.model })
    .from(newest)
    .where(sql`${newest.other} like '%"error_code":"model_not_priced"%'`)
    .orderBy(asc(newest.model))
    .limit(MOST_UNPRICED);
  return rows.map(({ model }) => model).filter((model) => model !== "" && !deps.prices.pricing(model));
}

/** Figures between two moments: whole hours from the hourly sums, the rest from the rows. */
async function sumsBetween(deps: DashboardDeps, filter: LogFilter, from: number, to: number): Promise<Sums> {
  const { db } = deps;
  const { logs } = db.t;
  const { fullHours, edges } = splitRange(Math.max(0, from), Math.max(0, to));
  const parts = await sumParts(db, { filter, ...fullHours });
  const found = await Promise.all(
    parts.map(({ table, where }) =>
      db.reader
        .select({ quota: sumOf(table.quota), count: sumOf(table.count), tokens: sumOf(tokenSum(table)) })
        .from(table as PgTable)
        .where(where),
    ),
  );
  const sums: Sums = { quota: 0, count: 0, tokens: 0 };
  for (const [row] of found) {
    sums.quota += row?.quota ?? 0;
    sums.count += row?.count ?? 0;
    sums.tokens += row?.tokens ?? 0;
  }
  for (const edge of edges) {
    const [part] = await db.reader
      .select({
        quota: sumOf(logs.quota),
        count: countRows(),
        tokens: sumOf(sql`${logs.promptTokens} + ${logs.completionTokens}`),
      })
      .from(logs)
      .where(consumeWhere(db, filter, edge.from, edge.to));
    sums.quota += part?.quota ?? 0;
    sums.count += part?.count ?? 0;
    sums.tokens += part?.tokens ?? 0;
  }
  return sums;
}

async function namesOf(
  { db }: DashboardDeps,
  by: Dimension,
  own: readonly (string | number)[],
): Promise<Map<string, string>> {
  if (by === "model") return new Map(own.map((id) => [String(id), String(id)]));
  const ids = own.map(Number);
  if (ids.length === 0) return new Map();
  const { users, channels, tokens } = db.t;
  const found = await (by === "user"
    ? db.reader.select({ id: users.id, name: users.username }).from(users).where(inArray(users.id, ids))
    : by === "channel"
      ? db.reader
          .select({ id: channels.id, name: channels.name })
          .from(channels)
          .where(inArray(channels.id, ids))
      : db.reader.select({ id: tokens.id, name: tokens.name }).from(tokens).where(inArray(tokens.id, ids)));
  return new Map(found.map(({ id, name }) => [String(id), name]));
}

/** Whether anything was ever used, by the user or by anybody. */
export async function hasUsage({ db }: DashboardDeps, userId: number | undefined): Promise<boolean> {
  const { rollups } = db.t;
  const [row] = await db.reader
    .select({ hour: rollups.hour })
    .from(rollups)
    .where(
      userId === undefined
        ? undefined
        : and(eq(rollups.userId, userId), gte(rollups.hour, 0), lt(rollups.hour, 2 ** 40)),
    )
    .limit(1);
  return row !== undefined;
}
