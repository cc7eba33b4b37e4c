// Prices as other places tell them, in each format: what becomes of them in dollars, and what is dropped or refused.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readSource, withoutPrefixes } from "../../../src/core/prices/sources/read.ts";
import type { SourceFormat } from "../../../src/core/prices/sources/source.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { isPriceName, readPriceRow } from "../../../src/shared/price-row.ts";

const NOW = Date.parse("2026-11-23T12:00:00Z");
const read = (format: SourceFormat, value: unknown) =>
  readSource(format, typeof value === "string" ? value : JSON.stringify(value), NOW);
const rowsOf = (format: SourceFormat, value: unknown) => Object.fromEntries(read(format, value).rows);

const provider = (id: string, ...models: unknown[]) => ({ id, models });
const genai = (id: string, prices: unknown, more = {}) => ({ id, match: { equals: id }, prices, ...more });
const FORMATS: readonly SourceFormat[] = [
  "genai-prices",
  "ratio_config",
  "pricing",
  "openrouter",
  "models.dev",
  "litellm",
];

describe("genai-prices", () => {
  test("tiers, cache, sound, pictures and tools", () => {
    const prices = {
      input_mtok: { base: 1, tiers: [{ start: 200, price: 2 }] },
      output_mtok: { base: 4, tiers: [{ start: 200, price: 6 }] },
      cache_read_mtok: 0.1,
      cache_write_mtok: 1.25,
      cache_write_1h_mtok: 2,
      input_audio_mtok: 8,
      output_audio_mtok: 16,
      input_image_mtok: 3,
      output_image_mtok: 30,
      output_reasoning_mtok: 5,
      web_searches_kcount: 10,
      storage_searches_kcount: 2.5,
    };
    expect(rowsOf("genai-prices", [provider("openai", genai("m", prices))])).toEqual({
      m: {
        in: 1,
        out: 4,
        thinking: 5,
        cache_read: 0.1,
        cache_write: 1.25,
        cache_write_1h: 2,
        image_in: 3,
        image_out: 30,
        audio_in: 8,
        audio_out: 16,
        tools: { web_search: 10, file_search: 2.5 },
        when: [{ over: 200, set: { in: 2, out: 6 } }],
      },
    });
  });
  test("the last price that has begun is in force; a dearer one to come is the base until then", () => {
    const at = (day: string, input: number) => ({
      constraint: { type: "start_date", start_date: day },
      prices: { input_mtok: input, output_mtok: 4 },
    });
    const first = { prices: { input_mtok: 9, output_mtok: 4 } };
    expect(rowsOf("genai-prices", [provider("openai", genai("m", [first, at("2026-01-01", 1)]))])).toEqual({
      m: { in: 1, out: 4 },
    });
    expect(
      rowsOf("genai-prices", [
        provider("openai", genai("m", [first, at("2026-01-01", 1), at("2027-01-01", 2)])),
      ]),
    ).toEqual({ m: { in: 2, out: 4, when: [{ until: "2027-01-01", set: { in: 1, out: 4 } }] } });
    expect(rowsOf("genai-prices", [provider("openai", genai("m", [first, at("2027-01-01", 2)]))])).toEqual({
      m: { in: 9, out: 4, when: [{ from: "2027-01-01", set: { in: 2, out: 4 } }] },
    });
  });
  test("hours: the dearest is the base, the cheaper ones are entries, also past midnight", () => {
    const prices = [
      { prices: { input_mtok: 2, output_mtok: 4 } },
      {
        constraint: { type: "time_of_date", start_time: "16:30:00Z", end_time: "00:30:00Z" },
        prices: { input_mtok: 1, output_mtok: 2 },
      },
    ];
    expect(rowsOf("genai-prices", [provider("deepseek", genai("m", prices))])).toEqual({
      m: {
        in: 2,
        out: 4,
        when: [{ hours: ["00:00-00:30", "16:30-24:00"], tz: "UTC", set: { in: 1, out: 2 } }],
      },
    });
  });
  test("tiers of service of the newer form", () => {
    const variants = [
      { when: { service_tier: "flex" }, prices: { input_mtok: 0.5, output_mtok: 2 } },
      { when: { processing: "batch" }, prices: { output_mtok: 2 } },
      { when: { region: "eu" }, prices: { input_mtok: 3 } },
    ];
    const model = genai("m", { input_mtok: 1, output_mtok: 4 }, { price_variants: variants });
    expect(rowsOf("genai-prices", { providers: [provider("openai", model)] })["m"]?.when).toEqual([
      { tier: "flex", set: { in: 0.5, out: 2 } },
      { tier: "batch", set: { out: 2 } },
    ]);
  });
  test("the maker's price, never a reseller's; also where the maker's had to be dropped", () => {
    const text = [
      provider("groq", genai("a", { input_mtok: 1 }), genai("b", { input_mtok: 1 })),
      provider("openai", genai("a", { input_mtok: 5 }), genai("b", { audio_hours: 1 })),
      provider("azure", genai("c", { input_mtok: 1 })),
    ];
    expect(rowsOf("genai-prices", text)).toEqual({ a: { in: 5 } });
    expect(read("genai-prices", text).dropped).toEqual([
      { name: "b", reason: "unit", detail: "audio_hours" },
    ]);
  });
});

describe("instances of the family", () => {
  test("ratio_config, one to one", () => {
    const data = {
      model_ratio: { m: 1.5 },
      completion_ratio: { m: 5 },
      cache_ratio: { m: 0.1 },
      create_cache_ratio: { m: 1.25 },
      image_ratio: { m: 2 },
      audio_ratio: { m: 10 },
      audio_completion_ratio: { m: 2 },
      model_price: { picture: 0.04 },
    };
    expect(rowsOf("ratio_config", { success: true, data })).toEqual({
      m: { in: 3, out: 15, cache_read: 0.3, cache_write: 3.75, image_in: 6, audio_in: 30, audio_out: 60 },
      picture: { call: 0.04 },
    });
  });
  test("a model that an expression prices which nobody told is listed, not guessed", () => {
    const data = { model_ratio: { a: 1, b: 1 }, billing_mode: { a: "tiered_expr", b: "ratio" } };
    const { rows, dropped } = read("ratio_config", { data });
    expect([[...rows.keys()], dropped.map(({ name }) => name)]).toEqual([["b"], ["a"]]);
  });
  test("pricing: the call's price or the token's, by quota_type", () => {
    const data = [
      { model_name: "m", quota_type: 0, model_ratio: 1, completion_ratio: 4, model_price: 0 },
      { model_name: "p", quota_type: 1, model_ratio: 0, model_price: 0.5 },
      { model_name: "none", quota_type: 0, model_ratio: 37.5, completion_ratio: 1, is_priced: false },
    ];
    expect(rowsOf("pricing", { data, group_ratio: { default: 1 } })).toEqual({
      m: { in: 2, out: 8 },
      p: { call: 0.5 },
    });
  });
  test("an instance that shows nothing refuses the source", () => {
    expect(() => read("ratio_config", { success: false, message: "not exposed" })).toThrow(Failure);
  });
});

describe("OpenRouter", () => {
  const model = (pricing: unknown, id = "openai/m") => ({ data: [{ id, pricing, context_length: 1000 }] });
  test("decimal strings per token, with length and hours", () => {
    const pricing = {
      prompt: "0.0000025",
      completion: "0.000015",
      input_cache_read: "0.00000025",
      internal_reasoning: "0",
      web_search: "0.01",
      request: "0",
      overrides: [
        { min_prompt_tokens: 272_001, prompt: "0.000005" },
        { utc_start: "01:00", utc_end: "00:00", prices: { completion: "1e-6" } },
      ],
    };
    expect(rowsOf("openrouter", model(pricing))).toEqual({
      "openai/m": {
        in: 2.5,
        out: 15,
        cache_read: 0.25,
        tools: { web_search: 10 },
        when: [
          { over: 272_000, set: { in: 5 } },
          { hours: ["01:00-24:00"], tz: "UTC", set: { out: 1 } },
        ],
      },
    });
  });
  test("both zero is free, negative is variable, a fee beside tokens is no unit of ours", () => {
    expect(rowsOf("openrouter", model({ prompt: "0", completion: "0" }))).toEqual({
      "openai/m": { in: 0, out: 0 },
    });
    expect(read("openrouter", model({ prompt: "-1", completion: "-1" })).dropped[0]?.reason).toBe("variable");
    expect(
      read("openrouter", model({ prompt: "0.000001", completion: "0", request: "0.005" })).dropped[0]?.reason,
    ).toBe("unit");
    expect(rowsOf("openrouter", model({ prompt: "0", completion: "0", image: "0.04" }))).toEqual({
      "openai/m": { call: 0.04, unit: "image" },
    });
  });
});

describe("models.dev", () => {
  const cost = { input: 2, output: 8, cache_read: 0.2, reasoning: 9, input_audio: 20 };
  test("tiers by context, and the old field for 200k", () => {
    const models = {
      m: {
        cost: { ...cost, context_over_200k: { input: 4, output: 12 } },
        limit: { context: 10, output: 5 },
      },
      n: { cost: { ...cost, tiers: [{ tier: { type: "context", size: 32_000 }, input: 3 }] } },
    };
    const found = read("models.dev", { openai: { models } });
    const base = { in: 2, out: 8, thinking: 9, cache_read: 0.2, audio_in: 20 };
    expect(Object.fromEntries(found.rows)).toEqual({
      m: { ...base, when: [{ over: 200_000, set: { in: 4, out: 12 } }] },
      n: { ...base, when: [{ over: 32_000, set: { in: 3 } }] },
    });
    expect(found.limits.get("m")).toEqual({ context: 10, maxOutput: 5 });
  });
  test("of several providers the maker; where none is one and they differ, nobody", () => {
    const at = (input: number) => ({ models: { m: { cost: { input, output: 1 } } } });
    expect(rowsOf("models.dev", { cheap: at(1), openai: at(5), dear: at(9) })).toEqual({
      m: { in: 5, out: 1 },
    });
    expect(read("models.dev", { cheap: at(1), dear: at(9) }).dropped).toEqual([
      { name: "m", reason: "duplicate", detail: "" },
    ]);
    expect(rowsOf("models.dev", { one: at(1), two: at(1) })).toEqual({ m: { in: 1, out: 1 } });
  });
});

describe("LiteLLM", () => {
  const entry = (fields: object) => ({ m: { litellm_provider: "openai", mode: "chat", ...fields } });
  test("dollars per token, thresholds and tiers in the names of fields, the narrower last", () => {
    const fields = {
      input_cost_per_token: 2.5e-6,
      output_cost_per_token: 1.5e-5,
      input_cost_per_token_above_272k_tokens_flex: 2.5e-6,
      input_cost_per_token_flex: 1.25e-6,
      input_cost_per_token_above_272k_tokens: 5e-6,
      input_cost_per_token_batches: 1.25e-6,
      cache_creation_input_token_cost_above_1hr: 6e-6,
      search_context_cost_per_query: { search_context_size_low: 0.01, search_context_size_high: 0.03 },
      max_input_tokens: 1000,
      max_output_tokens: 128_000,
    };
    const found = read("litellm", { sample_spec: { input_cost_per_token: 9 }, ...entry(fields) });
    expect(Object.fromEntries(found.rows)).toEqual({
      m: {
        in: 2.5,
        out: 15,
        cache_write_1h: 6,
        tools: { web_search: 30 },
        when: [
          { over: 272_000, set: { in: 5 } },
          { tier: "flex", set: { in: 1.25 } },
          { tier: "batch", set: { in: 1.25 } },
          { over: 272_000, tier: "flex", set: { in: 2.5 } },
        ],
      },
    });
    expect(found.limits.get("m")).toEqual({ context: 1000, maxOutput: 128_000 });
  });
  test("ranges of the prompt, seconds of video, pictures", () => {
    const range = (start: number, end: number, input: number) => ({
      range: [start, end],
      input_cost_per_token: input / 1e6,
      output_cost_per_token: 6e-6,
    });
    expect(
      rowsOf("litellm", entry({ tiered_pricing: [range(0, 32_000, 1.2), range(32_000, 128_000, 2.4)] })),
    ).toEqual({ m: { in: 1.2, out: 6, when: [{ over: 32_000, set: { in: 2.4, out: 6 } }] } });
    expect(rowsOf("litellm", entry({ output_cost_per_video_per_second: 0.1 }))).toEqual({
      m: { call: 0.1, unit: "second" },
    });
    expect(rowsOf("litellm", entry({ output_cost_per_image: 0.04 }))).toEqual({
      m: { call: 0.04, unit: "image" },
    });
  });
  test("characters and pixels are nothing that calls are counted in", () => {
    expect(read("litellm", entry({ input_cost_per_character: 1e-6 })).dropped).toEqual([
      { name: "m", reason: "unit", detail: "chat" },
    ]);
  });
});

/** One model at this price, in each format. */
function priced(format: SourceFormat, name: string, price: unknown): string {
  const p = JSON.stringify(price);
  const n = JSON.stringify(name);
  switch (format) {
    case "genai-prices":
      return `[{"id":"openai","models":[{"id":${n},"match":{},"prices":{"input_mtok":${p}}},{"id":"good","match":{},"prices":{"input_mtok":1}}]}]`;
    case "ratio_config":
      return `{"data":{"model_ratio":{${n}:${p},"good":1}}}`;
    case "pricing":
      return `{"data":[{"model_name":${n},"quota_type":0,"model_ratio":${p}},{"model_name":"good","quota_type":0,"model_ratio":1}]}`;
    case "openrouter":
      return `{"data":[{"id":${n},"pricing":{"prompt":${typeof price === "number" ? JSON.stringify(String(price)) : p},"completion":"0.1"}},{"id":"good","pricing":{"prompt":"0.000001"}}]}`;
    case "models.dev":
      return `{"openai":{"models":{${n}:{"cost":{"input":${p}}},"good":{"cost":{"input":1}}}}}`;
    case "litellm":
      return `{${n}:{"litellm_provider":"x","input_cost_per_token":${p}},"good":{"litellm_provider":"x","input_cost_per_token":0.000001}}`;
  }
}

describe.each(FORMATS)("hostile texts in the form of %s", (format) => {
  test.each([
    ["negative", -1],
    ["huge", 1e300],
    ["a list", [1]],
    ["an object", { a: 1 }],
    ["true", true],
    ["words", "ten dollars"],
  ])("a price that is %s drops the entry, lists it, and keeps the others", (_, price) => {
    const { rows, dropped } = readSource(format, priced(format, "bad", price), NOW);
    expect([...rows.keys()]).toEqual(["good"]);
    expect(dropped.map(({ name }) => name)).toContain("bad");
  });
  test.each([
    ["1e999", "1e999"],
    ["-1e999", "-1e999"],
  ])("%s is no number", (_, number) => {
    const text = priced(format, "bad", 123_456).replace(/"?123456"?/, number);
    expect([...readSource(format, text, NOW).rows.keys()]).toEqual(["good"]);
  });
  test.each(["__proto__", "constructor", "", "a\u0000b", "x".repeat(300)])(
    "the name %p is nobody's, and changes no object",
    (name) => {
      const { rows, dropped } = readSource(format, priced(format, name, 1), NOW);
      expect([...rows.keys()]).toEqual(["good"]);
      expect(dropped.length).toBeGreaterThan(0);
      expect(({} as Record<string, unknown>)["cost"]).toBeUndefined();
    },
  );
  test.each([
    ["nothing", ""],
    ["a web page", "<!doctype html><title>Sign in</title>"],
    ["NaN", '{"data": NaN}'],
    ["half a file", '{"data": ['],
    ["null", "null"],
    ["a number", "7"],
    ["an empty object", "{}"],
    ["a text", '"models"'],
    ["a deep nest", "[".repeat(100_000)],
  ])("%s refuses the source by its code", (_, text) => {
    try {
      readSource(format, text, NOW);
      throw new Error("it was read");
    } catch (error) {
      expect([error instanceof Failure, (error as Failure).code]).toEqual([true, "price_source_unreadable"]);
    }
  });
  test("whatever JSON it is: rows that an operator could have written, or a refusal", () => {
    const names = fc.constantFrom(
      "data",
      "models",
      "cost",
      "pricing",
      "prompt",
      "id",
      "prices",
      "input_mtok",
      "m",
    );
    const numbers = fc.oneof(fc.double({ noNaN: true }), fc.constantFrom("0.1", "-1", "x"));
    const values = fc.letrec((tie) => ({
      any: fc.oneof({ maxDepth: 4 }, numbers, fc.constant(null), tie("list"), tie("map")),
      list: fc.array(tie("any"), { maxLength: 3 }),
      map: fc.dictionary(names, tie("any"), { maxKeys: 4 }),
    })).any;
    fc.assert(
      fc.property(values, (value) => {
        try {
          for (const [name, row] of read(format, value ?? null).rows)
            expect([isPriceName(name), readPriceRow(row).problem]).toEqual([true, undefined]);
        } catch (error) {
          expect(error).toBeInstanceOf(Failure);
        }
      }),
    );
  });
});

test("a prefix goes where the operator said so, and never over a name that is there", () => {
  const row = (input: number) => ({ in: input });
  const rows = new Map([
    ["openai/a", row(1)],
    ["openai/b", row(2)],
    ["b", row(3)],
    ["x/openai/c", row(4)],
    ["openai/", row(5)],
    ["x/d", row(6)],
    ["openai/d", row(6)],
    ["x/e", row(7)],
    ["openai/e", row(8)],
    ["openai/x/f", row(9)],
  ]);
  const bare = withoutPrefixes(rows, ["openai/", ""]);
  expect(bare.rows).toEqual(
    new Map([
      ["a", row(1)],
      ["b", row(3)],
      ["x/openai/c", row(4)],
      ["x/d", row(6)],
      ["d", row(6)],
      ["x/e", row(7)],
      ["e", row(8)],
      ["x/f", row(9)],
    ]),
  );
  expect(bare.dropped).toEqual([]);
  // Of several the longest; two that become one name agree, or are nobody's.
  const both = withoutPrefixes(rows, ["x/", "openai/", "openai/x/"]);
  expect(both.rows.get("d")).toEqual(row(6));
  expect(both.rows.get("f")).toEqual(row(9));
  expect(both.rows.get("openai/c")).toEqual(row(4));
  expect(both.dropped).toEqual([{ name: "e", reason: "duplicate" }]);
  expect(withoutPrefixes(rows, []).rows).toEqual(rows);
});

test("one name at two prices is nobody's, three times and more too", () => {
  const entry = (ratio: number) => ({ model_name: "m", quota_type: 0, model_ratio: ratio });
  expect(rowsOf("pricing", { data: [entry(1), entry(1)] })).toEqual({ m: { in: 2, out: 2 } });
  expect(read("pricing", { data: [entry(1), entry(2)] }).rows.size).toBe(0);
  expect(read("pricing", { data: [entry(1), entry(2), entry(1)] }).rows.size).toBe(0);
});
