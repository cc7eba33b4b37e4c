// The cost function against the worked examples of the reference, and against hostile numbers.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { audioRatio, completionRatio } from "../../src/core/completion-rules.ts";
import {
  defaultCacheRatio,
  defaultCompletionRatio,
  defaultCreateCacheRatio,
  defaultGroupRatio,
  defaultImageRatio,
  defaultModelPrice,
  defaultModelRatio,
} from "../../src/core/default-prices.ts";
import {
  cost,
  estimateReserve,
  groupRatioOf,
  lookupPrice,
  missingPrice,
  webSearchPrice,
} from "../../src/core/prices.ts";
import type { ModelPricing, PriceTables } from "../../src/core/prices.ts";
import { explainStored } from "../../src/shared/cost.ts";
import { emptyUsage } from "../../src/shared/usage.ts";
import type { Usage } from "../../src/shared/usage.ts";

const tables: PriceTables = {
  modelRatio: defaultModelRatio,
  modelPrice: defaultModelPrice,
  completionRatio: defaultCompletionRatio,
  cacheRatio: defaultCacheRatio,
  createCacheRatio: defaultCreateCacheRatio,
  imageRatio: defaultImageRatio,
  groupRatio: defaultGroupRatio,
  quotaPerUnit: 500_000,
};

function price(model: string): ModelPricing {
  const found = lookupPrice(tables, model);
  if (!found) throw new Error(`no price for ${model}`);
  return found;
}

function usage(
  input: Partial<Usage["input"]>,
  output: Partial<Usage["output"]> = {},
  calls: Partial<Usage["calls"]> = {},
): Usage {
  const empty = emptyUsage();
  return {
    input: { ...empty.input, ...input },
    output: { ...empty.output, ...output },
    calls: { ...empty.calls, ...calls },
  };
}

describe("worked examples of the billing reference", () => {
  test("gpt-4o, 1000 in and 200 out, costs 2250", () => {
    expect(cost(price("gpt-4o"), 1, usage({ fresh: 1000 }, { text: 200 })).quota).toBe(2250);
  });
  test("the same with 400 of the input cached costs 2000", () => {
    expect(cost(price("gpt-4o"), 1, usage({ fresh: 600, cacheRead: 400 }, { text: 200 })).quota).toBe(2000);
  });
  test("Claude with cache reads and writes costs 1612 when cut, 1613 when rounded", () => {
    const call = usage({ fresh: 100, cacheRead: 1000, cacheWrite5m: 500 }, { text: 50 });
    const pricing = price("claude-3-5-sonnet-20241022");
    expect(cost(pricing, 1, call, { rounding: "down" }).quota).toBe(1612);
    expect(cost(pricing, 1, call).quota).toBe(1613);
  });
  test("a picture with size and quality factors costs 60000", () => {
    expect(cost(price("dall-e-3"), 1, usage({ fresh: 1 }), { callCount: 2 * 1.5 }).quota).toBe(60_000);
  });
  test("two medium web searches of gpt-4o add 35000", () => {
    const call = usage({ fresh: 1000 }, {}, { webSearch: 2 });
    expect(cost(price("gpt-4o"), 1, call, { webSearchPrice: webSearchPrice("gpt-4o", "medium") }).quota).toBe(
      1250 + 35_000,
    );
  });
  test("an amount that rounds to nothing is nothing", () => {
    expect(cost({ ...price("gpt-4o"), modelRatio: 0.0001 }, 1, usage({ fresh: 3 })).quota).toBe(0);
  });
  test("one-hour cache writes cost 2 where five-minute writes cost 1.25", () => {
    const pricing = price("claude-sonnet-4-20250514");
    expect(cost(pricing, 1, usage({ cacheWrite5m: 1000 })).quota).toBe(1875);
    expect(cost(pricing, 1, usage({ cacheWrite1h: 1000 })).quota).toBe(3000);
  });
  test("thinking is billed like output, and the group ratio multiplies everything", () => {
    expect(cost(price("gpt-4o"), 2, usage({ fresh: 100 }, { text: 10, thinking: 10 })).quota).toBe(
      (100 + 80) * 1.25 * 2,
    );
    expect(cost(price("gpt-4o"), 0, usage({ fresh: 1_000_000 })).quota).toBe(0);
  });
});

describe("price lookup", () => {
  test("a fixed price wins over any ratio", () => {
    const both = { ...tables, modelPrice: { m: 0.5 }, modelRatio: { m: 3 } };
    expect(cost(lookupPrice(both, "m") as ModelPricing, 1, usage({ fresh: 9 })).quota).toBe(250_000);
  });
  test("custom GPTs are priced under their alias", () => {
    expect(price("gpt-4o-gizmo-g-123")).toEqual(price("gpt-4o-gizmo-*"));
  });
  test("an unknown model has no price, also under names of object internals", () => {
    for (const name of ["nothing-like-it", "constructor", "__proto__", "toString", ""]) {
      expect(lookupPrice(tables, name)).toBeUndefined();
    }
    expect(missingPrice(tables, "x").modelRatio).toBe(37.5);
    expect(groupRatioOf(tables, "no such group")).toBe(1);
  });
  test.each([
    ["gpt-4o-2024-05-13", 3],
    ["gpt-4o-mini", 4],
    ["gpt-4.5-preview", 2],
    ["gpt-4-turbo", 3],
    ["gpt-4.1", 2],
    ["o1-mini", 4],
    ["o4-mini", 1],
    ["claude-3-opus-20240229", 5],
    ["claude-instant-1", 3],
    ["gpt-3.5-turbo", 3],
    ["gpt-3.5-turbo-16k", 4 / 3],
    ["gemini-2.5-pro-preview-03-25", 8],
    ["gemini-2.5-flash-preview-04-17", 3.5 / 0.6],
    ["gemini-2.5-flash-preview-04-17-nothinking", 4],
    ["command-r-plus", 5],
    ["DeepSeek-Chat", 4],
    ["ERNIE-Lite-8K-0308", 2],
    ["qwen-plus", 1],
  ])("%s has output ratio %d", (name, ratio) => {
    expect(completionRatio(name, {})).toBe(ratio);
  });
  test("a locked ratio ignores the option, an open one obeys it, a name with a slash asks the option first", () => {
    expect(completionRatio("gpt-4o", { "gpt-4o": 9 })).toBe(4);
    expect(completionRatio("gpt-4.1", { "gpt-4.1": 4 })).toBe(4);
    expect(completionRatio("openai/gpt-4o", { "openai/gpt-4o": 9 })).toBe(9);
  });
  test("audio ratios follow the model's family", () => {
    expect([
      audioRatio("gpt-4o-audio-preview"),
      audioRatio("gpt-4o-realtime-preview"),
      audioRatio("whisper-1"),
    ]).toEqual([16, 8, 20]);
  });
});

describe("reservation", () => {
  const inputs = { promptTokens: 100, maxTokens: 0, preConsumedTokens: 500, quotaPerUnit: 500_000 };
  test("holds prompt and limit when the request names one, else the site's assumption, else the fixed price", () => {
    expect(estimateReserve(price("gpt-4o"), 1, { ...inputs, maxTokens: 50 })).toBe(187);
    expect(estimateReserve(price("gpt-4o"), 1, inputs)).toBe(625);
    expect(estimateReserve(price("dall-e-3"), 2, inputs)).toBe(40_000);
  });
});

describe("no number of the outside can do harm", () => {
  const anyNumber = fc.oneof(
    fc.double(),
    fc.integer(),
    fc.constantFrom(Number.NaN, Infinity, -Infinity, 1e309, -1, 2 ** 63),
  );
  const anyUsage = fc.record({
    input: fc.record({
      fresh: anyNumber,
      cacheRead: anyNumber,
      cacheWrite5m: anyNumber,
      cacheWrite1h: anyNumber,
      audio: anyNumber,
      image: anyNumber,
    }),
    output: fc.record({ text: anyNumber, thinking: anyNumber, audio: anyNumber, image: anyNumber }),
    calls: fc.record({ webSearch: anyNumber, fileSearch: anyNumber }),
  });

  test("a charge is always a safe whole number of at least 0, and so is a reservation", () => {
    fc.assert(
      fc.property(
        anyUsage,
        anyNumber,
        anyNumber,
        anyNumber,
        fc.constantFrom("gpt-4o", "dall-e-3", "gpt-image-1"),
        (call, group, a, b, model) => {
          const { quota } = cost(price(model), group, call, {
            callCount: a,
            webSearchPrice: b,
            fileSearchPrice: a,
          });
          const held = estimateReserve(price(model), Number.isFinite(group) ? group : 1, {
            promptTokens: a,
            maxTokens: b,
            preConsumedTokens: a,
            quotaPerUnit: 500_000,
          });
          expect(Number.isSafeInteger(quota) && quota >= 0 && Number.isSafeInteger(held) && held >= 0).toBe(
            true,
          );
        },
      ),
      { numRuns: 500 },
    );
  });

  const count = fc.integer({ min: 0, max: 1_000_000 });
  const sane = fc.record({
    input: fc.record({
      fresh: count,
      cacheRead: count,
      cacheWrite5m: count,
      cacheWrite1h: count,
      audio: count,
      image: count,
    }),
    output: fc.record({ text: count, thinking: count, audio: count, image: count }),
    calls: fc.record({ webSearch: count, fileSearch: count }),
  });

  test("more tokens never cost less", () => {
    fc.assert(
      fc.property(sane, count, (call, more) => {
        const before = cost(price("gpt-4o"), 1.5, call).quota;
        const grown = { ...call, output: { ...call.output, text: call.output.text + more } };
        expect(cost(price("gpt-4o"), 1.5, grown).quota).toBeGreaterThanOrEqual(before);
      }),
    );
  });

  test("the explanation rebuilt from the stored row is the one that charged", () => {
    fc.assert(
      fc.property(
        sane,
        fc.constantFrom("gpt-4o", "dall-e-3", "claude-sonnet-4-20250514"),
        fc.constantFrom(0.5, 1, 3),
        (call, model, group) => {
          const charge = cost(price(model), group, call, { webSearchPrice: 25, fileSearchPrice: 2.5 });
          const stored = JSON.parse(JSON.stringify(charge.other)) as Record<string, unknown>;
          expect(explainStored(stored)).toEqual(charge.sum);
          const total = charge.sum.lines.reduce((sum, line) => sum + line.amount, 0) * group;
          expect(Math.abs(total - charge.sum.exact)).toBeLessThanOrEqual(1e-6 * Math.max(1, total));
        },
      ),
    );
  });
});

test("the log fields are the documented ones", () => {
  const byTokens = cost(price("gpt-4o"), 2, usage({ fresh: 600, cacheRead: 400 }, { text: 200 })).other;
  expect(byTokens).toMatchObject({
    model_ratio: 1.25,
    group_ratio: 2,
    completion_ratio: 4,
    cache_tokens: 400,
    cache_ratio: 0.5,
    model_price: -1,
  });
  const byCall = cost(price("dall-e-3"), 1, usage({ fresh: 1 })).other;
  expect(byCall).toMatchObject({ model_ratio: 0, completion_ratio: 0, model_price: 0.04 });
});
