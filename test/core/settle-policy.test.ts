// The table of charges: one test per cell, with the expected rule written by hand.
import { expect, test } from "bun:test";
import { CHARGE_TABLE, decideCharge, isAbsurdCount } from "../../src/core/settle-policy.ts";
import type { ChargeRule, EndReason, TokensSeen, UsageKnown } from "../../src/core/settle-policy.ts";
import { MAX_TOKEN_COUNT } from "../../src/shared/usage.ts";

const CELLS: [EndReason, UsageKnown, TokensSeen, ChargeRule][] = [
  ["completed", "reported", "none", "reported"],
  ["completed", "reported", "some", "reported"],
  ["completed", "missing", "none", "estimate"],
  ["completed", "missing", "some", "estimate"],
  ["completed", "absurd", "none", "estimate"],
  ["completed", "absurd", "some", "estimate"],
  ["client-gone", "reported", "none", "reported"],
  ["client-gone", "reported", "some", "reported"],
  ["client-gone", "missing", "none", "release"],
  ["client-gone", "missing", "some", "estimate"],
  ["client-gone", "absurd", "none", "release"],
  ["client-gone", "absurd", "some", "estimate"],
  ["upstream-error", "reported", "none", "release"],
  ["upstream-error", "reported", "some", "release"],
  ["upstream-error", "missing", "none", "release"],
  ["upstream-error", "missing", "some", "release"],
  ["upstream-error", "absurd", "none", "release"],
  ["upstream-error", "absurd", "some", "release"],
  ["upstream-cut", "reported", "none", "reported"],
  ["upstream-cut", "reported", "some", "reported"],
  ["upstream-cut", "missing", "none", "release"],
  ["upstream-cut", "missing", "some", "estimate"],
  ["upstream-cut", "absurd", "none", "release"],
  ["upstream-cut", "absurd", "some", "estimate"],
  ["upstream-stall", "reported", "none", "reported"],
  ["upstream-stall", "reported", "some", "reported"],
  ["upstream-stall", "missing", "none", "release"],
  ["upstream-stall", "missing", "some", "estimate"],
  ["upstream-stall", "absurd", "none", "release"],
  ["upstream-stall", "absurd", "some", "estimate"],
  ["error-in-stream", "reported", "none", "reported"],
  ["error-in-stream", "reported", "some", "reported"],
  ["error-in-stream", "missing", "none", "release"],
  ["error-in-stream", "missing", "some", "estimate"],
  ["error-in-stream", "absurd", "none", "release"],
  ["error-in-stream", "absurd", "some", "estimate"],
  ["malformed", "reported", "none", "reported"],
  ["malformed", "reported", "some", "reported"],
  ["malformed", "missing", "none", "release"],
  ["malformed", "missing", "some", "estimate"],
  ["malformed", "absurd", "none", "release"],
  ["malformed", "absurd", "some", "estimate"],
  ["refusal", "reported", "none", "release"],
  ["refusal", "reported", "some", "release"],
  ["refusal", "missing", "none", "release"],
  ["refusal", "missing", "some", "release"],
  ["refusal", "absurd", "none", "release"],
  ["refusal", "absurd", "some", "release"],
];

test.each(CELLS)("%s with usage %s and %s tokens seen: %s", (end, usage, tokens, rule) => {
  expect(decideCharge({ end, usage, tokens }).rule).toBe(rule);
});

test("the cells above are the whole table", () => {
  const known = new Set(CELLS.map(([end, usage, tokens]) => `${end} ${usage} ${tokens}`));
  const all = Object.entries(CHARGE_TABLE).flatMap(([end, row]) =>
    Object.entries(row).flatMap(([usage, cells]) =>
      Object.keys(cells).map((tokens) => `${end} ${usage} ${tokens}`),
    ),
  );
  expect(all.toSorted()).toEqual([...known].toSorted());
});

test("numbers that cannot be true are not believed", () => {
  for (const value of [-1, Number.NaN, Infinity, 1e309, MAX_TOKEN_COUNT + 1, "7"]) {
    expect(isAbsurdCount(value, MAX_TOKEN_COUNT)).toBe(true);
  }
  for (const value of [0, 1, MAX_TOKEN_COUNT, undefined, null])
    expect(isAbsurdCount(value, MAX_TOKEN_COUNT)).toBe(false);
});
