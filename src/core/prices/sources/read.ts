// Prices out of a text of any format that is known: one function for files, addresses and commands.
// Refuses a text that would cost more to parse than any list of prices needs.
import { refuse } from "../../../shared/failures.ts";
import { isTooDense } from "../../../shared/json-size.ts";
import { isSameRow } from "../../../shared/price-row.ts";
import type { PriceRow } from "../../../shared/price-row.ts";
import { readPricing, readRatioConfig } from "./family.ts";
import { readGenaiPrices } from "./genai-prices.ts";
import { readLiteLlm } from "./litellm.ts";
import { readModelsDev } from "./models-dev.ts";
import { readOpenRouter } from "./openrouter.ts";
import { isRecord } from "./source.ts";
import type { DroppedEntry, SourceFormat, SourcePrices } from "./source.ts";

const READERS: { [F in SourceFormat]: (text: string, atMs: number) => SourcePrices } = {
  "genai-prices": (text, atMs) => readGenaiPrices(text, { atMs }),
  ratio_config: readRatioConfig,
  pricing: readPricing,
  openrouter: readOpenRouter,
  "models.dev": readModelsDev,
  litellm: readLiteLlm,
};

/** Rows of a source's text; `atMs`: of which moment the prices are asked. Throws price_source_unreadable. */
export function readSource(format: SourceFormat, text: string, atMs: number): SourcePrices {
  return READERS[format](text, atMs);
}

/** The largest public list has 0.15 million members; ten megabytes of empty lists would be a second of parsing. */
const BOUNDS = { members: 1_200_000, containers: 400_000, values: 1_500_000 };

/** Throws price_source_too_dense, price_source_empty and price_source_broken: a text that may be read is left. */
export function parsedSource(text: string): unknown {
  if (isTooDense(Buffer.from(text), BOUNDS)) throw refuse("price_source_too_dense");
  if (text.trim() === "") throw refuse("price_source_empty");
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw refuse("price_source_broken");
  }
}

const someRecord = (values: readonly unknown[], isOne: (entry: Record<string, unknown>) => boolean) =>
  values.some((entry) => isRecord(entry) && isOne(entry));

/** Which form a parsed text has, by what only that form has. Throws price_source_unknown. */
export function detectFormat(parsed: unknown): SourceFormat {
  const data = isRecord(parsed) ? parsed["data"] : undefined;
  if (Array.isArray(data)) {
    const entries = data as unknown[];
    if (someRecord(entries, (entry) => "model_name" in entry)) return "pricing";
    if (someRecord(entries, (entry) => "pricing" in entry)) return "openrouter";
  }
  if (isRecord(data) && ("model_ratio" in data || "model_price" in data)) return "ratio_config";
  const list = isRecord(parsed) ? parsed["providers"] : parsed;
  if (Array.isArray(list) && someRecord(list as unknown[], (entry) => Array.isArray(entry["models"])))
    return "genai-prices";
  const values = isRecord(parsed) ? Object.values(parsed) : [];
  if (someRecord(values, (entry) => "litellm_provider" in entry)) return "litellm";
  if (someRecord(values, (entry) => isRecord(entry["models"]))) return "models.dev";
  // Other instances say so in a body with status 200.
  if (isRecord(parsed) && parsed["success"] === false) throw refuse("price_source_hidden", { status: 200 });
  throw refuse("price_source_unknown");
}

/**
 * The same rows under the names behind one of these beginnings, such as "openai/", where an operator said so of the source;
 * names without any stay, and win over one that would become equal to them. Two that become equal at different prices are
 * dropped: nobody can say which is meant.
 */
export function withoutPrefixes(
  rows: ReadonlyMap<string, PriceRow>,
  prefixes: readonly string[],
): { rows: Map<string, PriceRow>; dropped: DroppedEntry[] } {
  const longestFirst = prefixes.filter((each) => each !== "").toSorted((a, b) => b.length - a.length);
  const named = new Map<string, PriceRow>();
  const doubtful = new Set<string>();
  for (const [name, row] of rows) {
    const prefix = longestFirst.find((each) => name.startsWith(each)) ?? "";
    const bare = name.slice(prefix.length);
    if (bare === "" || (bare !== name && rows.has(bare))) continue;
    const known = named.get(bare);
    if (known && !isSameRow(known, row)) doubtful.add(bare);
    named.set(bare, row);
  }
  for (const name of doubtful) named.delete(name);
  return { rows: named, dropped: [...doubtful].map((name) => ({ name, reason: "duplicate" })) };
}
