// The price table that ships with the product: rows in dollars and limits by model, read from its file when first asked.
// Refuses to act by itself: what it says becomes a price only where origins.ts writes it into the options.
// As text: what most starts never look at is not built at each of them.
import shippedFile from "./shipped-prices.json" with { type: "text" };
import type { PriceRow } from "../../shared/price-row.ts";
import type { ModelLimits } from "./sources/source.ts";

export interface ShippedPrices {
  /** The package that it was generated from, and its release. */
  source: string;
  version: string;
  /** Of which day the prices are. */
  date: string;
  /** Of the models as the file has them. */
  sha256: string;
  rows: ReadonlyMap<string, PriceRow>;
  limits: ReadonlyMap<string, ModelLimits>;
}

interface ShippedFile extends Omit<ShippedPrices, "rows" | "limits"> {
  /** Names with spaces between them; null: no price; 0: unknown. */
  models: [names: string, row: PriceRow | null, limits?: [context: number, maxOutput: number]][];
}

let known: ShippedPrices | undefined;

/** The whole table. */
export function shippedPrices(): ShippedPrices {
  if (known) return known;
  // The compiler takes the import for the object that the file would be without its attribute.
  const { models, ...head } = JSON.parse(shippedFile as unknown as string) as ShippedFile;
  const rows = new Map<string, PriceRow>();
  const limits = new Map<string, ModelLimits>();
  for (const [names, row, [context = 0, maxOutput = 0] = []] of models) {
    const limit: ModelLimits = {};
    if (context > 0) limit.context = context;
    if (maxOutput > 0) limit.maxOutput = maxOutput;
    for (const name of names.split(" ")) {
      if (row) rows.set(name, row);
      if (context > 0 || maxOutput > 0) limits.set(name, limit);
    }
  }
  return (known = { ...head, rows, limits });
}

/** Names the table by what it says: another release with the same prices is the same one. */
export function shippedVersion(): string {
  const { version, sha256 } = shippedPrices();
  return `${version}+${sha256.slice(0, 12)}`;
}
