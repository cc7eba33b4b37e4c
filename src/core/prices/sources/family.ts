// What other instances of the family tell of their prices: /api/ratio_config and /api/pricing.
// Refuses expressions that no row can say: such a model is dropped and listed, with the place.
import { DEFAULT_QUOTA_PER_UNIT } from "../../../shared/money.ts";
import { emptyMaps, rowOf } from "../../../shared/row-maps.ts";
import type { PriceMaps } from "../../../shared/row-maps.ts";
import { MAX_RATIO } from "../../../shared/cost.ts";
import { rowOfExpression } from "./billing-expr.ts";
import { BadEntry, badSource, collector, isRecord, jsonOf } from "./source.ts";
import type { SourceFormat, SourcePrices } from "./source.ts";

/** Field of theirs -> map of ours. */
const FIELDS = {
  model_ratio: "ModelRatio",
  completion_ratio: "CompletionRatio",
  cache_ratio: "CacheRatio",
  create_cache_ratio: "CreateCacheRatio",
  create_cache_1h_ratio: "CreateCache1hRatio",
  image_ratio: "ImageRatio",
  audio_ratio: "AudioRatio",
  audio_completion_ratio: "AudioCompletionRatio",
  model_price: "ModelPrice",
} as const satisfies Record<string, keyof PriceMaps>;
type Field = keyof typeof FIELDS;
const FIELD_NAMES = Object.keys(FIELDS) as Field[];

/** Models whose price an expression makes. */
const EXPRESSION_MODE = "tiered_expr";

function ratioOf(value: unknown, field: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0 || value > MAX_RATIO)
    throw new BadEntry("number", field);
  return value + 0;
}

/** The row of one model whose ratios are known; their ratios mean dollars at the family's units. */
function rowFrom(name: string, valueOf: (field: Field) => unknown) {
  const maps = emptyMaps();
  for (const field of FIELD_NAMES) {
    const value = ratioOf(valueOf(field), field);
    if (value !== undefined) Object.assign(maps[FIELDS[field]], { [name]: value });
  }
  const row = rowOf(maps, name, DEFAULT_QUOTA_PER_UNIT);
  if (!row) throw new BadEntry("number", "model_ratio");
  return row;
}

function dataOf(text: string, format: SourceFormat): unknown {
  const parsed = jsonOf(text, format);
  if (!isRecord(parsed) || parsed["success"] === false) throw badSource(format);
  return parsed["data"];
}

/** GET /api/ratio_config: a map of names for each ratio. */
export function readRatioConfig(text: string): SourcePrices {
  const data = dataOf(text, "ratio_config");
  if (!isRecord(data)) throw badSource("ratio_config");
  const maps: Partial<Record<Field, Record<string, unknown>>> = {};
  for (const field of FIELD_NAMES) {
    const map = data[field];
    if (map === undefined || map === null) continue;
    if (!isRecord(map)) throw badSource("ratio_config");
    maps[field] = map;
  }
  if (!maps.model_ratio && !maps.model_price) throw badSource("ratio_config");
  const modes = isRecord(data["billing_mode"]) ? data["billing_mode"] : {};
  const expressions = isRecord(data["billing_expr"]) ? data["billing_expr"] : {};
  const found = collector();
  const names = [maps.model_ratio, maps.model_price, modes].flatMap((map) => Object.keys(map ?? {}));
  for (const name of new Set(names)) {
    found.entry(name, (model, add) => {
      if (Object.hasOwn(modes, model) && modes[model] === EXPRESSION_MODE) {
        add(rowOfExpression(Object.hasOwn(expressions, model) ? expressions[model] : undefined));
        return;
      }
      add(
        rowFrom(model, (field) => {
          const map = maps[field];
          return map && Object.hasOwn(map, model) ? map[model] : undefined;
        }),
      );
    });
  }
  return found.result();
}

const BY_CALL = 1;

/** GET /api/pricing: an entry per model. What its groups multiply is that instance's sale, and our cost. */
export function readPricing(text: string): SourcePrices {
  const data = dataOf(text, "pricing");
  if (!Array.isArray(data)) throw badSource("pricing");
  const found = collector();
  for (const entry of data as unknown[]) {
    found.entry(isRecord(entry) ? entry["model_name"] : entry, (name, add) => {
      if (!isRecord(entry)) throw new BadEntry("number", "");
      if (entry["is_priced"] === false) throw new BadEntry("unit", "is_priced");
      if (entry["billing_mode"] === EXPRESSION_MODE) {
        add(rowOfExpression(entry["billing_expr"]));
        return;
      }
      const isByCall = entry["quota_type"] === BY_CALL;
      add(rowFrom(name, (field) => ((field === "model_price") === isByCall ? entry[field] : undefined)));
    });
  }
  return found.result();
}
