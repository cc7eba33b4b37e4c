// The clock of the process: the time of day for what is stored or shown, a steady count for how long something takes.
// A clock that is set changes the first and never the second.
import type { Clock } from "../deps.ts";

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** When a moment of the steady count is, was or will be, in Unix milliseconds: for showing it, not for comparing. */
export function wallTimeOf(clock: Clock, monotonicMs: number): number {
  return clock.nowMs() + monotonicMs - clock.monotonicMs();
}
