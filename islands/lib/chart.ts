// The arithmetic of charts: scales, stacks, paths, slots of the palette, labels of bars over time.
// Refuses a framework: what remains of one here is these few functions, equal on the server and in the browser.
import type { Step } from "../../src/shared/local-time.ts";
import { formatDateTime } from "./format.ts";

/** Colours of the palette; slot 0 is the grey of "other". */
export const SLOTS = 8;

export interface ChartSeries {
  id: string;
  label: string;
  /** 1 to 8: --c1 to --c8; 0: --c-other. */
  slot: number;
  /** In place of the slot's colour: a loss, or what is not known. */
  look?: "broken" | "hatched";
  /** One per bar; nothing negative. */
  values: readonly number[];
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

export interface Scale {
  /** Value at the upper edge; more than 0. */
  top: number;
  /** Values of the grid lines above the baseline, rising. */
  ticks: number[];
}

const STEPS = [1, 2, 2.5, 5, 10];

/**
 * A scale from zero that holds `most`, with about four grid lines at round values of `unit` (quota units per dollar
 * where dollars are shown). `isInteger`: no fractions of the unit.
 */
export function scaleOf(most: number, unit = 1, isInteger = true): Scale {
  const wanted = Math.max(most, 0) / unit;
  if (wanted === 0) return { top: 4 * unit, ticks: [] };
  const rough = wanted / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const isRound = (step: number) => step >= rough * 0.999_999 && (!isInteger || Number.isInteger(step));
  const step = STEPS.map((each) => each * power).find(isRound) ?? Math.max(10 * power, 1);
  const count = Math.max(1, Math.ceil(wanted / step - 1e-9));
  // Multiplied, not added up: sums of 0.1 drift.
  const ticks = Array.from({ length: count }, (_, index) => (index + 1) * step * unit);
  return { top: count * step * unit, ticks };
}

/** Sum of every bar. */
export function totalsOf(series: readonly ChartSeries[], size: number): number[] {
  return Array.from({ length: size }, (_, bar) => sumOf(series.map(({ values }) => values[bar] ?? 0)));
}

/** Room of one bar in the units of a plot; the stroke of a series is a little narrower (charts.css). */
export const BAR = 10;

/**
 * The bars of each series as one path of upright strokes in a box of `size * BAR` by `height` pixels, stacked in the given
 * order from the baseline. Each stroke reaches down to the baseline: drawn from the last series to the first, every one
 * covers the lower part of those above it, and the page carries one number per bar instead of two. Ends lie on whole
 * pixels; what is there is at least one high, so that a single call is seen beside a thousand.
 */
export function stackPaths(
  series: readonly ChartSeries[],
  size: number,
  height: number,
  top: number,
): string[] {
  const sums = Array.from({ length: size }, () => 0);
  const edges = Array.from({ length: size }, () => 0);
  return series.map(({ values }) => {
    let path = "";
    for (let bar = 0; bar < size; bar++) {
      const value = values[bar] ?? 0;
      if (value <= 0) continue;
      const sum = (sums[bar] ?? 0) + value;
      const to = Math.min(height, Math.max((edges[bar] ?? 0) + 1, Math.round((sum / top) * height)));
      sums[bar] = sum;
      edges[bar] = to;
      path += `M${bar * BAR + BAR / 2} ${height}V${height - to}`;
    }
    return path;
  });
}

/** A line through the values in a box of `values.length - 1` by `height`, and the area below it. */
export function sparkPaths(values: readonly number[], height: number): { line: string; area: string } {
  const most = Math.max(...values, 0);
  if (values.length < 2 || most === 0) return { line: "", area: "" };
  // Half a stroke of room at both edges.
  const y = (value: number) => Math.round(height - 1 - (value / most) * (height - 2));
  const line = values.map((value, at) => `${at === 0 ? "M" : "L"}${at} ${y(value)}`).join("");
  return { line, area: `${line}V${height}H0Z` };
}

/**
 * Slots of the palette for the leaders of a chart, in their order. Whoever had a slot in this session keeps it; a slot
 * is only taken over from one who is no longer shown. `memory` is updated.
 */
export function assignSlots(ids: readonly string[], memory: Map<string, number>): Map<string, number> {
  const shown = ids.slice(0, SLOTS);
  const taken = new Map<string, number>();
  const free = new Set(Array.from({ length: SLOTS }, (_, index) => index + 1));
  for (const id of shown) {
    const slot = memory.get(id);
    if (slot === undefined || !free.delete(slot)) continue;
    taken.set(id, slot);
  }
  for (const id of shown) {
    if (taken.has(id)) continue;
    const [slot = 0] = free;
    free.delete(slot);
    taken.set(id, slot);
    memory.set(id, slot);
  }
  return taken;
}

/** `12%`, `<1%`, `100%`; "" where the total is nothing. */
export function shareText(value: number, total: number): string {
  if (total <= 0) return "";
  const percent = (value / total) * 100;
  if (percent > 0 && percent < 1) return "<1%";
  if (percent < 100 && percent > 99) return ">99%";
  return `${Math.round(percent)}%`;
}

/** Bars of a chart over time. */
export interface TimeAxis {
  /** Start of each bar, Unix seconds. */
  at: readonly number[];
  /** End of the last one. */
  to: number;
  step: Step;
}

function endOf({ at, to }: TimeAxis, bar: number): number {
  return at[bar + 1] ?? to;
}

/** `11-20 14:00 – 15:00`, `11-20`, `11-17 – 11-23`: from the first bar's start to the last one's end. */
export function spanText(axis: TimeAxis, first: number, last: number, zone: string): string {
  const from = formatDateTime((axis.at[first] ?? 0) * 1000, zone);
  // The last second that belongs to it.
  const end = formatDateTime((endOf(axis, last) - 1) * 1000, zone);
  if (axis.step !== "hour") {
    const [a, b] = [from.slice(5, 10), end.slice(5, 10)];
    return a === b ? a : `${a} – ${b}`;
  }
  const until = formatDateTime(endOf(axis, last) * 1000, zone);
  const isSameDay = from.slice(0, 10) === end.slice(0, 10);
  return `${from.slice(5, 16)} – ${isSameDay ? until.slice(11, 16) : until.slice(5, 16)}`;
}

export interface AxisLabel {
  bar: number;
  text: string;
}

const MOST_LABELS = 8;

/** Labels below the bars: round hours of the local clock with the date at midnight, or every so many days. */
export function axisLabels(axis: TimeAxis, zone: string): AxisLabel[] {
  const size = axis.at.length;
  const texts = axis.at.map((at) => formatDateTime(at * 1000, zone));
  if (axis.step === "hour") {
    const every = [1, 2, 3, 4, 6, 12, 24].find((hours) => size / hours <= MOST_LABELS) ?? 24;
    return texts.flatMap((text, bar) => {
      const hour = Number(text.slice(11, 13));
      if (hour % every !== 0) return [];
      return [{ bar, text: hour === 0 ? text.slice(5, 10) : text.slice(11, 16) }];
    });
  }
  const every = Math.ceil(size / MOST_LABELS);
  // Counted from the end: the newest bar is the one that people look for.
  return texts.flatMap((text, bar) =>
    (size - 1 - bar) % every === 0 ? [{ bar, text: text.slice(5, 10) }] : [],
  );
}
