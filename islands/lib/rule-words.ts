// Price rules in words: what an entry says, and why it acted on a call. One place for the pricing page, the log and the editor.
// Refuses arithmetic of its own: prices are shown as they stand, times the group's ratio where one is given.
import { TOKEN_KINDS, WEEK_DAYS } from "../../src/shared/price-row.ts";
import type { PriceCondition, PriceRow, PriceRule } from "../../src/shared/price-row.ts";
import { DOLLARS, formatDateTime, formatNumber, siteDisplay } from "./format.ts";
import type { Currency } from "./format.ts";
import type { Translate } from "./i18n.ts";

type CallUnit = NonNullable<PriceRow["unit"]>;
type Names = string | readonly string[];

const dollars = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 6 });

/** A price as exactly as one may be set: in dollars to six decimals. */
export function priceText(price: number): string {
  return shownPrice(price, DOLLARS);
}

function shownPrice(dollarPrice: number, { symbol, rate }: Currency): string {
  const price = dollarPrice * rate;
  if (price === 0) return `${symbol}0`;
  return price < 0.000001 ? `<${symbol}0.000001` : symbol + dollars.format(price);
}

/** A price in dollars as exactly as it is set, in what the site shows money in. */
export function sitePriceText(price: number): string {
  const display = siteDisplay();
  return display.isUnits ? formatNumber(price * display.quotaPerUnit) : shownPrice(price, display);
}

type PriceWords = (price: number) => string;

/** Of one piece: of a call, a picture, a second. */
export function callPriceText(
  t: Translate,
  price: number,
  unit: CallUnit = "call",
  words: PriceWords = priceText,
): string {
  return t(`rule.unit.${unit}`, { price: words(price) });
}

/** The first letter large, where letters have two sizes. */
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function either(t: Translate, names: Names): string {
  return [names].flat().join(t("rule.or"));
}

/** `22:00-06:00` as people write it; 24:00 is the end of its day. */
function hoursText(t: Translate, hours: readonly string[]): string {
  return hours
    .map((range) => {
      const [from = "", to = ""] = range.split("-");
      return from < to ? `${from}–${to}` : t("rule.hoursPastMidnight", { from, to });
    })
    .join(t("rule.and"));
}

/** Days in the order of the week from Monday; three and more in a row as a range. */
function daysText(t: Translate, days: readonly (typeof WEEK_DAYS)[number][]): string {
  const week = [...WEEK_DAYS.slice(1), WEEK_DAYS[0]];
  const at = week.flatMap((day, index) => (days.includes(day) ? [index] : []));
  const name = (index: number): string => t(`rule.day.${week[index] ?? "sun"}`);
  const parts: string[] = [];
  for (let start = 0; start < at.length;) {
    let end = start;
    while (at[end + 1] === (at[end] ?? 0) + 1) end += 1;
    const [first = 0, last = 0] = [at[start], at[end]];
    if (end - start >= 2) parts.push(t("rule.dayRange", { from: name(first), to: name(last) }));
    else for (let each = first; each <= last; each += 1) parts.push(name(each));
    start = end + 1;
  }
  return parts.join(t("rule.and"));
}

/** A moment as it was written; a bare day begins in UTC. */
function momentText(moment: string): string {
  if (!moment.includes("T")) return `${moment} 00:00 UTC`;
  const [day = "", time = ""] = moment.split("T");
  const [, clock = "", zone = ""] = /^(\d{2}:\d{2}(?::\d{2})?)(.*)$/.exec(time) ?? [];
  return `${day} ${clock} ${zone === "Z" ? "UTC" : `UTC${zone}`}`;
}

/** What the conditions are, one piece each. */
function conditionPieces(t: Translate, condition: PriceCondition): string[] {
  const { over, hours, days, tz: zone = "UTC", from, until, tier, size, quality } = condition;
  const pieces: string[] = [];
  if (over !== undefined) pieces.push(t("rule.over", { tokens: formatNumber(over) }));
  if (tier !== undefined) pieces.push(t("rule.tier", { names: either(t, tier) }));
  if (size !== undefined) pieces.push(t("rule.size", { names: either(t, size) }));
  if (quality !== undefined) pieces.push(t("rule.quality", { names: either(t, quality) }));
  if (hours) {
    const when = days ? daysText(t, days) : t("rule.daily");
    pieces.push(t("rule.hours", { when, hours: hoursText(t, hours), zone }));
  } else if (days) pieces.push(t("rule.days", { days: daysText(t, days), zone }));
  if (from !== undefined) pieces.push(t("rule.from", { moment: momentText(from) }));
  if (until !== undefined) pieces.push(t("rule.until", { moment: momentText(until) }));
  return pieces;
}

/** `Input over 272,000 tokens`; "" where nothing is named yet. */
export function conditionText(t: Translate, condition: PriceCondition): string {
  return sentence(conditionPieces(t, condition).join(t("rule.comma")));
}

interface RuleTerms {
  /** What a fixed price of the model is for. */
  unit?: CallUnit | undefined;
  /** Prices are shown times this; 1 where absent. */
  groupRatio?: number;
  /** How a price in dollars is written; as it stands where absent. */
  words?: PriceWords;
}

function setText(
  t: Translate,
  set: NonNullable<PriceRule["set"]>,
  { unit, groupRatio = 1, words = priceText }: RuleTerms,
): string {
  const prices = TOKEN_KINDS.flatMap((kind) => {
    const price = set[kind];
    if (price === undefined) return [];
    return [t("rule.tokenPrice", { kind: t(`rule.kind.${kind}`), price: words(price * groupRatio) })];
  });
  if (set.call !== undefined) prices.push(callPriceText(t, set.call * groupRatio, unit, words));
  return prices.join(t("rule.list"));
}

function effectText(t: Translate, rule: PriceRule, terms: RuleTerms): string {
  const { set, times } = rule;
  const factor = times === undefined ? "" : formatNumber(times);
  if (times === 0) return t("rule.free");
  if (set === undefined) return t("rule.times", { times: factor });
  const prices = setText(t, set, terms);
  const priced = rule.over === undefined ? prices : t("rule.whole", { prices });
  return times === undefined ? priced : t("rule.setTimes", { prices: priced, times: factor });
}

/** One entry of a model's price as a plain sentence: when it acts, and what the call costs then. */
export function ruleText(t: Translate, rule: PriceRule, terms: RuleTerms = {}): string {
  const conditions = conditionText(t, rule);
  const effect = effectText(t, rule, terms);
  return t("rule.sentence", { conditions, effect });
}

const TOOLS: readonly string[] = ["web_search", "file_search"];

export function toolName(t: Translate, tool: string): string {
  return TOOLS.includes(tool) ? t(`rule.tool.${tool}`) : tool;
}

/** `Web search: $10.00 per 1K calls`. */
function toolText(t: Translate, tool: string, price: string): string {
  return t("rule.toolPrice", { name: toolName(t, tool), price });
}

/** Everything about a model's price that depends on the call, in the order in which it acts; its tools behind. */
export function ruleTexts(
  t: Translate,
  { when = [], tools = {}, unit }: PriceRow,
  groupRatio = 1,
  words: PriceWords = priceText,
): string[] {
  return [
    ...when.map((rule) => ruleText(t, rule, { unit, groupRatio, words })),
    ...Object.entries(tools).map(([tool, price]) => toolText(t, tool, words(price * groupRatio))),
  ];
}

/** What of a call decided about its price. */
export interface RuleFacts {
  /** Tokens of input, of every kind together. */
  input: number;
  /** When it began. */
  startMs: number;
  /** As the answer named it. */
  servedTier?: string | undefined;
  askedTier?: string | undefined;
}

/** Which of the outcomes is said: the first that the entry is about. */
function outcomeOf({ over, hours, days, from, until, tier, size }: PriceCondition): string {
  if (over !== undefined) return "over";
  if ([hours, days, from, until].some((each) => each !== undefined)) return "time";
  if (tier !== undefined) return "tier";
  return size === undefined ? "quality" : "size";
}

function reasonPieces(t: Translate, condition: PriceCondition, facts: RuleFacts): string[] {
  const { over, hours, days, tz: zone = "UTC", from, until, tier, size, quality } = condition;
  const pieces: string[] = [];
  if (over !== undefined)
    pieces.push(t("rule.why.over", { input: formatNumber(facts.input), tokens: formatNumber(over) }));
  if (tier !== undefined) {
    const { servedTier, askedTier } = facts;
    if (servedTier !== undefined) pieces.push(t("rule.why.served", { tier: servedTier }));
    else pieces.push(t("rule.why.asked", { tier: askedTier ?? either(t, tier) }));
  }
  if (size !== undefined) pieces.push(t("rule.size", { names: either(t, size) }));
  if (quality !== undefined) pieces.push(t("rule.quality", { names: either(t, quality) }));
  const within = conditionPieces(t, {
    ...(hours ? { hours } : {}),
    ...(days ? { days } : {}),
    tz: zone,
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
  });
  if (within.length > 0) {
    const moment = formatDateTime(facts.startMs, zone).slice(0, 16);
    pieces.push(t("rule.why.time", { moment, zone, within: within.join(t("rule.comma")) }));
  }
  return pieces;
}

/** Why an entry acted on a call, and what that meant. */
export function appliedText(t: Translate, condition: PriceCondition, facts: RuleFacts): string {
  const reasons = reasonPieces(t, condition, facts).join(t("rule.comma"));
  const outcome = t(`rule.outcome.${outcomeOf(condition)}`);
  return t("rule.applied", { reasons, outcome });
}

/** A tier that was asked for and not given; "" where the answer names none, or the same. */
export function otherTierText(t: Translate, { askedTier, servedTier }: RuleFacts): string {
  if (askedTier === undefined || servedTier === undefined || askedTier === servedTier) return "";
  return t("rule.otherTier", { asked: askedTier, served: servedTier });
}
