// Rows of a comparison with a source of prices: which of them a filter shows, and what differs between two prices.
import { isSamePrice, isSameRow, TOKEN_KINDS } from "../../../src/shared/price-row.ts";
import type { PriceRow, TokenKind } from "../../../src/shared/price-row.ts";
import type { PriceComparison } from "../../lib/wire.ts";

export type SyncLine = PriceComparison["rows"][number];

export const SYNC_FILTERS = [
  "all",
  "ticked",
  "new",
  "newer",
  "own",
  "conflict",
  "guarded",
  "removed",
  "gone",
] as const;
export type SyncFilter = (typeof SYNC_FILTERS)[number];

/** Both sides have moved since the price was taken. */
function isConflict({ case: kind, base, theirs }: SyncLine): boolean {
  return kind === "own" && base !== null && theirs !== null && !isSameRow(base, theirs);
}

/** A price that the source does not have cannot be taken. */
export const isTakeable = ({ theirs }: SyncLine): boolean => theirs !== null;

export function passes(line: SyncLine, filter: SyncFilter, ticked: ReadonlySet<string>): boolean {
  if (filter === "all") return true;
  if (filter === "ticked") return ticked.has(line.name);
  if (filter === "guarded") return line.guards.length > 0;
  if (filter === "conflict") return isConflict(line);
  return line.case === filter;
}

/** Filters that name what is ticked by hand only: whoever opened one means it. */
const MEANT: readonly SyncFilter[] = ["own", "conflict", "removed"];

/** Whether a row is ticked with all that are shown: never what has a warning, nor the operator's own unasked. */
export function isBulk(line: SyncLine, filter: SyncFilter): boolean {
  const isOwn = line.case === "own" || line.case === "removed";
  return isTakeable(line) && line.guards.length === 0 && (!isOwn || MEANT.includes(filter));
}

const NONE: ReadonlySet<string> = new Set();

/** How many rows each filter shows; ticks are counted apart, for they change with every press. */
export function filterCounts(lines: readonly SyncLine[]): Record<SyncFilter, number> {
  const counts = Object.fromEntries(SYNC_FILTERS.map((each) => [each, 0])) as Record<SyncFilter, number>;
  for (const line of lines)
    for (const filter of SYNC_FILTERS) if (passes(line, filter, NONE)) counts[filter] += 1;
  return counts;
}

/** One price of a model on both sides; null: that side has none of this kind. */
export interface PricePair {
  kind: TokenKind | "call";
  ours: number | null;
  theirs: number | null;
  base: number | null;
  isChanged: boolean;
}

const KINDS = [...TOKEN_KINDS, "call"] as const;

/** Every kind that one of the sides prices. */
export function pricePairs({ ours, theirs, base }: Pick<SyncLine, "ours" | "theirs" | "base">): PricePair[] {
  return KINDS.flatMap((kind): PricePair[] => {
    const [mine, other] = [ours?.[kind], theirs?.[kind]];
    if (mine === undefined && other === undefined) return [];
    return [
      {
        kind,
        ours: mine ?? null,
        theirs: other ?? null,
        base: base?.[kind] ?? null,
        isChanged: theirs !== null && ours !== null && !isSamePrice(mine, other),
      },
    ];
  });
}

/** What of a price depends on the call; the rest is in its kinds. */
const beside = ({ when, tools, unit }: PriceRow) => ({ when, tools, unit });

/** Whether the two sides differ in conditions, tools or in what a fixed price is for. */
export function differsBeside({ ours, theirs }: Pick<SyncLine, "ours" | "theirs">): boolean {
  if (ours === null || theirs === null) return false;
  return JSON.stringify(beside(ours)) !== JSON.stringify(beside(theirs));
}

/** By how much a price would change, as a share; undefined where there is nothing to divide by. */
export function changeShare({ ours, theirs }: Pick<PricePair, "ours" | "theirs">): number | undefined {
  return ours === null || theirs === null || ours === 0 ? undefined : theirs / ours - 1;
}
