// Price rules while they are typed: texts as they stand in the fields, the rules that they mean, and what is wrong with them.
// Refuses to guess: what cannot be read is a problem at its field, and no rules at all come of it.
import { isDollars, MAX_RULES, readPriceRow, TOKEN_KINDS } from "../../../src/shared/price-row.ts";
import type { PriceRow, PriceRule, PriceRules, TokenKind, WEEK_DAYS } from "../../../src/shared/price-row.ts";

type WeekDay = (typeof WEEK_DAYS)[number];
export type PriceKind = TokenKind | "call";
/** Conditions that are one text; names have commas between them. */
export const TEXT_CONDITIONS = ["over", "tier", "size", "quality", "from", "until"] as const;
export type TextCondition = (typeof TEXT_CONDITIONS)[number];
export type Condition = TextCondition | "time";

export interface TimeDraft {
  ranges: readonly { from: string; to: string }[];
  days: readonly WeekDay[];
  tz: string;
}

export interface RuleDraft extends Partial<Record<TextCondition, string>> {
  /** Names the draft while rules change places. */
  id: number;
  time?: TimeDraft;
  prices: Partial<Record<PriceKind, string>>;
  times?: string;
}

interface ToolDraft {
  id: number;
  name: string;
  price: string;
}

/** Everything that the editor holds; ids are given once. */
export interface RulesDraft {
  rules: readonly RuleDraft[];
  tools: readonly ToolDraft[];
  /** What the editor does not draw, kept as it was. */
  rest: PriceRules;
  nextId: number;
}

/** Field of a draft -> key of the text that says what is wrong. */
export type Problems = ReadonlyMap<string, string>;

const joined = (names: string | readonly string[]): string => [names].flat().join(", ");

function draftOf(rule: PriceRule, id: number): RuleDraft {
  const { over, hours, days, tz, from, until, tier, size, quality, set = {}, times } = rule;
  const draft: RuleDraft = { id, prices: {} };
  if (over !== undefined) draft.over = String(over);
  if (from !== undefined) draft.from = from;
  if (until !== undefined) draft.until = until;
  for (const [name, value] of Object.entries({ tier, size, quality }))
    if (value !== undefined) draft[name as "tier"] = joined(value);
  if (hours ?? days) {
    const ranges = (hours ?? []).map((range) => {
      const [start = "", end = ""] = range.split("-");
      return { from: start, to: end };
    });
    draft.time = { ranges, days: days ?? [], tz: tz ?? "UTC" };
  }
  for (const [kind, price] of Object.entries(set)) draft.prices[kind as PriceKind] = String(price);
  if (times !== undefined) draft.times = String(times);
  return draft;
}

export function draftOfRules({ when = [], tools = {}, ...rest }: PriceRules): RulesDraft {
  const rules = when.map(draftOf);
  const named = Object.entries(tools).map(([name, price], index) => ({
    id: rules.length + index,
    name,
    price: String(price),
  }));
  return { rules, tools: named, rest, nextId: rules.length + named.length };
}

/** A number as people type it: a dollar sign before it and commas between thousands are no part of it. */
export function numberOf(text: string): number {
  const plain = text.trim().replace(/^[$＄]/, "");
  const digits = /^\d{1,3}(,\d{3})+(\.\d*)?$/.test(plain) ? plain.replaceAll(",", "") : plain;
  return /^(\d+\.?\d*|\.\d+)$/.test(digits) ? Number(digits) : Number.NaN;
}

const namesIn = (text: string): string[] => text.split(/[,，]/).flatMap((name) => name.trim() || []);

function oneOrMore(names: string[]): string | string[] {
  const [only, ...more] = names;
  return only !== undefined && more.length === 0 ? only : names;
}

/** A clock as it is stored: 1:00 is 01:00. */
const clockOf = (text: string): string =>
  text
    .trim()
    .replace("：", ":")
    .replace(/^(\d):/, "0$1:");

function timeOf({ ranges, days, tz }: TimeDraft): Pick<PriceRule, "hours" | "days" | "tz"> {
  return {
    ...(ranges.length > 0 ? { hours: ranges.map(({ from, to }) => `${clockOf(from)}-${clockOf(to)}`) } : {}),
    ...(days.length > 0 ? { days: [...days] } : {}),
    tz: tz.trim(),
  };
}

/** The entry that a draft means, whether or not it is right. */
export function ruleOf(draft: RuleDraft): PriceRule {
  const { over, time, from, until, tier, size, quality, prices, times } = draft;
  const set: Record<string, number> = {};
  for (const kind of [...TOKEN_KINDS, "call"] as const) {
    const text = prices[kind];
    if (text !== undefined) set[kind] = numberOf(text);
  }
  return {
    ...(over === undefined ? {} : { over: numberOf(over) }),
    ...(time === undefined ? {} : timeOf(time)),
    ...(from === undefined ? {} : { from: from.trim() }),
    ...(until === undefined ? {} : { until: until.trim() }),
    ...(tier === undefined ? {} : { tier: oneOrMore(namesIn(tier)) }),
    ...(size === undefined ? {} : { size: oneOrMore(namesIn(size)) }),
    ...(quality === undefined ? {} : { quality: oneOrMore(namesIn(quality)) }),
    ...(Object.keys(set).length > 0 ? { set } : {}),
    ...(times === undefined ? {} : { times: numberOf(times) }),
  };
}

const isWrong = (rule: PriceRule): boolean =>
  readPriceRow({ when: [{ ...rule, times: 1 }] }).problem !== undefined;

function timeProblems(time: TimeDraft, found: Map<string, string>): void {
  time.ranges.forEach(({ from, to }, index) => {
    if (isWrong({ hours: [`${clockOf(from)}-${clockOf(to)}`] }))
      found.set(`hours.${index}`, "rule.edit.wrong.hours");
  });
  if (time.ranges.length === 0 && time.days.length === 0) found.set("time", "rule.edit.wrong.time");
  if (isWrong({ days: ["mon"], tz: time.tz.trim() })) found.set("tz", "rule.edit.wrong.tz");
}

/** What is wrong with one rule, by field; `rule` is about all of it. */
function ruleProblems(draft: RuleDraft): Map<string, string> {
  const found = new Map<string, string>();
  const rule = ruleOf(draft);
  for (const name of TEXT_CONDITIONS)
    if (rule[name] !== undefined && isWrong({ [name]: rule[name] }))
      found.set(
        name,
        `rule.edit.wrong.${name === "over" || name === "from" || name === "until" ? name : "names"}`,
      );
  if (draft.time) timeProblems(draft.time, found);
  const { from, until } = rule;
  if (!found.has("from") && !found.has("until") && from !== undefined && until !== undefined)
    if (Date.parse(from) >= Date.parse(until)) found.set("until", "rule.edit.wrong.order");
  for (const [kind, price] of Object.entries(rule.set ?? {}))
    if (!isDollars(price)) found.set(`set.${kind}`, "rule.edit.wrong.price");
  if (rule.times !== undefined && !isDollars(rule.times)) found.set("times", "rule.edit.wrong.times");
  const hasCondition = draft.time !== undefined || TEXT_CONDITIONS.some((name) => draft[name] !== undefined);
  if (!hasCondition) found.set("rule", "rule.edit.wrong.noCondition");
  else if (rule.set === undefined && rule.times === undefined) found.set("rule", "rule.edit.wrong.noEffect");
  return found;
}

/** Everything that is wrong, by `<id>.<field>` of rules and `tool.<id>.<field>` of tools. */
export function problemsOf({ rules, tools }: RulesDraft): Problems {
  const found = new Map<string, string>();
  for (const draft of rules)
    for (const [field, text] of ruleProblems(draft)) found.set(`${draft.id}.${field}`, text);
  const names = new Set<string>();
  for (const { id, name, price } of tools) {
    const trimmed = name.trim();
    const isRead = readPriceRow({ tools: { [trimmed]: 1 } }).problem === undefined;
    if (trimmed === "" || !isRead || names.has(trimmed)) found.set(`tool.${id}.name`, "rule.edit.wrong.tool");
    names.add(trimmed);
    if (!isDollars(numberOf(price))) found.set(`tool.${id}.price`, "rule.edit.wrong.price");
  }
  return found;
}

/** The rules that the draft means; undefined while something is wrong. */
export function rulesOf(draft: RulesDraft): PriceRules | undefined {
  if (problemsOf(draft).size > 0 || draft.rules.length > MAX_RULES) return undefined;
  const { rest, rules, tools } = draft;
  const next: PriceRules = { ...rest };
  if (tools.length > 0)
    next.tools = Object.fromEntries(tools.map(({ name, price }) => [name.trim(), numberOf(price)]));
  if (rules.length > 0) next.when = rules.map(ruleOf);
  return next;
}

/** Prices that are set come before factors on them, and low thresholds before high ones: the last that fits is the one. */
function rankOf({ over, prices }: RuleDraft): [number, number] {
  const isFactor = Object.keys(prices).length === 0;
  const threshold = over === undefined ? -1 : numberOf(over);
  return [isFactor ? 1 : 0, Number.isNaN(threshold) ? -1 : threshold];
}

/** The rules in the order in which none undoes another one before it. */
export function inOrder(rules: readonly RuleDraft[]): RuleDraft[] {
  return rules.toSorted((one, other) => {
    const [a, b] = [rankOf(one), rankOf(other)];
    return a[0] - b[0] || a[1] - b[1];
  });
}

export function isInOrder(rules: readonly RuleDraft[]): boolean {
  return inOrder(rules).every(({ id }, index) => id === rules[index]?.id);
}

/** A new rule about one condition, with the effect that such rules usually have. */
export function freshRule(condition: Condition, base: PriceRow, id: number): RuleDraft {
  const draft: RuleDraft = { id, prices: {} };
  if (condition === "time") draft.time = { ranges: [{ from: "", to: "" }], days: [], tz: "UTC" };
  else draft[condition] = "";
  if (condition === "tier") draft.times = "";
  else if (base.call !== undefined) draft.prices.call = "";
  else draft.prices = { in: "", out: "" };
  return draft;
}
