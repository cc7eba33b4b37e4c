// How late the loop was, as a timer that is late itself tells it.
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { watchEventLoop } from "../../src/observe/event-loop.ts";
import type { EventLoopParts } from "../../src/observe/event-loop.ts";
import { createLookAround } from "../../src/db/look-around.ts";
import { between, copyOf, quantileOf } from "../../src/observe/tally.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A loop whose clock goes as the test says. */
function watched(lookEvery?: EventLoopParts["lookEvery"]) {
  let nowMs = 0;
  let usedUs = 0;
  const watch = watchEventLoop({
    nowMs: () => nowMs,
    usedUs: () => usedUs,
    ...(lookEvery ? { lookEvery } : {}),
  });
  return {
    delays: watch.delays,
    stop: () => watch.stop(),
    /** `blockedMs` of the time nothing else could run. */
    pass(ms: number, share: number, blockedMs = 0) {
      nowMs += ms + blockedMs;
      usedUs += (ms + blockedMs) * 1000 * share;
      jest.advanceTimersByTime(ms);
    },
  };
}

test("a process at rest is looked at twice a second, one at work forty times", () => {
  const loop = watched();
  loop.pass(500, 0);
  const looks = () => jest.getTimerCount();
  expect(looks()).toBe(1);
  // One look stands for the twenty that were left out.
  expect(loop.delays.count).toBe(20);
  loop.pass(500, 0.9);
  const before = copyOf(loop.delays);
  for (let at = 0; at < 4; at++) loop.pass(25, 0.9);
  expect(between(before, loop.delays).count).toBe(4);
  loop.stop();
  expect(looks()).toBe(0);
});

test("a loop that stood still for 117 ms is told as one between 100 and 200 ms", () => {
  const loop = watched();
  loop.pass(500, 0.9);
  const before = copyOf(loop.delays);
  loop.pass(25, 0.9, 117);
  const since = between(before, loop.delays);
  expect(since.count).toBe(1);
  expect(quantileOf(since, 0.99)).toBe(0.2);
  loop.stop();
});

test("a machine that slept is no loop that was late", () => {
  const loop = watched();
  loop.pass(500, 0, 3_600_000);
  expect(loop.delays.count).toBe(0);
  loop.stop();
});

test("a process that nobody calls is looked at seldom, and is not late for that", () => {
  const { lookEvery, use } = createLookAround();
  const loop = watched(lookEvery);
  for (let half = 0; half < 100; half++) loop.pass(500, 0);
  // All of the fifty seconds, twelve looks of them in the last thirty.
  expect(loop.delays.count).toBe(2000);
  expect(quantileOf(loop.delays, 1)).toBeLessThan(0.01);
  use();
  loop.stop();
});
