// Prices as they are typed, and what of them goes into the options: nothing guessed, nothing that stood there changed.
import { describe, expect, test } from "bun:test";
import { problemOf, savePrices, tablesOf } from "../../islands/lib/price-options.ts";
import type { PriceProblem, TypedPrice } from "../../islands/lib/price-options.ts";
import type { SentRequest } from "./render.tsx";
import { renderPart } from "./render.tsx";

const tokens = (input: string, output: string): TypedPrice => ({ isPerCall: false, input, output });
const perCall = (input: string): TypedPrice => ({ isPerCall: true, input, output: "" });

describe("typed prices", () => {
  test.each<[TypedPrice, PriceProblem | undefined]>([
    [tokens("", ""), undefined],
    [tokens("2.5", "10"), undefined],
    [tokens("$0.1", "＄.4"), undefined],
    [tokens("0", "0"), undefined],
    [perCall("0.04"), undefined],
    [tokens("2.5", ""), "price.bothMissing"],
    [tokens("", "3"), "price.bothMissing"],
    [tokens("two", "3"), "price.wrong"],
    [tokens("1", "-3"), "price.wrong"],
    [perCall("1e9"), "price.wrong"],
    [tokens("0", "3"), "price.freeInput"],
  ])("%j: %p", (price, problem) => {
    expect(problemOf(price)).toBe(problem);
  });

  test("become ratios of the site's unit, and what is empty or wrong stays out", () => {
    const prices = new Map([
      ["a", tokens("2.5", "10")],
      ["b", tokens("0.3", "0.1")],
      ["c", perCall("0.04")],
      ["free", tokens("0", "0")],
      ["empty", tokens("", "")],
      ["wrong", tokens("x", "1")],
    ]);
    expect(tablesOf(prices, 500_000)).toEqual({
      ModelRatio: { a: 1.25, b: 0.15, free: 0 },
      CompletionRatio: { a: 4, b: 0.333333333333, free: 1 },
      ModelPrice: { c: 0.04 },
    });
    expect(tablesOf(prices, 1_000_000).ModelRatio["a"]).toBe(2.5);
  });

  test("are added to what is set now, the multiple before the price itself; a price that somebody else has set stays", async () => {
    const island = renderPart(null, { user: { role: 100 } });
    island.answer("GET /api/option", {
      success: true,
      data: [
        { key: "ModelRatio", value: '{"old":7,"late":9}' },
        { key: "CompletionRatio", value: '{"old":2}' },
        { key: "ModelPrice", value: '{"one":1}' },
      ],
    });
    const put: unknown[] = [];
    island.answer("PUT /api/option", ({ body }: SentRequest) => {
      put.push(body);
      return { success: true };
    });
    expect(
      await savePrices(
        new Map([
          ["new", tokens("2", "8")],
          ["late", tokens("2", "8")],
        ]),
      ),
    ).toBe(2);
    expect(put).toEqual([
      { key: "CompletionRatio", value: '{"new":4,"late":4,"old":2}' },
      { key: "ModelRatio", value: '{"new":1,"late":9,"old":7}' },
    ]);
  });
});
