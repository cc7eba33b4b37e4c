// How much is held back for a call, as arithmetic: never more than there is, never less than serves, never a unit short.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  coveredTokens,
  firstHold,
  FLOOR_TOKENS,
  LEAST_TOKENS,
  limitedHold,
  limitToSend,
  mostTokens,
  ratesOf,
  unitsFor,
  UNKNOWN_MAX_OUTPUT,
  UNKNOWN_MAX_SENT,
  USUAL_OUTPUT,
} from "../../../src/core/prices/holds.ts";
import type { HoldTerms } from "../../../src/core/prices/holds.ts";
import { freezePrice } from "../../../src/core/prices/prices.ts";
import { price, tables } from "./support.ts";

const TERMS: HoldTerms = {
  fixedUnits: 100,
  unsureUnits: 0,
  inputRate: 1,
  outputRate: 4,
  choices: 1,
  clientLimit: undefined,
  maxOutput: undefined,
  thinkingBudget: 0,
  leastUnits: 500,
};

/** What the ledger does with a wish: all of it, what there is of it, or a refusal. */
function reserved({ amount, least }: { amount: number; least: number }, available: number) {
  const given = Math.max(least, Math.min(amount, available));
  return available <= 0 || given > available ? undefined : given;
}

describe("a call whose answer is bounded by a limit that is sent", () => {
  test("far from the balance the whole is held and nothing is sent", () => {
    const wanted = limitedHold(TERMS, 10_000_000, true);
    expect(wanted.amount).toBe(100 + 4 * UNKNOWN_MAX_OUTPUT);
    expect(limitToSend(TERMS, wanted.amount)).toBeUndefined();
    const named = { ...TERMS, clientLimit: 50 };
    expect(limitedHold(named, 10_000_000, true).amount).toBe(300);
    expect(limitToSend(named, 300)).toBeUndefined();
  });

  test("what a model can answer at most is held for a client that asks for more", () => {
    const known = { ...TERMS, clientLimit: 128_000, maxOutput: 32_000 };
    expect(limitedHold(known, 10_000_000, true).amount).toBe(100 + 4 * 32_000);
  });

  test("past a quarter of what is available, a quarter is held and its limit sent", () => {
    const terms = { ...TERMS, clientLimit: 128_000, maxOutput: 64_000 };
    const { amount } = limitedHold(terms, 200_000, true);
    expect(amount).toBe(50_000);
    expect(limitToSend(terms, amount)).toBe((50_000 - 100) / 4);
  });

  test("a model whose longest answer is unknown is sent 4,096 at most", () => {
    const { amount } = limitedHold({ ...TERMS, clientLimit: 128_000 }, 100_000, true);
    expect(amount).toBe(100 + 4 * UNKNOWN_MAX_SENT);
    expect(limitToSend({ ...TERMS, clientLimit: 128_000 }, amount)).toBe(UNKNOWN_MAX_SENT);
  });

  test("a quarter that pays less than 1,024 tokens becomes 1,024, then what there is, then sixteen, then nothing", () => {
    const terms = { ...TERMS, clientLimit: 128_000 };
    const limitAt = (available: number) => {
      const amount = reserved(limitedHold(terms, available, true), available);
      return amount === undefined ? undefined : limitToSend(terms, amount);
    };
    expect(limitAt(8000)).toBe(FLOOR_TOKENS);
    expect(limitAt(2000)).toBe(475);
    expect(limitAt(100 + 4 * LEAST_TOKENS)).toBe(LEAST_TOKENS);
    expect(limitAt(100 + 4 * LEAST_TOKENS - 1)).toBeUndefined();
    expect(reserved(limitedHold(terms, 163, true), 163)).toBeUndefined();
  });

  test("a fixed thinking budget comes on top of what an answer needs", () => {
    const terms = { ...TERMS, clientLimit: 32_000, thinkingBudget: 10_000 };
    const { amount, least } = limitedHold(terms, 60_000, true);
    expect(limitToSend(terms, amount)).toBe(10_000 + FLOOR_TOKENS);
    expect(least).toBe(100 + 4 * (10_000 + LEAST_TOKENS));
  });

  test("what cannot be limited is held whole or refused", () => {
    const wanted = limitedHold({ ...TERMS, clientLimit: 1000 }, 2000, false);
    expect(wanted).toEqual({ amount: 4100, least: 4100 });
    expect(reserved(wanted, 2000)).toBeUndefined();
  });

  test("several answers are several times the tokens", () => {
    const terms = { ...TERMS, clientLimit: 100, choices: 3 };
    expect(limitedHold(terms, 1_000_000, true).amount).toBe(100 + 3 * 400);
    expect(coveredTokens(terms, 1300)).toBe(300);
  });

  test("the least hold of the options is held where it is there, and never a ground to refuse", () => {
    const vectors = { ...TERMS, outputRate: 0, fixedUnits: 20 };
    expect(limitedHold(vectors, 1_000_000, true)).toEqual({ amount: 500, least: 20 });
    expect(reserved(limitedHold(vectors, 30, true), 30)).toBe(30);
    expect(reserved(firstHold({ ...TERMS, leastUnits: 1e9 }, 5000, 500), 5000)).toBe(5000);
    expect(firstHold({ ...TERMS, clientLimit: 10 }, 5000, 500).amount).toBe(140);
  });

  test("what costs nothing holds nothing and sends no limit", () => {
    const free = { ...TERMS, fixedUnits: 0, outputRate: 0, leastUnits: 0 };
    expect(limitedHold(free, 10, true)).toEqual({ amount: 0, least: 0 });
    expect(limitToSend(free, 0)).toBeUndefined();
    expect(firstHold(free, 10, 500)).toEqual({ amount: 0, least: 0 });
  });
});

test("a stream holds the usual answer first, no more than the client's limit, no less than sixteen tokens", () => {
  expect(firstHold(TERMS, 1_000_000, USUAL_OUTPUT)).toEqual({ amount: 2100, least: 164 });
  expect(firstHold({ ...TERMS, clientLimit: 100 }, 1_000_000, 500)).toEqual({ amount: 500, least: 164 });
  expect(reserved(firstHold(TERMS, 300, 500), 300)).toBe(300);
  expect(reserved(firstHold(TERMS, 163, 500), 163)).toBeUndefined();
});

test("the dearest prices that may apply are held: cache writes, pictures, sound in and out, the group", () => {
  const plain = { cacheWrite: "none", audioInput: false, imageInput: false, audioOutput: false } as const;
  const writes = { ...price("gpt-4o"), cacheWriteRatio: 1.25, cacheWrite1hRatio: 2 };
  const ratio = { groupRatio: 2, userGroupRatio: undefined, userGroup: undefined };
  const claude = freezePrice("m", writes, ratio, { tables, revision: "r" });
  const { modelRatio, completionRatio, audioRatio, audioCompletionRatio } = claude.ratios;
  expect(ratesOf(claude, plain)).toEqual({
    text: modelRatio * 2,
    media: modelRatio * 2,
    output: modelRatio * 2 * completionRatio,
  });
  expect(ratesOf(claude, { ...plain, cacheWrite: "short" }).text).toBe(modelRatio * 2 * 1.25);
  expect(ratesOf(claude, { ...plain, cacheWrite: "long" }).text).toBe(modelRatio * 2 * 2);
  expect(ratesOf(claude, { ...plain, audioInput: true }).media).toBe(modelRatio * 2 * audioRatio);
  expect(ratesOf(claude, { ...plain, audioOutput: true }).output).toBe(
    modelRatio * 2 * audioRatio * audioCompletionRatio,
  );
});

describe("whatever the prices, limits and balances", () => {
  const terms = fc.record({
    fixedUnits: fc.double({ min: 0, max: 1e6, noNaN: true }),
    unsureUnits: fc.constant(0),
    outputRate: fc.oneof(fc.constant(0), fc.double({ min: 1e-3, max: 1e4, noNaN: true })),
    inputRate: fc.constant(1),
    choices: fc.integer({ min: 1, max: 128 }),
    clientLimit: fc.option(fc.integer({ min: 1, max: 1_073_741_823 }), { nil: undefined }),
    maxOutput: fc.option(fc.integer({ min: 256, max: 200_000 }), { nil: undefined }),
    thinkingBudget: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 64_000 })),
    leastUnits: fc.double({ min: 0, max: 1e6, noNaN: true }),
  });
  const available = fc.integer({ min: -1000, max: 1_000_000_000 });

  test("a limit that is sent is paid by what was held, lies below the client's, and serves", () => {
    fc.assert(
      fc.property(terms, available, (given, units) => {
        const amount = reserved(limitedHold(given, units, true), units);
        if (amount === undefined) return;
        expect(amount).toBeLessThanOrEqual(units);
        const limit = limitToSend(given, amount);
        if (limit === undefined) {
          // Everything that the answer may cost is held.
          expect(amount + 1e-6).toBeGreaterThanOrEqual(
            given.outputRate === 0
              ? given.fixedUnits
              : given.fixedUnits + mostTokens(given) * given.outputRate * given.choices,
          );
          return;
        }
        expect(limit).toBeLessThan(mostTokens(given));
        expect(limit).toBeGreaterThanOrEqual(
          Math.min(mostTokens(given), given.clientLimit ?? Infinity, given.thinkingBudget + LEAST_TOKENS),
        );
        expect(unitsFor(given, limit)).toBeLessThanOrEqual(amount);
      }),
      { numRuns: 2000 },
    );
  });

  test("a call that would be served alone is served beside a quarter, too: a wish never exceeds what it needs", () => {
    fc.assert(
      fc.property(terms, available, (given, units) => {
        for (const wanted of [limitedHold(given, units, true), firstHold(given, units, USUAL_OUTPUT)]) {
          expect(Number.isSafeInteger(wanted.amount) && wanted.amount >= 0).toBe(true);
          expect(wanted.least).toBeLessThanOrEqual(Math.max(wanted.amount, wanted.least));
          expect(wanted.least).toBeGreaterThanOrEqual(Math.floor(given.fixedUnits));
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("tokens that a first hold covers cost no more than it", () => {
    fc.assert(
      fc.property(terms, available, fc.integer({ min: 500, max: 50_000 }), (given, units, usual) => {
        const amount = reserved(firstHold(given, units, usual), units);
        if (amount === undefined || given.outputRate === 0) return;
        const tokens = coveredTokens(given, amount);
        expect(given.fixedUnits + tokens * given.outputRate).toBeLessThanOrEqual(amount * (1 + 1e-9) + 1e-6);
      }),
      { numRuns: 2000 },
    );
  });
});
