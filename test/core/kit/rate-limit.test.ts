// The request rate limit counts in a sliding window, without a clock and within bounded memory.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { heapStats } from "bun:jsc";
import { createRateLimiter } from "../../../src/core/kit/rate-limit.ts";

const MINUTE = 60_000;
const NOW = 1_750_000_000_000;

function heapBytes(): number {
  Bun.gc(true);
  return heapStats().heapSize;
}

test("as many requests as the total allows pass within any window, whenever they come", () => {
  const limiter = createRateLimiter();
  const rule = { windowMs: MINUTE, total: 3, success: 1000 };
  // A burst at the end of one minute and at the start of the next is still one burst.
  expect([0, 1, 2].map((i) => limiter.admit(1, rule, NOW + 59_000 + i))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  const refusal = limiter.admit(1, rule, NOW + 61_000);
  expect(refusal).toMatchObject({ which: "total", limit: 3 });
  expect(refusal?.retryAfterSeconds).toBeGreaterThan(50);
});

test("the window's edge is exact: refused until a request's whole window is over, free with that millisecond", () => {
  for (const limit of [1, 3, 4096]) {
    const limiter = createRateLimiter();
    const rule = { windowMs: MINUTE, total: limit, success: 100_000 };
    for (let i = 0; i < limit; i++) expect(limiter.admit(1, rule, NOW + i)).toBeUndefined();
    expect(limiter.admit(1, rule, NOW + MINUTE - 1)).toMatchObject({ which: "total", limit });
    // One left, so one may come, and no second one.
    expect(limiter.admit(1, rule, NOW + MINUTE)).toBeUndefined();
    expect(limiter.admit(1, rule, NOW + MINUTE)).toBeDefined();
  }
});

test("in any window there are never more than the limit, and never fewer are let through than fit", () => {
  const moments = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 80 });
  fc.assert(
    fc.property(moments, fc.integer({ min: 1, max: 6 }), (waits, total) => {
      const limiter = createRateLimiter();
      const rule = { windowMs: 1000, total, success: 100_000 };
      const passed: number[] = [];
      let now = NOW;
      for (const wait of waits) {
        now += wait;
        const fits = passed.filter((at) => at > now - 1000).length < total;
        expect(limiter.admit(1, rule, now) === undefined).toBe(fits);
        if (fits) passed.push(now);
      }
    }),
  );
});

test("a huge limit costs no memory of its size, and lets nobody through early", () => {
  const limiter = createRateLimiter();
  const rule = { windowMs: MINUTE, total: 1_000_000, success: 10_000_000 };
  const before = heapBytes();
  for (let i = 0; i < 1_000_000; i++) limiter.admit(1, rule, NOW + Math.floor(i / 20));
  expect(limiter.admit(1, rule, NOW + MINUTE - 1)).toBeDefined();
  expect(heapBytes() - before).toBeLessThan(1_000_000);
  // The first slice is over together, a moment after its first request.
  expect(limiter.admit(1, rule, NOW + MINUTE + MINUTE / 4096 + 1)).toBeUndefined();
});

test("a changed rule goes on counting what was counted", () => {
  const limiter = createRateLimiter();
  for (let i = 0; i < 5; i++) limiter.admit(1, { windowMs: MINUTE, total: 5, success: 10 }, NOW);
  expect(limiter.admit(1, { windowMs: 2 * MINUTE, total: 5, success: 10 }, NOW + MINUTE - 1)).toBeDefined();
  expect(limiter.admit(1, { windowMs: MINUTE, total: 6, success: 10 }, NOW + MINUTE - 1)).toBeUndefined();
});

test("only successes count towards the limit of successes", () => {
  const limiter = createRateLimiter();
  const rule = { windowMs: MINUTE, total: 0, success: 2 };
  for (let i = 0; i < 50; i++) {
    expect(limiter.admit(1, rule, NOW)).toBeUndefined();
    limiter.ended(1, rule, false, NOW);
  }
  expect(limiter.admit(1, rule, NOW)).toBeUndefined();
  limiter.ended(1, rule, true, NOW);
  expect(limiter.admit(1, rule, NOW)).toBeUndefined();
  limiter.ended(1, rule, true, NOW);
  expect(limiter.admit(1, rule, NOW + 1)).toMatchObject({ which: "success", limit: 2 });
  expect(limiter.admit(1, rule, NOW + MINUTE + 2000)).toBeUndefined();
});

test("open calls take the place of successes until they end, and leave nothing behind", () => {
  const limiter = createRateLimiter();
  const rule = { windowMs: MINUTE, total: 0, success: 2 };
  expect([1, 2].map(() => limiter.admit(1, rule, NOW))).toEqual([undefined, undefined]);
  expect(limiter.admit(1, rule, NOW)).toEqual({ which: "success", limit: 2, retryAfterSeconds: 1 });
  expect(limiter.admit(2, rule, NOW)).toBeUndefined();
  limiter.ended(1, rule, false, NOW);
  expect(limiter.state(1, rule, NOW)).toEqual({ limit: 2, remaining: 1, resetMs: MINUTE });
  limiter.ended(1, rule, true, NOW);
  expect(limiter.state(1, rule, NOW + 1000)).toEqual({ limit: 2, remaining: 1, resetMs: MINUTE - 1000 });
  expect(limiter.state(1, rule, NOW + MINUTE)).toEqual({ limit: 2, remaining: 2, resetMs: 0 });
});

test("users do not share a window, and a refused request does not count", () => {
  const limiter = createRateLimiter();
  const rule = { windowMs: MINUTE, total: 1, success: 10 };
  expect(limiter.admit(1, rule, NOW)).toBeUndefined();
  expect(limiter.admit(2, rule, NOW)).toBeUndefined();
  for (let i = 0; i < 5; i++) expect(limiter.admit(1, rule, NOW)).toBeDefined();
  expect(limiter.admit(1, rule, NOW + MINUTE + 2000)).toBeUndefined();
});

test("a window of no length limits nothing", () => {
  const limiter = createRateLimiter();
  const rule = { windowMs: 0, total: 1, success: 1 };
  expect([1, 2, 3].map(() => limiter.admit(1, rule, NOW))).toEqual([undefined, undefined, undefined]);
});
