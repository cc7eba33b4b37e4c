// Price rules: every worked example of the reference to the unit, and what each condition lets through.
import { describe, expect, test } from "bun:test";
import { ratesOf, heldCallPrice } from "../../../src/core/prices/holds.ts";
import { shippedTexts } from "../../../src/core/prices/origins.ts";
import { createPriceBook } from "../../../src/core/prices/price-book.ts";
import { costOf, forRequest, modelPriceLines } from "../../../src/core/prices/prices.ts";
import type { CallFacts, CallPrice } from "../../../src/core/prices/prices.ts";
import { isNearEdge, rulesAt } from "../../../src/shared/price-rules.ts";
import { emptyMaps, putRow } from "../../../src/shared/row-maps.ts";
import { explainStored } from "../../../src/shared/cost.ts";
import type { PriceCondition, PriceRow } from "../../../src/shared/price-row.ts";
import type { Usage } from "../../../src/shared/usage.ts";
import { tables, usage } from "./support.ts";

const QPU = 500_000;
const NOON = Date.parse("2026-11-23T12:00:00Z");

interface World {
  rows?: Record<string, PriceRow>;
  group?: number;
  atMs?: number;
  tools?: Record<string, number>;
}

/** A book over the shipped table, with these rows in place of its own. */
function priceOf(model: string, { rows = {}, group = 1, atMs = NOON, tools = {} }: World = {}): CallPrice {
  const texts = shippedTexts(QPU);
  const maps = emptyMaps();
  for (const [key, text] of Object.entries(texts))
    Object.assign(maps, { [key]: JSON.parse(text) as Record<string, unknown> });
  for (const [name, row] of Object.entries(rows)) putRow(maps, name, row, QPU);
  const values: Record<string, unknown> = {
    ...maps,
    GroupRatio: { default: group },
    GroupGroupRatio: {},
    QuotaPerUnit: QPU,
    ToolPrices: tools,
  };
  const book = createPriceBook({ get: (key) => values[key] as never, onChange: () => undefined }, () => atMs);
  const price = book.callPrice(model, "default", "default");
  if (!price) throw new Error(`no price for ${model}`);
  return price;
}

function charge(price: CallPrice, used: Usage, facts: CallFacts = {}): number {
  const { quota, other, sum } = costOf(price, used, facts);
  // What the row stores explains the same charge.
  expect(explainStored(other)).toEqual(sum);
  return quota;
}

const GPT_5: Record<string, PriceRow> = {
  "gpt-5": {
    in: 1.25,
    out: 10,
    cache_read: 0.125,
    when: [
      { tier: "priority", times: 2 },
      { tier: ["flex", "batch"], times: 0.5 },
    ],
  },
};

describe("worked examples of the reference", () => {
  test("gemini-2.5-pro: at the threshold, above it, and half of it cached", () => {
    const price = priceOf("gemini-2.5-pro");
    expect(charge(price, usage({ fresh: 200_000 }, { text: 1000 }))).toBe(130_000);
    expect(charge(price, usage({ fresh: 200_001 }, { text: 1000 }))).toBe(257_501);
    expect(charge(price, usage({ fresh: 200_001, cacheRead: 50_000 }, { text: 1000 }))).toBe(263_751);
    // Cached tokens count: 100,001 and 100,000 are above 200,000 together.
    expect(charge(price, usage({ fresh: 100_001, cacheRead: 100_000 }))).toBe(125_001 + 12_500);
  });
  test("gpt-5.4 above 272,000, also in a group", () => {
    const used = usage({ fresh: 272_001 }, { text: 2000 });
    expect(charge(priceOf("gpt-5.4"), used)).toBe(702_503);
    expect(charge(priceOf("gpt-5.4", { group: 0.9 }), used)).toBe(632_252);
  });
  test("deepseek-v4-pro at peak hours and at others", () => {
    const used = usage({ fresh: 10_000, cacheRead: 90_000 }, { text: 2000 });
    const at = (clock: string) =>
      charge(priceOf("deepseek-v4-pro", { atMs: Date.parse(`2026-11-23T${clock}Z`) }), used);
    expect([at("01:00:00"), at("03:59:59"), at("06:00:00"), at("09:59:59")]).toEqual(
      Array.from({ length: 4 }, () => 12_540),
    );
    expect([at("00:59:59"), at("04:00:00"), at("10:00:00"), at("23:59:59")]).toEqual(
      Array.from({ length: 4 }, () => 6270),
    );
  });
  test("Claude at 3 and 15, native: writes of both lengths, cut", () => {
    const used = usage({ fresh: 100, cacheRead: 1000, cacheWrite5m: 300, cacheWrite1h: 200 }, { text: 50 });
    expect(charge(priceOf("claude-sonnet-4-6"), used, { surface: "messages" })).toBe(1837);
  });
  test("gpt-5: usual, priority, batch", () => {
    const used = usage({ fresh: 1000 }, { text: 200 });
    const price = priceOf("gpt-5", { rows: GPT_5 });
    expect(charge(price, used)).toBe(1625);
    expect(charge(price, used, { servedTier: "default" })).toBe(1625);
    expect(charge(price, used, { servedTier: "priority" })).toBe(3250);
    expect(charge(price, used, { servedTier: "Batch" })).toBe(813);
  });
  test("gpt-audio: text and sound both ways", () => {
    const used = usage({ fresh: 20, audio: 500 }, { text: 30, audio: 400 });
    expect(charge(priceOf("gpt-audio"), used)).toBe(20_975);
  });
  test("sora-2: eight seconds at 0.10 in a group of 0.8", () => {
    const price = priceOf("sora-2", { rows: { "sora-2": { call: 0.1, unit: "second" } }, group: 0.8 });
    expect(charge(price, usage({}), { callCount: 8 })).toBe(320_000);
  });
});

describe("entries", () => {
  const row = (when: PriceRow["when"], more: PriceRow = {}): World => ({
    rows: { m: { in: 2, out: 8, ...more, when } },
  });
  test("set replaces, then times multiplies, later wins; conditions stand in the row", () => {
    const price = priceOf(
      "m",
      row([
        { over: 100, set: { in: 4 } },
        { over: 1000, set: { in: 6, out: 10 } },
        { tier: "priority", set: { out: 20 }, times: 2 },
      ]),
    );
    expect(charge(price, usage({ fresh: 100 }, { text: 100 }))).toBe(100 + 400);
    expect(charge(price, usage({ fresh: 101 }, { text: 100 }))).toBe(202 + 400);
    expect(charge(price, usage({ fresh: 1001 }, { text: 100 }))).toBe(3003 + 500);
    expect(charge(price, usage({ fresh: 1001 }, { text: 100 }), { servedTier: "priority" })).toBe(
      6006 + 2000,
    );
    const { other } = costOf(price, usage({ fresh: 1001 }), { servedTier: "priority" });
    expect(other["cost"]).toMatchObject({
      rules: [{ over: 100 }, { over: 1000 }, { tier: "priority" }],
      rates: { in: 12, out: 40 },
      tier: "priority",
    });
    expect(other).toMatchObject({ model_ratio: 6, completion_ratio: 40 / 12 });
  });
  test("kinds that nobody priced follow the kind that they are derived from; priced ones stay", () => {
    const price = priceOf("m", row([{ over: 10, set: { in: 4, out: 16 } }], { cache_read: 0.2 }));
    expect(charge(price, usage({ fresh: 1, cacheRead: 1000 }))).toBe(2 + 100);
    expect(charge(price, usage({ image: 1000 }, { thinking: 100 }))).toBe(2000 + 800);
  });
  test("sound that nobody priced costs what the model's text does, whichever entry acts, held and charged", () => {
    const sound = usage({ audio: 100_000 }, { audio: 10_000 });
    // 1.25 and 10 a million; above 200,000 tokens 2.5 and 15.
    expect(charge(priceOf("gemini-2.5-pro"), sound)).toBe(62_500 + 50_000);
    expect(charge(priceOf("gemini-2.5-pro"), usage({ audio: 300_000 }, { audio: 10_000 }))).toBe(
      375_000 + 75_000,
    );
    expect(charge(priceOf("gemini-2.5-flash-preview-tts"), usage({ fresh: 100 }, { audio: 100_000 }))).toBe(
      25 + 500_000,
    );
    const held = { cacheWrite: "none", imageInput: false, audioInput: true, audioOutput: true } as const;
    expect(ratesOf(priceOf("gemini-2.5-pro"), { ...held, inputTokens: 100 })).toEqual({
      text: 0.625,
      media: 0.625,
      output: 5,
    });
    // A price of one of them leaves the other at the text's; free sound in does not make sound out free.
    expect(charge(priceOf("m", { rows: { m: { in: 1, out: 4, audio_in: 8 } } }), sound)).toBe(
      400_000 + 20_000,
    );
    for (const row of [
      { in: 1, out: 4, audio_in: 0 },
      { in: 1, out: 2, audio_in: 0, audio_out: 4 },
    ])
      expect(charge(priceOf("m", { rows: { m: row } }), sound)).toBe(20_000);
    // A sound model's are its family's.
    expect(charge(priceOf("gpt-4o-audio-preview"), sound)).toBe(2_000_000 + 400_000);
  });
  test("writes to a cache and sound count for the threshold", () => {
    const price = priceOf("m", row([{ over: 99, times: 10 }]));
    for (const input of [{ cacheWrite5m: 100 }, { cacheWrite1h: 100 }, { audio: 100 }, { image: 100 }])
      expect(costOf(price, usage(input)).other["cost"]).toMatchObject({ rules: [{ over: 99 }] });
  });
  test("thoughts, and pictures in answers, at prices of their own, also where input is free", () => {
    const price = priceOf("m", { rows: { m: { in: 2, out: 8, thinking: 16, image_out: 60 } } });
    expect(charge(price, usage({ fresh: 100 }, { text: 100, thinking: 100, image: 100 }))).toBe(
      100 + 400 + 800 + 3000,
    );
    const free = priceOf("m", { rows: { m: { in: 0, out: 8 } } });
    expect(charge(free, usage({ fresh: 1000 }, { text: 100 }))).toBe(400);
  });
  test("the pricing page names the prices that no ratio can say", () => {
    const rules = { m: { out: 8, thinking: 16 } };
    const lines =
      modelPriceLines({ ...tables, modelRatio: { m: 0 }, priceRules: rules }, "m", "default") ?? [];
    const at = (kind: string) => lines.find((line) => line.kind === kind)?.unitPrice;
    expect([at("fresh"), at("output"), at("thinking")]).toEqual([0, 8, 16]);
  });
  test("size, quality and the tier that was asked for freeze with the request", () => {
    const price = priceOf(
      "m",
      row([
        { size: ["1024x1792", "1792x1024"], times: 2 },
        { quality: "hd", times: 3 },
        { tier: "flex", times: 0.5 },
      ]),
    );
    const at = (facts: { size?: string; quality?: string; tier?: string }) =>
      charge(
        forRequest(price, () => facts),
        usage({ fresh: 100 }),
      );
    expect([at({}), at({ size: "1024x1792" }), at({ quality: "HD" })]).toEqual([100, 200, 300]);
    expect([at({ size: "1792x1024", quality: "hd" }), at({ tier: "flex" })]).toEqual([600, 50]);
    // What the answer names wins.
    expect(
      charge(
        forRequest(price, () => ({ tier: "flex" })),
        usage({ fresh: 100 }),
        { servedTier: "default" },
      ),
    ).toBe(100);
  });
  test("a fixed price by size", () => {
    const price = priceOf("m", {
      rows: { m: { call: 0.04, unit: "image", when: [{ size: "big", set: { call: 0.08 } }] } },
    });
    expect(
      charge(
        forRequest(price, () => ({ size: "big" })),
        usage({}),
        { callCount: 2 },
      ),
    ).toBe(80_000);
    expect(
      charge(
        forRequest(price, () => ({})),
        usage({}),
      ),
    ).toBe(20_000);
    expect(heldCallPrice(forRequest(price, () => ({ size: "big" })))).toBe(0.08);
    // A task is priced by the call whatever its model's tokens cost.
    const byToken = priceOf("m", row([{ hours: ["00:00-24:00"], times: 2 }]));
    const task = { ...byToken, ratios: { ...byToken.ratios, callPrice: 0.1 } };
    expect([heldCallPrice(task), charge(task, usage({}))]).toEqual([0.1, 50_000]);
    // A session or a task asks for no size.
    expect([heldCallPrice(price), charge(price, usage({}))]).toEqual([0.04, 20_000]);
  });
});

describe("times", () => {
  const isOn = (condition: PriceCondition, at: string) =>
    rulesAt([{ ...condition, times: 2 }], Date.parse(at)).length === 1;
  test("hours pass midnight, in the zone's own time", () => {
    const night = { hours: ["22:00-06:00"], tz: "Asia/Shanghai" };
    expect([
      isOn(night, "2026-11-23T13:59:59Z"),
      isOn(night, "2026-11-23T14:00:00Z"),
      isOn(night, "2026-11-23T21:59:59Z"),
      isOn(night, "2026-11-23T22:00:00Z"),
    ]).toEqual([false, true, true, false]);
  });
  test("the clock that is changed: one in the morning of New York is there twice, and both times count", () => {
    const one = { hours: ["01:00-02:00"], tz: "America/New_York" };
    expect([
      isOn(one, "2026-11-01T05:30:00Z"),
      isOn(one, "2026-11-01T06:30:00Z"),
      isOn(one, "2026-11-01T07:00:00Z"),
    ]).toEqual([true, true, false]);
  });
  test("days are the zone's; hours past midnight belong to the day on which they began", () => {
    // 2026-11-23 is a Monday.
    expect([
      isOn({ days: ["mon"] }, "2026-11-23T00:00:00Z"),
      isOn({ days: ["mon"] }, "2026-11-22T23:59:59Z"),
    ]).toEqual([true, false]);
    const sundayNight: PriceCondition = { days: ["sun"], hours: ["23:00-02:00"] };
    expect([
      isOn(sundayNight, "2026-11-22T23:30:00Z"),
      isOn(sundayNight, "2026-11-23T01:59:00Z"),
      isOn(sundayNight, "2026-11-23T23:30:00Z"),
      isOn(sundayNight, "2026-11-22T01:00:00Z"),
    ]).toEqual([true, true, false, false]);
  });
  test("from a moment, until another, the end not included", () => {
    const month = { from: "2026-12-01", until: "2027-01-01T00:00:00Z" };
    expect([
      isOn(month, "2026-11-30T23:59:59Z"),
      isOn(month, "2026-12-01T00:00:00Z"),
      isOn(month, "2026-12-31T23:59:59Z"),
      isOn(month, "2027-01-01T00:00:00Z"),
    ]).toEqual([false, true, true, false]);
  });
});

describe("edges of windows", () => {
  const near = (rule: PriceCondition, at: string): boolean =>
    isNearEdge([{ ...rule, times: 2 }], Date.parse(`2026-11-23T${at}Z`));
  test("a second before and after a window begins or ends, in its own zone, and nowhere else", () => {
    const night: PriceCondition = { hours: ["22:00-06:00"], tz: "Asia/Shanghai" };
    expect(
      ["13:59:58.999", "13:59:59", "14:00:00", "14:00:00.999", "14:00:01"].map((at) => near(night, at)),
    ).toEqual([false, true, true, true, false]);
    expect([near(night, "22:00:00"), near(night, "18:00:00"), near(night, "12:00:00")]).toEqual([
      true,
      false,
      false,
    ]);
  });
  test("days and moments, too; length and tier have no edge in time", () => {
    const monday: PriceCondition = { days: ["mon"] };
    expect([near(monday, "00:00:00"), near(monday, "00:00:02"), near(monday, "12:00:00")]).toEqual([
      true,
      false,
      false,
    ]);
    const until: PriceCondition = { until: "2026-11-23T10:00:30Z" };
    expect(["10:00:28", "10:00:29", "10:00:30", "10:00:31"].map((at) => near(until, at))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(near({ over: 5, tier: "flex" }, "00:00:00")).toBe(false);
  });
});

describe("holds", () => {
  const plain = { cacheWrite: "none", audioInput: false, imageInput: false, audioOutput: false } as const;
  test("from nine tenths of a threshold on its price is held, and any where nobody knows the length", () => {
    const price = priceOf("gemini-2.5-pro");
    const held = (inputTokens: number | undefined) => ratesOf(price, { ...plain, inputTokens });
    expect(held(179_999)).toEqual({ text: 0.625, media: 0.625, output: 5 });
    expect(held(180_000)).toEqual({ text: 1.25, media: 1.25, output: 7.5 });
    expect(held(undefined)).toEqual({ text: 1.25, media: 1.25, output: 7.5 });
  });
  test("a cheaper tier that was asked for may not be served; a dearer one that was may", () => {
    const price = priceOf("gpt-5", { rows: GPT_5 });
    const held = (...tiers: string[]) => ratesOf(price, { ...plain, inputTokens: 1, tiers });
    expect(held()).toEqual({ text: 0.625, media: 0.625, output: 5 });
    expect(held("flex")).toEqual({ text: 0.625, media: 0.625, output: 5 });
    expect(held("priority")).toEqual({ text: 1.25, media: 1.25, output: 10 });
    expect(held("flex", "priority")).toEqual({ text: 1.25, media: 1.25, output: 10 });
  });
  test("no charge is above what the rates hold, whichever entries act", () => {
    const price = priceOf("m", {
      rows: {
        m: {
          in: 2,
          out: 8,
          when: [
            { over: 100, set: { in: 1, out: 20 } },
            { over: 1000, set: { in: 9, out: 3 } },
            { tier: "flex", times: 0.5 },
          ],
        },
      },
    });
    const { text, output } = ratesOf(price, { ...plain, inputTokens: undefined });
    for (const fresh of [1, 101, 1001])
      for (const servedTier of ["default", "flex"])
        expect(charge(price, usage({ fresh }, { text: 1000 }), { servedTier })).toBeLessThanOrEqual(
          Math.ceil(fresh * text + 1000 * output),
        );
  });
});

describe("tools", () => {
  const rows = { m: { in: 2, out: 8, tools: { web_search: 7 } }, n: { in: 2, out: 8 } };
  const tools = { web_search: 3, "web_search:n*": 4, "web_search:no*": 5, file_search: 0 };
  const search = (model: string, world: World) =>
    charge(priceOf(model, world), usage({}, {}, { webSearch: 1 }), { searchSize: "high" });
  test("the model's own price, else the longest beginning, else the tool's, else the reference's", () => {
    expect(search("m", { rows, tools })).toBe(3500);
    expect(search("n", { rows, tools })).toBe(2000);
    expect(search("nobody", { rows: { nobody: { in: 1, out: 1 } }, tools })).toBe(2500);
    expect(search("x", { rows: { x: { in: 1, out: 1 } }, tools })).toBe(1500);
    expect(search("n", { rows })).toBe(15_000);
  });
  test("nothing is free unless somebody said so", () => {
    const used = usage({}, {}, { fileSearch: 2 });
    expect(charge(priceOf("n", { rows, tools }), used)).toBe(0);
    expect(charge(priceOf("n", { rows }), used)).toBe(2500);
  });
});
