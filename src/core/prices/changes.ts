// What a change of prices is: names in the maps of prices, ratios and groups, and the few single values beside them.
// Refuses names twice, options that hold no price, and whatever the kind of an option refuses.
import { definitionOf, isOptionKey, optionRows } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import type { OptionStore, OptionWrite } from "../options/store.ts";
import { refuse } from "../../shared/failures.ts";
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

export interface PriceChange {
  key: OptionKey;
  name: string;
  /** null: there was, or will be, no such entry. */
  before: unknown;
  after: unknown;
  /** As it was sent. */
  taken?: string;
}

/** The texts of the options that hold prices; an option that is not stored has its default. */
export type PriceTexts = ReadonlyMap<OptionKey, string>;

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
export const MODEL_OPTIONS: readonly OptionKey[] = optionRows
  .filter(({ group, kind, key }) => group === "prices" && (kind.isTable === true || key === "PriceRules"))
  .map(({ key }) => key);

/** Every option whose change is a change of prices. */
export const PRICE_OPTIONS: readonly OptionKey[] = [
  ...new Set([...MODEL_OPTIONS, ...OTHER_OPTIONS.filter(isOptionKey)]),
];

const PRICE_OPTION_SET: ReadonlySet<string> = new Set(PRICE_OPTIONS);

export function isPriceOption(key: string): key is OptionKey {
  return PRICE_OPTION_SET.has(key);
}

/** Longest name of a model or a group that a change may have. */
const MAX_NAME = 255;

/** As stored, else by default. */
export const textOf = (texts: PriceTexts, key: OptionKey): string =>
  texts.get(key) ?? definitionOf(key).default;

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
const MAPS: ReadonlySet<OptionKey> = new Set(
  PRICE_OPTIONS.filter((key) => definitionOf(key).default !== "" && isMap(parsed(definitionOf(key).default))),
);

/** The option's entries by name; a single value has the empty name. */
function entriesOf(key: OptionKey, text: string): Map<string, unknown> {
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
export function valueAt(texts: PriceTexts, key: OptionKey, name: string): unknown {
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
  const entries = new Map<OptionKey, Map<string, unknown>>();
  const seen = new Set<string>();
  const changes: PriceChange[] = [];
  for (const { key, name, after, taken } of sent) {
    const shown = name === "" ? key : `${key}: ${name}`;
    if (!isPriceOption(key) || name.length > MAX_NAME || name.includes("\0")) throw invalid(shown);
    // A prototype's name would not stand in the map as an entry of its own.
    if (MAPS.has(key) ? name.trim() === "" || name === "__proto__" : name !== "") throw invalid(shown);
    if (seen.has(shown)) throw invalid(shown);
    seen.add(shown);
    let known = entries.get(key);
    if (!known) entries.set(key, (known = entriesOf(key, textOf(texts, key))));
    const before = ofEntry(known, name);
    const wanted = MAPS.has(key) ? (after ?? null) : singleText(key, after);
    if (isSame(before, wanted)) continue;
    changes.push({ key, name, before, after: wanted, ...(taken === undefined ? {} : { taken }) });
  }
  return changes.sort(byPlace);
}

/** A single value is kept as the text that was typed; it cannot be taken away. */
function singleText(key: OptionKey, after: unknown): string {
  if (typeof after === "number" || typeof after === "string") return String(after);
  if (typeof after === "object" && after !== null) return JSON.stringify(after);
  throw invalid(key);
}

/**
 * The new text of every option that the changes touch, checked by its kind. A model that loses its ratio and its price of the
 * call loses its rules with them; rules without either are refused.
 */
export function writesOf(texts: PriceTexts, changes: readonly PriceChange[]): OptionWrite[] {
  const writes = [...Map.groupBy(changes, ({ key }) => key)].map(([key, ofKey]) => {
    const text = MAPS.has(key) ? mapText(textOf(texts, key), ofKey) : String(ofKey[0]?.after);
    const { kind } = definitionOf(key);
    kind.parse(text);
    kind.check?.(text);
    return { key, text };
  });
  const get = reader(textsWith(texts, writes));
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

/** Names for people: `gpt-4o (ModelRatio), QuotaPerUnit`, the first of many. */
export function placesText(changes: readonly Pick<PriceChange, "key" | "name">[]): string {
  const most = 20;
  const names = [...Map.groupBy(changes, ({ name, key }) => (name === "" ? key : name))].map(([name, of]) =>
    of[0]?.name === "" ? name : `${name} (${of.map(({ key }) => key).join(", ")})`,
  );
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` … +${more}` : "");
}
