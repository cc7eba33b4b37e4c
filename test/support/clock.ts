// A clock in the test's hands: time passes on both faces, and the time of day can be set like a machine's.
// Refuses to move by itself.
import type { Clock } from "../../src/core/deps.ts";

export const START_MS = Date.UTC(2026, 10, 20, 12, 30, 0);
export const FORTY_DAYS_MS = 40 * 24 * 3600 * 1000;

export interface TestClock extends Clock {
  /** Time passes. */
  advance(ms: number): void;
  /** Somebody sets the time of day, forward or back: no time passes. */
  jump(ms: number): void;
}

export function testClock(startMs = START_MS): TestClock {
  let wallMs = startMs;
  let steadyMs = 1000;
  return {
    nowMs: () => wallMs,
    monotonicMs: () => steadyMs,
    advance(ms) {
      wallMs += ms;
      steadyMs += ms;
    },
    jump(ms) {
      wallMs += ms;
    },
  };
}
