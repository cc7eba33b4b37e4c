// A replay is exact: at unchanged prices a logged call costs what its row says, at others what it would have been charged.
// Rows of other software, old estimates and refunds stay within what is said of them.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { costOf, freezePrice, groupRatioOf, lookupPrice } from "../../../src/core/prices/prices.ts";
import type { CallFacts, CallPrice, Charge, PriceTables } from "../../../src/core/prices/prices.ts";
import { comparePrices, replay } from "../../../src/core/prices/replay.ts";
import type { LoggedCall } from "../../../src/core/prices/replay.ts";
import type { PriceRules } from "../../../src/shared/price-row.ts";
import { completionTokens, emptyUsage, promptTokens } from "../../../src/shared/usage.ts";
import type { Usage } from "../../../src/shared/usage.ts";
import { tables, usage } from "./support.ts";

const ratio = fc.oneof(
  fc.constantFrom(0, 0.075, 1.25, 2, 37.5),
  fc.double({ min: 0, max: 100, noNaN: true }),
  fc.double({ min: 0, max: 1e-5, noNaN: true }),
);
const mapOf = (...names: string[]): fc.Arbitrary<Record<string, number>> =>
  fc.dictionary(fc.constantFrom(...names), ratio);
const NAMES = ["gpt-4o", "claude-x", "gpt-4-gizmo-*", "gpt-realtime"];
const dollars = fc.double({ min: 0, max: 50, noNaN: true });
/** Rules by length, tier and factor, and prices that no ratio can say. */
const anyRules: fc.Arbitrary<Record<string, PriceRules>> = fc.dictionary(
  fc.constantFrom(...NAMES),
  fc.record(
    {
      thinking: dollars,
      tools: fc.dictionary(fc.constantFrom("web_search", "file_search"), dollars),
      when: fc.array(
        fc.record(
          {
            over: fc.constantFrom(1000, 100_000, 272_000),
            tier: fc.constantFrom("flex", "priority"),
            set: fc.record({ in: dollars, out: dollars }, { requiredKeys: [] }),
            times: fc.constantFrom(0.5, 2),
          },
          { requiredKeys: ["over"] },
        ),
        { maxLength: 3 },
      ),
    },
    { requiredKeys: [] },
  ),
) as fc.Arbitrary<Record<string, PriceRules>>;
const anyTables: fc.Arbitrary<PriceTables> = fc.record({
  modelRatio: fc.record(Object.fromEntries(NAMES.map((name) => [name, ratio]))),
  modelPrice: mapOf(...NAMES),
  completionRatio: mapOf(...NAMES),
  cacheRatio: mapOf(...NAMES),
  createCacheRatio: mapOf(...NAMES),
  imageRatio: mapOf(...NAMES),
  groupRatio: mapOf("default", "vip"),
  groupGroupRatio: fc.dictionary(fc.constantFrom("default", "staff"), mapOf("default", "vip", "retired")),
  createCache1hRatio: mapOf(...NAMES),
  audioRatio: mapOf(...NAMES),
  audioCompletionRatio: mapOf(...NAMES),
  priceRules: anyRules,
  toolPrices: mapOf("web_search", "file_search", "web_search:gpt-4*"),
  quotaPerUnit: fc.constantFrom(500_000, 1000, 1_000_000, 333_333),
});
const count = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 200_000 }));
const anyUsage: fc.Arbitrary<Usage> = fc.record({
  input: fc.record({
    fresh: count,
    cacheRead: count,
    cacheWrite5m: count,
    cacheWrite1h: count,
    audio: count,
    image: count,
  }),
  output: fc.record({ text: count, thinking: count, audio: count, image: count }),
  calls: fc.record({ webSearch: fc.integer({ min: 0, max: 3 }), fileSearch: fc.integer({ min: 0, max: 3 }) }),
}) as fc.Arbitrary<Usage>;
const anyFacts: fc.Arbitrary<CallFacts> = fc.record(
  {
    surface: fc.constantFrom("messages" as const),
    callCount: fc.integer({ min: 0, max: 4 }),
    callFactor: fc.constantFrom(0.4, 1, 3),
    searchSize: fc.constantFrom("low" as const, "medium" as const, "high" as const),
    servedTier: fc.constantFrom("flex", "priority"),
    quotaCap: fc.constant(0),
  },
  { requiredKeys: [] },
);

/** The price as the price book freezes it. */
function frozen(of: PriceTables, model: string, group: string, userGroup = group): CallPrice {
  const ratios = lookupPrice(of, model);
  if (!ratios) throw new Error(`no price for ${model}`);
  const at = { tables: of, revision: "0" };
  return freezePrice(model, ratios, groupRatioOf(of, group, userGroup), at);
}

/** The row as it comes back from the log: JSON, with the columns beside it. */
function rowOf(call: {
  model: string;
  group: string;
  usage: Usage;
  charge: Charge;
  quota?: number;
}): LoggedCall {
  return {
    model: call.model,
    group: call.group,
    quota: call.quota ?? call.charge.quota,
    prompt_tokens: promptTokens(call.usage),
    completion_tokens: completionTokens(call.usage),
    startMs: 0,
    other: JSON.parse(JSON.stringify(call.charge.other)) as Record<string, unknown>,
  };
}

const model = fc.constantFrom("gpt-4o", "claude-x", "gpt-4-gizmo-abc");
const group = fc.constantFrom("default", "vip", "retired");
/** Whose callers may pay a ratio of their own. */
const userGroup = fc.constantFrom("default", "vip", "staff");

describe("replay", () => {
  test("of unchanged prices is the row's charge, to the unit, for every call since prices are frozen", () => {
    fc.assert(
      fc.property(
        anyTables,
        model,
        group,
        userGroup,
        anyUsage,
        anyFacts,
        (of, name, used, whose, counts, facts) => {
          const charge = costOf(frozen(of, name, used, whose), counts, facts);
          const again = replay(
            rowOf({ model: name, group: used, usage: counts, charge }),
            comparePrices(of, of),
          );
          expect(again).toMatchObject({
            trust: "exact",
            old: charge.quota,
            new: charge.quota,
            isLost: false,
          });
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("at other prices is what the call would have been charged at them", () => {
    fc.assert(
      fc.property(
        anyTables,
        anyTables,
        model,
        group,
        userGroup,
        anyUsage,
        anyFacts,
        (of, next, name, used, whose, counts, facts) => {
          const charge = costOf(frozen(of, name, used, whose), counts, facts);
          const then = costOf(frozen(next, name, used, whose), counts, facts);
          const again = replay(
            rowOf({ model: name, group: used, usage: counts, charge }),
            comparePrices(of, next),
          );
          // Prices of tools are no part of the tables: they are the row's own.
          expect(again).toMatchObject({ trust: "exact", old: charge.quota, new: then.quota, isLost: false });
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("a turn of a session is priced by the name its channel calls, and rounds as sessions do", () => {
    fc.assert(
      fc.property(anyTables, anyUsage, (of, counts) => {
        const price = frozen(of, "gpt-realtime", "default");
        const charge = costOf(price, counts, {
          surface: "realtime",
          ...(price.ratios.callPrice === undefined ? {} : { rounding: "floor" as const }),
        });
        const row = rowOf({ model: "gpt-4o", group: "default", usage: counts, charge });
        row.other["upstream_model_name"] = "gpt-realtime";
        expect(replay(row, comparePrices(of, of))).toMatchObject({ trust: "exact", old: charge.quota });
      }),
      { numRuns: 500 },
    );
  });

  test("a task keeps its default price, or takes the one that it gets; a free one stays free", () => {
    const priced = { ...tables, modelPrice: { ...tables.modelPrice, mj_new: 0.3 } };
    const known = { ...frozen(tables, "gpt-4o", "default") };
    const ratios = { ...known.ratios, callPrice: 0.1 };
    const task = (facts: CallFacts) => {
      const charge = costOf({ ...known, ratios }, emptyUsage(), {
        rounding: "floor",
        isTask: true,
        ...facts,
      });
      return rowOf({ model: "mj_new", group: "default", usage: emptyUsage(), charge });
    };
    expect(replay(task({}), comparePrices(tables, tables))).toMatchObject({
      trust: "exact",
      old: 50_000,
      new: 50_000,
    });
    expect(replay(task({}), comparePrices(tables, priced))).toMatchObject({ old: 50_000, new: 150_000 });
    expect(replay(task({ quotaCap: 0 }), comparePrices(tables, priced))).toMatchObject({ old: 0, new: 0 });
  });

  test("what was given back costs nothing at any price", () => {
    const counts = usage({ fresh: 1000 }, { text: 100 });
    const charge = costOf(frozen(tables, "gpt-4o", "default"), counts);
    const row = rowOf({ model: "gpt-4o", group: "default", usage: counts, charge, quota: 0 });
    row.other["refunded"] = charge.quota;
    expect(replay(row, comparePrices(tables, tables))).toMatchObject({ old: 0, new: 0 });
  });

  test("an old estimate that its hold capped grows with the price, and says that it is approximate", () => {
    const row: LoggedCall = {
      model: "gpt-4o",
      group: "default",
      quota: 400,
      prompt_tokens: 1000,
      completion_tokens: 0,
      startMs: 0,
      other: { cost: { fresh: 1000, modelRatio: 1.25, completionRatio: 4, quotaCap: 400 } },
    };
    const doubled = { ...tables, modelRatio: { ...tables.modelRatio, "gpt-4o": 2.5 } };
    expect(replay(row, comparePrices(tables, doubled))).toMatchObject({
      trust: "approximate",
      old: 400,
      new: 800,
    });
  });

  test("a row of other software is read by its documented fields; one without figures is left to sums", () => {
    const documented: LoggedCall = {
      model: "gpt-4o",
      group: "default",
      quota: 1_625,
      prompt_tokens: 1000,
      completion_tokens: 100,
      startMs: 0,
      other: { model_ratio: 1.25, completion_ratio: 4, group_ratio: 1, cache_tokens: 200, cache_ratio: 0.5 },
    };
    expect(replay(documented, comparePrices(tables, tables))).toMatchObject({
      trust: "approximate",
      old: 1_625,
      new: 1_625,
    });
    expect(replay({ ...documented, other: {} }, comparePrices(tables, tables)).trust).toBe("unknown");
  });

  test("a model that loses its price costs nothing: its calls would be refused", () => {
    const counts = usage({ fresh: 1000 });
    const charge = costOf(frozen(tables, "gpt-4o", "default"), counts);
    const { "gpt-4o": _, ...modelRatio } = tables.modelRatio as Record<string, number>;
    const row = rowOf({ model: "gpt-4o", group: "default", usage: counts, charge });
    expect(replay(row, comparePrices(tables, { ...tables, modelRatio }))).toEqual({
      trust: "exact",
      old: 1250,
      new: 0,
      isLost: true,
      isUncertain: false,
    });
  });
});
