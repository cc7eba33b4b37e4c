// Changes of prices in words: which option, which name, and its values as people read them.
// Refuses to tell dollars where a change alone does not say them.
import type { PriceRow } from "../../../src/shared/price-row.ts";
import { PRICE_MAPS } from "../../../src/shared/row-maps.ts";
import { status } from "../../lib/boot.ts";
import { formatNumber } from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import { priceText, ruleTexts } from "../../lib/rule-words.ts";

const MODEL_KEYS: ReadonlySet<string> = new Set(PRICE_MAPS);

/** Whether the option's names are models. */
export function isModelKey(key: string): boolean {
  return MODEL_KEYS.has(key);
}

interface Place {
  key: string;
  name: string;
}

/** How many models and how many other entries the changes are about. */
function countsOf(changes: readonly Place[]): { models: number; others: number } {
  const models = new Set(changes.filter(({ key }) => isModelKey(key)).map(({ name }) => name));
  return { models: models.size, others: changes.filter(({ key }) => !isModelKey(key)).length };
}

/** "5 models, 2 other entries". */
export function countsText(t: Translate, changes: readonly Place[]): string {
  const { models, others } = countsOf(changes);
  const texts = [
    models > 0 ? t("desk.bar.models", { count: models }) : "",
    others > 0 ? t("desk.bar.others", { count: others }) : "",
  ];
  return texts.filter((text) => text !== "").join(t("desk.bar.comma"));
}

const isScalar = (value: unknown): value is string | number =>
  typeof value === "string" || typeof value === "number";

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

const LONGEST = 300;

/** An entry as it is stored, readable: null is "none", short maps and lists are told without their brackets. */
export function entryText(t: Translate, key: string, value: unknown): string {
  if (value === null || value === undefined) return t("plan.none");
  if (key === "PriceRules") return rulesText(t, value);
  if (typeof value === "number") return formatNumber(value);
  const plain = typeof value === "string" && /^[[{]/.test(value) ? parsed(value) : value;
  const text = Array.isArray(plain)
    ? plain.map(String).join(", ")
    : typeof plain === "object" && plain !== null && Object.values(plain).every(isScalar)
      ? Object.entries(plain)
          .map(([name, each]) => `${name}: ${String(each)}`)
          .join(", ")
      : typeof plain === "string"
        ? plain
        : JSON.stringify(plain);
  if (text === "") return t("plan.empty");
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** The rules as sentences; what has none is counted. */
function rulesText(t: Translate, value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const rules = value as PriceRow;
  const text = ruleTexts(t, rules).join(t("plan.semicolon"));
  if (text !== "" && text.length <= LONGEST) return text;
  const { when = [], ...others } = rules;
  return t("plan.ruleCount", { count: when.length + Object.keys(others).length });
}

interface Change extends Place {
  before: unknown;
  after: unknown;
}

const TOKENS = 1_000_000;

const asNumber = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** One line of the history: what changed, and from what to what. */
export interface ChangeLine {
  key: string;
  title: string;
  before: string;
  after: string;
}

/** Maps whose entries multiply the price of input. */
const TIMES_INPUT: ReadonlySet<string> = new Set([
  "CompletionRatio",
  "CacheRatio",
  "CreateCacheRatio",
  "CreateCache1hRatio",
  "ImageRatio",
  "AudioRatio",
]);

/** What a revision changed of one name: dollars where they can be told, else what is stored. */
export function changeLines(t: Translate, changes: readonly Change[]): ChangeLine[] {
  const input = changes.find(({ key }) => key === "ModelRatio");
  const perDollar = status.peek().quota_per_unit || 500_000;
  const dollarsOf = (ratio: number | undefined) =>
    ratio === undefined ? undefined : (ratio * TOKENS) / perDollar;
  const inputs = { before: dollarsOf(asNumber(input?.before)), after: dollarsOf(asNumber(input?.after)) };
  return changes.map(({ key, before, after }) => {
    const told = (value: unknown, at: "before" | "after"): string => {
      const number = asNumber(value);
      if (number === undefined || !isModelKey(key)) return entryText(t, key, value);
      if (key === "ModelPrice") return priceText(number);
      if (key === "ModelRatio") return priceText(dollarsOf(number) ?? 0);
      const base = inputs[at];
      if (!TIMES_INPUT.has(key) || base === undefined) return `${formatNumber(number)}×`;
      return priceText(base * number);
    };
    return {
      key,
      title: t(`plan.place.${key}`),
      before: told(before, "before"),
      after: told(after, "after"),
    };
  });
}
