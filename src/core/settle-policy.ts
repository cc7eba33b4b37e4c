// Who pays for what when a call does not end as it should: one table of cases, as data.
// Refuses to treat missing usage as zero, and to believe numbers that cannot be true.

/** How a call ended, as the relay saw it. */
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

/** Reported usage wins wherever it is sane: the upstream will bill it. Without it, what was delivered is estimated. */
const DELIVERED: Row = {
  reported: { none: R, some: R },
  missing: { none: N, some: E },
  absurd: { none: N, some: E },
};

/** A call that was answered whole with success and without usage has at least its prompt to pay. */
const COMPLETED: Row = {
  reported: { none: R, some: R },
  missing: { none: E, some: E },
  absurd: { none: E, some: E },
};

/** No answer reached the client and the upstream refused the call: nothing is charged whatever it claims. */
const NOTHING: Row = {
  reported: { none: N, some: N },
  missing: { none: N, some: N },
  absurd: { none: N, some: N },
};

export const CHARGE_TABLE: Record<EndReason, Row> = {
  completed: COMPLETED,
  "client-gone": DELIVERED,
  "upstream-error": NOTHING,
  "upstream-cut": DELIVERED,
  "upstream-stall": DELIVERED,
  "error-in-stream": DELIVERED,
  malformed: DELIVERED,
  refusal: NOTHING,
};

export interface ChargeCase {
  end: EndReason;
  usage: UsageKnown;
  tokens: TokensSeen;
}

export interface ChargeDecision {
  rule: ChargeRule;
  /** Key of the sentence that the log row carries beside its figures; empty when all went well. */
  note:
    | ""
    | "note_upstream_timeout"
    | "note_request_failed"
    | "note_client_gone"
    | "note_usage_estimated"
    | "note_usage_absurd";
}

export function decideCharge({ end, usage, tokens }: ChargeCase): ChargeDecision {
  const rule = CHARGE_TABLE[end][usage][tokens];
  if (usage === "absurd") return { rule, note: "note_usage_absurd" };
  if (end === "client-gone") return { rule, note: "note_client_gone" };
  if (end === "upstream-stall") return { rule, note: "note_upstream_timeout" };
  if (end !== "completed") return { rule, note: "note_request_failed" };
  return { rule, note: rule === "estimate" ? "note_usage_estimated" : "" };
}

/** True for a reported count that no real call can have; `limit` is MAX_TOKEN_COUNT of shared/usage. */
export function isAbsurdCount(value: unknown, limit: number): boolean {
  if (value === undefined || value === null) return false;
  return typeof value !== "number" || !Number.isFinite(value) || value < 0 || value > limit;
}
