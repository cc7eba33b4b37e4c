// What the dashboard screen gets with the page and from its call, and its series with their colours.
// Refuses to sum by itself: lines, leaders and what is left are the server's.
import { assignSlots, sumOf } from "../../lib/chart.ts";
import type { ChartSeries } from "../../lib/chart.ts";
import type { FirstSteps, UsageSeries, UsageSummary } from "../../lib/wire.ts";

export type { FirstSteps };

export interface DetailPageData {
  isAdmin: boolean;
  isRoot: boolean;
  /** undefined: the address asks for what the server refuses; the call will say why. */
  use: UsageSummary | undefined;
  /** Quota that the visitor used in all. */
  used: number;
  /** What stands between an empty installation and its first figures; undefined where there are figures. */
  first: FirstSteps | undefined;
  /** Minutes after which a page that is looked at asks again (option DataExportInterval). */
  everyMinutes: number;
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

/** What the series leave of their figure, per bar. */
export function othersOf(use: UsageSummary): number[] {
  return use.lines[use.figure].map(
    (total, bar) => total - sumOf(use.series.map(({ values }) => values[bar] ?? 0)),
  );
}

/**
 * The leaders, highest first, and everything else as one grey series at the end. `labelOf` names what has no name of its
 * own.
 */
export function rankedSeries(
  use: UsageSummary,
  labelOf: (series: UsageSeries) => string,
  otherLabel: string,
): RankedSeries[] {
  const memory = memories.get(use.by) ?? new Map<string, number>();
  // The server's renders share this module: only a browser has a session to remember.
  if (typeof document !== "undefined") memories.set(use.by, memory);
  const slots = assignSlots(
    use.series.map(({ id }) => id),
    memory,
  );
  const shown: RankedSeries[] = use.series.map((series) => ({
    id: `${use.by} ${series.id}`,
    label: labelOf(series),
    slot: slots.get(series.id) ?? 0,
    values: series.values,
    total: sumOf(series.values),
  }));
  const values = othersOf(use);
  const total = sumOf(values);
  if (total > 0) shown.push({ id: "other", label: otherLabel, slot: 0, values, total });
  return shown;
}

/** What the log is filtered by to show what is behind a series; undefined where it cannot be usage for. */
export function filterOfSeries(use: UsageSummary, id: string): Record<string, string> | undefined {
  const series = use.series.find((each) => `${use.by} ${each.id}` === id);
  if (!series) return undefined;
  if (use.by === "model") return { model_name: series.id };
  if (use.by === "channel") return { channel: series.id };
  // Names are what the log filters by: who has none any more cannot be usage for.
  if (series.name === "") return undefined;
  return use.by === "user" ? { username: series.name } : { token_name: series.name };
}
