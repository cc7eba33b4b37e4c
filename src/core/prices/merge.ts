// Three-way merge of prices: what was taken once (base), what is in force (ours), and what a source says now (theirs).
// Refuses to tick what an operator made his own, what changes by more than a factor of two, and what is or becomes free.
import { isSamePrice, isSameRow } from "../../shared/price-row.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import type { SyncCase, SyncGuard } from "../../shared/price-sync.ts";
import { isSameUnit, priceSituations } from "./price-steps.ts";

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

const quotient = (to: number, from: number): number => (to === from ? 1 : to / from);

function isFree(row: PriceRow, name: string): boolean {
  return priceSituations({ name, before: row, after: row }).every(({ steps }) =>
    steps.every(({ kind, after }) => kind === "tool" || after === 0),
  );
}

/** A tool for nothing is a step, whatever it cost before. */
const unpricedTool = (other: PriceRow) => (tool: string) =>
  other.tools?.[tool] === 0 ? Infinity : undefined;

const situationsOf = (name: string, ours: PriceRow, theirs: PriceRow) =>
  priceSituations({
    name,
    before: ours,
    after: theirs,
    toolBefore: unpricedTool(theirs),
    toolAfter: unpricedTool(ours),
  });

function changeGuards(name: string, ours: PriceRow, theirs: PriceRow): SyncGuard[] {
  if (!isSameUnit(ours, theirs)) return ["other_kind"];
  const situations = situationsOf(name, ours, theirs);
  const changes = situations.flatMap(({ steps }) => steps.map((step) => quotient(step.after, step.before)));
  const guards: SyncGuard[] = [];
  if (changes.some((change) => change > DOUBLE * (1 + SAME))) guards.push("above_double");
  if (changes.some((change) => change < (1 - SAME) / DOUBLE)) guards.push("below_half");
  // Of tokens and calls, all of it: one kind for nothing is more or less than half already.
  const becomesFree = situations.some(({ steps }) => {
    const priced = steps.filter(({ kind }) => kind !== "tool");
    const [was, is] = (["before", "after"] as const).map((side) => priced.every((step) => step[side] === 0));
    return priced.length > 0 && was !== is;
  });
  if (becomesFree) guards.push("free");
  return guards;
}

/** The largest step of any price of the model, as a share of what it is; Infinity where there is nothing to divide by. */
export function priceChange(name: string, ours: PriceRow, theirs: PriceRow): number {
  if (!isSameUnit(ours, theirs)) return Infinity;
  const isSameTools = isSameRow({ tools: ours.tools ?? {} }, { tools: theirs.tools ?? {} });
  if (!isSameTools) return Infinity;
  const steps = situationsOf(name, ours, theirs).flatMap((each) => each.steps);
  return Math.max(0, ...steps.map(({ before, after }) => Math.abs(quotient(after, before) - 1)));
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
