// The price maps of the old site as maps of ours: the same unit, and each map whole.
// Refuses to invent: a map that the source does not have is its built-in one where that is known, else the shipped table's.
import { definitionOf } from "../../core/options/definitions.ts";
import type { OptionKey } from "../../core/options/definitions.ts";
import { shippedTexts } from "../../core/prices/origins.ts";
import { withoutSilenced } from "../../shared/completion-rules.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { isPriceName } from "../../shared/price-row.ts";
import { emptyMaps, PRICE_MAPS, pricedNames, putRow, rowOf } from "../../shared/row-maps.ts";
import type { PriceMaps } from "../../shared/row-maps.ts";
import type { Family } from "../family.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import { readExpression } from "./expression.ts";

export interface PriceFacts {
  family: Family;
  notes: Notes;
  now: number;
  quotaPerUnit: number;
  /** Models that a channel serves. */
  served: ReadonlySet<string>;
}

export interface MappedPrices {
  maps: PriceMaps;
  /** What the family's own prices are, so that whatever the operator set stays his. */
  origins: NewRow<"priceOrigins">[];
}

type RatioMap = Exclude<(typeof PRICE_MAPS)[number], "PriceRules">;
const RATIO_MAPS = PRICE_MAPS.filter((key): key is RatioMap => key !== "PriceRules");
/** Maps without which a model has no price of its own. */
const BASES: readonly RatioMap[] = ["ModelRatio", "ModelPrice"];
/** one-api's prices by the type of the channel: `gpt-4(33)`. */
const BY_CHANNEL = /\(\d+\)$/;

function parsed(text: string): Record<string, number> {
  return (jsonObject(text) ?? {}) as Record<string, number>;
}

function readMap(key: RatioMap, text: string, { notes }: PriceFacts): Record<string, number> | undefined {
  const found = jsonObject(text);
  if (!found) {
    notes.add("options", "price_refused", key);
    return undefined;
  }
  const map: Record<string, number> = {};
  for (const [name, value] of Object.entries(found)) {
    const ratio = Number(value);
    if (BY_CHANNEL.test(name)) notes.add("options", "price_channel_name", `${key}: ${name}`);
    else if (
      !isPriceName(name) ||
      typeof value === "boolean" ||
      value === null ||
      !Number.isFinite(ratio) ||
      ratio < 0
    )
      notes.add("options", "price_refused", `${key}: ${name.slice(0, 60)}`);
    else map[name] = ratio;
  }
  return map;
}

/** The maps that stand in for those that the source lacks. */
function fallbacks(
  { family, quotaPerUnit }: PriceFacts,
  hasBase: boolean,
): Record<RatioMap, Record<string, number>> {
  const shipped = family === "new-api" ? undefined : shippedTexts(quotaPerUnit);
  return Object.fromEntries(
    RATIO_MAPS.map((key) => {
      if (!shipped) return [key, parsed(definitionOf(key as OptionKey).default)];
      // one-api knows ratios alone: a fixed price or a cache ratio would change what a model costs there.
      const isForeign = family === "one-api" && hasBase && key !== "ModelRatio" && key !== "CompletionRatio";
      return [key, isForeign ? {} : parsed(shipped[key])];
    }),
  ) as Record<RatioMap, Record<string, number>>;
}

/** Models whose price is an expression there. */
function putExpressions(
  maps: PriceMaps,
  texts: ReadonlyMap<string, string>,
  { notes, quotaPerUnit }: PriceFacts,
): void {
  const expressions = jsonObject(texts.get("billing_setting.billing_expr") ?? "") ?? {};
  const modes = jsonObject(texts.get("billing_setting.billing_mode") ?? "") ?? {};
  for (const [name, expression] of Object.entries(expressions)) {
    if (typeof expression !== "string" || expression.trim() === "" || !isPriceName(name)) continue;
    if (name in modes && !String(modes[name]).includes("expr")) continue;
    const { row, problem } = readExpression(expression);
    if (row) putRow(maps, name, row, quotaPerUnit);
    else notes.add("options", "expression_refused", `${name} (${problem})`);
  }
}

function originsOf(source: PriceMaps, { now, quotaPerUnit }: PriceFacts): NewRow<"priceOrigins">[] {
  return pricedNames(source).flatMap((name) => {
    const price = rowOf(source, name, quotaPerUnit);
    return price
      ? [{ name, price: JSON.stringify(price), source: "shipped", version: "import", takenAt: now }]
      : [];
  });
}

/** `texts`: options of the source by their names there. */
export function mapPrices(texts: ReadonlyMap<string, string>, facts: PriceFacts): MappedPrices {
  const { notes, served } = facts;
  const maps = emptyMaps();
  const hasBase = texts.has("ModelRatio");
  const standIns = fallbacks(facts, hasBase);
  const absent: RatioMap[] = [];
  for (const key of RATIO_MAPS) {
    const text = texts.get(key);
    const read = text === undefined || text.trim() === "" ? undefined : readMap(key, text, facts);
    if (!read) absent.push(key);
    maps[key] = read ?? { ...standIns[key] };
  }
  if (facts.family !== "new-api")
    for (const key of BASES.filter((each) => absent.includes(each)))
      for (const name of served) if (name in maps[key]) notes.add("options", "price_shipped", name);
  const kept = withoutSilenced(maps.CompletionRatio);
  if (!absent.includes("CompletionRatio"))
    for (const name of Object.keys(maps.CompletionRatio))
      if (!(name in kept)) notes.add("options", "price_silenced", name);
  maps.CompletionRatio = kept;
  putExpressions(maps, texts, facts);
  const own = emptyMaps();
  for (const key of RATIO_MAPS) own[key] = standIns[key];
  return { maps, origins: originsOf(own, facts) };
}
