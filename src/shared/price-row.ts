// A model's whole price as one row, in dollars: what it costs by kind of token, by the piece, and under which conditions.
// Refuses unknown names, prices that are no finite numbers of at least 0, and entries without a condition.
import { isTimeZone } from "./local-time.ts";

/** Dollars per million tokens, each; the names are those of option PriceRules. */
export const TOKEN_KINDS = [
  "in",
  "out",
  "thinking",
  "cache_read",
  "cache_write",
  "cache_write_1h",
  "image_in",
  "image_out",
  "audio_in",
  "audio_out",
] as const;
export type TokenKind = (typeof TOKEN_KINDS)[number];
export type TokenPrices = { [K in TokenKind]?: number };

/** What a fixed price is for one of. */
const CALL_UNITS = ["call", "image", "second", "page", "kchar"] as const;
export type CallUnit = (typeof CALL_UNITS)[number];

export const WEEK_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;
type WeekDay = (typeof WEEK_DAYS)[number];

/** An entry acts where all the conditions that it names are met. */
export interface PriceCondition {
  /** Tokens of input, of every kind together, above which the whole call costs this. */
  over?: number;
  /** "HH:MM-HH:MM" in `tz`, the end not included; may pass midnight. */
  hours?: string[];
  days?: WeekDay[];
  /** IANA name; UTC where absent. */
  tz?: string;
  /** ISO moment; a bare day begins in UTC. `until` is not included. */
  from?: string;
  until?: string;
  tier?: string | string[];
  size?: string | string[];
  quality?: string | string[];
}

export interface PriceRule extends PriceCondition {
  /** Replaces the prices of these kinds; the others stay as they were. */
  set?: TokenPrices & { call?: number };
  /** Multiplies the prices of tokens and of the call, not those of tools. */
  times?: number;
}

/** What option PriceRules holds of a model: all of its price that the maps of ratios cannot say. */
export interface PriceRules extends TokenPrices {
  unit?: CallUnit;
  /** Dollars per thousand calls. */
  tools?: Record<string, number>;
  when?: PriceRule[];
}

/** A model's whole price. `call` set: dollars per `unit`, and tokens cost nothing. */
export interface PriceRow extends PriceRules {
  call?: number;
}

/** Dearest price that is taken, in dollars: a slip of six digits must not pass. */
export const MAX_DOLLARS = 1e6;
export const MAX_RULES = 16;
const MAX_TOOLS = 64;
const MAX_NAME_CHARS = 255;
/** Names that an object of JavaScript's own answers to. */
const RESERVED_NAMES: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** A row, or the place at which the value is none. */
export type ReadRow = { row: PriceRow; problem?: undefined } | { row?: undefined; problem: string };

class BadPlace extends Error {}

function bad(place: string): BadPlace {
  return new BadPlace(place);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether the value is a price: a finite number of at least 0 that is no slip. */
export function isDollars(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 && value <= MAX_DOLLARS;
}

/** Whether something can be priced under the name. */
export function isPriceName(name: string): boolean {
  return (
    name !== "" && name.length <= MAX_NAME_CHARS && !RESERVED_NAMES.has(name) && !/[\p{Cc}\p{Cs}]/u.test(name)
  );
}

function dollarsAt(value: unknown, place: string): number {
  if (!isDollars(value)) throw bad(place);
  // Adding 0 turns a negative zero into a plain one.
  return value + 0;
}

function textsAt(value: unknown, place: string): string | string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  const isWhole =
    list.length > 0 &&
    list.length <= MAX_RULES &&
    list.every((each) => typeof each === "string" && each !== "" && each.length <= MAX_NAME_CHARS);
  if (!isWhole) throw bad(place);
  return value as string | string[];
}

const HOURS = /^([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|24:00)$/;

function hoursAt(value: unknown, place: string): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_RULES) throw bad(place);
  for (const each of value as unknown[]) {
    if (typeof each !== "string" || !HOURS.test(each)) throw bad(place);
    const [start, end] = each.split("-");
    if (start === end) throw bad(place);
  }
  return value as string[];
}

function daysAt(value: unknown, place: string): WeekDay[] {
  const known: readonly unknown[] = WEEK_DAYS;
  if (!Array.isArray(value) || value.length === 0 || value.length > WEEK_DAYS.length) throw bad(place);
  if (!(value as unknown[]).every((each) => known.includes(each))) throw bad(place);
  return value as WeekDay[];
}

const MOMENT = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/;

function momentAt(value: unknown, place: string): string {
  if (typeof value !== "string" || !MOMENT.test(value) || Number.isNaN(Date.parse(value))) throw bad(place);
  return value;
}

function overAt(value: unknown, place: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw bad(place);
  return value;
}

function zoneAt(value: unknown, place: string): string {
  if (typeof value !== "string" || !isTimeZone(value)) throw bad(place);
  return value;
}

const CONDITIONS: { [K in keyof PriceCondition]-?: (value: unknown, place: string) => PriceCondition[K] } = {
  over: overAt,
  hours: hoursAt,
  days: daysAt,
  tz: zoneAt,
  from: momentAt,
  until: momentAt,
  tier: textsAt,
  size: textsAt,
  quality: textsAt,
};

function isConditionName(name: string): name is keyof PriceCondition {
  return Object.hasOwn(CONDITIONS, name);
}

function isKind(name: string): name is TokenKind {
  return (TOKEN_KINDS as readonly string[]).includes(name);
}

function pricesAt(value: unknown, place: string): TokenPrices & { call?: number } {
  if (!isRecord(value) || Object.keys(value).length === 0) throw bad(place);
  const prices: TokenPrices & { call?: number } = {};
  for (const [name, price] of Object.entries(value)) {
    if (!isKind(name) && name !== "call") throw bad(`${place}.${name}`);
    prices[name] = dollarsAt(price, `${place}.${name}`);
  }
  return prices;
}

function ruleAt(value: unknown, place: string): PriceRule {
  if (!isRecord(value)) throw bad(place);
  const rule: PriceRule = {};
  let conditions = 0;
  for (const [name, entry] of Object.entries(value)) {
    const here = `${place}.${name}`;
    if (name === "set") rule.set = pricesAt(entry, here);
    else if (name === "times") rule.times = dollarsAt(entry, here);
    else if (isConditionName(name)) {
      Object.assign(rule, { [name]: CONDITIONS[name](entry, here) });
      // A zone alone is no condition: it says where the hours of another are.
      if (name !== "tz") conditions += 1;
    } else throw bad(here);
  }
  if (conditions === 0 || (rule.set === undefined && rule.times === undefined)) throw bad(place);
  return rule;
}

function toolsAt(value: unknown): Record<string, number> {
  if (!isRecord(value) || Object.keys(value).length > MAX_TOOLS) throw bad("tools");
  const tools: Record<string, number> = {};
  for (const [name, price] of Object.entries(value)) {
    if (!isPriceName(name)) throw bad(`tools.${name}`);
    tools[name] = dollarsAt(price, `tools.${name}`);
  }
  return tools;
}

function unitAt(value: unknown): CallUnit {
  const unit = CALL_UNITS.find((each) => each === value);
  if (unit === undefined) throw bad("unit");
  return unit;
}

function rowOfValue(value: unknown): PriceRow {
  if (!isRecord(value)) throw bad("");
  const row: PriceRow = {};
  for (const [name, entry] of Object.entries(value)) {
    if (isKind(name) || name === "call") row[name] = dollarsAt(entry, name);
    else if (name === "unit") row.unit = unitAt(entry);
    else if (name === "tools") row.tools = toolsAt(entry);
    else if (name === "when") {
      if (!Array.isArray(entry) || entry.length > MAX_RULES) throw bad("when");
      row.when = entry.map((each, index) => ruleAt(each, `when[${index}]`));
    } else throw bad(name);
  }
  return row;
}

/** A whole row of a value that somebody wrote, or where it is wrong. */
export function readPriceRow(value: unknown): ReadRow {
  try {
    return { row: rowOfValue(value) };
  } catch (error) {
    if (error instanceof BadPlace) return { problem: error.message };
    throw error;
  }
}

/** The same for an entry of option PriceRules: a fixed price is the map ModelPrice's to say. */
export function readPriceRules(value: unknown): ReadRow {
  const read = readPriceRow(value);
  return read.row?.call === undefined ? read : { problem: "call" };
}

/** Prices that differ by less are the same: other instances round to six decimals. */
const SAME_PRICE = 1e-6;

export function isSamePrice(one: number | undefined, other: number | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return Math.abs(one - other) <= SAME_PRICE * Math.max(Math.abs(one), Math.abs(other));
}

/** Whether two values of rows say the same; the order of names does not matter, that of entries does. */
function isSameValue(one: unknown, other: unknown): boolean {
  if (typeof one === "number" && typeof other === "number") return isSamePrice(one, other);
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((each, index) => isSameValue(each, other[index]));
  if (!isRecord(one) || !isRecord(other)) return one === other;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => isSameValue(one[name], other[name]));
}

/** Whether two rows are one price, at a relative 1e-6. */
export function isSameRow(one: PriceRow | undefined, other: PriceRow | undefined): boolean {
  return isSameValue(one, other);
}

/** A price as it is shown and as files keep it: ten digits, beyond which doubles drift. */
export function tidyDollars(value: number): number {
  return Number(value.toPrecision(10));
}
