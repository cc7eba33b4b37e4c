// What a person reads of a change of prices: the kinds that changed on their own, not those that follow them.
import { expect, test } from "bun:test";
import { percentOf, tellingSteps } from "../../src/shared/price-steps.ts";
import type { PriceStep } from "../../src/shared/price-steps.ts";

const step = (kind: PriceStep["kind"], before: number | null, after: number | null): PriceStep => ({
  kind,
  before,
  after,
});
const kindsOf = (...steps: PriceStep[]) => tellingSteps(steps).told.map(({ kind }) => kind);

test("what follows input or output by the same factor is left out and counted", () => {
  const { told, more } = tellingSteps([
    step("fresh", 2, 3),
    step("cache_read", 2, 3),
    step("cache_write_5m", 2.5, 3.75),
    step("audio_input", 40, 60),
    step("output", 8, 24),
    step("thinking", 8, 24),
  ]);
  expect(told.map(({ kind }) => kind)).toEqual(["fresh", "output"]);
  expect(more).toBe(4);
});

test("a kind with a price of its own is told", () => {
  expect(kindsOf(step("fresh", 2, 3), step("cache_read", 1, 0.3))).toEqual(["fresh", "cache_read"]);
  expect(kindsOf(step("cache_read", 1, 0.3))).toEqual(["cache_read"]);
  expect(kindsOf(step("fresh", 2, 3), step("thinking", 8, 12))).toEqual(["fresh", "thinking"]);
});

test("a model that gets or loses its price is told by its main kinds", () => {
  expect(kindsOf(step("fresh", null, 3), step("image_input", null, 3), step("output", null, 9))).toEqual([
    "fresh",
    "output",
  ]);
  expect(kindsOf(step("fresh", 3, null), step("cache_read", 3, null), step("per_call", null, 0.1))).toEqual([
    "fresh",
    "per_call",
  ]);
  expect(kindsOf(step("fresh", 3, 0), step("cache_read", 3, 1))).toEqual(["fresh", "cache_read"]);
});

test("percent are those of the old price", () => {
  expect(percentOf(2, 3)).toBe(50);
  expect(percentOf(4, 1)).toBe(-75);
  expect([percentOf(0, 1), percentOf(null, 1), percentOf(1, null)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
