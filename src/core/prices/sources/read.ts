// Prices out of a text of any format that is known: one function for files, addresses and commands.
import { readPricing, readRatioConfig } from "./family.ts";
import { readGenaiPrices } from "./genai-prices.ts";
import { readLiteLlm } from "./litellm.ts";
import { readModelsDev } from "./models-dev.ts";
import { readOpenRouter } from "./openrouter.ts";
import type { SourceFormat, SourcePrices } from "./source.ts";

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

/**
 * The same rows under the names behind a beginning such as "openai/", where an operator said so of the source; names
 * without it stay, and win over one that would become equal to them.
 */
export function withoutPrefix<T>(rows: ReadonlyMap<string, T>, prefix: string): Map<string, T> {
  const named = new Map<string, T>();
  for (const [name, row] of rows) {
    const bare = prefix !== "" && name.startsWith(prefix) ? name.slice(prefix.length) : name;
    if (bare !== "" && (bare === name || !rows.has(bare))) named.set(bare, row);
  }
  return named;
}
