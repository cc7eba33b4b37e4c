// Calendar arithmetic in named zones: offsets, starts of days, and the bars that a chart over time has.
// Refuses fixed offsets: days of 23 and 25 hours are days.

const HOUR = 3600;
const DAY = 24 * HOUR;
/** 1970-01-01 was a Thursday: the first Monday came four days later. */
const FIRST_MONDAY = 4;

/** Clients name zones, in capitals as they like. */
const MOST_FORMATS = 500;
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    if (formats.size >= MOST_FORMATS) formats.clear();
    formats.set(zone, format);
  }
  return format;
}

/** Whether Intl knows the zone by its name; offsets such as +08 are none. */
export function isTimeZone(zone: string): boolean {
  if (!/^[A-Za-z][\w+\-/]{0,63}$/.test(zone)) return false;
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

const DAY_MS = DAY * 1000;
/** The last day that a date can be on. */
const LAST_DAY = 100_000_000;
/** Offsets at the midnights of UTC by zone and day: several years of charts. */
const MOST_KNOWN = 2000;
const offsetsKnown = new Map<string, number>();

/**
 * Offset of a zone from UTC at a moment, in seconds. A day of UTC that begins and ends with one offset has no other (no zone has changed
 * its clock there and back within a day), so that charts of months ask the calendar, which takes its time, once a day.
 */
export function offsetSeconds(zone: string, ms: number): number {
  const day = Math.floor(ms / DAY_MS);
  if (!(Math.abs(day) < LAST_DAY)) return offsetFound(zone, ms);
  const offset = offsetAtMidnight(zone, day);
  return offset === offsetAtMidnight(zone, day + 1) ? offset : offsetFound(zone, ms);
}

function offsetAtMidnight(zone: string, day: number): number {
  const key = `${day} ${zone}`;
  let offset = offsetsKnown.get(key);
  if (offset === undefined) {
    offset = offsetFound(zone, day * DAY_MS);
    if (offsetsKnown.size >= MOST_KNOWN) offsetsKnown.clear();
    offsetsKnown.set(key, offset);
  }
  return offset;
}

/** The same as the calendar tells it. */
function offsetFound(zone: string, ms: number): number {
  const parts = formatOf(zone).formatToParts(ms);
  const part = (type: string) => Number(parts.find((each) => each.type === type)?.value ?? 0);
  const local = Date.UTC(
    part("year"),
    part("month") - 1,
    part("day"),
    part("hour"),
    part("minute"),
    part("second"),
  );
  return Math.round(local / 1000) - Math.floor(ms / 1000);
}

/** Changes of clocks around midnight come within so much of it. */
const NEAR_MIDNIGHT = 3 * HOUR;

/**
 * The first moment of the day that a moment falls on in a zone, in Unix seconds: the earlier midnight where the clock shows
 * it twice (Havana in autumn), what follows it where the clock leaves it out (Santiago in spring).
 */
export function startOfDay(ms: number, zone: string): number {
  const now = offsetSeconds(zone, ms);
  const local = Math.floor(ms / 1000) + now;
  const midnight = local - (((local % DAY) + DAY) % DAY);
  const before = offsetSeconds(zone, (midnight - now - NEAR_MIDNIGHT) * 1000);
  const after = offsetSeconds(zone, (midnight - now + NEAR_MIDNIGHT) * 1000);
  if (before === after) return midnight - before;
  const [first, last] = [midnight - Math.max(before, after), midnight - Math.min(before, after)];
  return first + offsetSeconds(zone, first * 1000) >= midnight ? first : last;
}

/** Moves a day's midnight by whole days of the calendar. */
export function addDays(midnight: number, days: number, zone: string): number {
  return startOfDay((midnight + days * DAY + DAY / 2) * 1000, zone);
}

export type Step = "hour" | "day" | "week";
export const STEPS: readonly Step[] = ["hour", "day", "week"];

/** Number of the local hour, day or week (from Monday) that an hour of UTC belongs to. */
export function bucketNumber(seconds: number, step: Step, offset: number): number {
  if (step === "hour") return Math.floor(seconds / HOUR);
  const day = Math.floor((seconds + offset) / DAY);
  return step === "day" ? day : Math.floor((day - FIRST_MONDAY) / 7);
}

/** A stretch of hours that share an offset, both ends in Unix seconds, the end not included. */
export interface Stretch {
  from: number;
  to: number;
  offset: number;
}

/** Cuts a range of whole hours where the zone's clock is changed. */
export function stretchesOf(from: number, to: number, zone: string): Stretch[] {
  const found: Stretch[] = [];
  let start = from;
  let offset = offsetSeconds(zone, from * 1000);
  for (let at = from; at < to; at += DAY) {
    const end = Math.min(at + DAY, to);
    const next = offsetSeconds(zone, end * 1000);
    if (next === offset) continue;
    let low = at;
    let high = end;
    while (high - low > HOUR) {
      const middle = low + Math.floor((high - low) / 2 / HOUR) * HOUR;
      if (offsetSeconds(zone, middle * 1000) === offset) low = middle;
      else high = middle;
    }
    found.push({ from: start, to: high, offset });
    start = high;
    offset = next;
  }
  if (start < to) found.push({ from: start, to, offset });
  return found;
}

export interface Bars {
  /** Start of each bar; the first is the range's own start. */
  at: number[];
  /** Number of the local hour, day or week of each bar, rising by one. */
  first: number;
}

/**
 * Bars of a range of whole hours, at most `most` of them; undefined when there would be more. Every local hour, day or
 * week of the range has one, empty or not.
 */
export function barsOf(from: number, to: number, step: Step, zone: string, most: number): Bars | undefined {
  if (step === "hour") {
    const size = Math.ceil((to - from) / HOUR);
    if (size > most) return undefined;
    const at = Array.from({ length: size }, (_, index) => from + index * HOUR);
    return { at, first: bucketNumber(from, "hour", 0) };
  }
  const days = step === "day" ? 1 : 7;
  if ((to - from) / (days * DAY) > most + 1) return undefined;
  const first = bucketNumber(from, step, offsetSeconds(zone, from * 1000));
  const at = [from];
  let midnight = startOfDay(from * 1000, zone);
  if (step === "week") {
    const day = bucketNumber(from, "day", offsetSeconds(zone, from * 1000));
    midnight = addDays(midnight, first * 7 + FIRST_MONDAY - day, zone);
  }
  for (;;) {
    midnight = addDays(midnight, days, zone);
    // Zones off the full hour: an hour belongs to the day in which it begins.
    const next = Math.ceil(midnight / HOUR) * HOUR;
    if (next >= to) break;
    at.push(next);
    if (at.length > most) return undefined;
  }
  return { at, first };
}

/** The step that suits a range's length: hours up to two days, days up to four months, weeks beyond. */
export function stepFor(seconds: number): Step {
  if (seconds <= 2 * DAY) return "hour";
  return seconds <= 120 * DAY ? "day" : "week";
}
