// The three-way merge of prices: each case, and everything that is never taken without a person's tick.
import { describe, expect, test } from "bun:test";
import { mergePrices } from "../../../src/core/prices/merge.ts";
import type { MergeInputs } from "../../../src/core/prices/merge.ts";
import type { PriceRow } from "../../../src/shared/price-row.ts";
import type { SyncCase, SyncGuard } from "../../../src/shared/price-sync.ts";

const A: PriceRow = { in: 2, out: 8 };
const B: PriceRow = { in: 3, out: 12 };
const C: PriceRow = { in: 2.5, out: 10 };

interface Named {
  base?: PriceRow;
  ours?: PriceRow;
  theirs?: PriceRow;
}

function merge({ base, ours, theirs }: Named, more: Partial<MergeInputs> = {}) {
  const rows = (row: PriceRow | undefined) => new Map(row ? [["m", row]] : []);
  return mergePrices({
    base: rows(base),
    ours: rows(ours),
    theirs: rows(theirs),
    isServed: () => true,
    ...more,
  });
}

describe("cases", () => {
  const cases: [string, Named, SyncCase | undefined, boolean][] = [
    ["unchanged here, changed there: offered, ticked", { base: A, ours: A, theirs: B }, "newer", true],
    ["the operator's own stays", { base: A, ours: B, theirs: C }, "own", false],
    ["the operator's own stays where the source is as it was", { base: A, ours: B, theirs: A }, "own", false],
    [
      "a price that was never taken from a source is the operator's own",
      { ours: A, theirs: B },
      "own",
      false,
    ],
    ["a model without a price gets one", { theirs: A }, "new", true],
    ["what the operator took away stays away", { base: A, theirs: A }, "removed", false],
    ["also where the source has another price by now", { base: A, theirs: B }, "removed", false],
    ["what the source has no longer is kept", { base: A, ours: A }, "gone", false],
    ["both came to the same price", { base: A, ours: B, theirs: B }, undefined, false],
    [
      "rounded to six decimals elsewhere is the same",
      { ours: A, theirs: { in: 2.000001, out: 8 } },
      undefined,
      false,
    ],
    ["nothing changed", { base: A, ours: A, theirs: A }, undefined, false],
  ];
  test.each(cases)("%s", (_, named, expected, ticked) => {
    const [line, ...rest] = merge(named);
    expect(rest).toEqual([]);
    expect([line?.case, line?.ticked ?? false]).toEqual([expected, ticked]);
  });

  test("a new model is ticked only where an enabled channel serves it", () => {
    expect(merge({ theirs: A }, { isServed: () => false })[0]).toMatchObject({ case: "new", ticked: false });
  });
  test("names are exact: another spelling is another model", () => {
    const lines = mergePrices({
      base: new Map([["m", A]]),
      ours: new Map([["m", A]]),
      theirs: new Map([["openai/m", B]]),
      isServed: () => false,
    });
    expect(lines.map(({ name, case: kind }) => [name, kind])).toEqual([
      ["openai/m", "new"],
      ["m", "gone"],
    ]);
  });
});

describe("never without a tick", () => {
  const guarded: [string, PriceRow, PriceRow, SyncGuard[]][] = [
    ["more than double", A, { in: 4.1, out: 8 }, ["above_double"]],
    ["less than half", A, { in: 2, out: 3.9 }, ["below_half"]],
    ["0.8 typed as 8", { in: 0.8, out: 1 }, { in: 8, out: 1 }, ["above_double"]],
    ["a cache that was priced like input", A, { ...A, cache_read: 0.2 }, ["below_half"]],
    ["only above a threshold", A, { ...A, when: [{ over: 100, set: { in: 5 } }] }, ["above_double"]],
    ["a factor at some hours", A, { ...A, when: [{ hours: ["00:00-01:00"], times: 0.1 }] }, ["below_half"]],
    [
      "a tier that stays below another",
      {
        ...A,
        when: [
          { over: 100, set: { in: 3 } },
          { tier: "priority", times: 20 },
        ],
      },
      {
        ...A,
        when: [
          { over: 100, set: { in: 30 } },
          { tier: "priority", times: 20 },
        ],
      },
      ["above_double"],
    ],
    [
      "two entries that double it together",
      {
        ...A,
        when: [
          { over: 100, times: 2 },
          { tier: "priority", times: 1.5 },
        ],
      },
      {
        ...A,
        when: [
          { over: 100, times: 2 },
          { tier: "priority", times: 1.5 },
          { over: 100, tier: "priority", times: 2.1 },
        ],
      },
      ["above_double"],
    ],
    [
      "a factor at night that slips",
      { ...A, when: [{ hours: ["22:00-06:00"], days: ["sat"], tz: "Asia/Shanghai", times: 0.5 }] },
      { ...A, when: [{ hours: ["22:00-06:00"], days: ["sat"], tz: "Asia/Shanghai", times: 0.05 }] },
      ["below_half"],
    ],
    [
      "free above a threshold",
      { ...A, when: [{ over: 100, set: { in: 3 } }] },
      { ...A, when: [{ over: 100, times: 0 }] },
      ["below_half", "free"],
    ],
    ["a tool", { ...A, tools: { web_search: 10 } }, { ...A, tools: { web_search: 100 } }, ["above_double"]],
    ["a tool for nothing", A, { ...A, tools: { web_search: 0 } }, ["below_half"]],
    ["to free", A, { in: 0, out: 0 }, ["below_half", "free"]],
    ["from free", { in: 0, out: 0 }, A, ["above_double", "free"]],
    ["from the token to the call", A, { call: 0.01 }, ["other_kind"]],
    ["from the call to the token", { call: 0.01 }, A, ["other_kind"]],
    ["from the call to the second", { call: 0.1 }, { call: 0.1, unit: "second" }, ["other_kind"]],
    ["a dearer call", { call: 0.01 }, { call: 0.03 }, ["above_double"]],
    ["unpriced elsewhere", { in: 50, out: 50 }, { in: 75, out: 75 }, ["unpriced_elsewhere"]],
  ];
  test.each(guarded)("%s", (_, ours, theirs, guards) => {
    expect(merge({ base: ours, ours, theirs })[0]).toMatchObject({ case: "newer", guards, ticked: false });
  });
  test("exactly double and exactly half pass", () => {
    expect(merge({ base: A, ours: A, theirs: { in: 4, out: 4 } })[0]).toMatchObject({
      guards: [],
      ticked: true,
    });
  });
  test("a tier that follows its list price within bounds passes", () => {
    const tiers = (price: number): PriceRow => ({ in: 1, out: 4, when: [{ over: 100, set: { in: price } }] });
    expect(merge({ base: tiers(2), ours: tiers(2), theirs: tiers(4) })[0]).toMatchObject({ guards: [] });
  });
  test("a new model for nothing, and one at the price of models without one", () => {
    expect(merge({ theirs: { in: 0, out: 0 } })[0]).toMatchObject({ guards: ["free"], ticked: false });
    expect(merge({ theirs: { in: 75 } })[0]).toMatchObject({ guards: ["unpriced_elsewhere"], ticked: false });
  });
  test("ten times off every other source; one that agrees is enough", () => {
    const others = (...rows: PriceRow[]) => ({ others: rows.map((row) => new Map([["m", row]])) });
    const far = { in: 0.1, out: 1 };
    expect(merge({ theirs: A }, others(far, far))[0]).toMatchObject({ guards: ["outlier"], ticked: false });
    expect(merge({ theirs: A }, others(far, B))[0]).toMatchObject({ guards: [], ticked: true });
  });
});

test("each entry's hours are looked at once a moment, however many entries it may act with", () => {
  let asked = 0;
  const two = (value: number) => String(value).padStart(2, "0");
  const rowOf = (least: number): PriceRow => ({
    in: 1,
    out: 2,
    when: Array.from({ length: 16 }, (_, at) => {
      const hours = Array.from(
        { length: 16 },
        (_each, hour) => `${two(hour)}:${two(at)}-${two(hour)}:${two(at + 1)}`,
      );
      const rule = { days: ["sun" as const], tz: "America/New_York", over: least + at, set: { in: at + 1 } };
      return Object.defineProperty(rule, "hours", {
        enumerable: true,
        get() {
          asked += 1;
          return hours;
        },
      });
    }),
  });
  // The same entries on both sides, then others.
  for (const theirs of [rowOf(0), rowOf(100)]) {
    asked = 0;
    expect(merge({ ours: rowOf(0), theirs: { ...theirs, in: 1.5 } })).toHaveLength(1);
    expect(asked).toBeLessThan(20_000);
  }
});
