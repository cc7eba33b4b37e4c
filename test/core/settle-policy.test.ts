// The table of charges: one test per cell, with the expected rule written by hand.
import { expect, test } from "bun:test";
import {
  CHARGE_TABLE,
  decideCharge,
  isAbsurdCount,
  quotaCapOf,
  usageTrust,
} from "../../src/core/settle-policy.ts";
import type {
  ChargeNote,
  ChargeRule,
  EndReason,
  TokensSeen,
  UsageKnown,
} from "../../src/core/settle-policy.ts";
import { emptyUsage, MAX_TOKEN_COUNT } from "../../src/shared/usage.ts";
import en from "../../locales/en/failure.json" with { type: "json" };
import zh from "../../locales/zh/failure.json" with { type: "json" };

const CELLS: [EndReason, UsageKnown, TokensSeen, ChargeRule][] = [
  ["completed", "reported", "none", "reported"],
  ["completed", "reported", "some", "reported"],
  ["completed", "missing", "none", "release"],
  ["completed", "missing", "some", "estimate"],
  ["completed", "absurd", "none", "estimate"],
  ["completed", "absurd", "some", "estimate"],
  ["client-gone", "reported", "none", "reported"],
  ["client-gone", "reported", "some", "reported"],
  ["client-gone", "missing", "none", "release"],
  ["client-gone", "missing", "some", "estimate"],
  ["client-gone", "absurd", "none", "release"],
  ["client-gone", "absurd", "some", "estimate"],
  ["upstream-error", "reported", "none", "reported"],
  ["upstream-error", "reported", "some", "reported"],
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
  ["refusal", "reported", "none", "reported"],
  ["refusal", "reported", "some", "reported"],
  ["refusal", "missing", "none", "release"],
  ["refusal", "missing", "some", "estimate"],
  ["refusal", "absurd", "none", "release"],
  ["refusal", "absurd", "some", "estimate"],
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
  for (const value of [-1, Number.NaN, Infinity, MAX_TOKEN_COUNT + 1, "7"]) {
    expect(isAbsurdCount(value, MAX_TOKEN_COUNT)).toBe(true);
  }
  for (const value of [0, 1, MAX_TOKEN_COUNT, undefined, null])
    expect(isAbsurdCount(value, MAX_TOKEN_COUNT)).toBe(false);
});

const NOTES: [EndReason, UsageKnown, TokensSeen, ChargeNote][] = [
  ["completed", "reported", "some", ""],
  ["completed", "missing", "some", "note_usage_estimated"],
  ["completed", "missing", "none", "note_upstream_timeout"],
  ["completed", "absurd", "some", "note_usage_absurd"],
  ["completed", "absurd", "none", "note_usage_absurd"],
  ["client-gone", "reported", "some", "note_client_gone"],
  ["client-gone", "missing", "none", "note_client_gone"],
  ["client-gone", "absurd", "none", "note_usage_absurd_released"],
  ["upstream-error", "missing", "none", "note_request_failed"],
  ["upstream-error", "absurd", "some", "note_usage_absurd_released"],
  ["upstream-cut", "missing", "some", "note_request_failed"],
  ["upstream-stall", "missing", "some", "note_upstream_timeout"],
  ["error-in-stream", "reported", "some", "note_request_failed"],
  ["malformed", "missing", "none", "note_request_failed"],
  ["refusal", "reported", "none", "note_request_failed"],
];

test.each(NOTES)("%s with usage %s and %s tokens seen is logged with '%s'", (end, usage, tokens, note) => {
  expect(decideCharge({ end, usage, tokens }).note).toBe(note);
});

test("every note of the table has a sentence in both languages", () => {
  for (const [end, usage, tokens] of CELLS) {
    const { note } = decideCharge({ end, usage, tokens });
    if (note !== "") expect([Object.hasOwn(en, note), Object.hasOwn(zh, note)]).toEqual([true, true]);
  }
});

test("an estimate is capped by what was held back, a release charges nothing, a report is not capped", () => {
  expect([quotaCapOf("estimate", 300), quotaCapOf("release", 300), quotaCapOf("reported", 300)]).toEqual([
    300,
    0,
    undefined,
  ]);
  expect([quotaCapOf("estimate", 0), quotaCapOf("release", 0)]).toEqual([undefined, 0]);
});

function reported(raw: unknown, fresh = 10) {
  const usage = emptyUsage();
  usage.input.fresh = fresh;
  usage.raw = raw;
  return usage;
}

test.each<[string, unknown]>([
  ["a negative count", { prompt_tokens: -1 }],
  ["a count beyond any context", { completion_tokens: 1e12 }],
  ["a count that overflowed", JSON.parse('{"output_tokens":1e309}')],
  ["a text for a count", { input_tokens: "12" }],
  ["an absurd detail", { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: -4 } }],
  ["an absurd cache write", { cache_creation: { ephemeral_1h_input_tokens: 9e9 } }],
  ["an absurd count of Gemini's", { promptTokensDetails: [{ modality: "TEXT", tokenCount: -7 }] }],
  ["an absurd total of Gemini's", { candidatesTokenCount: 1e10 }],
])("%s makes the whole report absurd", (_, raw) => {
  expect(usageTrust(reported(raw))).toBe("absurd");
});

test("times, prices and rates beside the counts are not judged", () => {
  const raw = {
    prompt_tokens: 5,
    total_time: -1,
    cost: -0.5,
    tokens_per_second: 1e12,
    prompt_tokens_details: null,
  };
  expect(usageTrust(reported(raw))).toBe("reported");
});

test("a report without a single token, one that was counted here, and none at all are no reports", () => {
  expect(usageTrust(null)).toBe("missing");
  expect(usageTrust(reported({ prompt_tokens: 0 }, 0))).toBe("missing");
  expect(usageTrust({ ...reported(undefined), estimated: true })).toBe("missing");
});
