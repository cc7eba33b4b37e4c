// The charge against hostile numbers: whatever comes from outside, a balance can only go down, by a bounded amount.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cost, estimateReserve } from "../../../src/core/prices/prices.ts";
import type { ModelPricing } from "../../../src/core/prices/prices.ts";
import { explainCost, explainStored, integerQuota } from "../../../src/shared/cost.ts";
import { MAX_QUOTA } from "../../../src/shared/money.ts";
import type { Usage } from "../../../src/shared/usage.ts";
import { price } from "./support.ts";

const anyNumber = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(
    Number.NaN,
    Infinity,
    -Infinity,
    Number.MAX_VALUE,
    -1,
    -0,
    2 ** 63,
    1e300,
    Number.MIN_VALUE,
  ),
);

function usageOf(number: fc.Arbitrary<number>): fc.Arbitrary<Usage> {
  return fc.record({
    input: fc.record({
      fresh: number,
      cacheRead: number,
      cacheWrite5m: number,
      cacheWrite1h: number,
      audio: number,
      image: number,
    }),
    output: fc.record({ text: number, thinking: number, audio: number, image: number }),
    calls: fc.record({ webSearch: number, fileSearch: number }),
  });
}

function pricingOf(number: fc.Arbitrary<number>): fc.Arbitrary<ModelPricing> {
  return fc.record({
    callPrice: fc.option(number, { nil: undefined }),
    modelRatio: number,
    completionRatio: number,
    cacheRatio: number,
    cacheWriteRatio: number,
    cacheWrite1hRatio: number,
    imageRatio: number,
    audioRatio: number,
    audioCompletionRatio: number,
  });
}

const rounding = fc.constantFrom("half-away" as const, "floor" as const);
const isSafe = (value: number) => Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0);

describe("no number of the outside can do harm", () => {
  test("a charge is a safe whole number of at least 0, whatever usage, prices and ratios are", () => {
    fc.assert(
      fc.property(
        usageOf(anyNumber),
        pricingOf(anyNumber),
        fc.tuple(anyNumber, anyNumber, anyNumber, anyNumber, anyNumber),
        fc.option(anyNumber, { nil: undefined }),
        rounding,
        (call, pricing, [group, perUnit, count, factor, tool], quotaCap, mode) => {
          const charge = cost(pricing, group, call, {
            quotaPerUnit: perUnit,
            callCount: count,
            callFactor: factor,
            webSearchPrice: tool,
            fileSearchPrice: tool,
            rounding: mode,
            quotaCap,
          });
          expect(isSafe(charge.quota)).toBe(true);
          for (const line of charge.lines)
            expect(line.amount >= 0 && Number.isFinite(line.amount)).toBe(true);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("so is a reservation", () => {
    fc.assert(
      fc.property(
        pricingOf(anyNumber),
        fc.tuple(anyNumber, anyNumber, anyNumber, anyNumber, anyNumber, anyNumber, anyNumber),
        (
          pricing,
          [group, promptTokens, maxTokens, preConsumedTokens, callCount, callFactor, quotaPerUnit],
        ) => {
          const held = estimateReserve(pricing, group, {
            promptTokens,
            maxTokens,
            preConsumedTokens,
            callCount,
            callFactor,
            quotaPerUnit,
          });
          expect(isSafe(held)).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("so is the explanation of a row that somebody tampered with", () => {
    fc.assert(
      fc.property(fc.object(), fc.object({ maxDepth: 0 }), (stored, documented) => {
        const sums = [
          explainStored({ cost: stored }),
          explainStored(
            { ...documented, model_ratio: 1 },
            { prompt_tokens: -5, completion_tokens: Number.NaN },
          ),
        ];
        for (const sum of sums) expect(isSafe(sum?.quota ?? 0)).toBe(true);
      }),
    );
    const hostile = { modelRatio: "7", fresh: -1, groupRatio: null, rounding: 3, callPrice: {}, extra: 1 };
    expect(explainStored({ cost: hostile })?.quota).toBe(0);
  });

  test("a cap that makes no sense charges nothing rather than everything", () => {
    const call = { modelRatio: 1, fresh: 1000 };
    for (const quotaCap of [Number.NaN, -1, Infinity])
      expect(explainCost({ ...call, quotaCap }).quota).toBe(0);
    expect(explainCost({ ...call, quotaCap: 0.9 }).quota).toBe(0);
    expect(explainCost(call).quota).toBe(1000);
  });

  test("amounts beyond what a balance can hold stop at its bound", () => {
    expect([
      integerQuota(1e300, "floor"),
      integerQuota(Infinity, "half-away"),
      integerQuota(Number.NaN, "floor"),
    ]).toEqual([MAX_QUOTA, MAX_QUOTA, 0]);
  });
});

const FIELDS = [
  ["input", "fresh"],
  ["input", "cacheRead"],
  ["input", "cacheWrite5m"],
  ["input", "cacheWrite1h"],
  ["input", "audio"],
  ["input", "image"],
  ["output", "text"],
  ["output", "thinking"],
  ["output", "audio"],
  ["output", "image"],
  ["calls", "webSearch"],
  ["calls", "fileSearch"],
] as const;

const count = fc.integer({ min: 0, max: 1_000_000 });
const ratio = fc.double({ min: 0.001, max: 500, noNaN: true });

test.each(FIELDS.map(([part, field]) => ({ part, field })))(
  "more of $part.$field never costs less",
  ({ part, field }) => {
    fc.assert(
      fc.property(
        usageOf(count),
        pricingOf(ratio),
        ratio,
        count,
        rounding,
        (call, pricing, group, more, mode) => {
          const extras = { webSearchPrice: 25, rounding: mode };
          const before = cost(pricing, group, call, extras).quota;
          const now: Record<string, number> = { ...call[part] };
          const grown: Usage = { ...call, [part]: { ...now, [field]: (now[field] ?? 0) + more } };
          expect(cost(pricing, group, grown, extras).quota).toBeGreaterThanOrEqual(before);
        },
      ),
      { numRuns: 60 },
    );
  },
);

test("rounding moves a charge by less than one unit, and cutting never raises it", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e15, noNaN: true }), (value) => {
      expect(Math.abs(integerQuota(value, "half-away") - value)).toBeLessThanOrEqual(0.5 + 1e-4);
      const cut = integerQuota(value, "floor");
      expect(cut <= value + 1e-4 && value - cut < 1).toBe(true);
    }),
  );
});

describe("the explanation is the charge", () => {
  test("the lines times the group ratio are the unrounded total, and that rounds to the charge", () => {
    fc.assert(
      fc.property(usageOf(count), pricingOf(ratio), ratio, rounding, (call, pricing, group, mode) => {
        const { lines, sum, quota } = cost(pricing, group, call, { webSearchPrice: 25, rounding: mode });
        const total = lines.reduce((all, line) => all + line.amount, 0) * group;
        expect(total).toBe(sum.exact);
        expect(quota).toBe(integerQuota(sum.exact, mode));
        for (const line of lines) {
          const units = line.per === "mtok" ? (line.unitPrice / 2) * line.count : line.amount;
          expect(Math.abs(units - line.amount)).toBeLessThanOrEqual(1e-9 * line.amount);
        }
      }),
    );
  });

  test("rebuilt from the stored row, after a trip through JSON, it is the one that charged", () => {
    fc.assert(
      fc.property(
        usageOf(count),
        fc.constantFrom("gpt-4o", "dall-e-3", "claude-sonnet-4-20250514"),
        fc.constantFrom(0, 0.5, 1, 3),
        fc.option(count, { nil: undefined }),
        rounding,
        (call, model, group, quotaCap, mode) => {
          const charge = cost(price(model), group, call, { webSearchPrice: 25, rounding: mode, quotaCap });
          const stored = JSON.parse(JSON.stringify(charge.other)) as Record<string, unknown>;
          expect(explainStored(stored)).toEqual(charge.sum);
        },
      ),
    );
  });
});
