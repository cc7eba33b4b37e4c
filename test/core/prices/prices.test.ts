// The charge against the worked examples of the reference, section by section.
import { describe, expect, test } from "bun:test";
import { audioRatio, completionRatio } from "../../../src/shared/completion-rules.ts";
import * as shipped from "../../../src/core/options/default-prices.ts";
import {
  cost,
  estimateReserve,
  groupRatioOf,
  lookupPrice,
  missingPrice,
  modelPriceLines,
  roundingOf,
} from "../../../src/core/prices/prices.ts";
import { FILE_SEARCH_PRICE, pictureFactor, webSearchPrice } from "../../../src/core/prices/piece-prices.ts";
import { price, tables, usage } from "./support.ts";

describe("worked examples of the billing reference", () => {
  test("gpt-4o, 1000 in and 200 out, costs 2250", () => {
    expect(cost(price("gpt-4o"), 1, usage({ fresh: 1000 }, { text: 200 })).quota).toBe(2250);
  });
  test("the same with 400 of the input cached costs 2000", () => {
    expect(cost(price("gpt-4o"), 1, usage({ fresh: 600, cacheRead: 400 }, { text: 200 })).quota).toBe(2000);
  });
  test("Claude with cache reads and writes costs 1612 by native Messages (cut) and 1613 by the text family", () => {
    const call = usage({ fresh: 100, cacheRead: 1000, cacheWrite5m: 500 }, { text: 50 });
    const pricing = price("claude-3-5-sonnet-20241022");
    const native = cost(pricing, 1, call, { surface: "messages" });
    const converted = cost(pricing, 1, call);
    expect([native.sum.exact, native.quota]).toEqual([1612.5, 1612]);
    expect([converted.sum.exact, converted.quota]).toEqual([1612.5, 1613]);
    expect([roundingOf("messages"), roundingOf("realtime"), roundingOf(undefined)]).toEqual([
      "floor",
      "half-away",
      "half-away",
    ]);
  });
  test("dall-e-3 at 1792x1024 in hd costs 60000, and the row names the price of the picture", () => {
    const callFactor = pictureFactor("dall-e-3", "1792x1024", "hd");
    const { quota, other } = cost(price("dall-e-3"), 1, usage({ fresh: 1 }), { callFactor });
    expect(quota).toBe(60_000);
    expect(other.model_price).toBeCloseTo(0.12, 12);
  });
  test("two medium web searches of gpt-4o add 35000", () => {
    const call = usage({ fresh: 1000 }, {}, { webSearch: 2 });
    expect(cost(price("gpt-4o"), 1, call, { webSearchPrice: webSearchPrice("gpt-4o", "medium") }).quota).toBe(
      1250 + 35_000,
    );
  });
  test("three tokens at ratio 0.0001 round to nothing and are nothing", () => {
    expect(cost({ ...price("gpt-4o"), modelRatio: 0.0001 }, 1, usage({ fresh: 3 })).quota).toBe(0);
  });
});

describe("rules of the charge", () => {
  test("one-hour cache writes cost 2 where five-minute writes cost 1.25", () => {
    const pricing = price("claude-sonnet-4-20250514");
    expect(cost(pricing, 1, usage({ cacheWrite5m: 1000 })).quota).toBe(1875);
    expect(cost(pricing, 1, usage({ cacheWrite1h: 1000 })).quota).toBe(3000);
  });
  test("a raised cache-write ratio raises one-hour writes in step", () => {
    const raised = lookupPrice({ ...tables, modelRatio: { m: 1 }, createCacheRatio: { m: 2.5 } }, "m");
    expect([raised?.cacheWriteRatio, raised?.cacheWrite1hRatio]).toEqual([2.5, 4]);
  });
  test("thinking is billed like output, and the group ratio multiplies everything", () => {
    expect(cost(price("gpt-4o"), 2, usage({ fresh: 100 }, { text: 10, thinking: 10 })).quota).toBe(
      (100 + 80) * 1.25 * 2,
    );
    expect(cost(price("gpt-4o"), 0, usage({ fresh: 1_000_000 })).quota).toBe(0);
  });
  test("pictures in the input take the image ratio, pictures in the output the output price", () => {
    const call = usage({ fresh: 100, image: 50 }, { image: 10 });
    expect(cost(price("gpt-image-1"), 1, call).quota).toBe((100 + 50 * 2 + 10 * 8) * 2.5);
  });
  test("audio takes the audio ratio, in the output twice", () => {
    const call = usage({ fresh: 100, audio: 10 }, { text: 20, audio: 5 });
    expect(cost(price("gpt-4o-audio-preview"), 1, call).quota).toBe(
      (100 + 20 * 4 + 10 * 16 + 5 * 16 * 2) * 1.25,
    );
  });
  test("tools come on top of a fixed price too, at the group's ratio", () => {
    const call = usage({ fresh: 9 }, {}, { webSearch: 1, fileSearch: 4 });
    expect(cost(price("dall-e-3"), 0.5, call, { webSearchPrice: 25 }).quota).toBe(
      (20_000 + 12_500 + 5000) / 2,
    );
    expect(FILE_SEARCH_PRICE).toBe(2.5);
  });
  test("a priced call whose tokens are all free costs one unit, and a call without tokens costs none", () => {
    const free = { ...price("gpt-4o"), cacheRatio: 0 };
    const cached = cost(free, 1, usage({ cacheRead: 500 }));
    expect([cached.quota, cached.sum.isMinimum]).toEqual([1, true]);
    expect(cost(free, 0, usage({ cacheRead: 500 })).quota).toBe(0);
    expect(cost(free, 1, usage({})).quota).toBe(0);
    expect(cost(free, 1, usage({ cacheRead: 500 }, {}, { webSearch: 1 }), { webSearchPrice: 25 }).quota).toBe(
      12_501,
    );
  });
  test("a cap lowers the charge and is kept with it; a cap that does not bite leaves no trace", () => {
    const call = usage({ fresh: 1000 });
    const capped = cost(price("gpt-4o"), 1, call, { quotaCap: 300 });
    expect([capped.quota, capped.sum.isCapped, capped.sum.exact]).toEqual([300, true, 1250]);
    expect(cost(price("gpt-4o"), 1, call, { quotaCap: 1250 })).toEqual(cost(price("gpt-4o"), 1, call));
    expect(cost(price("gpt-4o"), 1, call, { quotaCap: 0 }).quota).toBe(0);
  });
  test("a call at a fixed price that is not charged has no lines", () => {
    const released = cost(price("dall-e-3"), 1, usage({}), { callCount: 0, quotaCap: 0 });
    expect([released.quota, released.lines, released.other.model_price]).toEqual([0, [], 0.04]);
  });
  test("binary fractions do not move a charge off the unit that decimals give", () => {
    const at = (modelRatio: number, fresh: number, surface?: "messages") =>
      cost({ ...price("gpt-4o"), modelRatio }, 1, usage({ fresh }), surface ? { surface } : {}).quota;
    // 0.29 × 100 and 1.005 × 100 fall just below 29 and 100.5 as doubles.
    expect([0.29 * 100 < 29, 1.005 * 100 < 100.5]).toEqual([true, true]);
    expect(at(0.29, 100, "messages")).toBe(29);
    expect(at(1.005, 100)).toBe(101);
  });
});

describe("tool and picture prices", () => {
  test.each([
    ["gpt-4o", "low", 30],
    ["gpt-4o", "medium", 35],
    ["gpt-4.1", "high", 50],
    ["gpt-4o-mini", "low", 25],
    ["gpt-4.1-mini", "", 27.5],
    ["o3", "high", 30],
    ["gpt-4-turbo", "unheard of", 27.5],
  ])("a web search of %s at size '%s' costs $%d per thousand", (model, size, dollars) => {
    expect(webSearchPrice(model, size)).toBe(dollars);
  });
  test.each([
    ["dall-e-3", "1024x1024", "standard", 1],
    ["dall-e-3", "1024x1024", "hd", 2],
    ["dall-e-3", "1024x1792", "standard", 2],
    ["dall-e-3", "1024x1792", "hd", 3],
    ["dall-e-2", "256x256", "", 0.4],
    ["dall-e-2", "512x512", "hd", 0.45],
    ["gpt-image-1", "1536x1024", "high", 1],
    ["dall-e-2", "constructor", "", 1],
  ])("%s at '%s' in '%s' has factor %d", (model, size, quality, factor) => {
    expect(pictureFactor(model, size, quality)).toBe(factor);
  });
});

describe("price lookup", () => {
  test("a fixed price wins over any ratio, also a price of nothing", () => {
    const both = { ...tables, modelPrice: { m: 0.5, free: 0 }, modelRatio: { m: 3, free: 3 } };
    expect(lookupPrice(both, "m")?.callPrice).toBe(0.5);
    expect(lookupPrice(both, "free")?.callPrice).toBe(0);
  });
  test("custom GPTs are priced under their alias", () => {
    expect(price("gpt-4-gizmo-g-123").callPrice).toBe(0.1);
    expect(price("gpt-4o-gizmo-g-123")).toMatchObject({ modelRatio: 2.5, completionRatio: 3 });
  });
  test("an unknown model has no price, also under names of object internals or near a known one", () => {
    for (const name of ["nothing-like-it", "constructor", "__proto__", "toString", "", "gpt-4o ", "GPT-4o"]) {
      expect(lookupPrice(tables, name)).toBeUndefined();
    }
    expect(missingPrice(tables, "x").modelRatio).toBe(37.5);
  });
  test("a table entry that is no price counts as absent", () => {
    for (const bad of [Number.NaN, -1, Infinity, -0.01]) {
      const broken = { ...tables, modelRatio: { m: bad }, modelPrice: { m: bad }, groupRatio: { g: bad } };
      expect(lookupPrice(broken, "m")).toBeUndefined();
      expect(groupRatioOf(broken, "g", "g").groupRatio).toBe(1);
      expect(completionRatio("m", { m: bad })).toBe(1);
    }
  });
  test("a missing cache, cache-write and image ratio is 1, 1.25 and 1; a missing group is 1", () => {
    const bare = lookupPrice({ ...tables, modelRatio: { m: 1 } }, "m");
    expect(bare).toMatchObject({ cacheRatio: 1, cacheWriteRatio: 1.25, cacheWrite1hRatio: 2, imageRatio: 1 });
    expect(groupRatioOf(tables, "no such group", "default").groupRatio).toBe(1);
  });
  test("the shipped tables have the reference's number of rows and its odd ones", () => {
    expect(
      [
        shipped.defaultModelRatio,
        shipped.defaultCompletionRatio,
        shipped.defaultModelPrice,
        shipped.defaultCacheRatio,
        shipped.defaultCreateCacheRatio,
        shipped.defaultImageRatio,
        shipped.defaultGroupRatio,
        shipped.defaultUserUsableGroups,
        shipped.defaultTopupGroupRatio,
      ].map((table) => Object.keys(table).length),
    ).toEqual([181, 4, 22, 33, 12, 1, 3, 2, 3]);
    // One more than the reference's: consoles offer uploads by either name.
    expect([price("mj_upload").callPrice, price("mj_uploads").callPrice]).toEqual([0.05, 0.05]);
    expect([price("mj_inpaint").callPrice, price("swap_face").callPrice]).toEqual([0, 0.05]);
  });
  test("the pricing page names the price per million that the charge uses, group included", () => {
    const lines = modelPriceLines({ ...tables, groupRatio: { vip: 0.5 } }, "gpt-4o", "vip") ?? [];
    const at = (kind: string) => lines.find((line) => line.kind === kind)?.unitPrice;
    expect([at("fresh"), at("cache_read"), at("output")]).toEqual([1.25, 0.625, 5]);
    expect(modelPriceLines(tables, "dall-e-3", "vip")).toEqual([
      { kind: "per_call", unitPrice: 0.04, per: "call", ratio: 0 },
    ]);
    expect(modelPriceLines(tables, "nothing-like-it", "vip")).toBeUndefined();
  });
});

describe("output ratios by name", () => {
  const NOT_ITS_OWN = 99;
  test.each<[string, number]>([
    ["gpt-4o-2024-05-13", 3],
    ["gpt-4o", 4],
    ["gpt-4o-mini", 4],
    ["gpt-4.5-preview-2025-02-27", 2],
    ["gpt-4-turbo-2024-04-09", 3],
    ["gpt-4-1106", 3],
    ["gpt-4-1106-preview", 2],
    ["gpt-4", 2],
    ["gpt-4.1", 2],
    ["gpt-4-all", 1],
    ["gpt-4o-gizmo-*", 1],
    ["o1-mini", 4],
    ["o3", 4],
    ["o4-mini", 1],
    ["chatgpt-4o-latest", 3],
    ["claude-3-opus-20240229", 5],
    ["anthropic.claude-sonnet-4-20250514-v1:0", 5],
    ["claude-opus-4-20250514", 5],
    ["claude-instant-1.2", 3],
    ["claude-2.1", 3],
    ["gpt-3.5-turbo", 3],
    ["gpt-3.5-turbo-0125", 3],
    ["gpt-3.5-turbo-1106", 2],
    ["gpt-3.5-turbo-16k", 4 / 3],
    ["mistral-large", 3],
    ["gemini-1.5-pro", 4],
    ["gemini-2.0-flash", 4],
    ["gemini-2.5-pro-preview-03-25", 8],
    ["gemini-2.5-flash-preview-04-17-nothinking", 4],
    ["gemini-2.5-flash-preview-04-17", 3.5 / 0.6],
    ["gemini-2.5-pro-exp", 4],
    ["command-r", 3],
    ["command-r-plus", 5],
    ["command-r-08-2024", 4],
    ["command-r-plus-08-2024", 4],
    ["command-nightly", 4],
    ["DeepSeek-Chat", 4],
    ["deepseek-reasoner", 4],
    ["deepseek-coder", 1],
    ["ERNIE-Speed-8K", 2],
    ["ERNIE-Lite-8K-0308", 2],
    ["ERNIE-Character-8K", 2],
    ["ERNIE-Functions-8K", 2],
    ["llama2-70b-4096", 0.8 / 0.64],
    ["llama3-8b-8192", 2],
    ["llama3-70b-8192", 0.79 / 0.59],
    ["qwen-plus", 1],
  ])("%s has %d, and the operator's own ratio wins", (name, ratio) => {
    expect(completionRatio(name, {})).toBe(ratio);
    expect(completionRatio(name, { [name]: NOT_ITS_OWN })).toBe(NOT_ITS_OWN);
  });
  test("a name with a slash asks the option first, whatever its rule", () => {
    expect(completionRatio("x/claude-3-opus", { "x/claude-3-opus": 9 })).toBe(9);
    expect(completionRatio("x/claude-3-opus", {})).toBe(5);
  });
  test.each([
    ["gpt-4o-realtime-preview", 8],
    ["gpt-4o-mini-realtime-preview-2024-12-17", 10 / 0.6],
    ["gpt-4o-realtime-preview-2024-12-17", 20],
    ["gpt-4o-audio-preview-2024-10-01", 16],
    ["gpt-4o-mini-audio-preview", 10 / 0.15],
    ["my-audio-model", 40],
    ["whisper-1", 1],
    ["gemini-2.5-pro", 1],
  ])("an audio token of %s is %d text tokens", (name, ratio) => {
    expect(audioRatio(name)).toBe(ratio);
  });
});

describe("reservation", () => {
  const inputs = { promptTokens: 100, maxTokens: 0, preConsumedTokens: 500, quotaPerUnit: 500_000 };
  test("holds prompt and limit when the request names one, cut to whole units", () => {
    expect(estimateReserve(price("gpt-4o"), 1, { ...inputs, maxTokens: 50 })).toBe(187);
  });
  test("holds the site's assumption when the request names no limit", () => {
    expect(estimateReserve(price("gpt-4o"), 1, inputs)).toBe(625);
  });
  test("holds the whole fixed price, times pictures and their size, whatever the tokens are", () => {
    expect(estimateReserve(price("dall-e-3"), 2, inputs)).toBe(40_000);
    const callFactor = pictureFactor("dall-e-3", "1792x1024", "hd");
    expect(estimateReserve(price("dall-e-3"), 1, { ...inputs, callCount: 2, callFactor })).toBe(120_000);
  });
  test("holds nothing for a free group", () => {
    expect(estimateReserve(price("gpt-4o"), 0, { ...inputs, maxTokens: 50 })).toBe(0);
  });
});

describe("the documented fields of the log row", () => {
  test("by tokens: every ratio, and a price of -1", () => {
    const { other } = cost(price("gpt-4o"), 2, usage({ fresh: 600, cacheRead: 400 }, { text: 200 }));
    expect(other).toEqual({
      model_ratio: 1.25,
      group_ratio: 2,
      completion_ratio: 4,
      cache_tokens: 400,
      cache_ratio: 0.5,
      model_price: -1,
      cost: expect.any(Object),
    });
  });
  test("by call: the price, and ratios of 0", () => {
    expect(cost(price("dall-e-3"), 1, usage({ fresh: 1 })).other).toEqual({
      model_ratio: 0,
      group_ratio: 1,
      completion_ratio: 0,
      cache_tokens: 0,
      cache_ratio: 0,
      model_price: 0.04,
      cost: expect.any(Object),
    });
  });
  test("native Messages: cache writes are always named, one-hour writes apart as well", () => {
    const pricing = price("claude-sonnet-4-20250514");
    const call = usage({ fresh: 10, cacheWrite5m: 20, cacheWrite1h: 30 });
    expect(cost(pricing, 1, call, { surface: "messages" }).other).toMatchObject({
      claude: true,
      cache_creation_tokens: 50,
      cache_creation_ratio: 1.25,
      cache_creation_tokens_1h: 30,
      cache_creation_ratio_1h: 2,
    });
    expect(cost(pricing, 1, usage({ fresh: 10 }), { surface: "messages" }).other).toMatchObject({
      claude: true,
      cache_creation_tokens: 0,
    });
  });
  test("pictures, audio and tools add their fields only where they occur", () => {
    const all = cost(
      price("gpt-image-1"),
      1,
      usage(
        { image: 5, audio: 6, fresh: 7 },
        { audio: 8, text: 9, thinking: 1 },
        { webSearch: 2, fileSearch: 3 },
      ),
      { webSearchPrice: 25 },
    ).other;
    expect(all).toMatchObject({
      image: true,
      image_ratio: 2,
      image_output: 5,
      audio: true,
      audio_input: 6,
      audio_output: 8,
      text_input: 7,
      text_output: 10,
      audio_ratio: 1,
      audio_completion_ratio: 8,
      web_search: true,
      web_search_call_count: 2,
      web_search_price: 25,
      file_search: true,
      file_search_call_count: 3,
      file_search_price: 2.5,
    });
    expect(all.ws).toBeUndefined();
  });
  test("realtime sessions carry their own mark with the same seven fields", () => {
    const { other } = cost(price("gpt-4o-realtime-preview"), 1, usage({ audio: 6 }), { surface: "realtime" });
    expect(other).toMatchObject({ ws: true, audio_input: 6, audio_output: 0, audio_ratio: 8 });
    expect(other.audio).toBeUndefined();
  });
});
