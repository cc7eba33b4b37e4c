// The table of charges: one test per cell, with the expected rule written by hand.
import { expect, test } from "bun:test";
import {
  CHARGE_TABLE,
  decideCharge,
  isAbsurdCount,
  isEstimated,
  quotaCapOf,
  usageTrust,
  withCountedOutput,
} from "../../../src/core/ledger/settle-policy.ts";
import type {
  ChargeNote,
  ChargeRule,
  EndReason,
  TokensSeen,
  UsageKnown,
} from "../../../src/core/ledger/settle-policy.ts";
import { emptyUsage, MAX_TOKEN_COUNT } from "../../../src/shared/usage.ts";
import en from "../../../locales/en/failure.json" with { type: "json" };
import zh from "../../../locales/zh/failure.json" with { type: "json" };

const CELLS: [EndReason, UsageKnown, TokensSeen, ChargeRule][] = [
  ["completed", "reported", "none", "reported"],
  ["completed", "reported", "some", "reported"],
  ["completed", "partial", "none", "partial"],
  ["completed", "partial", "some", "partial"],
  ["completed", "missing", "none", "release"],
  ["completed", "missing", "some", "estimate"],
  ["completed", "absurd", "none", "estimate"],
  ["completed", "absurd", "some", "estimate"],
  ["client-gone", "reported", "none", "reported"],
  ["client-gone", "reported", "some", "reported"],
  ["client-gone", "partial", "none", "partial"],
  ["client-gone", "partial", "some", "partial"],
  ["client-gone", "missing", "none", "release"],
  ["client-gone", "missing", "some", "estimate"],
  ["client-gone", "absurd", "none", "release"],
  ["client-gone", "absurd", "some", "estimate"],
  ["abandoned", "reported", "none", "reported"],
  ["abandoned", "reported", "some", "reported"],
  ["abandoned", "partial", "none", "partial"],
  ["abandoned", "partial", "some", "partial"],
  ["abandoned", "missing", "none", "prompt"],
  ["abandoned", "missing", "some", "estimate"],
  ["abandoned", "absurd", "none", "prompt"],
  ["abandoned", "absurd", "some", "estimate"],
  ["balance", "reported", "none", "reported"],
  ["max-cost", "reported", "none", "reported"],
  ["balance", "reported", "some", "reported"],
  ["max-cost", "reported", "some", "reported"],
  ["balance", "partial", "none", "partial"],
  ["max-cost", "partial", "none", "partial"],
  ["balance", "partial", "some", "partial"],
  ["max-cost", "partial", "some", "partial"],
  ["balance", "missing", "none", "prompt"],
  ["max-cost", "missing", "none", "prompt"],
  ["balance", "missing", "some", "estimate"],
  ["max-cost", "missing", "some", "estimate"],
  ["balance", "absurd", "none", "prompt"],
  ["max-cost", "absurd", "none", "prompt"],
  ["balance", "absurd", "some", "estimate"],
  ["max-cost", "absurd", "some", "estimate"],
  ["draining", "reported", "none", "reported"],
  ["draining", "reported", "some", "reported"],
  ["draining", "partial", "none", "partial"],
  ["draining", "partial", "some", "partial"],
  ["draining", "missing", "none", "prompt"],
  ["draining", "missing", "some", "estimate"],
  ["draining", "absurd", "none", "prompt"],
  ["draining", "absurd", "some", "estimate"],
  ["upstream-error", "reported", "none", "reported"],
  ["upstream-error", "reported", "some", "reported"],
  ["upstream-error", "partial", "none", "release"],
  ["upstream-error", "partial", "some", "release"],
  ["upstream-error", "missing", "none", "release"],
  ["upstream-error", "missing", "some", "release"],
  ["upstream-error", "absurd", "none", "release"],
  ["upstream-error", "absurd", "some", "release"],
  ["upstream-cut", "reported", "none", "reported"],
  ["upstream-cut", "reported", "some", "reported"],
  ["upstream-cut", "partial", "none", "partial"],
  ["upstream-cut", "partial", "some", "partial"],
  ["upstream-cut", "missing", "none", "release"],
  ["upstream-cut", "missing", "some", "estimate"],
  ["upstream-cut", "absurd", "none", "release"],
  ["upstream-cut", "absurd", "some", "estimate"],
  ["upstream-stall", "reported", "none", "reported"],
  ["upstream-stall", "reported", "some", "reported"],
  ["upstream-stall", "partial", "none", "partial"],
  ["upstream-stall", "partial", "some", "partial"],
  ["upstream-stall", "missing", "none", "release"],
  ["upstream-stall", "missing", "some", "estimate"],
  ["upstream-stall", "absurd", "none", "release"],
  ["upstream-stall", "absurd", "some", "estimate"],
  ["error-in-stream", "reported", "none", "reported"],
  ["error-in-stream", "reported", "some", "reported"],
  ["error-in-stream", "partial", "none", "release"],
  ["error-in-stream", "partial", "some", "partial"],
  ["error-in-stream", "missing", "none", "release"],
  ["error-in-stream", "missing", "some", "estimate"],
  ["error-in-stream", "absurd", "none", "release"],
  ["error-in-stream", "absurd", "some", "estimate"],
  ["malformed", "reported", "none", "reported"],
  ["malformed", "reported", "some", "reported"],
  ["malformed", "partial", "none", "partial"],
  ["malformed", "partial", "some", "partial"],
  ["malformed", "missing", "none", "release"],
  ["malformed", "missing", "some", "estimate"],
  ["malformed", "absurd", "none", "release"],
  ["malformed", "absurd", "some", "estimate"],
  ["refusal", "reported", "none", "reported"],
  ["refusal", "reported", "some", "reported"],
  ["refusal", "partial", "none", "partial"],
  ["refusal", "partial", "some", "partial"],
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
  ["completed", "partial", "some", "note_usage_estimated"],
  ["client-gone", "partial", "some", "note_client_gone"],
  ["abandoned", "missing", "none", "note_client_gone"],
  ["draining", "missing", "none", "note_draining"],
  ["balance", "missing", "some", "note_stopped_balance"],
  ["max-cost", "missing", "some", "note_stopped_max_cost"],
  ["draining", "partial", "some", "note_draining"],
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

test("what was counted or reported is charged in full; only a release charges nothing", () => {
  const rules: ChargeRule[] = ["reported", "partial", "estimate", "prompt"];
  expect(rules.map(quotaCapOf)).toEqual([undefined, undefined, undefined, undefined]);
  expect(quotaCapOf("release")).toBe(0);
});

test("a charge says that it is an estimate as soon as one of its figures was counted here", () => {
  const rules: ChargeRule[] = ["release", "reported", "partial", "estimate", "prompt"];
  expect(rules.map(isEstimated)).toEqual([false, false, true, true, true]);
});

test("of reported and counted output the larger counts, and what was reported of the input stays as it is", () => {
  const told = reported({ input_tokens: 400 }, 400);
  told.input.cacheRead = 600;
  told.output = { text: 1, thinking: 20, audio: 0, image: 0 };
  expect(withCountedOutput(told, 300)).toMatchObject({
    input: { fresh: 400, cacheRead: 600 },
    output: { text: 280, thinking: 20 },
    estimated: true,
  });
  expect(withCountedOutput(told, 7).output).toEqual(told.output);
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

test("a report that is not the last word is a part of one; absurd numbers are absurd at any time", () => {
  expect(usageTrust(reported({ input_tokens: 9 }), false)).toBe("partial");
  expect(usageTrust(reported({ input_tokens: -9 }), false)).toBe("absurd");
  expect(usageTrust(null, false)).toBe("missing");
});

test("a report without a single token, one that was counted here, and none at all are no reports", () => {
  expect(usageTrust(null)).toBe("missing");
  expect(usageTrust(reported({ prompt_tokens: 0 }, 0))).toBe("missing");
  expect(usageTrust({ ...reported(undefined), estimated: true })).toBe("missing");
});
