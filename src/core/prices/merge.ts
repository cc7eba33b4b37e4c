// Three-way merge of prices: what was taken once (base), what is in force (ours), and what a source says now (theirs).
// Refuses to tick what an operator made his own, what changes by more than a factor of two, and what is or becomes free.
import { isSamePrice, isSameRow, TOKEN_KINDS } from "../../shared/price-row.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import type { SyncCase, SyncGuard } from "../../shared/price-sync.ts";
import { everyKind } from "../../shared/row-maps.ts";

export interface MergeLine {
  name: string;
  case: SyncCase;
  base: PriceRow | undefined;
  ours: PriceRow | undefined;
  theirs: PriceRow | undefined;
  guards: SyncGuard[];
  /** Taken unless a person unticks it. */
  ticked: boolean;
}

type Rows = ReadonlyMap<string, PriceRow>;

export interface MergeInputs {
  /** Rows as they were taken from a source before; a name without a price in force is one that was taken away. */
  base: Rows;
  ours: Rows;
  theirs: Rows;
  /** Whether an enabled channel serves the model. */
  isServed: (name: string) => boolean;
  /** What further sources say. */
  others?: readonly Rows[];
}

const DOUBLE = 2;
const OUTLIER = 10;
/** By so much a change may miss the factor of two and still be it. */
const SAME = 1e-6;
/** 37.5 × $2: the ratio of models without a price, at output like input. */
const UNPRICED_DOLLARS = 75;

const isByCall = (row: PriceRow): boolean => row.call !== undefined;

/** Every price that a row can come to, by kind: in any of its entries. */
function pricesOf(row: PriceRow, name: string): Map<string, number[]> {
  const { call } = row;
  if (call !== undefined) {
    const found = [call];
    for (const { set, times } of row.when ?? []) {
      if (set?.call !== undefined) found.push(set.call);
      if (times !== undefined) found.push(call * times);
    }
    return new Map([["call", found]]);
  }
  const base = everyKind(row, name);
  const all = [base];
  for (const { set, times = 1 } of row.when ?? []) {
    const each = everyKind({ ...row, ...set }, name);
    for (const kind of TOKEN_KINDS) each[kind] *= times;
    all.push(each);
  }
  return new Map(TOKEN_KINDS.map((kind) => [kind, all.map((each) => each[kind])]));
}

const quotient = (to: number, from: number): number => (to === from ? 1 : to / from);

function isFree(row: PriceRow, name: string): boolean {
  return [...pricesOf(row, name).values()].flat().every((price) => price === 0);
}

function changeGuards(name: string, ours: PriceRow, theirs: PriceRow): SyncGuard[] {
  if (isByCall(ours) !== isByCall(theirs) || (ours.unit ?? "call") !== (theirs.unit ?? "call"))
    return ["other_kind"];
  const guards = new Set<SyncGuard>();
  const after = pricesOf(theirs, name);
  for (const [kind, before] of pricesOf(ours, name)) {
    const now = after.get(kind) ?? [];
    for (const pick of [Math.max, Math.min]) {
      const change = quotient(pick(...now), pick(...before));
      if (change > DOUBLE * (1 + SAME)) guards.add("above_double");
      if (change < (1 - SAME) / DOUBLE) guards.add("below_half");
    }
  }
  if (isFree(ours, name) !== isFree(theirs, name)) guards.add("free");
  return [...guards];
}

/** The largest step of any price of the model, as a share of what it is; Infinity where there is nothing to divide by. */
export function priceChange(name: string, ours: PriceRow, theirs: PriceRow): number {
  if (changeGuards(name, ours, theirs).includes("other_kind")) return Infinity;
  const isSameTools = isSameRow({ tools: ours.tools ?? {} }, { tools: theirs.tools ?? {} });
  if (!isSameTools) return Infinity;
  const after = pricesOf(theirs, name);
  const steps = [...pricesOf(ours, name)].flatMap(([kind, before]) => {
    const now = after.get(kind) ?? [];
    return [Math.max, Math.min].map((pick) => Math.abs(quotient(pick(...now), pick(...before)) - 1));
  });
  return Math.max(0, ...steps);
}

function isOutlier(name: string, row: PriceRow, others: readonly Rows[]): boolean {
  const main = (each: PriceRow): number => each.call ?? each.in ?? 0;
  const comparable = others.flatMap((rows) => {
    const other = rows.get(name);
    return other && isByCall(other) === isByCall(row) ? [main(other)] : [];
  });
  return (
    comparable.length > 0 &&
    comparable.every((other) => {
      const times = quotient(main(row), other);
      return times > OUTLIER || times < 1 / OUTLIER;
    })
  );
}

function isUnpricedElsewhere({ in: input, out = input, call }: PriceRow): boolean {
  return call === undefined && isSamePrice(input, UNPRICED_DOLLARS) && isSamePrice(out, UNPRICED_DOLLARS);
}

function guardsOf(
  name: string,
  ours: PriceRow | undefined,
  theirs: PriceRow,
  others: readonly Rows[],
): SyncGuard[] {
  const guards = ours ? changeGuards(name, ours, theirs) : isFree(theirs, name) ? ["free" as const] : [];
  if (isUnpricedElsewhere(theirs)) guards.push("unpriced_elsewhere");
  if (isOutlier(name, theirs, others)) guards.push("outlier");
  return guards;
}

/** Every name at which the source and the prices in force differ; names that agree make no line. */
export function mergePrices({ base, ours, theirs, isServed, others = [] }: MergeInputs): MergeLine[] {
  const lines: MergeLine[] = [];
  for (const name of new Set([...theirs.keys(), ...base.keys()])) {
    const rows = { base: base.get(name), ours: ours.get(name), theirs: theirs.get(name) };
    const line = (kind: SyncCase, guards: SyncGuard[], mayTick: boolean) =>
      lines.push({ name, case: kind, ...rows, guards, ticked: mayTick && guards.length === 0 });
    if (!rows.theirs) {
      if (rows.ours) line("gone", [], false);
      continue;
    }
    if (rows.ours && isSameRow(rows.ours, rows.theirs)) continue;
    const guards = guardsOf(name, rows.ours, rows.theirs, others);
    if (!rows.ours) {
      if (rows.base) line("removed", guards, false);
      else line("new", guards, isServed(name));
    } else if (rows.base && isSameRow(rows.ours, rows.base)) line("newer", guards, true);
    else line("own", guards, false);
  }
  return lines;
}
