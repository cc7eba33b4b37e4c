// The time range in a page's address as the moments that a list's query string names.
import { rangeOf } from "../../islands/lib/time-range.ts";
import type { Preset } from "../../islands/lib/time-range.ts";
import type { LoaderContext } from "./page.ts";

interface RangeTerms {
  /** Where the address names no range. */
  fallback: Preset;
  /** How far beyond this moment a relative range ends; "open": it has no end. */
  aheadSeconds: number | "open";
  /** What the list counts in; addresses count in seconds. */
  unit?: "seconds" | "milliseconds";
}

export function sentRange(
  { deps, url }: Pick<LoaderContext, "deps" | "url">,
  { fallback, aheadSeconds, unit = "seconds" }: RangeTerms,
): { start_timestamp: string; end_timestamp: string | undefined } {
  const query = Object.fromEntries(url.searchParams);
  const { preset, from, to } = rangeOf(
    query,
    deps.clock.nowMs(),
    deps.options.get("site.time_zone"),
    fallback,
  );
  const text = (seconds: number) => String(unit === "milliseconds" ? seconds * 1000 : seconds);
  if (preset === undefined) return { start_timestamp: text(from), end_timestamp: text(to) };
  if (aheadSeconds === "open") return { start_timestamp: text(from), end_timestamp: undefined };
  return { start_timestamp: text(from), end_timestamp: text(to + aheadSeconds) };
}
