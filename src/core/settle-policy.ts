// Who pays for what when a call does not end as it should: one table of cases, as data.
// Refuses to treat missing usage as zero, and to believe numbers that cannot be true.
import type { Usage } from "../shared/usage.ts";
import { completionTokens, MAX_TOKEN_COUNT, promptTokens } from "../shared/usage.ts";

/**
 * How a call ended, as the relay saw it. upstream-error: before the first byte of an answer; error-in-stream: after
 * it; upstream-cut: the body ended early; upstream-stall: it went silent; malformed: what came was no answer;
 * refusal: the upstream's own policy stopped it.
 */
export type EndReason =
  | "completed"
  | "client-gone"
  | "upstream-error"
  | "upstream-cut"
  | "upstream-stall"
  | "error-in-stream"
  | "malformed"
  | "refusal";

/** What the upstream said of its usage; absurd numbers (negative, not finite, beyond any context) count as unknown. */
export type UsageKnown = "reported" | "missing" | "absurd";

/** Whether any output was delivered; for routes without text, whether their answer was. */
export type TokensSeen = "none" | "some";

/**
 * release: nothing is charged. reported: the upstream's numbers are charged. estimate: what was delivered is counted
 * here, marked as an estimate and never more than was held back for the call.
 */
export type ChargeRule = "release" | "reported" | "estimate";

type Row = Record<UsageKnown, Record<TokensSeen, ChargeRule>>;

const R = "reported" as const;
const E = "estimate" as const;
const N = "release" as const;

/**
 * Reported usage wins wherever it is sane: the upstream will bill it. Without it, what was delivered is estimated,
 * and where nothing was delivered nothing is charged: a prompt alone is no service.
 */
const DELIVERED: Row = {
  reported: { none: R, some: R },
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

/** Before the first byte nothing can have been delivered, so that there is nothing to estimate. */
const NOT_BEGUN: Row = {
  reported: { none: R, some: R },
  missing: { none: N, some: N },
  absurd: { none: N, some: N },
};

export const CHARGE_TABLE: Record<EndReason, Row> = {
  completed: COMPLETED,
  "client-gone": DELIVERED,
  "upstream-error": NOT_BEGUN,
  "upstream-cut": DELIVERED,
  "upstream-stall": DELIVERED,
  "error-in-stream": DELIVERED,
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
  | "note_usage_estimated"
  | "note_usage_absurd"
  | "note_usage_absurd_released";

export interface ChargeDecision {
  rule: ChargeRule;
  note: ChargeNote;
}

/** The sentence of each end. Usage that cannot be true is flagged before anything else. */
const END_NOTES: Record<EndReason, Record<ChargeRule, ChargeNote>> = {
  completed: { reported: "", estimate: "note_usage_estimated", release: "note_upstream_timeout" },
  "client-gone": same("note_client_gone"),
  "upstream-error": same("note_request_failed"),
  "upstream-cut": same("note_request_failed"),
  "upstream-stall": same("note_upstream_timeout"),
  "error-in-stream": same("note_request_failed"),
  malformed: same("note_request_failed"),
  refusal: same("note_request_failed"),
};

function same(note: ChargeNote): Record<ChargeRule, ChargeNote> {
  return { reported: note, estimate: note, release: note };
}

export function decideCharge({ end, usage, tokens }: ChargeCase): ChargeDecision {
  const rule = CHARGE_TABLE[end][usage][tokens];
  if (usage !== "absurd") return { rule, note: END_NOTES[end][rule] };
  return { rule, note: rule === "release" ? "note_usage_absurd_released" : "note_usage_absurd" };
}

/**
 * Highest charge under a rule, for `cost`: nothing when released, what was held back when estimated, no cap when
 * reported. An amount of 0 was no real reservation (a call too small to hold a unit) and caps nothing.
 */
export function quotaCapOf(rule: ChargeRule, quotaReserved: number): number | undefined {
  if (rule === "release") return 0;
  return rule === "estimate" && quotaReserved > 0 ? quotaReserved : undefined;
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
export function usageTrust(usage: Usage | null): UsageKnown {
  if (usage === null) return "missing";
  if (holdsAbsurdCount(usage.raw, MAX_DEPTH)) return "absurd";
  if (usage.estimated || promptTokens(usage) + completionTokens(usage) === 0) return "missing";
  return "reported";
}

function holdsAbsurdCount(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null || depth === 0) return false;
  return Object.entries(value).some(([name, each]) => {
    if (typeof each === "object") return holdsAbsurdCount(each, depth - 1);
    return COUNT_NAME.test(name) && isAbsurdCount(each, MAX_TOKEN_COUNT);
  });
}
