// Ranges of time in the address: relative ones stay relative ("24h"), fixed ones are two Unix seconds.
// Refuses ranges that end before they begin.
import { offsetSeconds, startOfDay } from "../../src/shared/local-time.ts";
import type { Query } from "./url-state.ts";

export { startOfDay };

export const PRESETS = ["1h", "24h", "7d", "30d", "today"] as const;
export type Preset = (typeof PRESETS)[number];

export interface TimeRange {
  preset: Preset | undefined;
  /** Unix seconds. */
  from: number;
  to: number;
}

const SECONDS: Record<Exclude<Preset, "today">, number> = {
  "1h": 3600,
  "24h": 86_400,
  "7d": 7 * 86_400,
  "30d": 30 * 86_400,
};

/** `?range=24h`, or `?start_timestamp=…&end_timestamp=…` in seconds. */
export function rangeOf(query: Query, nowMs: number, zone: string, fallback: Preset): TimeRange {
  const from = Number(query.start_timestamp);
  const to = Number(query.end_timestamp);
  if (
    query.start_timestamp &&
    query.end_timestamp &&
    Number.isInteger(from) &&
    Number.isInteger(to) &&
    from < to
  ) {
    return { preset: undefined, from, to };
  }
  const preset = (PRESETS as readonly string[]).includes(query.range ?? "")
    ? (query.range as Preset)
    : fallback;
  const now = Math.floor(nowMs / 1000);
  return { preset, from: preset === "today" ? startOfDay(nowMs, zone) : now - SECONDS[preset], to: now };
}

/** The patch for setQuery that stands for a range. */
export function rangePatch(
  range: Preset | { from: number; to: number },
): Record<string, string | number | undefined> {
  return typeof range === "string"
    ? { range, start_timestamp: undefined, end_timestamp: undefined }
    : { range: undefined, start_timestamp: range.from, end_timestamp: range.to };
}

/** Moves a range by its own length; becomes a fixed one. */
export function shiftRange({ from, to }: TimeRange, by: -1 | 1): { from: number; to: number } {
  const length = to - from;
  return { from: from + by * length, to: to + by * length };
}

const DAY_MS = 86_400_000;

/**
 * `2026-11-20T19:55` of a field, read in a zone, as Unix seconds: the earlier moment where the clock shows it twice, by the
 * clock as it was before where it leaves it out.
 */
export function parseLocal(text: string, zone: string): number | undefined {
  const asUtc = Date.parse(`${text.length === 16 ? `${text}:00` : text}Z`);
  if (Number.isNaN(asUtc)) return undefined;
  const before = offsetSeconds(zone, asUtc - DAY_MS);
  const moments = [before, offsetSeconds(zone, asUtc + DAY_MS)]
    .map((offset) => ({ offset, at: Math.floor(asUtc / 1000) - offset }))
    .filter(({ offset, at }) => offsetSeconds(zone, at * 1000) === offset)
    .map(({ at }) => at);
  return moments.length === 0 ? Math.floor(asUtc / 1000) - before : Math.min(...moments);
}
