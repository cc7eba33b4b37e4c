// What a price expression says of a request and its time: factors by service tier, hour and day of the week.
// Refuses every other question to a request: a row of prices has no place for it.
import { isTimeZone } from "../../shared/local-time.ts";
import { WEEK_DAYS } from "../../shared/price-row.ts";
import type { PriceRule } from "../../shared/price-row.ts";
import { need, NUMBER, rest, take, Unreadable } from "./expression-reader.ts";
import type { Reader } from "./expression-reader.ts";

const HOURS = 24;
const DAYS = 7;
const TEXT = /"[^"]*"|'[^']*'/;

/** The values of hour or day that a condition lets through. */
interface Times {
  of: "hour" | "weekday";
  zone: string;
  values: Set<number>;
}

interface Conditions {
  tier?: string;
  zone?: string;
  hour?: Set<number>;
  weekday?: Set<number>;
}

const textIn = (reader: Reader): string => need(reader, TEXT).slice(1, -1);

const COMPARE: Readonly<Record<string, (value: number, limit: number) => boolean>> = {
  ">=": (value, limit) => value >= limit,
  "<=": (value, limit) => value <= limit,
  "==": (value, limit) => value === limit,
  "!=": (value, limit) => value !== limit,
  ">": (value, limit) => value > limit,
  "<": (value, limit) => value < limit,
};

/** `hour("Asia/Shanghai") >= 9`; 0 is Sunday. */
function comparison(reader: Reader): Times {
  const of = need(reader, /hour|weekday/) as Times["of"];
  need(reader, /\(/);
  const zone = textIn(reader);
  if (!isTimeZone(zone)) throw new Unreadable(zone);
  need(reader, /\)/);
  const compare = COMPARE[need(reader, />=|<=|==|!=|>|</)];
  const limit = Number(need(reader, /\d+/));
  const all = Array.from({ length: of === "hour" ? HOURS : DAYS }, (_, value) => value);
  return { of, zone, values: new Set(all.filter((value) => compare?.(value, limit))) };
}

/** One comparison, or several of one kind in brackets. */
function times(reader: Reader): Times {
  if (take(reader, /\(/) === undefined) return comparison(reader);
  let found = times(reader);
  for (let by = take(reader, /&&|\|\|(?!\|)/); by !== undefined; by = take(reader, /&&|\|\|(?!\|)/)) {
    const next = times(reader);
    if (next.of !== found.of || next.zone !== found.zone) throw new Unreadable(rest(reader));
    found = {
      ...found,
      values: by === "&&" ? found.values.intersection(next.values) : found.values.union(next.values),
    };
  }
  need(reader, /\)/);
  return found;
}

function addTimes(conditions: Conditions, { of, zone, values }: Times): void {
  if (conditions.zone !== undefined && conditions.zone !== zone) throw new Unreadable(zone);
  conditions.zone = zone;
  conditions[of] = conditions[of]?.intersection(values) ?? values;
}

/** `param("service_tier") == "flex" && hour(…) < 6`; alternatives only where all of them are of one kind. */
function conditionsIn(reader: Reader): Conditions {
  const conditions: Conditions = {};
  do {
    if (take(reader, /param\s*\(/) !== undefined) {
      if (textIn(reader) !== "service_tier" || conditions.tier !== undefined)
        throw new Unreadable(rest(reader));
      need(reader, /\)/);
      need(reader, /==/);
      conditions.tier = textIn(reader);
      continue;
    }
    let found = times(reader);
    while (take(reader, /\|\|(?!\|)/) !== undefined) {
      const next = times(reader);
      if (next.of !== found.of || next.zone !== found.zone) throw new Unreadable(rest(reader));
      found = { ...found, values: found.values.union(next.values) };
    }
    addTimes(conditions, found);
  } while (take(reader, /&&/) !== undefined);
  return conditions;
}

const clock = (hour: number): string => `${String(hour % HOURS).padStart(2, "0")}:00`;

/** Hours that follow each other as one stretch; the last may pass midnight. */
function rangesOf(hours: ReadonlySet<number>): string[] {
  const isIn = (hour: number): boolean => hours.has((hour + HOURS) % HOURS);
  return [...hours]
    .filter((hour) => !isIn(hour - 1))
    .toSorted((a, b) => a - b)
    .map((start) => {
      let end = start + 1;
      while (isIn(end)) end++;
      return `${clock(start)}-${clock(end)}`;
    });
}

function ruleOf({ tier, zone, hour, weekday }: Conditions, factor: number): PriceRule {
  if (hour?.size === 0 || weekday?.size === 0) throw new Unreadable("never");
  const hours = hour === undefined || hour.size === HOURS ? [] : rangesOf(hour);
  const days =
    weekday === undefined || weekday.size === DAYS ? [] : WEEK_DAYS.filter((_, day) => weekday.has(day));
  // What passes midnight belongs to the day before here, and to its own there.
  if (days.length > 0 && hours.some((range) => range.slice(0, 5) >= range.slice(6)))
    throw new Unreadable("midnight");
  return {
    ...(tier === undefined ? {} : { tier }),
    ...(hours.length === 0 ? {} : { hours }),
    ...(days.length === 0 ? {} : { days }),
    ...(zone === undefined || hours.length + days.length === 0 ? {} : { tz: zone }),
    times: factor,
  };
}

/** `(conditions ? 0.5 : 1) * (…)`, with or without brackets around a single one. */
export function readFactors(reader: Reader): PriceRule[] {
  const rules: PriceRule[] = [];
  do {
    // A bracket around the whole factor, not one around its conditions: told by what follows it.
    const start = reader.at;
    const isBracketed = take(reader, /\(/) !== undefined;
    let rule: PriceRule;
    try {
      rule = factorIn(reader);
      if (isBracketed) need(reader, /\)/);
    } catch (error) {
      if (!isBracketed || !(error instanceof Unreadable)) throw error;
      reader.at = start;
      rule = factorIn(reader);
    }
    if (Object.keys(rule).length > 1) rules.push(rule);
  } while (take(reader, /\*/) !== undefined);
  return rules;
}

function factorIn(reader: Reader): PriceRule {
  const conditions = conditionsIn(reader);
  need(reader, /\?/);
  const factor = Number(need(reader, NUMBER));
  need(reader, /:/);
  if (Number(need(reader, NUMBER)) !== 1) throw new Unreadable(rest(reader));
  return ruleOf(conditions, factor);
}
