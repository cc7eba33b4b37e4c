// What a change of a model's whole price does under every condition that its entries name: list price, tiers, times, tools.
// Refuses to compare only the extremes: a slip in one tier must not hide behind the price of another.
import { offsetSeconds } from "../../shared/local-time.ts";
import { TOKEN_KINDS } from "../../shared/price-row.ts";
import type { PriceCondition, PriceRow, PriceRule, TokenKind } from "../../shared/price-row.ts";
import { isOneOf, pricesUnder, rulesAt } from "../../shared/price-rules.ts";
import { everyKind } from "../../shared/row-maps.ts";

/** A price under one condition, before and after, in dollars. */
export interface PriceStep {
  /** Undefined: the list price. */
  when: PriceCondition | undefined;
  kind: TokenKind | "call" | "tool";
  /** Whose price it is, of a tool. */
  tool: string;
  before: number;
  after: number;
}

/** All that a call may cost under one condition. */
interface Situation {
  when: PriceCondition | undefined;
  /** Of two entries that act together. */
  isPair: boolean;
  steps: PriceStep[];
}

interface Terms {
  when: PriceCondition | undefined;
  isPair: boolean;
  /** Undefined: a time that no entry names. */
  atMs: number | undefined;
}

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** A Monday, from which entries without a beginning are looked at. */
const SOME_DAY = Date.UTC(2026, 0, 5);
/** Days until every day of the week has begun. */
const WEEK = 8;

const TIME_FIELDS = ["hours", "days", "from", "until"] as const;

const isTimed = (condition: PriceCondition): boolean =>
  TIME_FIELDS.some((field) => condition[field] !== undefined);

function conditionOf({ set: _set, times: _times, ...condition }: PriceRule): PriceCondition {
  return condition;
}

const acts = (rule: PriceRule, atMs: number): boolean => rulesAt([rule], atMs).length > 0;

/** An entry, with what is reckoned once of it however many others it may act with. */
interface Entry {
  rule: PriceRule;
  isTimed: boolean;
  /** A moment at which it acts; undefined where it names no time, or one that never comes. */
  atMs: number | undefined;
  /** The moments of others at which it was looked at. */
  known: Map<number, boolean>;
}

/** Each entry once, also where both rows have it. */
function entriesOf(rules: readonly PriceRule[]): Entry[] {
  const distinct = new Map(rules.map((rule) => [JSON.stringify(rule), rule]));
  return [...distinct.values()].map((rule) => ({
    rule,
    isTimed: isTimed(rule),
    atMs: isTimed(rule) ? momentOf(rule) : undefined,
    known: new Map(),
  }));
}

function actsAt({ rule, known }: Entry, atMs: number): boolean {
  let found = known.get(atMs);
  if (found === undefined) known.set(atMs, (found = acts(rule, atMs)));
  return found;
}

/** A moment at which the entry, which names a time, acts; undefined where it never comes. */
function momentOf(rule: PriceRule): number | undefined {
  const { hours, from, until, tz = "UTC" } = rule;
  const start =
    from !== undefined
      ? Date.parse(from)
      : until === undefined
        ? SOME_DAY
        : Date.parse(until) - WEEK * DAY_MS;
  if (acts(rule, start)) return start;
  const midnight = Math.floor(start / DAY_MS) * DAY_MS;
  const minutes = (hours ?? ["00:00"]).map((range) => {
    const [hour = 0, minute = 0] = (range.split("-")[0] ?? "").split(":").map(Number);
    return hour * 60 + minute;
  });
  for (let day = 0; day <= WEEK; day += 1)
    for (const minute of minutes) {
      const local = midnight + day * DAY_MS + minute * MINUTE_MS;
      const atMs = local - offsetSeconds(tz, local) * 1000;
      if (acts(rule, atMs)) return atMs;
    }
  return undefined;
}

type Names = string | string[] | undefined;

/** A value that both take; undefined: there is none. "" stands for any. */
function common(one: Names, other: Names): string | undefined {
  if (one === undefined) return [other ?? ""].flat()[0];
  return [one].flat().find((each) => isOneOf(other, each));
}

/** Both entries at once; undefined where that cannot be. */
function together(first: Entry, second: Entry): Terms | undefined {
  const [one, other] = [first.rule, second.rule];
  const fields = (["tier", "size", "quality"] as const).map(
    (field) => [field, common(one[field], other[field])] as const,
  );
  if (fields.some(([, value]) => value === undefined)) return undefined;
  const named = Object.fromEntries(fields.filter(([, value]) => value !== ""));
  const timed = [first, second].filter((each) => each.isTimed);
  const atMs = timed
    .map((each) => each.atMs)
    .find((at) => at !== undefined && timed.every((each) => actsAt(each, at)));
  if (timed.length > 0 && atMs === undefined) return undefined;
  const overs = [one, other].flatMap(({ over }) => over ?? []);
  const times = Object.assign({}, ...timed.map(({ rule }) => conditionOf(rule))) as PriceCondition;
  const { over: _over, tier: _tier, size: _size, quality: _quality, ...time } = times;
  return {
    when: { ...(overs.length > 0 ? { over: Math.max(...overs) } : {}), ...named, ...time },
    isPair: true,
    atMs,
  };
}

/** Every entry alone, and every two that may act together. */
function termsOf(rules: readonly PriceRule[]): Terms[] {
  const found = new Map<string, Terms>();
  const add = (terms: Terms) => {
    const place = JSON.stringify(terms.when);
    if (!found.has(place)) found.set(place, terms);
  };
  const entries = entriesOf(rules);
  for (const { rule, isTimed: hasTime, atMs } of entries)
    if (atMs !== undefined || !hasTime) add({ when: conditionOf(rule), isPair: false, atMs });
  for (const [index, one] of entries.entries())
    for (const other of entries.slice(index + 1)) {
      const both = together(one, other);
      if (both) add(both);
    }
  return [...found.values()];
}

type Prices = Partial<Record<TokenKind | "call", number>>;

/** The row's entries that act at a moment, or at no named time; each moment is looked at once. */
function entriesAt({ when: all = [] }: PriceRow): (atMs: number | undefined) => readonly PriceRule[] {
  const known = new Map<number | undefined, readonly PriceRule[]>();
  return (atMs) => {
    let rules = known.get(atMs);
    if (!rules) {
      rules = atMs === undefined ? all.filter((rule) => !isTimed(rule)) : rulesAt(all, atMs);
      known.set(atMs, rules);
    }
    return rules;
  };
}

function pricesAt(
  name: string,
  row: PriceRow,
  { when, atMs }: Omit<Terms, "isPair">,
  acting: ReturnType<typeof entriesAt>,
): Prices {
  const first = (names: Names): string | undefined => (names === undefined ? undefined : [names].flat()[0]);
  const rules = when === undefined ? [] : acting(atMs);
  const { tokens, call } = pricesUnder(row, rules, {
    input: (when?.over ?? -1) + 1,
    tier: first(when?.tier),
    size: first(when?.size),
    quality: first(when?.quality),
  });
  return row.call === undefined ? everyKind(tokens, name) : { call: call ?? row.call };
}

export interface StepInputs {
  name: string;
  before: PriceRow;
  after: PriceRow;
  /** What a tool costs where the row says nothing, on either side. */
  toolBefore?: (tool: string) => number | undefined;
  toolAfter?: (tool: string) => number | undefined;
}

const isByCall = (row: PriceRow): boolean => row.call !== undefined;

/** Whether the two are billed by the same thing: else their numbers say nothing about each other. */
export function isSameUnit(one: PriceRow, other: PriceRow): boolean {
  return isByCall(one) === isByCall(other) && (one.unit ?? "call") === (other.unit ?? "call");
}

function toolSteps({ before, after, toolBefore, toolAfter }: StepInputs): PriceStep[] {
  const names = new Set([...Object.keys(before.tools ?? {}), ...Object.keys(after.tools ?? {})]);
  return [...names].flatMap((tool): PriceStep[] => {
    const was = before.tools?.[tool] ?? toolBefore?.(tool);
    const is = after.tools?.[tool] ?? toolAfter?.(tool);
    return was === undefined || is === undefined
      ? []
      : [{ when: undefined, kind: "tool", tool, before: was, after: is }];
  });
}

/** Every price that the two rows can come to, condition by condition, the list price first. */
export function priceSituations(inputs: StepInputs): Situation[] {
  const { name, before, after } = inputs;
  const list: Terms = { when: undefined, isPair: false, atMs: undefined };
  const terms = [list, ...termsOf([...(before.when ?? []), ...(after.when ?? [])])];
  const sides = [before, after].map((row) => ({ row, acting: entriesAt(row) }));
  const situations = terms.map(({ when, isPair, atMs }): Situation => {
    const [was, is] = sides.map(({ row, acting }) => pricesAt(name, row, { when, atMs }, acting));
    const kinds = isByCall(after) ? (["call"] as const) : TOKEN_KINDS;
    const steps = kinds.flatMap((kind): PriceStep[] => {
      const [old, fresh] = [was?.[kind], is?.[kind]];
      return old === undefined || fresh === undefined
        ? []
        : [{ when, kind, tool: "", before: old, after: fresh }];
    });
    return { when, isPair, steps };
  });
  return [...situations, { when: undefined, isPair: false, steps: toolSteps(inputs) }];
}

/** A rise of a price that follows the list price's own says nothing new. */
export function entrySteps(situations: readonly Situation[]): PriceStep[] {
  const [list, ...others] = situations;
  const factors = new Map((list?.steps ?? []).map(({ kind, before, after }) => [kind, after / before]));
  return others
    .flatMap(({ steps }) => steps)
    .filter(({ kind, before, after }) => {
      const factor = factors.get(kind) ?? 1;
      return Math.abs(before * factor - after) > 1e-6 * Math.max(before, after) || Number.isNaN(factor);
    });
}
