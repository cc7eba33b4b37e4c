// What the dashboard screen gets with the page and from its call, and the view of one figure of it.
// Refuses to rank by what is not shown: leaders and "other" are those of the chosen figure.
import { assignSlots, SLOTS, sumOf } from "../../lib/chart.ts";
import type { ChartSeries } from "../../lib/chart.ts";
import type { Step } from "../../../src/shared/local-time.ts";
import type { Dimension } from "./asked.ts";

export interface Sums {
  quota: number;
  count: number;
  tokens: number;
}

export interface UseSeries {
  id: string;
  name: string;
  quota: number[];
  count: number[];
  tokens: number[];
}

/** As `core/dashboard.ts` answers. */
export interface UseData {
  from: number;
  to: number;
  step: Step;
  by: Dimension;
  at: number[];
  series: UseSeries[];
  other: UseSeries;
  otherSize: number;
  errors: number[];
  ms: number[];
  previous: Sums;
  elapsed: number;
}

/** What stands between an empty installation and its first figures; undefined where there are figures. */
export interface FirstSteps {
  /** Whether there is one; undefined for users, who have no say in it. */
  channel?: boolean;
  key: boolean;
}

export interface DetailPageData {
  isAdmin: boolean;
  /** undefined: the address asks for what the server refuses; the call will say why. */
  use: UseData | undefined;
  /** Quota that the visitor used in all. */
  used: number;
  first: FirstSteps | undefined;
}

export const MEASURES = ["quota", "count", "tokens"] as const;
export type Measure = (typeof MEASURES)[number];

export function isMeasure(text: string | undefined): text is Measure {
  return (MEASURES as readonly (string | undefined)[]).includes(text);
}

/** Figures of the whole range. */
export function sumsOf(use: UseData): Sums {
  const every = [...use.series, use.other];
  const of = (measure: Measure) => sumOf(every.map((series) => sumOf(series[measure])));
  return { quota: of("quota"), count: of("count"), tokens: of("tokens") };
}

/** One figure over time, all series together. */
export function lineOf(use: UseData, measure: Measure): number[] {
  const every = [...use.series, use.other];
  return use.at.map((_, bar) => sumOf(every.map((series) => series[measure][bar] ?? 0)));
}

export interface RankedSeries extends ChartSeries {
  total: number;
}

/** Colours of this session, per dimension: what was blue stays blue. */
const memories = new Map<string, Map<string, number>>();

/** For tests: as after a page load. */
export function forgetColours(): void {
  memories.clear();
}

/**
 * The leaders of a figure, highest first, and everything else as one grey series at the end. `labelOf` names what has no
 * name of its own; `otherLabel` is given how many there are.
 */
export function rankedSeries(
  use: UseData,
  measure: Measure,
  labelOf: (series: UseSeries) => string,
  otherLabel: (size: number) => string,
): RankedSeries[] {
  const ranked = use.series
    .map((series) => ({ series, total: sumOf(series[measure]) }))
    .filter(({ total }) => total > 0)
    .toSorted((a, b) => b.total - a.total);
  const leaders = ranked.slice(0, SLOTS);
  const rest = ranked.slice(SLOTS).map(({ series }) => series);
  const memory = memories.get(use.by) ?? new Map<string, number>();
  // The server's renders share this module: only a browser has a session to remember.
  if (typeof document !== "undefined") memories.set(use.by, memory);
  const slots = assignSlots(
    leaders.map(({ series }) => series.id),
    memory,
  );
  const shown: RankedSeries[] = leaders.map(({ series, total }) => ({
    id: `${use.by} ${series.id}`,
    label: labelOf(series),
    slot: slots.get(series.id) ?? 0,
    values: series[measure],
    total,
  }));
  const others = [...rest, use.other];
  const values = use.at.map((_, bar) => sumOf(others.map((series) => series[measure][bar] ?? 0)));
  const total = sumOf(values);
  if (total > 0) {
    shown.push({ id: "other", label: otherLabel(rest.length + use.otherSize), slot: 0, values, total });
  }
  return shown;
}
