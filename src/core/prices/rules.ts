// Which entries of a model's price rules act on a call, and what its tokens cost then.
// Refuses to read a clock or a request by itself: time, size and the tier that was asked for are frozen at the reservation.
import { offsetSeconds } from "../../shared/local-time.ts";
import { TOKEN_KINDS, WEEK_DAYS } from "../../shared/price-row.ts";
import type { PriceCondition, PriceRow, PriceRule, TokenPrices } from "../../shared/price-row.ts";
import type { TokenRates } from "../../shared/cost.ts";
import { everyKind } from "./row-maps.ts";

/** What of a request decides which entries act. */
export interface RequestFacts {
  /** Service tier that goes to the upstream. */
  tier?: string | undefined;
  size?: string | undefined;
  quality?: string | undefined;
}

/** A model's price with the entries that may still act on a call: those whose time it is. */
export interface FrozenRules {
  readonly name: string;
  readonly row: PriceRow;
  readonly when: readonly PriceRule[];
  /** What was asked for; of a session or a task, which ask for none of it, nothing. */
  readonly request: RequestFacts;
}

/** Prices of a call, and the conditions of the entries that made them. */
export interface RulePrices {
  /** Dollars per million tokens of every kind. */
  rates: TokenRates;
  /** Dollars of the call, where it is priced by the piece. */
  call: number | undefined;
  applied: PriceCondition[];
}

const MINUTE_MS = 60_000;
const MINUTES_PER_DAY = 1440;
/** From this share of a threshold on its price is held: a prompt's length is an estimate until it is reported. */
const NEAR = 0.9;

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

/** `days` are those on which an hour begins: what passes midnight belongs to the day before. */
function isHour({ hours, days, tz = "UTC" }: PriceCondition, atMs: number): boolean {
  if (!hours && !days) return true;
  const { minute, day } = localTime(atMs, tz);
  const isDay = (offset: number) => !days || days.includes(WEEK_DAYS[(day + 7 - offset) % 7] ?? "sun");
  if (!hours) return isDay(0);
  return hours.some((range) => {
    const [from = "", to = ""] = range.split("-");
    const start = minutesOf(from);
    const end = minutesOf(to);
    if (start < end) return minute >= start && minute < end && isDay(0);
    return (minute >= start && isDay(0)) || (minute < end && isDay(1));
  });
}

function isMoment({ from, until }: PriceCondition, atMs: number): boolean {
  if (from !== undefined && atMs < Date.parse(from)) return false;
  return until === undefined || atMs < Date.parse(until);
}

function isOneOf(wanted: string | string[] | undefined, value: string | undefined): boolean {
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

/** Whether one of the entries is about the tier: only then has it a price. */
export function hasTier({ when }: Pick<FrozenRules, "when">, tier: string): boolean {
  return when.some((each) => each.tier !== undefined && isOneOf(each.tier, tier));
}

/** Whether the request is of the size and quality that an entry is about. */
function isAsked({ size, quality }: PriceCondition, request: RequestFacts): boolean {
  return isOneOf(size, request.size) && isOneOf(quality, request.quality);
}

interface Priced {
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

function conditionOf(rule: PriceRule): PriceCondition {
  const condition = { ...rule };
  delete condition.set;
  delete condition.times;
  return condition;
}

/**
 * What the call costs: `input` tokens of every kind together decide about thresholds, and the tier that the answer names,
 * else the one that was asked for.
 */
export function settledPrices(rules: FrozenRules, input: number, servedTier: string | undefined): RulePrices {
  const { request } = rules;
  const tier = servedTier ?? request.tier;
  let priced = startOf(rules.row);
  const applied: PriceCondition[] = [];
  for (const rule of rules.when) {
    if (rule.over !== undefined && input <= rule.over) continue;
    if (!isOneOf(rule.tier, tier) || !isAsked(rule, request)) continue;
    priced = apply(priced, rule);
    applied.push(conditionOf(rule));
  }
  return { rates: everyKind(priced.tokens, rules.name), call: priced.call, applied };
}

/**
 * The dearest that the call can still come to, kind by kind. `input`: tokens of the prompt as far as they are known;
 * undefined: any number. `tiers`: those that some channel may ask its upstream for; the usual one is always possible.
 */
export function dearestPrices(
  rules: FrozenRules,
  input: number | undefined,
  tiers: readonly string[] = [],
): RulePrices {
  const { request } = rules;
  const possible = rules.when.filter(
    (each) =>
      (each.over === undefined || input === undefined || input >= each.over * NEAR) &&
      [undefined, ...tiers].some((tier) => isOneOf(each.tier, tier)) &&
      isAsked(each, request),
  );
  let dearest = settledPrices({ ...rules, when: [] }, 0, undefined);
  if (possible.length === 0) return dearest;
  const rates = { ...dearest.rates };
  let { call } = dearest;
  // Which of them will act is open: every choice of thresholds and tiers, of which the later ones build on the earlier.
  for (const inputAt of new Set([0, ...possible.map(({ over }) => (over ?? -1) + 1)])) {
    for (const tier of new Set([undefined, ...tiers])) {
      dearest = settledPrices(
        { ...rules, when: possible, request: { ...request, tier } },
        inputAt,
        undefined,
      );
      for (const kind of TOKEN_KINDS) rates[kind] = Math.max(rates[kind], dearest.rates[kind]);
      if (dearest.call !== undefined) call = Math.max(call ?? 0, dearest.call);
    }
  }
  return { rates, call, applied: [] };
}
