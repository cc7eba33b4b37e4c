// The price maps as one table of models: read once per text, changed by model, and written back only where they differ.
// Refuses to drop what is no number: it stays in the text as it was typed, where the server names it.
import { DEFAULT_QUOTA_PER_UNIT } from "../../../../src/shared/money.ts";
import { priceName } from "../../../../src/shared/price-name.ts";

export const PRICE_KEYS = [
  "ModelPrice",
  "ModelRatio",
  "CompletionRatio",
  "CacheRatio",
  "CreateCacheRatio",
  "ImageRatio",
] as const;
export type PriceKey = (typeof PRICE_KEYS)[number];

/** A number; a text where somebody typed something else. */
export type Cell = number | string;
type PriceMap = ReadonlyMap<string, Cell>;
export type PriceTables = Record<PriceKey, PriceMap>;
/** What a model has in each map; undefined: nothing. */
export type ModelCells = Partial<Record<PriceKey, Cell | undefined>>;

const MOST_KEPT = 24;
/** Texts of thousands of models are read once, not with every key that is pressed. */
const readTexts = new Map<string, PriceMap | null>();

function keep(text: string, map: PriceMap | null): PriceMap | null {
  if (readTexts.size >= MOST_KEPT) readTexts.delete(readTexts.keys().next().value ?? "");
  readTexts.set(text, map);
  return map;
}

function readMap(text: string): PriceMap | null {
  const known = readTexts.get(text);
  if (known !== undefined) return known;
  try {
    const parsed = JSON.parse(text.trim() === "" ? "{}" : text) as unknown;
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return keep(text, null);
    const entries = Object.entries(parsed as Record<string, unknown>);
    const isReadable = entries.every(([, value]) => typeof value === "number" || typeof value === "string");
    return keep(text, isReadable ? new Map(entries as [string, Cell][]) : null);
  } catch {
    return keep(text, null);
  }
}

/** The maps of the options; undefined where one of them cannot be shown as a table. */
export function readTables(value: (key: string) => string): PriceTables | undefined {
  const maps = PRICE_KEYS.map((key) => [key, readMap(value(key))] as const);
  if (maps.some(([, map]) => map === null)) return undefined;
  return Object.fromEntries(maps) as PriceTables;
}

/** What one model has. */
export function cellsOf(tables: PriceTables, model: string): ModelCells {
  return Object.fromEntries(PRICE_KEYS.map((key) => [key, tables[key].get(model)]));
}

/** Texts of the maps that the changes alter; undefined in a change takes the model out of that map. */
export function changedTexts(
  tables: PriceTables,
  changes: ReadonlyMap<string, ModelCells>,
): Partial<Record<PriceKey, string>> {
  const texts: Partial<Record<PriceKey, string>> = {};
  for (const key of PRICE_KEYS) {
    let next: Map<string, Cell> | undefined;
    for (const [model, cells] of changes) {
      if (!Object.hasOwn(cells, key) || cells[key] === tables[key].get(model)) continue;
      next ??= new Map(tables[key]);
      const cell = cells[key];
      if (cell === undefined) next.delete(model);
      else next.set(model, cell);
    }
    if (!next) continue;
    const text = JSON.stringify(Object.fromEntries(next));
    keep(text, next);
    texts[key] = text;
  }
  return texts;
}

/** Whether calls to the model have a price, as the server looks it up. */
export function isPriced(tables: PriceTables, model: string): boolean {
  const name = priceName(model);
  return tables.ModelPrice.has(name) || tables.ModelRatio.has(name);
}

/** Every model of the maps of prices, by name. */
export function pricedNames({ ModelPrice, ModelRatio, CompletionRatio }: PriceTables): string[] {
  return [...new Set([...ModelPrice.keys(), ...ModelRatio.keys(), ...CompletionRatio.keys()])].sort();
}

/** What people type in: dollars per million tokens (of a call: dollars), or the ratios as they are stored. */
export type PriceUnit = "dollars" | "ratio";

/** The fields of a model that is billed by tokens, and the map each lies in. */
export const TOKEN_FIELDS = [
  ["input", "ModelRatio"],
  ["output", "CompletionRatio"],
  ["cache", "CacheRatio"],
  ["cacheWrite", "CreateCacheRatio"],
] as const;
export type TokenField = (typeof TOKEN_FIELDS)[number][0];

/** 12 figures: a third stays a third, and 0.1 is not 0.1000…1. */
const tidy = (value: number): number => Number(value.toPrecision(12));

/** Dollars per million tokens at a ratio of 1. */
export function dollarsPerRatio(quotaPerUnit: number | undefined): number {
  return 1_000_000 / (quotaPerUnit || DEFAULT_QUOTA_PER_UNIT);
}

/** A field as text in the unit; "" where the model has none. Ratios of others count from the input's price. */
export function shownCell(
  cells: ModelCells,
  field: TokenField,
  { unit, perRatio }: { unit: PriceUnit; perRatio: number },
): string {
  const key = TOKEN_FIELDS.find(([name]) => name === field)?.[1] ?? "ModelRatio";
  const cell = cells[key];
  if (cell === undefined || typeof cell === "string") return cell ?? "";
  if (unit === "ratio") return String(cell);
  const { ModelRatio: ratio } = cells;
  if (field === "input") return String(tidy(cell * perRatio));
  return typeof ratio === "number" ? String(tidy(cell * ratio * perRatio)) : "";
}

/** A typed amount: a number, undefined for nothing, the text itself where it is no number. */
export function typedCell(text: string): Cell | undefined {
  const trimmed = text.trim().replace(/^[$＄]/, "");
  if (trimmed === "") return undefined;
  return /^(\d+\.?\d*|\.\d+)$/.test(trimmed) ? Number(trimmed) : trimmed;
}

export interface TypedTokens {
  /** What the model had when somebody began to type. */
  before: ModelCells;
  /** Fields that were typed in since, as text. */
  typed: Partial<Record<TokenField, string>>;
  unit: PriceUnit;
  perRatio: number;
}

/** Dollars of a field: what was typed, else what it was worth before. */
function dollarsOf({ before, typed, perRatio }: TypedTokens, field: TokenField): Cell | undefined {
  const text = typed[field];
  if (text !== undefined) return typedCell(text);
  const shown = shownCell(before, field, { unit: "dollars", perRatio });
  return shown === "" ? undefined : typedCell(shown);
}

/**
 * The model's cells after what was typed. In dollars a new input price leaves the other prices where they are, so their
 * ratios change; an output price beside a free input cannot be said as a ratio, and stays as it was typed.
 */
export function cellsAfter(edit: TypedTokens): ModelCells {
  const { before, typed, unit, perRatio } = edit;
  const after: ModelCells = {};
  for (const [field, key] of TOKEN_FIELDS) {
    const text = typed[field];
    if (unit === "ratio") {
      if (text !== undefined) after[key] = typedCell(text);
      continue;
    }
    if (field === "input") {
      if (text === undefined) continue;
      const dollars = typedCell(text);
      after[key] = typeof dollars === "number" ? tidy(dollars / perRatio) : dollars;
      continue;
    }
    const input = dollarsOf(edit, "input");
    if (text === undefined && (typed.input === undefined || typeof input !== "number" || input === 0))
      continue;
    // Without a rounding of its own, what nobody touched keeps the very number that is stored.
    const dollars = dollarsOf(edit, field);
    if (typeof dollars !== "number") after[key] = dollars;
    else if (typeof input === "number" && input > 0) {
      const ratio = tidy(dollars / input);
      const old = before[key];
      after[key] = typeof old === "number" && Math.abs(ratio - old) < 1e-9 * old ? old : ratio;
    } else after[key] = dollars === 0 ? 1 : `${dollars} / 0`;
  }
  return after;
}

/** Cells of a model that is billed the other way from now on; without a price by call one has to be typed. */
export function switchedCells(cells: ModelCells, isPerCall: boolean): ModelCells {
  return isPerCall
    ? { ModelPrice: cells.ModelPrice ?? "" }
    : { ModelPrice: undefined, ModelRatio: cells.ModelRatio };
}

export type BatchMode = "price" | "ratio" | "completion" | "both";

/** What is wrong with a batch: a key of the dictionary. */
export function batchProblem(
  mode: BatchMode,
  first: string,
  second: string,
  count: number,
): string | undefined {
  if (count === 0) return "editor.price.batchNone";
  const texts = mode === "both" ? [first, second] : [first];
  if (texts.some((text) => text.trim() === ""))
    return mode === "both" ? "editor.price.batchBoth" : "editor.price.batchFill";
  return texts.every((text) => typeof typedCell(text) === "number") ? undefined : "editor.price.batchNumber";
}

/** The same values for every model, as ratios or as a price per call. */
export function batchChanges(
  models: Iterable<string>,
  { mode, first, second }: { mode: BatchMode; first: string; second: string },
): Map<string, ModelCells> {
  const value = typedCell(first);
  const cells: ModelCells =
    mode === "price"
      ? { ModelPrice: value }
      : mode === "ratio"
        ? { ModelPrice: undefined, ModelRatio: value }
        : mode === "completion"
          ? { CompletionRatio: value }
          : { ModelPrice: undefined, ModelRatio: value, CompletionRatio: typedCell(second) };
  return new Map([...models].map((model) => [model, cells]));
}
