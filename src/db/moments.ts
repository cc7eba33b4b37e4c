// The moment as a name in conditions that are built once and asked again and again (src/jobs): its values come with each question.
// Refuses any other name: whoever asks gives all of these.
import { sql } from "drizzle-orm";
import type { Placeholder } from "drizzle-orm";

/** A moment as a number, or by its name. */
export type Moment = number | Placeholder;

/** Unix seconds, rounded down, and Unix milliseconds. */
export const NOW: Placeholder = sql.placeholder("now");
export const NOW_MS: Placeholder = sql.placeholder("nowMs");

/** The values of both by this node's clock. */
export function momentValues(clock: { nowMs(): number }): { now: number; nowMs: number } {
  const ms = clock.nowMs();
  return { now: Math.floor(ms / 1000), nowMs: ms };
}
