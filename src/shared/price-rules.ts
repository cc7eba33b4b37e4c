// Which entries of a price act, by time, length, tier and size, and what they make of it: pure, both sides of the wire.
import { offsetSeconds } from "./local-time.ts";
import { TOKEN_KINDS, WEEK_DAYS } from "./price-row.ts";
import type { PriceCondition, PriceRow, PriceRule, TokenPrices } from "./price-row.ts";

/** What of a request decides which entries act. */
export interface RequestFacts {
  /** Service tier that goes to the upstream. */
  tier?: string | undefined;
  size?: string | undefined;
  quality?: string | undefined;
}

const MINUTE_MS = 60_000;
const MINUTES_PER_DAY = 1440;

function minutesOf(clock: string): number {
  const [hours, minutes] = clock.split(":");
  return Number(hours) * 60 + Number(minutes);
}

/** Minutes since the zone's midnight, and its day of the week. */
function localTime(atMs: number, zone: string): { minute: number; day: number } {
  const local = Math.floor((atMs + offsetSeconds(zone, atMs) * 1000) / MINUTE_MS);
  const day = Math.floor(local / MINUTES_PER_DAY);
  // 1970-01-01 was a Thursday.
  return { minute: local - day * MINUTES_PER_DAY, day: (((day + 4) % 7) + 7) % 7 };
}

type Minutes = readonly [start: number, end: number];
const minutesKnown = new WeakMap<readonly string[], readonly Minutes[]>();

/** Hours as minutes, read once: entries are asked at many moments. */
function rangesOf(hours: readonly string[]): readonly Minutes[] {
  let ranges = minutesKnown.get(hours);
  if (!ranges) {
    ranges = hours.map((range) => {
      const [from = "", to = ""] = range.split("-");
      return [minutesOf(from), minutesOf(to)] as const;
    });
    minutesKnown.set(hours, ranges);
  }
  return ranges;
}

/** `days` are those on which an hour begins: what passes midnight belongs to the day before. */
function isHour({ hours, days, tz = "UTC" }: PriceCondition, atMs: number): boolean {
  if (!hours && !days) return true;
  const { minute, day } = localTime(atMs, tz);
  const isDay = (offset: number) => !days || days.includes(WEEK_DAYS[(day + 7 - offset) % 7] ?? "sun");
  if (!hours) return isDay(0);
  return rangesOf(hours).some(([start, end]) => {
    if (start < end) return minute >= start && minute < end && isDay(0);
    return (minute >= start && isDay(0)) || (minute < end && isDay(1));
  });
}

function isMoment({ from, until }: PriceCondition, atMs: number): boolean {
  if (from !== undefined && atMs < Date.parse(from)) return false;
  return until === undefined || atMs < Date.parse(until);
}

/** Whether the value is one of those that an entry names; an entry that names none takes any. */
export function isOneOf(wanted: string | string[] | undefined, value: string | undefined): boolean {
  if (wanted === undefined) return true;
  const asked = value?.trim().toLowerCase();
  return [wanted].flat().some((each) => each.toLowerCase() === asked);
}

/** The entries whose time is now. */
export function rulesAt(when: readonly PriceRule[], atMs: number): readonly PriceRule[] {
  return when.every((each) => isHour(each, atMs) && isMoment(each, atMs))
    ? when
    : when.filter((each) => isHour(each, atMs) && isMoment(each, atMs));
}

/** By so much the beginning of a logged call may be off. */
const UNSURE_MS = 1000;

/** Whether other entries would act on a call that began a second earlier or later. */
export function isNearEdge(when: readonly PriceRule[], atMs: number): boolean {
  const [before, after] = [atMs - UNSURE_MS, atMs + UNSURE_MS];
  // Hours and days change with the minute: most calls are nowhere near.
  const isOneMinute = Math.floor(before / MINUTE_MS) === Math.floor(after / MINUTE_MS);
  return when.some((each) => {
    if (isMoment(each, before) !== isMoment(each, after)) return true;
    return !isOneMinute && isHour(each, before) !== isHour(each, after);
  });
}

/** Whether the request is of the size and quality that an entry is about. */
export function isAsked({ size, quality }: PriceCondition, request: RequestFacts): boolean {
  return isOneOf(size, request.size) && isOneOf(quality, request.quality);
}

interface Priced {
  /** Kinds that nobody priced are left out. */
  tokens: TokenPrices;
  call: number | undefined;
}

function startOf(row: PriceRow): Priced {
  const tokens: TokenPrices = {};
  for (const kind of TOKEN_KINDS) if (row[kind] !== undefined) tokens[kind] = row[kind];
  return { tokens, call: row.call };
}

/** `set` replaces, then `times` multiplies; kinds that nobody priced follow those that they are derived from. */
function apply({ tokens, call }: Priced, { set, times = 1 }: PriceRule): Priced {
  const { call: setCall, ...kinds } = set ?? {};
  const next: TokenPrices = { ...tokens, ...kinds };
  if (times !== 1) for (const kind of TOKEN_KINDS) if (next[kind] !== undefined) next[kind] *= times;
  const base = setCall ?? call;
  return { tokens: next, call: base === undefined ? undefined : base * times };
}

/** Whether one of the entries is about the tier: only then has it a price. */
export function hasTier({ when }: { when: readonly PriceRule[] }, tier: string): boolean {
  return when.some((each) => each.tier !== undefined && isOneOf(each.tier, tier));
}

/** What decides about a call's price, once its hour is settled. */
export interface CallTerms extends RequestFacts {
  /** Tokens of input, of every kind together. */
  input: number;
}

/** The row's prices after the entries that act, in their order, and those entries. */
export function pricesUnder(
  row: PriceRow,
  when: readonly PriceRule[],
  terms: CallTerms,
): Priced & { acted: PriceRule[] } {
  let priced = startOf(row);
  const acted: PriceRule[] = [];
  for (const rule of when) {
    if (rule.over !== undefined && terms.input <= rule.over) continue;
    if (!isOneOf(rule.tier, terms.tier) || !isAsked(rule, terms)) continue;
    priced = apply(priced, rule);
    acted.push(rule);
  }
  return { ...priced, acted };
}
