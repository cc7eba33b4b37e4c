// The request rate limit counts in a sliding window, without a clock and within bounded memory.
import { expect, test } from "bun:test";
import { createRateLimiter } from "../../src/relay/rate-limit.ts";

const MINUTE = 60_000;
const NOW = 1_750_000_000_000;

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
  expect(limiter.admit(1, rule, NOW + 59_000 + MINUTE + 1001)).toBeUndefined();
});

test("only successes count towards the limit of successes", () => {
  const limiter = createRateLimiter();
  const rule = { windowMs: MINUTE, total: 0, success: 2 };
  for (let i = 0; i < 50; i++) expect(limiter.admit(1, rule, NOW)).toBeUndefined();
  limiter.succeeded(1, rule, NOW);
  limiter.succeeded(1, rule, NOW);
  expect(limiter.admit(1, rule, NOW + 1)).toMatchObject({ which: "success", limit: 2 });
  expect(limiter.admit(1, rule, NOW + MINUTE + 2000)).toBeUndefined();
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
