// What a comparison with a source of prices is asked and answered: sources by name, their usual addresses, and its rows.
import type { PriceRow } from "./price-row.ts";

/** Where prices are read from; "detect": an address or text whose form is found out, "instance": another site like this one. */
export const SYNC_SOURCES = [
  "shipped",
  "detect",
  "instance",
  "openrouter",
  "models.dev",
  "litellm",
  "genai-prices",
] as const;
export type SyncSource = (typeof SYNC_SOURCES)[number];

/** Where lists that are kept in public stand. */
export const SYNC_ADDRESSES: Partial<Record<SyncSource, string>> = {
  openrouter: "https://openrouter.ai/api/v1/models",
  "models.dev": "https://models.dev/api.json",
  litellm: "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
  "genai-prices": "https://raw.githubusercontent.com/pydantic/genai-prices/main/prices/data.json",
};

/**
 * newer: in force as it was taken, and the source has another price now. own: the operator's own price. new: not priced here
 * yet. removed: the operator took the price away. gone: the source has it no longer; kept.
 */
export const SYNC_CASES = ["newer", "own", "new", "removed", "gone"] as const;
export type SyncCase = (typeof SYNC_CASES)[number];

/**
 * Why nobody but a person ticks a row. unpriced_elsewhere: what other instances charge for models that have no price there.
 * outlier: ten times off every other source. other_kind: by the call on one side, by the token on the other.
 */
export const SYNC_GUARDS = [
  "above_double",
  "below_half",
  "free",
  "unpriced_elsewhere",
  "outlier",
  "other_kind",
] as const;
export type SyncGuard = (typeof SYNC_GUARDS)[number];

/**
 * Why an entry was left out: nothing can be priced under its name; a number is missing, negative, too large or none; it is
 * priced by something that calls are not counted in; the source says that its price changes from call to call; its name
 * stands there twice, at different prices.
 */
export const DROP_REASONS = ["name", "number", "unit", "variable", "duplicate"] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** One name at which the source and the prices in force differ. */
export interface SyncRow {
  name: string;
  case: SyncCase;
  /** Why only a person ticks it. */
  guards: SyncGuard[];
  ticked: boolean;
  /** Whether an enabled channel serves the model. */
  served: boolean;
  ours: PriceRow | null;
  theirs: PriceRow | null;
  /** As it was taken from `origin`, where that is not what is in force. */
  base: PriceRow | null;
  /** Whose price was taken last; empty: nobody's. */
  origin: string;
  /** Goes with the changes that take the row, so that the next comparison knows whose price it is. */
  taken: string;
}

export interface SyncDrop {
  name: string;
  reason: DropReason;
  /** Field or unit at which it failed. */
  detail: string;
}

/** Most names that are compared at once. */
export const MAX_SYNC_ROWS = 30_000;
/** Largest text that an administrator may hand in, in MB; as JSON it is longer. */
export const MAX_SYNC_TEXT_MB = 7;
