// What every source of prices is read into: rows in dollars by exact name, limits, and what had to be dropped.
// Refuses a whole source only where its text is not of its form; a bad entry costs that entry.
import { Failure } from "../../../shared/failures.ts";
import { isPriceName, isSameRow, MAX_RULES, readPriceRow } from "../../../shared/price-row.ts";
import type { PriceRow } from "../../../shared/price-row.ts";
import type { DropReason } from "../../../shared/price-sync.ts";

/** Whose format a text is of. */
export type SourceFormat =
  "genai-prices" | "ratio_config" | "pricing" | "openrouter" | "models.dev" | "litellm";

export interface DroppedEntry {
  name: string;
  reason: DropReason;
  /** Field or unit at which it failed. */
  detail?: string;
}

/** Tokens; absent where the source does not know. */
export interface ModelLimits {
  context?: number;
  maxOutput?: number;
}

export interface SourcePrices {
  rows: Map<string, PriceRow>;
  limits: Map<string, ModelLimits>;
  dropped: DroppedEntry[];
}

/** Thrown by the reader of an entry; the entry is dropped and listed. */
export class BadEntry extends Error {
  readonly reason: DropReason;
  constructor(reason: DropReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The refusal of a whole text. */
export function badSource(format: SourceFormat): Failure {
  return new Failure("client", "price_source_unreadable", { params: { name: format } });
}

/** The JSON of a source's text; whatever is no JSON refuses the source. */
export function jsonOf(text: string, format: SourceFormat): unknown {
  try {
    // Files of some programs begin with a mark of their byte order.
    return JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text) as unknown;
  } catch {
    throw badSource(format);
  }
}

/** Collects rows by name. */
export function collector() {
  const rows = new Map<string, PriceRow>();
  const limits = new Map<string, ModelLimits>();
  const dropped: DroppedEntry[] = [];
  const doubtful = new Set<string>();

  function add(name: string, row: PriceRow): void {
    if (!isPriceName(name)) throw new BadEntry("name", "");
    if ((row.when?.length ?? 0) > MAX_RULES) throw new BadEntry("unit", "when");
    const { problem } = readPriceRow(row);
    if (problem !== undefined) throw new BadEntry("number", problem);
    const known = rows.get(name);
    if (doubtful.has(name) || (known && !isSameRow(known, row))) {
      // Nobody can say which of the two is meant.
      doubtful.add(name);
      rows.delete(name);
      throw new BadEntry("duplicate", "");
    }
    rows.set(name, row);
  }

  return {
    /** Runs the reader of one entry; what it throws as BadEntry drops the entry and nothing else. */
    entry(name: unknown, read: (name: string, add: (row: PriceRow, alias?: string) => void) => void): void {
      const label = typeof name === "string" ? name : JSON.stringify(name) || "";
      try {
        if (typeof name !== "string" || !isPriceName(name)) throw new BadEntry("name", "");
        read(name, (row, alias = name) => add(alias, row));
      } catch (error) {
        if (!(error instanceof BadEntry)) throw error;
        dropped.push({ name: label.slice(0, 255), reason: error.reason, detail: error.message });
      }
    },
    limits(name: string, { context, maxOutput }: { context?: unknown; maxOutput?: unknown }): void {
      if (!isPriceName(name)) return;
      const found: ModelLimits = {};
      const known = (value: unknown): value is number =>
        typeof value === "number" && Number.isSafeInteger(value) && value > 0;
      if (known(context)) found.context = context;
      if (known(maxOutput)) found.maxOutput = maxOutput;
      if (found.context !== undefined || found.maxOutput !== undefined) limits.set(name, found);
    },
    result: (): SourcePrices => ({ rows, limits, dropped }),
  };
}

/** A price in dollars out of a number that a source gave in units of its own; undefined where it gave none. */
export function dollarsOf(value: unknown, detail: string, factor = 1): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) throw new BadEntry("number", detail);
  // 0.0000025 × 10^6 is 2.5, whatever doubles say.
  return Number((value * factor).toPrecision(12));
}

/** The entries of a row's `over` conditions, by threshold in rising order: the dearer step comes last and wins. */
export function overRules(steps: Map<number, PriceRow>): NonNullable<PriceRow["when"]> {
  return [...steps]
    .toSorted(([a], [b]) => a - b)
    .map(([over, set]) => ({ over, set: set as NonNullable<PriceRow["when"]>[number]["set"] }));
}
