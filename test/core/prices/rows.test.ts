// Explanations of log rows that were written without stored inputs, and the conversions beside price fields.
import { describe, expect, test } from "bun:test";
import {
  dollarsPerMTok,
  dollarsPerThousandTokens,
  explainStored,
  priceLines,
  ratioOfDollars,
} from "../../../src/shared/cost.ts";
import { cost, modelPriceLines } from "../../../src/core/prices/prices.ts";
import { price, tables, usage } from "./support.ts";

describe("rows of other software are explained from their documented fields", () => {
  const ratios = {
    model_ratio: 1.25,
    group_ratio: 1,
    completion_ratio: 4,
    cache_ratio: 0.5,
    model_price: -1,
  };

  test("text: cached tokens are inside the prompt", () => {
    const sum = explainStored(
      { ...ratios, cache_tokens: 400 },
      { prompt_tokens: 1000, completion_tokens: 200 },
    );
    expect(sum?.lines.map(({ kind, count }) => [kind, count])).toEqual([
      ["fresh", 600],
      ["cache_read", 400],
      ["output", 200],
    ]);
    expect(sum?.quota).toBe(2000);
  });
  test("native Messages: cached tokens are outside the prompt, and the sum is cut", () => {
    const other = {
      model_ratio: 1.5,
      group_ratio: 1,
      completion_ratio: 5,
      cache_tokens: 1000,
      cache_ratio: 0.1,
      model_price: -1,
      claude: true,
      cache_creation_tokens: 500,
      cache_creation_ratio: 1.25,
    };
    expect(explainStored(other, { prompt_tokens: 100, completion_tokens: 50 })?.quota).toBe(1612);
  });
  test("a fixed price is one line, whatever the tokens are", () => {
    const other = { model_price: 0.1, group_ratio: 2 };
    const sum = explainStored(other, { prompt_tokens: 0, completion_tokens: 0 });
    expect(sum?.lines.map(({ kind, count, unitPrice }) => [kind, count, unitPrice])).toEqual([
      ["per_call", 1, 0.1],
    ]);
    expect(sum?.quota).toBe(100_000);
  });
  test("audio: text and audio come from their own fields", () => {
    const other = {
      ...ratios,
      audio: true,
      text_input: 100,
      text_output: 20,
      audio_input: 10,
      audio_output: 5,
      audio_ratio: 16,
      audio_completion_ratio: 2,
    };
    const sum = explainStored(other, { prompt_tokens: 110, completion_tokens: 25 });
    expect(sum?.quota).toBe((100 + 80 + 160 + 160) * 1.25);
  });
  test("pictures and tools have their lines", () => {
    const other = {
      ...ratios,
      image: true,
      image_ratio: 2,
      image_output: 50,
      web_search: true,
      web_search_call_count: 2,
      web_search_price: 35,
    };
    const sum = explainStored(other, { prompt_tokens: 150, completion_tokens: 0 });
    expect(sum?.quota).toBe((100 + 100) * 1.25 + 35_000);
  });
  test("a row that says nothing of prices is not explained, and without its counts no row is", () => {
    expect(explainStored({ frt: 5 }, { prompt_tokens: 1, completion_tokens: 1 })).toBeUndefined();
    expect(explainStored(ratios)).toBeUndefined();
    expect(explainStored({ cost: null })).toBeUndefined();
  });
});

describe("conversions", () => {
  test("ratio 1 is two dollars per million at 500,000 units a dollar, and the way back is exact", () => {
    const perUnit = 500_000;
    expect([
      dollarsPerMTok(1.25, perUnit),
      ratioOfDollars(2.5, perUnit),
      dollarsPerThousandTokens(1, perUnit),
    ]).toEqual([2.5, 1.25, 0.002]);
    for (const ratio of [0, 0.075, 1, 37.5])
      expect(ratioOfDollars(dollarsPerMTok(ratio, perUnit), perUnit)).toBe(ratio);
  });
  test("where a dollar has other units, the same ratio means other dollars, in lines and lists alike", () => {
    expect(dollarsPerMTok(1, 1_000_000)).toBe(1);
    const perUnit = 1_000_000;
    expect(modelPriceLines({ ...tables, quotaPerUnit: perUnit }, "gpt-4o", "default")?.[0]?.unitPrice).toBe(
      1.25,
    );
    const { sum } = cost(price("gpt-4o"), 1, usage({ fresh: 1_000_000 }), { quotaPerUnit: perUnit });
    expect(sum.lines[0]?.unitPrice).toBe(1.25);
    // A million tokens at that price are that many dollars.
    expect(sum.quota / perUnit).toBe(1.25);
  });
  test("price lines keep the order of the lines of a charge", () => {
    expect(priceLines(price("gpt-4o")).map(({ kind }) => kind)).toEqual([
      "fresh",
      "cache_read",
      "cache_write_5m",
      "cache_write_1h",
      "image_input",
      "audio_input",
      "output",
      "thinking",
      "image_output",
      "audio_output",
    ]);
  });
});
