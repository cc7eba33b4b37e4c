// Who pays for what when a call does not end as it should: one table of cases, as data.
// Refuses to treat missing usage as zero, and to believe numbers that cannot be true.
import type { Usage } from "../../shared/usage.ts";
import { completionTokens, MAX_TOKEN_COUNT, promptTokens } from "../../shared/usage.ts";

/**
 * How a call ended, as the relay saw it. client-gone: the client left, and what came was read on; abandoned: it left, and
 * nothing came for as long as we read on; draining: the process had to stop; balance: it could not pay the next part of a
 * stream; max-cost: that part would have passed the call's own cap; upstream-error: before the first byte of an answer; error-in-stream: after it; upstream-cut: the body ended
 * early; upstream-stall: it went silent; malformed: what came was no answer; refusal: the upstream's own policy stopped it.
 */
export type EndReason =
  | "completed"
  | "client-gone"
  | "abandoned"
  | "draining"
  | "balance"
  | "max-cost"
  | "upstream-error"
  | "upstream-cut"
  | "upstream-stall"
  | "error-in-stream"
  | "malformed"
  | "refusal";

/**
 * What the upstream reported of its usage: in full at its end; in part, before it came to its end; nothing; or absurd numbers
 * (negative, not finite, beyond any context), which count as unknown.
 */
export type UsageKnown = "reported" | "partial" | "missing" | "absurd";

/** Whether any output was delivered; for routes without text, whether their answer was. */
export type TokensSeen = "none" | "some";

/**
 * release: nothing is charged. reported: the upstream's numbers are charged. partial: its input, and the larger of its and
 * our output. estimate: prompt and output are counted here. prompt: the prompt alone is counted; a price by the piece
 * costs nothing. The last three are marked as estimates.
 */
export type ChargeRule = "release" | "reported" | "partial" | "estimate" | "prompt";

type Row = Record<UsageKnown, Record<TokensSeen, ChargeRule>>;

const R = "reported" as const;
const P = "partial" as const;
const E = "estimate" as const;
const Q = "prompt" as const;
const N = "release" as const;

/**
 * Reported usage wins wherever it is sane: the upstream will bill it. Its first word is no bill: the input stands, the
 * output is what was counted where that is more. Without a word, what was delivered is estimated, and where nothing was
 * delivered nothing is charged: a prompt alone is no service.
 */
const DELIVERED: Row = {
  reported: { none: R, some: R },
  partial: { none: P, some: P },
  missing: { none: N, some: E },
  absurd: { none: N, some: E },
};

/**
 * A whole answer whose report cannot be true: the reader of whole answers looks for text only where no usage came, so
 * that "none" is not known here. The estimate counts what the answer holds.
 */
const COMPLETED: Row = {
  ...DELIVERED,
  absurd: { none: E, some: E },
};

/** An error in place of an answer: what it says of its usage at the end is billed, what it said before is not. */
const FAILED: Row = {
  ...DELIVERED,
  partial: { none: N, some: P },
};

/** The upstream has the request and bills it, though nobody waits for its answer any more: at least the prompt. */
const BILLED_ANYWAY: Row = {
  reported: { none: R, some: R },
  partial: { none: P, some: P },
  missing: { none: Q, some: E },
  absurd: { none: Q, some: E },
};

/** Before the first byte nothing can have been delivered, so that there is nothing to estimate. */
const NOT_BEGUN: Row = {
  reported: { none: R, some: R },
  partial: { none: N, some: N },
  missing: { none: N, some: N },
  absurd: { none: N, some: N },
};

export const CHARGE_TABLE: Record<EndReason, Row> = {
  completed: COMPLETED,
  "client-gone": DELIVERED,
  abandoned: BILLED_ANYWAY,
  draining: BILLED_ANYWAY,
  balance: BILLED_ANYWAY,
  "max-cost": BILLED_ANYWAY,
  "upstream-error": NOT_BEGUN,
  "upstream-cut": DELIVERED,
  "upstream-stall": DELIVERED,
  "error-in-stream": FAILED,
  malformed: DELIVERED,
  refusal: DELIVERED,
};

export interface ChargeCase {
  end: EndReason;
  usage: UsageKnown;
  tokens: TokensSeen;
}

/** Key of the sentence that the log row carries beside its figures; empty when all went well. */
export type ChargeNote =
  | ""
  | "note_upstream_timeout"
  | "note_request_failed"
  | "note_client_gone"
  | "note_draining"
  | "note_stopped_balance"
  | "note_stopped_max_cost"
  | "note_usage_estimated"
  | "note_usage_absurd"
  | "note_usage_absurd_released";

export interface ChargeDecision {
  rule: ChargeRule;
  note: ChargeNote;
}

/** The sentence of each end. Usage that cannot be true is flagged before anything else. */
const END_NOTES: Record<EndReason, Record<ChargeRule, ChargeNote>> = {
  completed: {
    reported: "",
    partial: "note_usage_estimated",
    estimate: "note_usage_estimated",
    prompt: "note_usage_estimated",
    release: "note_upstream_timeout",
  },
  "client-gone": same("note_client_gone"),
  abandoned: same("note_client_gone"),
  draining: same("note_draining"),
  balance: same("note_stopped_balance"),
  "max-cost": same("note_stopped_max_cost"),
  "upstream-error": same("note_request_failed"),
  "upstream-cut": same("note_request_failed"),
  "upstream-stall": same("note_upstream_timeout"),
  "error-in-stream": same("note_request_failed"),
  malformed: same("note_request_failed"),
  refusal: same("note_request_failed"),
};

function same(note: ChargeNote): Record<ChargeRule, ChargeNote> {
  return { reported: note, partial: note, estimate: note, prompt: note, release: note };
}

export function decideCharge({ end, usage, tokens }: ChargeCase): ChargeDecision {
  const rule = CHARGE_TABLE[end][usage][tokens];
  if (usage !== "absurd") return { rule, note: END_NOTES[end][rule] };
  return { rule, note: rule === "release" ? "note_usage_absurd_released" : "note_usage_absurd" };
}

/** Highest charge under a rule, for `cost`: what was counted or reported is charged in full, whatever was held back. */
export function quotaCapOf(rule: ChargeRule): 0 | undefined {
  return rule === "release" ? 0 : undefined;
}

/** Whether any of the figures of a charge were counted here. */
export function isEstimated(rule: ChargeRule): boolean {
  return rule === "partial" || rule === "estimate" || rule === "prompt";
}

/** True for a reported count that no real call can have; `limit` is MAX_TOKEN_COUNT of shared/usage. */
export function isAbsurdCount(value: unknown, limit: number): boolean {
  if (value === undefined || value === null) return false;
  return typeof value !== "number" || !Number.isFinite(value) || value < 0 || value > limit;
}

/** Names of token counts in every protocol; prices, rates and times beside them are not judged. */
const COUNT_NAME = /(?:^|_)tokens$|TokenCount$|^tokenCount$/;
const MAX_DEPTH = 4;

/**
 * How far an upstream's usage can be believed. Decoders cut foreign numbers to bounds, so the verbatim object is
 * judged; usage without a single token, or counted here, is no report.
 */
export function usageTrust(usage: Usage | null, isFinal = true): UsageKnown {
  if (usage === null) return "missing";
  if (holdsAbsurdCount(usage.raw, MAX_DEPTH)) return "absurd";
  if (usage.estimated || promptTokens(usage) + completionTokens(usage) === 0) return "missing";
  return isFinal ? "reported" : "partial";
}

/** What an upstream said on the way, with the output that was counted here where that is more: its last word never came. */
export function withCountedOutput(usage: Usage, countedTokens: number): Usage {
  const more = Math.max(0, countedTokens - completionTokens(usage));
  return { ...usage, output: { ...usage.output, text: usage.output.text + more }, estimated: true };
}

function holdsAbsurdCount(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null || depth === 0) return false;
  return Object.entries(value).some(([name, each]) => {
    if (typeof each === "object") return holdsAbsurdCount(each, depth - 1);
    return COUNT_NAME.test(name) && isAbsurdCount(each, MAX_TOKEN_COUNT);
  });
}
