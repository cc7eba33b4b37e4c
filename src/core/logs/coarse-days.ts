// Which day of a zone an hour belongs to, as the coarse sums and charts count days, here and in SQL.
// Refuses to cut an hour: it belongs to the day on which it begins.
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { offsetSeconds, startOfDay } from "../../shared/local-time.ts";
import type { Step, Stretch } from "../../shared/local-time.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
/** The hours that are settled now, in few zones. */
const MOST_KNOWN = 100;

const known = new Map<string, number>();

/** Midnight of the day, in seconds of the local clock: the same number that the dashboard gives its days. `hour`: Unix seconds. */
export function dayOf(zone: string, hour: number): number {
  const key = `${hour} ${zone}`;
  let day = known.get(key);
  if (day === undefined) {
    const local = hour + offsetSeconds(zone, hour * 1000);
    day = local - (((local % DAY) + DAY) % DAY);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(key, day);
  }
  return day;
}

/** The first hour (Unix seconds) of the day on which the moment falls. */
export function firstHourOf(zone: string, seconds: number): number {
  const moment = seconds - (seconds % HOUR);
  const day = dayOf(zone, moment);
  let hour = Math.ceil(startOfDay(moment * 1000, zone) / HOUR) * HOUR;
  // Clocks are changed at midnight somewhere.
  while (dayOf(zone, hour) < day) hour += HOUR;
  while (dayOf(zone, hour - HOUR) === day) hour -= HOUR;
  return hour;
}

/** Days whose hours are kept: a year of charts, again and again. */
const MOST_DAYS_KNOWN = 500;
const daysKnown = new Map<string, DayRange>();

/** The hours of a day, which is given as the coarse sums count it. */
export function hoursOfDay(zone: string, day: number): DayRange {
  const key = `${day} ${zone}`;
  let hours = daysKnown.get(key);
  if (!hours) {
    hours = hoursFound(zone, day);
    if (daysKnown.size >= MOST_DAYS_KNOWN) daysKnown.clear();
    daysKnown.set(key, hours);
  }
  return hours;
}

/** The same as the calendar tells it, which takes it some 50 µs. */
function hoursFound(zone: string, day: number): DayRange {
  // Some hour of its morning, however the clock was changed.
  const morning = day - offsetSeconds(zone, day * 1000) + 6 * HOUR;
  const from = firstHourOf(zone, morning);
  return { from, to: firstHourOf(zone, from + DAY + 2 * HOUR) };
}

interface DayRange {
  /** Unix seconds; whole days of the zone, empty where from >= to. */
  readonly from: number;
  readonly to: number;
}

/** The whole days between two hours (Unix seconds). */
export function wholeDays(zone: string, from: number, to: number): DayRange {
  const first = firstHourOf(zone, from);
  return {
    // A day of 25 hours ends within the next 26.
    from: first === from ? first : firstHourOf(zone, firstHourOf(zone, from) + DAY + 2 * HOUR),
    to: firstHourOf(zone, to),
  };
}

/** Start of the hour, or of the local day as seconds of the local clock, that a moment of UTC falls on. */
export function unitOf(column: PgColumn | SQL, step: Step, stretches: readonly Stretch[]): SQL {
  if (step === "hour") return sql`(${column} - ${column} % 3600)`;
  const last = stretches.at(-1)?.offset ?? 0;
  const cases = stretches
    .slice(0, -1)
    .map(({ to, offset }) => sql`when ${column} < ${sql.raw(String(to))} then ${sql.raw(String(offset))}`);
  const offset =
    cases.length === 0
      ? sql.raw(String(last))
      : sql`case ${sql.join(cases, sql` `)} else ${sql.raw(String(last))} end`;
  // Of whole hours, so that an hour is never cut between two days.
  const local = sql`(${column} - ${column} % 3600 + ${offset})`;
  return sql`(${local} - ${local} % 86400)`;
}
