// What the address asks the dashboard for: range, step, scope and what the bars are split by.
// Refuses what does not fit: steps with too many bars are not offered, and names only count for administrators.
import { addDays, startOfDay, stepFor } from "../../../src/shared/local-time.ts";
import type { Step } from "../../../src/shared/local-time.ts";
import { rangeOf } from "../../lib/time-range.ts";
import type { Preset, TimeRange } from "../../lib/time-range.ts";
import type { Query } from "../../lib/url-state.ts";

export const DETAIL_PRESETS: readonly Preset[] = ["24h", "today", "7d", "30d"];
export const DIMENSIONS = { admin: ["model", "user", "channel", "key"], user: ["model", "key"] } as const;
type Dimension = (typeof DIMENSIONS)["admin"][number];

export const FIGURES = ["quota", "count", "tokens"] as const;
export type Figure = (typeof FIGURES)[number];

const HOUR = 3600;
const DAY = 24 * HOUR;
/** As the server has it: no chart has more bars. */
const MOST_BARS = 120;
/** Users look at one month at most. */
const MONTH = 30 * DAY;
/** The range that belongs to the site's default granularity. */
const DEFAULT_RANGE = { hour: "24h", day: "7d", week: "30d" } as const;
const SECONDS = { hour: HOUR, day: DAY, week: 7 * DAY } as const;

export interface UsageQuery {
  /** Unix seconds of whole hours or days, the end not included; today's end lies ahead. */
  range: TimeRange;
  /** Named in the address; undefined: automatic. */
  granularity: Step | undefined;
  step: Step;
  figure: Figure;
  by: Dimension;
  /** undefined: everybody. */
  scope: "me" | { username: string } | undefined;
}

export function fits(step: Step, { from, to }: { from: number; to: number }): boolean {
  return (to - from) / SECONDS[step] <= MOST_BARS;
}

function isStep(text: string | undefined): text is Step {
  return text === "hour" || text === "day" || text === "week";
}

/** Up to the next whole hour: in zones off it, an hour belongs to the day in which it begins. */
function roundUpToHour(seconds: number): number {
  return Math.ceil(seconds / HOUR) * HOUR;
}

/** Presets become whole bars: the current hour and the 23 before it, today and the 6 days before it. */
function alignedRange({ preset, from, to }: TimeRange, nowMs: number, zone: string): TimeRange {
  const nextHour = (Math.floor(nowMs / 1000 / HOUR) + 1) * HOUR;
  if (preset === undefined) return { preset, from, to };
  if (preset === "1h") return { preset, from: nextHour - HOUR, to: nextHour };
  if (preset === "24h") return { preset, from: nextHour - DAY, to: nextHour };
  const today = startOfDay(nowMs, zone);
  const before = { today: 0, "7d": 6, "30d": 29 }[preset];
  const end = roundUpToHour(addDays(today, 1, zone));
  // In the month in which clocks go back, 30 days are an hour longer than users may ask for.
  return { preset, from: Math.max(roundUpToHour(addDays(today, -before, zone)), end - MONTH), to: end };
}

export function usageQueryOf(
  query: Query,
  nowMs: number,
  zone: string,
  site: { data_export_default_time?: string },
  isAdmin: boolean,
): UsageQuery {
  const siteStep: Step = isStep(site.data_export_default_time) ? site.data_export_default_time : "hour";
  const isPlain = query.range === undefined && query.start_timestamp === undefined;
  const range = alignedRange(rangeOf(query, nowMs, zone, DEFAULT_RANGE[siteStep]), nowMs, zone);
  const granularity = isStep(query.granularity) ? query.granularity : undefined;
  const dimensions: readonly Dimension[] = isAdmin ? DIMENSIONS.admin : DIMENSIONS.user;
  return {
    range,
    granularity,
    step: granularity ?? (isPlain ? siteStep : stepFor(range.to - range.from)),
    figure: FIGURES.find((each) => each === query.show) ?? "quota",
    by: dimensions.find((each) => each === query.by) ?? "model",
    scope:
      !isAdmin || query.scope === "me" ? "me" : query.username ? { username: query.username } : undefined,
  };
}
