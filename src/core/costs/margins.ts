// What the site earns: revenue, what upstreams charge for it, and the difference, from the hourly sums.
// Refuses to take an unknown cost for 0: calls without one are counted apart, and are part of no margin.
import { inArray, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { Failure } from "../../shared/failures.ts";
import { barsOf, bucketNumber, stepFor, stretchesOf } from "../../shared/local-time.ts";
import type { Step } from "../../shared/local-time.ts";
import type { Deps } from "../deps.ts";
import { unitOf } from "../logs/coarse-days.ts";
import { sumParts } from "../logs/coarse.ts";
import type { SumPart } from "../logs/coarse.ts";
import { END_OF_TIME } from "../logs/filter.ts";
import { NANOS_PER_DOLLAR } from "./book.ts";

export const MARGIN_DIMENSIONS = ["channel", "model", "group", "day"] as const;
type MarginDimension = (typeof MARGIN_DIMENSIONS)[number];

const HOUR_SECONDS = 3600;
const MOST_BARS = 120;
/** Rows of a split; the rest is summed in one. */
const MOST_ROWS = 200;

/** Money in whole units of quota; costs are converted at the QuotaPerUnit of now. */
export interface MarginSums {
  calls: number;
  /** All that was charged. */
  revenue: number;
  /** Of it, what calls brought whose cost is known, and how many these are. */
  known_revenue: number;
  known_calls: number;
  /** Failed attempts included. */
  cost: number;
  /** Part of the cost that nobody paid for. */
  lost: number;
  /** known_revenue - cost. */
  margin: number;
}

interface MarginRow extends MarginSums {
  /** A channel's number, a model, a group, or the first second of a day. */
  id: string;
  /** What people call it; empty where it has no name (any more). */
  name: string;
}

export interface Margins {
  from: number;
  to: number;
  step: Step;
  by: MarginDimension;
  /** Start of each bar, and its sums. */
  at: number[];
  bars: { known_revenue: number[]; unknown_revenue: number[]; cost: number[]; margin: number[] };
  total: MarginSums;
  /** The lowest margin first; days in their order. */
  rows: MarginRow[];
  /** Rows beyond the most that are told. */
  others: number;
}

export interface MarginQuery {
  /** Unix seconds, widened to whole hours; the end is not included. */
  from: number;
  to: number;
  step?: Step | undefined;
  by: MarginDimension;
  zone: string;
}

type MarginDeps = Pick<Deps, "db" | "options">;

interface Raw {
  calls: number;
  revenue: number;
  knownCalls: number;
  knownRevenue: number;
  nanos: number;
  lost: number;
}

type Sums = SumPart["table"];

function columnsOf(table: Sums) {
  return {
    calls: table.count,
    revenue: table.quota,
    knownCalls: table.costCount,
    knownRevenue: table.costQuota,
    nanos: table.costNanos,
    lost: table.lostNanos,
  };
}

function rawSums(table: Sums) {
  return {
    calls: sumOf(table.count),
    revenue: sumOf(table.quota),
    knownCalls: sumOf(table.costCount),
    knownRevenue: sumOf(table.costQuota),
    nanos: sumOf(table.costNanos),
    lost: sumOf(table.lostNanos),
  };
}

function unitsOf(nanos: number, quotaPerUnit: number): number {
  return Math.round((nanos / NANOS_PER_DOLLAR) * quotaPerUnit);
}

function marginOf(raw: Raw, quotaPerUnit: number): MarginSums {
  const cost = unitsOf(raw.nanos, quotaPerUnit);
  return {
    calls: raw.calls,
    revenue: raw.revenue,
    known_revenue: raw.knownRevenue,
    known_calls: raw.knownCalls,
    cost,
    lost: unitsOf(raw.lost, quotaPerUnit),
    margin: raw.knownRevenue - cost,
  };
}

const NOTHING: Raw = { calls: 0, revenue: 0, knownCalls: 0, knownRevenue: 0, nanos: 0, lost: 0 };

function add(into: Raw, more: Raw): Raw {
  return {
    calls: into.calls + more.calls,
    revenue: into.revenue + more.revenue,
    knownCalls: into.knownCalls + more.knownCalls,
    knownRevenue: into.knownRevenue + more.knownRevenue,
    nanos: into.nanos + more.nanos,
    lost: into.lost + more.lost,
  };
}

/** Sums by bar of a step; the site's zone cuts days. Throws `data_bars_many`. */
async function byBar(
  { db }: MarginDeps,
  { from, to, zone }: Pick<MarginQuery, "from" | "to" | "zone">,
  step: Step,
): Promise<{ at: number[]; sums: Raw[] }> {
  const bars = barsOf(from, to, step, zone, MOST_BARS);
  if (!bars) throw new Failure("client", "data_bars_many", { params: { max: MOST_BARS } });
  const stretches = stretchesOf(from, to, zone);
  const time = step === "hour" ? { isHourly: true } : { zone };
  const parts = await sumParts(db, { filter: { type: 0, from, to }, from, to, ...time });
  const found = await Promise.all(
    parts.map(({ table, where, time: at, isDays }) => {
      const inner = db.reader
        .select({ unit: sql`${isDays ? at : unitOf(at, step, stretches)}`.as("unit"), ...columnsOf(table) })
        .from(table)
        .where(where)
        .as("found");
      return db.reader
        .select({
          unit: inner.unit,
          calls: sumOf(inner.calls),
          revenue: sumOf(inner.revenue),
          knownCalls: sumOf(inner.knownCalls),
          knownRevenue: sumOf(inner.knownRevenue),
          nanos: sumOf(inner.nanos),
          lost: sumOf(inner.lost),
        })
        .from(inner)
        .groupBy(inner.unit);
    }),
  );
  const sums = bars.at.map(() => NOTHING);
  for (const { unit, ...raw } of found.flat()) {
    const bar = bucketNumber(Number(unit), step, 0) - bars.first;
    const at = Math.min(Math.max(bar, 0), sums.length - 1);
    sums[at] = add(sums[at] ?? NOTHING, raw);
  }
  return { at: bars.at, sums };
}

async function namesOf({ db }: MarginDeps, by: MarginDimension, ids: readonly string[]) {
  if (by !== "channel") return new Map(ids.map((id) => [id, id]));
  const { channels } = db.t;
  const rows = await db.reader
    .select({ id: channels.id, name: channels.name })
    .from(channels)
    .where(inArray(channels.id, ids.map(Number)));
  return new Map(rows.map(({ id, name }) => [String(id), name]));
}

const FIELDS = { channel: "channelId", model: "modelName", group: "group" } as const;

/** Sums of each value of a field, as text, over the coarsest tables that know it. */
async function sumsBy(
  db: Database,
  field: (typeof FIELDS)[keyof typeof FIELDS],
  from: number,
  to: number,
): Promise<(Raw & { id: string })[]> {
  const parts = await sumParts(db, { filter: { type: 0, from, to }, from, to, by: [field] });
  const found = await Promise.all(
    parts.map(({ table, where }) => {
      const column = table[field] as PgColumn;
      return db.reader
        .select({ id: sql<string | number>`${column}`.as("id"), ...rawSums(table) })
        .from(table)
        .where(where)
        .groupBy(column);
    }),
  );
  const sums = new Map<string, Raw>();
  for (const { id, ...raw } of found.flat()) sums.set(String(id), add(sums.get(String(id)) ?? NOTHING, raw));
  // Errors alone brought and cost nothing.
  return [...sums].flatMap(([id, raw]) => (raw.calls > 0 || raw.nanos !== 0 ? [{ id, ...raw }] : []));
}

async function split(deps: MarginDeps, query: MarginQuery, quotaPerUnit: number): Promise<MarginRow[]> {
  const { from, to, by } = query;
  if (by === "day") {
    const { at, sums } = await byBar(deps, query, "day");
    return at.map((start, index) => ({
      id: String(start),
      name: "",
      ...marginOf(sums[index] ?? NOTHING, quotaPerUnit),
    }));
  }
  const rows = await sumsBy(deps.db, FIELDS[by], from, to);
  const names = await namesOf(
    deps,
    by,
    rows.map(({ id }) => id),
  );
  return rows
    .map(({ id, ...raw }) => ({
      id,
      name: names.get(id) ?? "",
      ...marginOf(raw, quotaPerUnit),
    }))
    .sort((a, b) => a.margin - b.margin || b.revenue - a.revenue);
}

/** Revenue, cost and margin over time and by one dimension. Throws `data_bars_many`. */
export async function margins(deps: MarginDeps, query: MarginQuery): Promise<Margins> {
  const quotaPerUnit = deps.options.get("QuotaPerUnit");
  const from = query.from - (query.from % HOUR_SECONDS);
  const to = Math.max(from + HOUR_SECONDS, Math.ceil(query.to / HOUR_SECONDS) * HOUR_SECONDS);
  const range = { ...query, from, to };
  const step = query.step ?? stepFor(to - from);
  const { at, sums } = await byBar(deps, range, step);
  const rows = await split(deps, range, quotaPerUnit);
  const told = sums.map((raw) => marginOf(raw, quotaPerUnit));
  return {
    from,
    to,
    step,
    by: query.by,
    at,
    bars: {
      known_revenue: told.map((each) => each.known_revenue),
      unknown_revenue: told.map((each) => each.revenue - each.known_revenue),
      cost: told.map((each) => each.cost),
      margin: told.map((each) => each.margin),
    },
    total: marginOf(sums.reduce(add, NOTHING), quotaPerUnit),
    rows: rows.slice(0, MOST_ROWS),
    others: Math.max(0, rows.length - MOST_ROWS),
  };
}

/** Of each channel that had calls since a moment (Unix seconds), for the alarms. */
export async function marginsSince(
  deps: MarginDeps,
  from: number,
): Promise<(MarginSums & { channelId: number; lostNanos: number; nanos: number })[]> {
  const quotaPerUnit = deps.options.get("QuotaPerUnit");
  const rows = await sumsBy(deps.db, "channelId", from - (from % HOUR_SECONDS), END_OF_TIME);
  return rows.map(({ id, ...raw }) => ({
    channelId: Number(id),
    lostNanos: raw.lost,
    nanos: raw.nanos,
    ...marginOf(raw, quotaPerUnit),
  }));
}
