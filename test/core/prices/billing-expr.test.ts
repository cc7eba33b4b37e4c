// Expressions of the family's newer instances become rows that charge the same, or are refused at their place.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { rowOfExpression } from "../../../src/core/prices/sources/billing-expr.ts";
import { readSource } from "../../../src/core/prices/sources/read.ts";
import { BadEntry } from "../../../src/core/prices/sources/source.ts";
import { readPriceRow } from "../../../src/shared/price-row.ts";

const flat = (input: number, output: number, more = {}) => ({
  in: input,
  out: output,
  cache_read: input,
  cache_write: input,
  cache_write_1h: input,
  image_in: input,
  image_out: output,
  audio_in: input,
  audio_out: output,
  ...more,
});

describe("what a row can say", () => {
  test.each<[string, unknown]>([
    ["p * 2.5 + c * 15", flat(2.5, 15)],
    ['v1: tier("base", p * 2.5 + c * 15 + cr * 0.25)', flat(2.5, 15, { cache_read: 0.25 })],
    ["2 * p + 8 * c + 3 * cc", flat(2, 8, { cache_write: 3, cache_write_1h: 3 })],
    [
      "p * 1 + c * 2 + cc1h * 5 + img * 6 + img_o * 7 + ai * 8 + ao * 9",
      flat(1, 2, { cache_write_1h: 5, image_in: 6, image_out: 7, audio_in: 8, audio_out: 9 }),
    ],
    [
      'len <= 200000 ? tier("base", p * 1.25 + c * 10) : tier("long", p * 2.5 + c * 15)',
      { ...flat(1.25, 10), when: [{ over: 200_000, set: flat(2.5, 15) }] },
    ],
    ["len < 32000 ? p * 1 : p * 2", { ...flat(1, 0), when: [{ over: 31_999, set: flat(2, 0) }] }],
    ["len > 32_000 ? p * 2 : p * 1", { ...flat(1, 0), when: [{ over: 32_000, set: flat(2, 0) }] }],
    ["len >= 3.2e4 ? p * 2 : p * 1", { ...flat(1, 0), when: [{ over: 31_999, set: flat(2, 0) }] }],
    [
      "len <= 10 ? p * 1 : len <= 20 ? p * 2 : p * 3",
      {
        ...flat(1, 0),
        when: [
          { over: 10, set: flat(2, 0) },
          { over: 20, set: flat(3, 0) },
        ],
      },
    ],
    // What no length reaches.
    [
      "len <= 10 ? (len > 50 ? p * 9 : p * 1) : p * 2",
      { ...flat(1, 0), when: [{ over: 10, set: flat(2, 0) }] },
    ],
    ["p <= 10 ? p * 1 + c * 1 : p * 2 + c * 1", { ...flat(1, 1), when: [{ over: 10, set: flat(2, 1) }] }],
  ])("%s", (text, row) => {
    expect(rowOfExpression(text)).toEqual(row as object);
    expect(readPriceRow(rowOfExpression(text)).problem).toBeUndefined();
  });
});

describe("what it cannot is refused at its place", () => {
  test.each<[string, number]>([
    ["", 0],
    ["p * 2 - c", 6],
    ["p * -2", 4],
    ["p * 2 + q * 3", 8],
    ["p * 2 + p * 3", 8],
    ["max(p, c) * 2", 0],
    ["len <= 10 ? p * 1", 17],
    ["len <= 10.5 ? p * 1 : p * 2", 7],
    ["c <= 10 ? p * 1 : p * 2", 2],
    ["p <= 10 ? p * 1 + cr * 1 : p * 2", 0],
    ["v1:p * 2 + x * 1", 11],
    ['p * 2 ||| service_tier == "flex" ? 0.5 : 1', 6],
    ["p * 2 + c * 3)", 13],
    ["p * 9999999", 4],
    ["tier(base, p * 2)", 5],
  ])("%p", (text, place) => {
    try {
      rowOfExpression(text);
      throw new Error("it was read");
    } catch (error) {
      expect(error).toBeInstanceOf(BadEntry);
      expect((error as BadEntry).message).toBe(`billing_expr:${place}`);
    }
  });
  test("whatever text it is, quickly: a row or a refusal", () => {
    const words = fc.constantFrom(
      "p",
      "c",
      "len",
      "*",
      "+",
      "?",
      ":",
      "(",
      ")",
      "<=",
      "1",
      "2e3",
      "tier",
      '"a"',
      ",",
      " ",
    );
    fc.assert(
      fc.property(fc.array(words, { maxLength: 40 }), (parts) => {
        try {
          expect(readPriceRow(rowOfExpression(parts.join(""))).problem).toBeUndefined();
        } catch (error) {
          expect(error).toBeInstanceOf(BadEntry);
        }
      }),
    );
    for (const text of [
      "(".repeat(9000),
      "p * 1 + ".repeat(1200),
      "len <= 1 ? ".repeat(800),
      "x".repeat(20_000),
    ])
      expect(() => rowOfExpression(text)).toThrow(BadEntry);
  });
});

test("both lists of the family carry them; one that is refused costs its model alone", () => {
  const billing_mode = { a: "tiered_expr", b: "tiered_expr", c: "ratio" };
  const data = { model_ratio: { c: 1 }, billing_mode, billing_expr: { a: "p * 2 + c * 8", b: "min(p)" } };
  const config = readSource("ratio_config", JSON.stringify({ data }), 0);
  expect([...config.rows.keys()]).toEqual(["c", "a"]);
  expect(config.dropped).toEqual([{ name: "b", reason: "unit", detail: "billing_expr:0" }]);
  const entry = {
    model_name: "a",
    quota_type: 0,
    billing_mode: "tiered_expr",
    billing_expr: "p * 2 + c * 8",
  };
  expect(readSource("pricing", JSON.stringify({ data: [entry] }), 0).rows.get("a")).toEqual(flat(2, 8));
});
