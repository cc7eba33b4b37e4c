// What a change of prices is: names in the maps of prices, ratios and groups, the few single values beside them, and plans.
// Refuses names twice, options that hold no price, and whatever the kind of an option refuses.
import { definitionOf, isOptionKey, optionRows } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import { isSensitive } from "../options/sensitive.ts";
import type { OptionStore, OptionWrite } from "../options/store.ts";
import {
  fieldsOf as termsOf,
  isOfPlanField,
  PLAN_DEFAULTS,
  PLAN_FIELDS,
  planColumns,
} from "../plans/plans.ts";
import type { PlanFieldKind, PlanFields } from "../plans/plans.ts";
import { refuse } from "../../shared/failures.ts";
import { SOLD_PLANS } from "../../shared/price-desk.ts";
import type { PriceTables } from "./prices.ts";
import { priceTablesFrom } from "./price-book.ts";

/** What of a price is to become what. */
export interface SentChange {
  key: string;
  /** An entry of a map; empty for an option that is one value. */
  name: string;
  /** null: the entry goes. */
  after: unknown;
  /** What stood there when the change was thought of, where whoever sends it knows. */
  before?: unknown;
  /** Whose price it is where it was taken from a source (taken.ts). */
  taken?: string | undefined;
}

/** An option that holds prices, or the plans on sale. */
export type PriceKey = OptionKey | typeof SOLD_PLANS;

export interface PriceChange {
  key: PriceKey;
  name: string;
  /** null: there was, or will be, no such entry. */
  before: unknown;
  after: unknown;
  /** As it was sent. */
  taken?: string;
}

/** The texts of the options that hold prices, by default where nothing is stored; and the plans on sale as one of their own. */
export type PriceTexts = ReadonlyMap<PriceKey, string>;

/** Beside the maps of the group `prices`; names that this build does not know are left out. */
const OTHER_OPTIONS = [
  "PriceRules",
  "ToolPrices",
  "GroupRatio",
  "GroupGroupRatio",
  "TopupGroupRatio",
  "UserUsableGroups",
  "GroupSpecialUsableGroup",
  "AutoGroups",
  "Price",
  "QuotaPerUnit",
];

/** The maps whose names are models. */
const MODEL_OPTIONS: readonly OptionKey[] = optionRows
  .filter(({ group, kind, key }) => group === "prices" && (kind.isTable === true || key === "PriceRules"))
  .map(({ key }) => key);

const MODEL_OPTION_SET: ReadonlySet<string> = new Set(MODEL_OPTIONS);

export const isModelOption = (key: string): boolean => MODEL_OPTION_SET.has(key);

/** Every option whose change is a change of prices. */
export const PRICE_OPTIONS: readonly OptionKey[] = [
  ...new Set([...MODEL_OPTIONS, ...OTHER_OPTIONS.filter(isOptionKey)]),
];

const PRICE_OPTION_SET: ReadonlySet<string> = new Set(PRICE_OPTIONS);

export function isPriceOption(key: string): key is OptionKey {
  return PRICE_OPTION_SET.has(key);
}

/** All that can stand in a change of prices. */
export const PRICE_KEYS: readonly PriceKey[] = [...PRICE_OPTIONS, SOLD_PLANS];

export const isPriceKey = (key: string): key is PriceKey => key === SOLD_PLANS || isPriceOption(key);

/** Whether root, with a second factor, proves itself afresh before such a change: what the site is paid (identity.md 5.4). */
export const asksProof = (changes: readonly { key: string }[]): boolean =>
  changes.some(({ key }) => key === SOLD_PLANS || isSensitive(key));

/** Longest name of a model or a group that a change may have. */
const MAX_NAME = 255;

/** As stored, else by default. */
export const textOf = (texts: PriceTexts, key: PriceKey): string =>
  texts.get(key) ?? (key === SOLD_PLANS ? "{}" : definitionOf(key).default);

function parsed(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** By its default: what an older release stored in it may be anything. */
const MAPS: ReadonlySet<PriceKey> = new Set<PriceKey>([
  ...PRICE_OPTIONS.filter(
    (key) => definitionOf(key).default !== "" && isMap(parsed(definitionOf(key).default)),
  ),
  SOLD_PLANS,
]);

/** The option's entries by name; a single value has the empty name. */
function entriesOf(key: PriceKey, text: string): Map<string, unknown> {
  if (!MAPS.has(key)) return new Map([["", text]]);
  const map = parsed(text);
  return new Map(isMap(map) ? Object.entries(map) : []);
}

const ofEntry = (entries: ReadonlyMap<string, unknown>, name: string): unknown => entries.get(name) ?? null;

export function isSame(a: unknown, b: unknown): boolean {
  return Object.is(a, b) || Bun.deepEquals(a, b, true);
}

function byPlace(a: PriceChange, b: PriceChange): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** What differs between the texts of an option, in the order of its names. */
export function differences(key: OptionKey, before: string, after: string): PriceChange[] {
  const old = entriesOf(key, before);
  const fresh = entriesOf(key, after);
  return [...new Set([...old.keys(), ...fresh.keys()])]
    .map((name) => ({ key, name, before: ofEntry(old, name), after: ofEntry(fresh, name) }))
    .filter((each) => !isSame(each.before, each.after))
    .sort(byPlace);
}

/** What stands at a place now; null where nothing does. */
export function valueAt(texts: PriceTexts, key: PriceKey, name: string): unknown {
  return ofEntry(entriesOf(key, textOf(texts, key)), name);
}

function invalid(name: string): Error {
  return refuse("price_change_invalid", { name });
}

/**
 * The changes against what stands there, in one order whoever sent them; what would change nothing is left out. The kinds of
 * the options judge the values when the texts are made.
 */
export function changesAgainst(texts: PriceTexts, sent: readonly SentChange[]): PriceChange[] {
  const entries = new Map<PriceKey, Map<string, unknown>>();
  const seen = new Set<string>();
  const changes: PriceChange[] = [];
  for (const { key, name, after, taken } of sent) {
    const shown = name === "" ? key : `${key}: ${name}`;
    if (!isPriceKey(key) || name.length > MAX_NAME || name.includes("\0")) throw invalid(shown);
    // A prototype's name would not stand in the map as an entry of its own.
    if (MAPS.has(key) ? name.trim() === "" || name === "__proto__" : name !== "") throw invalid(shown);
    if (seen.has(shown)) throw invalid(shown);
    seen.add(shown);
    let known = entries.get(key);
    if (!known) entries.set(key, (known = entriesOf(key, textOf(texts, key))));
    const before = ofEntry(known, name);
    const wanted =
      key === SOLD_PLANS
        ? planAfter(shown, before, after)
        : MAPS.has(key)
          ? (after ?? null)
          : singleText(key, after);
    if (isSame(before, wanted)) continue;
    changes.push({ key, name, before, after: wanted, ...(taken === undefined ? {} : { taken }) });
  }
  return changes.sort(byPlace);
}

/** The whole terms of a plan: what is not said stays, of a new one as it is by default. Throws what `planColumns` does. */
function planAfter(shown: string, before: unknown, after: unknown): PlanFields | null {
  if (after === null || after === undefined) return null;
  if (!isMap(after)) throw invalid(shown);
  const base: Partial<PlanFields> = isMap(before) ? (before as unknown as PlanFields) : PLAN_DEFAULTS;
  const terms: Record<string, unknown> = { ...base, ...after };
  const kinds: Record<string, PlanFieldKind> = { title: "text", ...PLAN_FIELDS };
  const names = Object.keys(terms);
  const isWhole = names.length === Object.keys(kinds).length;
  if (!isWhole || !names.every((name) => kinds[name] && isOfPlanField(kinds[name], terms[name])))
    throw invalid(shown);
  return termsOf(planColumns(() => true, terms as unknown as PlanFields));
}

/** The terms of plans that the changes make or change, judged by the groups and the titles that there will be. */
function judgePlans(
  texts: PriceTexts,
  changes: readonly PriceChange[],
  groups: Record<string, unknown>,
): void {
  const plans = entriesOf(SOLD_PLANS, textOf(texts, SOLD_PLANS));
  for (const { name, after } of changes) {
    if (after === null) plans.delete(name);
    else plans.set(name, after);
  }
  for (const { after } of changes)
    if (after !== null) planColumns((group) => Object.hasOwn(groups, group), after as PlanFields);
  const titles = [...plans.values()].map((each) => (each as PlanFields).title);
  if (new Set(titles).size < titles.length) throw refuse("plan_title_taken");
}

/** A single value is kept as the text that was typed; it cannot be taken away. */
function singleText(key: PriceKey, after: unknown): string {
  if (typeof after === "number" || typeof after === "string") return String(after);
  if (typeof after === "object" && after !== null) return JSON.stringify(after);
  throw invalid(key);
}

/**
 * The new text of every option that the changes touch, checked by its kind; plans among the changes are judged too, and
 * written by `planWritesOf` (sold-plans.ts). A model that loses its ratio and its price of the
 * call loses its rules with them; rules without either are refused.
 */
export function writesOf(texts: PriceTexts, changes: readonly PriceChange[]): OptionWrite[] {
  const plans = changes.filter(({ key }) => key === SOLD_PLANS);
  const writes = [...Map.groupBy(changes, ({ key }) => key)].flatMap(([key, ofKey]): OptionWrite[] => {
    if (key === SOLD_PLANS) return [];
    const text = MAPS.has(key) ? mapText(textOf(texts, key), ofKey) : String(ofKey[0]?.after);
    const { kind } = definitionOf(key);
    kind.parse(text);
    kind.check?.(text);
    return [{ key, text }];
  });
  const get = reader(textsWith(texts, writes));
  if (plans.length > 0) judgePlans(texts, plans, get("GroupRatio"));
  const bare = Object.keys(get("PriceRules")).filter(
    (name) => !Object.hasOwn(get("ModelRatio"), name) && !Object.hasOwn(get("ModelPrice"), name),
  );
  if (bare.length === 0) return writes;
  const wanted = changes.find(
    ({ key, name, after }) => key === "PriceRules" && after !== null && bare.includes(name),
  );
  if (wanted) throw refuse("option_rules_without_price", { name: wanted.name });
  const kept = Object.entries(get("PriceRules")).filter(([name]) => !bare.includes(name));
  const rules: OptionWrite = { key: "PriceRules", text: JSON.stringify(Object.fromEntries(kept)) };
  return [...writes.filter(({ key }) => key !== "PriceRules"), rules];
}

function mapText(before: string, changes: readonly PriceChange[]): string {
  const map = parsed(before);
  const entries = new Map(isMap(map) ? Object.entries(map) : []);
  for (const { name, after } of changes) {
    if (after === null) entries.delete(name);
    else entries.set(name, after);
  }
  return JSON.stringify(Object.fromEntries(entries));
}

/** The texts with the writes in them. */
export function textsWith(texts: PriceTexts, writes: readonly OptionWrite[]): PriceTexts {
  return new Map([...texts, ...writes.map(({ key, text }) => [key, text] as const)]);
}

/** Reads options from texts as the store reads them from its rows. */
function reader(texts: PriceTexts): OptionStore["get"] {
  return (key) => {
    const { kind, default: shipped } = definitionOf(key);
    try {
      return kind.parse(textOf(texts, key)) as never;
    } catch {
      return kind.parse(shipped) as never;
    }
  };
}

/** The tables that calls would be charged by. */
export function tablesIn(texts: PriceTexts): PriceTables {
  return priceTablesFrom({ get: reader(texts) });
}

/** A plan goes by its title, everything else by its name; empty for an option that is one value. */
function shownName({ key, name, before, after }: ToldPlace): string {
  if (key !== SOLD_PLANS) return name;
  const title = [after, before].find(isMap)?.["title"];
  return typeof title === "string" ? title : name;
}

type ToldPlace = Pick<PriceChange, "name"> & { key: string; before?: unknown; after?: unknown };

/** What people call the places of the changes: models, groups, titles of plans, else the option; each once. */
export const namesOf = (changes: readonly ToldPlace[]): string[] => [
  ...new Set(changes.map((each) => shownName(each) || each.key)),
];

/** Names for people: `gpt-4o (ModelRatio), QuotaPerUnit`, the first of many. */
export function placesText(changes: readonly ToldPlace[]): string {
  const most = 20;
  const names = [...Map.groupBy(changes, (each) => shownName(each) || each.key)].map(([name, of]) =>
    of[0]?.name === "" ? name : `${name} (${of.map(({ key }) => key).join(", ")})`,
  );
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` … +${more}` : "");
}
