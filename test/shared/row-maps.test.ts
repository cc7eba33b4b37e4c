// Rows in dollars and the maps of ratios say the same, in both directions.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { withoutSilenced } from "../../src/shared/completion-rules.ts";
import { emptyMaps, heldRow, pricedNames, putRow, rowOf } from "../../src/shared/row-maps.ts";
import { shippedPrices } from "../../src/core/prices/shipped.ts";
import { isSameRow, readPriceRow, readPriceRules } from "../../src/shared/price-row.ts";
import type { PriceRow } from "../../src/shared/price-row.ts";

const QPU = 500_000;

function mapsOf(name: string, row: PriceRow, quotaPerUnit = QPU) {
  const maps = emptyMaps();
  putRow(maps, name, row, quotaPerUnit);
  return maps;
}

describe("dollars become ratios", () => {
  test("each kind its map, by the table of the reference", () => {
    const row: PriceRow = {
      in: 3,
      out: 15,
      cache_read: 0.3,
      cache_write: 3.75,
      cache_write_1h: 6,
      image_in: 6,
      audio_in: 30,
      audio_out: 60,
    };
    expect(mapsOf("m", row)).toEqual({
      ModelRatio: { m: 1.5 },
      CompletionRatio: { m: 5 },
      CacheRatio: { m: 0.1 },
      CreateCacheRatio: { m: 1.25 },
      CreateCache1hRatio: { m: 2 },
      ImageRatio: { m: 2 },
      AudioRatio: { m: 10 },
      AudioCompletionRatio: { m: 2 },
      ModelPrice: {},
      PriceRules: {},
    });
  });
  test("no price of cached input makes no entry, and units per dollar change the ratio alone", () => {
    const maps = mapsOf("m", { in: 2, out: 8 }, 1_000_000);
    expect([maps.ModelRatio, maps.CompletionRatio, maps.CacheRatio]).toEqual([{ m: 2 }, { m: 4 }, {}]);
    expect(rowOf(maps, "m", 1_000_000)).toEqual({ in: 2, out: 8 });
  });
  test("what the maps cannot say stands in the rules: free input, thoughts, pictures in answers, units", () => {
    expect(mapsOf("m", { in: 0, out: 5 })).toMatchObject({
      ModelRatio: { m: 0 },
      PriceRules: { m: { out: 5 } },
    });
    expect(mapsOf("m", { in: 0, out: 0 })).toMatchObject({ ModelRatio: { m: 0 }, PriceRules: {} });
    expect(mapsOf("m", { in: 1, out: 2, thinking: 4, image_out: 30 }).PriceRules).toEqual({
      m: { thinking: 4, image_out: 30 },
    });
    const video = mapsOf("m", { call: 0.1, unit: "second" });
    expect([video.ModelPrice, video.ModelRatio, video.PriceRules]).toEqual([
      { m: 0.1 },
      {},
      { m: { unit: "second" } },
    ]);
  });
  test("a new row replaces the whole of the old one, and none takes it away", () => {
    const maps = mapsOf("m", { in: 3, out: 15, cache_read: 0.3, tools: { web_search: 10 } });
    putRow(maps, "m", { call: 0.5 }, QPU);
    expect(maps).toEqual({ ...emptyMaps(), ModelPrice: { m: 0.5 } });
    expect(pricedNames(maps)).toEqual(["m"]);
    putRow(maps, "m", undefined, QPU);
    expect(maps).toEqual(emptyMaps());
  });
  test("the price of output that a model's name decides is told as what is charged", () => {
    expect(rowOf({ ...emptyMaps(), ModelRatio: { "gpt-4o-x": 1 } }, "gpt-4o-x", QPU)).toEqual({
      in: 2,
      out: 8,
    });
  });
  test("names of Object's own have no price", () => {
    for (const name of ["constructor", "__proto__", "toString"])
      expect([name, rowOf(emptyMaps(), name, QPU)]).toEqual([name, undefined]);
  });
});

test("every shipped row comes back as it went in", () => {
  for (const [name, row] of shippedPrices().rows) {
    const { out = heldRow(name, row, QPU).out, ...rest } = row;
    const back = heldRow(name, row, QPU);
    const expected = row.call === undefined ? { ...rest, out } : row;
    expect([name, isSameRow(back, expected)]).toEqual([name, true]);
  }
});

test("a price of ten digits survives the way through the ratios to the last one", () => {
  const dollars = fc.integer({ min: 1, max: 9_999_999 }).map((n) => n / 10_000);
  const units = fc.constantFrom(500_000, 1_000_000, 1000, 72_993);
  fc.assert(
    fc.property(dollars, dollars, dollars, units, (input, out, cacheRead, quotaPerUnit) => {
      const row = { in: input, out, cache_read: cacheRead };
      expect(rowOf(mapsOf("m", row, quotaPerUnit), "m", quotaPerUnit)).toEqual(row);
    }),
  );
});

describe("an operator's completion ratio", () => {
  test("of another instance is dropped where a lock silenced it there, so that no price moves", () => {
    expect(
      withoutSilenced({
        "gpt-4o": 9,
        "claude-3-opus": 5,
        "mistral-medium-latest": 5,
        "gpt-4": 7,
        "gemini-3-pro": 6,
        "o4-mini": 4,
        "openai/gpt-4o": 9,
      }),
    ).toEqual({ "claude-3-opus": 5, "gpt-4": 7, "gemini-3-pro": 6, "o4-mini": 4, "openai/gpt-4o": 9 });
  });
});

describe("rows that somebody writes", () => {
  const refused: [string, unknown, string][] = [
    ["no object", [], ""],
    ["an unknown kind", { input: 1 }, "input"],
    ["a text as price", { in: "1" }, "in"],
    ["a negative price", { in: -1 }, "in"],
    ["a slip of six digits", { in: 1e9 }, "in"],
    ["an entry without a condition", { when: [{ set: { in: 1 } }] }, "when[0]"],
    ["an entry with nothing but a zone", { when: [{ tz: "UTC", set: { in: 1 } }] }, "when[0]"],
    ["an entry that changes nothing", { when: [{ over: 1 }] }, "when[0]"],
    ["an unknown condition", { when: [{ above: 1, set: { in: 1 } }] }, "when[0].above"],
    ["half a token", { when: [{ over: 0.5, times: 1 }] }, "when[0].over"],
    ["hours that are none", { when: [{ hours: ["25:00-26:00"], times: 1 }] }, "when[0].hours"],
    ["an empty hour", { when: [{ hours: ["01:00-01:00"], times: 1 }] }, "when[0].hours"],
    ["an unknown zone", { when: [{ hours: ["01:00-02:00"], tz: "Moon/Sea", times: 1 }] }, "when[0].tz"],
    ["an unknown day", { when: [{ days: ["monday"], times: 1 }] }, "when[0].days"],
    ["a day that is none", { when: [{ from: "2026-13-01", times: 1 }] }, "when[0].from"],
    ["17 entries", { when: Array.from({ length: 17 }, (_, over) => ({ over, times: 1 })) }, "when"],
    [
      "a tool named like an object's own",
      { tools: JSON.parse('{"__proto__": 1}') as unknown },
      "tools.__proto__",
    ],
    ["an unknown unit", { unit: "kilometre" }, "unit"],
    ["NaN", { in: Number.NaN }, "in"],
  ];
  test.each(refused)("%s is refused at its place", (_, value, place) => {
    expect(readPriceRow(value)).toEqual({ problem: place });
  });
  test("a fixed price is the price map's to say, not the rules'", () => {
    expect(readPriceRules({ call: 1 })).toEqual({ problem: "call" });
    expect(readPriceRules({ unit: "second" }).row).toEqual({ unit: "second" });
  });
});
