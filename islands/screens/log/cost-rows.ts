// The rows of an explained charge as they are shown: written with one precision, so that a reader who adds them up gets the
// total to the last digit. What the display itself rounds stands in the rounding line.
import type { CostLine, CostSum } from "../../../src/shared/cost.ts";
import type { SiteDisplay } from "../../lib/format.ts";

export interface CostRow {
  kind: "line" | "subtotal" | "group" | "minimum" | "cap" | "rounding" | "total";
  /** Of a line only. */
  line?: CostLine;
  /** Signed, in the table's precision. */
  text: string;
}

export interface CostDisplay {
  /** Quota units of a dollar, or of what stands in its place; undefined: amounts are shown in units. */
  unitsPerDollar: number | undefined;
  /** Stands before the amounts; "$" where absent. */
  symbol?: string;
}

/** Decimals that are looked at: a unit of the usual half million to the dollar is $0.000002. */
const DOLLAR_DECIMALS = 8;
const UNIT_DECIMALS = 4;
const LEAST_DOLLAR_DECIMALS = 2;
const LEAST_DECIMALS = 2;
/** Half of what doubles count exactly: a sum of a step with its way back stays below that. */
const MOST_SCALED = Number.MAX_SAFE_INTEGER / 2;

/** What an explained charge is shown in on a site. */
export function costDisplay({ isUnits, symbol, rate, quotaPerUnit }: SiteDisplay): CostDisplay {
  return isUnits ? { unitsPerDollar: undefined } : { unitsPerDollar: quotaPerUnit / rate, symbol };
}

/** `charged`: quota units of the log row, which the rows end in whatever the explanation says. */
export function costRows(
  sum: CostSum,
  charged: number,
  { unitsPerDollar, symbol = "$" }: CostDisplay,
): CostRow[] {
  const isMoney = unitsPerDollar !== undefined;
  const most = sum.lines.reduce((all, { amount }) => all + amount, charged) / (unitsPerDollar ?? 1);
  const decimals = exactDecimals(
    Math.max(most, sum.exact / (unitsPerDollar ?? 1)),
    isMoney ? DOLLAR_DECIMALS : UNIT_DECIMALS,
  );
  const scale = 10 ** decimals / (unitsPerDollar ?? 1);
  const shown = (units: number): number => Math.round(units * scale);

  const steps: { kind: CostRow["kind"]; line?: CostLine; value: number }[] = [];
  let reached = 0;
  const add = (kind: CostRow["kind"], value: number, line?: CostLine): void => {
    reached += value;
    steps.push({ kind, value, ...(line ? { line } : {}) });
  };
  for (const line of sum.lines) add("line", shown(line.amount), line);
  if (sum.groupRatio !== 1) {
    steps.push({ kind: "subtotal", value: reached });
    add("group", shown(sum.exact) - reached);
  }
  if (sum.isMinimum) add("minimum", shown(1));
  const total = shown(charged);
  if (sum.isCapped && total < reached) add("cap", total - reached);
  if (total !== reached) add("rounding", total - reached);
  steps.push({ kind: "total", value: total });

  const least = isMoney ? LEAST_DOLLAR_DECIMALS : 0;
  const places = steps.reduce((most, { value }) => Math.max(most, decimalsOf(value, decimals)), least);
  return steps.map(({ value, ...row }) => ({
    ...row,
    text: textOf(value, { decimals, places, symbol: isMoney ? symbol : "" }),
  }));
}

/** Fewer where the amounts are so large that whole numbers of the last decimal could not be added exactly. */
function exactDecimals(most: number, wanted: number): number {
  let decimals = wanted;
  while (decimals > LEAST_DECIMALS && most * 10 ** decimals > MOST_SCALED) decimals--;
  return decimals;
}

/** Decimals that a scaled number needs. */
function decimalsOf(value: number, decimals: number): number {
  let needed = decimals;
  let rest = Math.abs(value);
  while (needed > 0 && rest % 10 === 0) {
    rest /= 10;
    needed--;
  }
  return needed;
}

function textOf(
  value: number,
  { decimals, places, symbol }: { decimals: number; places: number; symbol: string },
): string {
  const digits = String(Math.abs(value)).padStart(decimals + 1, "0");
  const whole = Number(digits.slice(0, -decimals)).toLocaleString("en-US");
  const fraction = digits.slice(-decimals).slice(0, places);
  const sign = value < 0 ? "−" : "";
  return `${sign}${symbol}${whole}${places > 0 ? `.${fraction}` : ""}`;
}
