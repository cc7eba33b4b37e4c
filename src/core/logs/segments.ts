// The stretches of the log in which a list's page has its rows, newest first: deep pages and rare matches jump over what holds
// nothing of them. Refuses to ask the sums for more time than the page needs: from near to far in growing pieces.
import { desc, lt, sql } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import { countsOverTime, isDaily } from "./coarse.ts";
import { dayOf, firstHourOf, hoursOfDay } from "./coarse-days.ts";
import { coarseState } from "./coarse-state.ts";
import {
  askedOf,
  HOUR_SECONDS,
  rareWhere,
  rawWhere,
  splitRange,
  uncountedWhere,
  wantsCalls,
  wantsUncounted,
} from "./filter.ts";
import type { LogFilter } from "./filter.ts";
import { clearedBefore, countRaw } from "./statistics.ts";
import type { StatDeps } from "./statistics.ts";

const DAY = 24 * HOUR_SECONDS;

const HOURS_PER_QUERY = 500;
/** Where each hour is all hourly sums of it, nearest ones first: the next query asks for twice as many. */
const FIRST_HOURS = 2;
/** Days whose sums are asked for first; the next query asks for four times as many. */
const FIRST_DAYS = 1;

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

/** What the sums know by the day only: days that hold nothing of the page are passed over, and older ones are not asked for. */
async function* dailySegments(
  walk: Walk,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Segment> {
  const zone = (await coarseState(walk.deps.db))?.zone ?? "UTC";
  let end = Math.min(to, await endOfRows(walk, { from, to }));
  for (let days = FIRST_DAYS; end > from; days *= 4) {
    const start = Math.max(from, firstHourOf(zone, Math.max(0, end - days * DAY)));
    for (const [day, count] of await countsByDay(walk, { from: start, to: end }, zone)) {
      if (count <= walk.left) {
        walk.left -= count;
        continue;
      }
      const hours = hoursOfDay(zone, day);
      yield* hourlySegments(walk, { from: Math.max(start, hours.from), to: Math.min(end, hours.to) });
    }
    end = start;
  }
}

/** Rows of the filter by day of the zone, the newest first. */
async function countsByDay(
  { deps, filter, rare }: Walk,
  { from, to }: { from: number; to: number },
  zone: string,
): Promise<[number, number][]> {
  const days = new Map<number, number>();
  const add = (day: number, total: number) => days.set(day, (days.get(day) ?? 0) + total);
  const calls = wantsCalls(filter) ? await countsOverTime(deps.db, { filter, from, to }) : [];
  for (const { at, isDays, ...counts } of calls) add(isDays ? at : dayOf(zone, at), askedOf(filter, counts));
  for (const [hour, total] of rare) if (hour >= from && hour < to) add(dayOf(zone, hour), total);
  return [...days].sort(([a], [b]) => b - a);
}

/** The end of the newest hour of the range that may have rows; `from`: none has. */
async function endOfRows(
  { deps, filter, rare }: Walk,
  { from, to }: { from: number; to: number },
): Promise<number> {
  const [newest] = wantsCalls(filter) ? await newestHour(deps, to) : [];
  return Math.max(newest === undefined ? from : newest + HOUR_SECONDS, lastOf(rare, from));
}

async function* hourlySegments(
  walk: Walk,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Segment> {
  const { filter, deps } = walk;
  let end = Math.min(to, await endOfRows(walk, { from, to }));
  let hours = isDaily(filter) ? FIRST_HOURS : HOURS_PER_QUERY;
  while (end > from) {
    const start = Math.max(from, end - hours * HOUR_SECONDS);
    hours = Math.min(HOURS_PER_QUERY, hours * 2);
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
