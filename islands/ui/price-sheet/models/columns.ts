// The columns of the sheet of models: which there are, how wide, and what they say of a price in dollars.
import { tidyDollars } from "../../../../src/shared/price-row.ts";
import type { PriceRow, TokenKind } from "../../../../src/shared/price-row.ts";

export type ModelColumnId = TokenKind | "name" | "billing" | "call";

interface ModelColumn {
  id: ModelColumnId;
  width: number;
  isNumber: boolean;
}

const number = (id: TokenKind | "call", width = 104): ModelColumn => ({ id, width, isNumber: true });

/** Always there. */
export const BASE_COLUMNS: readonly ModelColumn[] = [
  { id: "name", width: 280, isNumber: false },
  { id: "billing", width: 120, isNumber: false },
  number("in"),
  number("out"),
  number("cache_read", 112),
  number("cache_write", 112),
  number("call"),
];

/** Shown on demand, behind the others. */
export const MORE_COLUMNS: readonly ModelColumn[] = [
  number("cache_write_1h", 112),
  number("thinking"),
  number("image_in"),
  number("image_out"),
  number("audio_in"),
  number("audio_out"),
];

/** A price as text; what it is not billed by is empty. */
export function dollarsText(row: PriceRow | undefined, id: ModelColumnId): string {
  if (!row || id === "name" || id === "billing") return "";
  const price = row[id];
  return price === undefined ? "" : String(tidyDollars(price));
}

/** What stands behind a head. */
export function unitOf(id: ModelColumnId, unit: "dollars" | "ratio"): string {
  if (id === "call") return "$";
  return unit === "ratio" ? "×" : "$/M";
}
