// What the site earns: revenue, what upstreams charge for it, and the difference, from the hourly sums.
// Refuses to take an unknown cost for 0: calls without one are counted apart, and are part of no margin.
import { and, gte, inArray, lt, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { Failure } from "../../shared/failures.ts";
import { barsOf, bucketNumber, stepFor, stretchesOf } from "../../shared/local-time.ts";
import type { Step } from "../../shared/local-time.ts";
import type { Deps } from "../deps.ts";
import { unitOf } from "../logs/coarse-days.ts";
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

function rawSums({ rollups }: Database["t"]) {
  return {
    calls: sumOf(rollups.count),
    revenue: sumOf(rollups.quota),
    knownCalls: sumOf(rollups.costCount),
    knownRevenue: sumOf(rollups.costQuota),
    nanos: sumOf(rollups.costNanos),
    lost: sumOf(rollups.lostNanos),
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

function between({ rollups }: Database["t"], from: number, to: number): SQL | undefined {
  return and(gte(rollups.hour, from), lt(rollups.hour, to));
}

/** Sums by bar of a step; the site's zone cuts days. Throws `data_bars_many`. */
async function byBar(
  { db }: MarginDeps,
  { from, to, zone }: Pick<MarginQuery, "from" | "to" | "zone">,
  step: Step,
): Promise<{ at: number[]; sums: Raw[] }> {
  const bars = barsOf(from, to, step, zone, MOST_BARS);
  if (!bars) throw new Failure("client", "data_bars_many", { params: { max: MOST_BARS } });
  const { rollups } = db.t;
  const found = db.reader
    .select({
      unit: unitOf(rollups.hour, step, stretchesOf(from, to, zone)).as("unit"),
      calls: rollups.count,
      revenue: rollups.quota,
      knownCalls: rollups.costCount,
      knownRevenue: rollups.costQuota,
      nanos: rollups.costNanos,
      lost: rollups.lostNanos,
    })
    .from(rollups)
    .where(between(db.t, from, to))
    .as("found");
  const rows = await db.reader
    .select({
      unit: found.unit,
      calls: sumOf(found.calls),
      revenue: sumOf(found.revenue),
      knownCalls: sumOf(found.knownCalls),
      knownRevenue: sumOf(found.knownRevenue),
      nanos: sumOf(found.nanos),
      lost: sumOf(found.lost),
    })
    .from(found)
    .groupBy(found.unit);
  const sums = bars.at.map(() => NOTHING);
  for (const { unit, ...raw } of rows) {
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

async function split(deps: MarginDeps, query: MarginQuery, quotaPerUnit: number): Promise<MarginRow[]> {
  const { db } = deps;
  const { rollups } = db.t;
  const { from, to, by } = query;
  if (by === "day") {
    const { at, sums } = await byBar(deps, query, "day");
    return at.map((start, index) => ({
      id: String(start),
      name: "",
      ...marginOf(sums[index] ?? NOTHING, quotaPerUnit),
    }));
  }
  const column = { channel: rollups.channelId, model: rollups.modelName, group: rollups.group }[by];
  const rows = await db.reader
    .select({ id: sql<string | number>`${column}`.as("id"), ...rawSums(db.t) })
    .from(rollups)
    .where(between(db.t, from, to))
    .groupBy(column);
  const names = await namesOf(
    deps,
    by,
    rows.map(({ id }) => String(id)),
  );
  return rows
    .map(({ id, ...raw }) => ({
      id: String(id),
      name: names.get(String(id)) ?? "",
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
  const { rollups } = deps.db.t;
  const quotaPerUnit = deps.options.get("QuotaPerUnit");
  const rows = await deps.db.reader
    .select({ channelId: rollups.channelId, ...rawSums(deps.db.t) })
    .from(rollups)
    .where(gte(rollups.hour, from - (from % HOUR_SECONDS)))
    .groupBy(rollups.channelId);
  return rows.map(({ channelId, ...raw }) => ({
    channelId,
    lostNanos: raw.lost,
    nanos: raw.nanos,
    ...marginOf(raw, quotaPerUnit),
  }));
}
