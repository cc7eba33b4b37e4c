// An explained charge adds up as it is shown: whoever sums the written amounts gets the written total, to the last digit.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { costRows } from "../../islands/screens/log/cost-rows.ts";
import type { CostRow } from "../../islands/screens/log/cost-rows.ts";
import { explainCost } from "../../src/shared/cost.ts";

const DECIMALS = 10;

/** The written amount as a whole number of 10^-10. */
function scaled(text: string): bigint {
  const [, sign = "", whole = "0", fraction = ""] = /^(−?)\$?([\d,]+)(?:\.(\d+))?$/.exec(text) ?? [];
  const value = BigInt(whole.replaceAll(",", "") + fraction.padEnd(DECIMALS, "0"));
  return sign === "" ? value : -value;
}

function expectToAddUp(rows: readonly CostRow[]): void {
  const addends = rows.filter(({ kind }) => kind !== "subtotal" && kind !== "total");
  const total = rows.at(-1);
  expect(total?.kind).toBe("total");
  expect(addends.reduce((sum, { text }) => sum + scaled(text), 0n)).toBe(scaled(total?.text ?? ""));
  const places = rows.map(({ text }) => text.split(".")[1]?.length ?? 0);
  expect(new Set(places).size).toBe(1);
}

const tokens = fc.integer({ min: 0, max: 2_000_000 });
const ratio = fc.double({ min: 0, max: 40, noNaN: true });
const inputs = fc.record({
  fresh: tokens,
  cacheRead: tokens,
  output: tokens,
  modelRatio: ratio,
  completionRatio: ratio,
  cacheRatio: ratio,
  groupRatio: fc.oneof(fc.constant(1), ratio),
  webSearchCalls: fc.integer({ min: 0, max: 9 }),
  webSearchPrice: fc.constant(10),
  rounding: fc.constantFrom("half-away" as const, "floor" as const),
  quotaCap: fc.option(fc.integer({ min: 0, max: 10_000 }), { nil: undefined }),
});

test("any charge adds up, in money and in units", () => {
  fc.assert(
    fc.property(inputs, fc.constantFrom(500_000, 1_000_000, 777, undefined), (input, unitsPerDollar) => {
      const sum = explainCost({ ...input, ...(unitsPerDollar ? { quotaPerUnit: unitsPerDollar } : {}) });
      expectToAddUp(costRows(sum, sum.quota, { unitsPerDollar }));
    }),
  );
});

test("amounts beyond what doubles count to the last decimal still add up", () => {
  const input = {
    fresh: 0,
    cacheRead: 1_264_918,
    output: 0,
    modelRatio: 35.4669472907331,
    completionRatio: 0,
    cacheRatio: 39.999999390428016,
    groupRatio: 39.99999999999939,
    webSearchCalls: 8,
    webSearchPrice: 10,
    quotaPerUnit: 777,
  };
  const sum = explainCost(input);
  expectToAddUp(costRows(sum, sum.quota, { unitsPerDollar: 777 }));
});

test("half a unit that rounds up has a line of its own", () => {
  // 3 × 1.5 + 2 × 3 = 10.5 units, charged 11.
  const sum = explainCost({ fresh: 3, output: 2, modelRatio: 1.5, completionRatio: 2 });
  const shown = (unitsPerDollar: number | undefined) =>
    costRows(sum, sum.quota, { unitsPerDollar }).map(({ kind, text }) => [kind, text]);
  expect(shown(500_000)).toEqual([
    ["line", "$0.000009"],
    ["line", "$0.000012"],
    ["rounding", "$0.000001"],
    ["total", "$0.000022"],
  ]);
  expect(shown(undefined)).toEqual([
    ["line", "4.5"],
    ["line", "6.0"],
    ["rounding", "0.5"],
    ["total", "11.0"],
  ]);
});

test("a group's ratio, the least charge and a cap are steps of their own", () => {
  const kinds = explainedKinds;
  expect(kinds({ fresh: 1000, modelRatio: 1, groupRatio: 0.8 })).toEqual([
    "line",
    "subtotal",
    "group",
    "total",
  ]);
  expect(kinds({ fresh: 1000, modelRatio: 1, quotaCap: 400 })).toEqual(["line", "cap", "total"]);
  const least = kinds({ output: 5, modelRatio: 1, completionRatio: 0 });
  expect(least).toEqual(["line", "minimum", "total"]);
});

function explainedKinds(input: Parameters<typeof explainCost>[0], charged?: number): CostRow["kind"][] {
  const sum = explainCost(input);
  return costRows(sum, charged ?? sum.quota, { unitsPerDollar: undefined }).map(({ kind }) => kind);
}
