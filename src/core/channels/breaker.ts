// The breaker of one cell (a channel and one of its upstream models): closed, open while it rests, half-open for one call
// that finds out whether it works again. Refuses a clock of its own: whoever calls says what time it is.
import type { Verdict } from "./picker.ts";

/** What takes a cell out of service. */
export type RestReason = Exclude<Verdict, "ok">;

/** How a call ended, as far as the cell is concerned. */
export interface Outcome {
  /** Steady clock. */
  atMs: number;
  verdict: Verdict;
}

export interface Breaker {
  /** Why it rests, or last did. */
  reason: RestReason;
  /** What was said of the last failure, scrubbed. */
  detail: string;
  /** The last of them, the newest at the end; kept from the first failure on. */
  readonly outcomes: Outcome[];
  /** Failures in a row. */
  failures: number;
  /** Of the last failure (steady clock). */
  failedAtMs: number;
  /** It rests until then (steady clock); 0 = closed. */
  openUntilMs: number;
  /** When that was found out: calls that began before know nothing of it (steady clock). */
  restsSinceMs: number;
  /** Length of the last rest: the next one doubles it. */
  restMs: number;
  /** The upstream itself named the end of its rest: it is not asked before. */
  isAsked: boolean;
  /** A call that tries it out holds the others off until then. */
  probeUntilMs: number;
  /** Outcomes of the last minute, in slots of ten seconds: number of the slot, answers, failures. */
  readonly slots: { at: number; ok: number; bad: number }[];
}

/** Failures in a row before a cell rests, */
const FAILURES_TO_REST = 3;
/** or this share of so many outcomes in a minute. They are counted from the first failure on: success alone costs nothing. */
const BAD_SHARE = 0.5;
const LEAST_OUTCOMES = 10;
const SLOT_MS = 10_000;
const SLOTS = 6;
const FIRST_REST_MS = 5_000;
const LONGEST_REST_MS = 120_000;
const REJECTED_REST_MS = 30_000;
/** An upstream may not switch anything off for longer than this. */
const LONGEST_RETRY_AFTER_MS = 600_000;
/** So many outcomes are kept to be looked at. */
const OUTCOMES_KEPT = 20;
/** A try that never reports back blocks its cell no longer than this. */
const PROBE_MS = 30_000;

export function createBreaker(): Breaker {
  return {
    reason: "down",
    detail: "",
    outcomes: [],
    failures: 0,
    failedAtMs: 0,
    openUntilMs: 0,
    restsSinceMs: 0,
    restMs: 0,
    isAsked: false,
    probeUntilMs: 0,
    slots: [],
  };
}

/** Whether a call may go there now; a rest that is over lets exactly one through. */
export function isReady({ openUntilMs, probeUntilMs }: Breaker, nowMs: number): boolean {
  return openUntilMs === 0 || (nowMs >= openUntilMs && nowMs >= probeUntilMs);
}

/** Until when the upstream itself wants to be left alone; 0: it asks for nothing now. */
export function askedUntil({ isAsked, openUntilMs }: Breaker, nowMs: number): number {
  return isAsked && openUntilMs > nowMs ? openUntilMs : 0;
}

/** A call goes there: half-open, it is the one that finds out. */
export function take(breaker: Breaker, nowMs: number): void {
  if (breaker.openUntilMs !== 0) breaker.probeUntilMs = nowMs + PROBE_MS;
}

/** Whether it was found to need a rest after the call began (steady clock): that the call was answered does not end it. */
export function isNewer({ openUntilMs, restsSinceMs }: Breaker, beganMs: number): boolean {
  return openUntilMs !== 0 && restsSinceMs > beganMs;
}

/** A call that began then ended without a word on it: where it was the one that tries it out, the next one may. */
export function abandoned(breaker: Breaker, beganMs: number): void {
  if (breaker.probeUntilMs <= beganMs + PROBE_MS) breaker.probeUntilMs = 0;
}

/**
 * A call that began then (steady clock) is being answered; how the answer ends is told later. The next failure is enough to open
 * it again.
 */
export function opened(breaker: Breaker, beganMs: number): void {
  if (breaker.openUntilMs === 0 || isNewer(breaker, beganMs)) return;
  breaker.openUntilMs = 0;
  breaker.probeUntilMs = 0;
  breaker.failures = FAILURES_TO_REST - 1;
}

/** It answered a call that began then (steady clock). False when there is nothing left to remember. */
export function succeeded(breaker: Breaker, beganMs: number, nowMs: number): boolean {
  if (isNewer(breaker, beganMs)) {
    note(breaker, "ok", nowMs);
    return true;
  }
  breaker.openUntilMs = 0;
  breaker.probeUntilMs = 0;
  breaker.restMs = 0;
  breaker.failures = 0;
  note(breaker, "ok", nowMs);
  slotOf(breaker, nowMs).ok++;
  return nowMs - breaker.failedAtMs < SLOTS * SLOT_MS;
}

/**
 * It failed. `retryAfterSeconds`: what a limited upstream asked for; `detail`: what was said, scrubbed; `beganMs`: when the call began
 * (steady clock): one that began before the rest says nothing new, but for the time that its upstream asks for.
 */
export function failed(
  breaker: Breaker,
  reason: RestReason,
  nowMs: number,
  {
    retryAfterSeconds,
    detail = "",
    beganMs = nowMs,
  }: {
    retryAfterSeconds?: number | undefined;
    detail?: string | undefined;
    beganMs?: number | undefined;
  } = {},
): void {
  note(breaker, reason, nowMs);
  const requestedMs =
    reason === "limited" ? Math.min((retryAfterSeconds ?? 0) * 1000, LONGEST_RETRY_AFTER_MS) : 0;
  if (isNewer(breaker, beganMs)) {
    // A call that tries it out meanwhile knows more: it stays, and ends the rest where it is answered.
    if (requestedMs > 0 && nowMs + requestedMs > breaker.openUntilMs) askFor(breaker, nowMs + requestedMs);
    return;
  }
  breaker.probeUntilMs = 0;
  breaker.detail = detail;
  breaker.failedAtMs = nowMs;
  if (requestedMs > 0) {
    askFor(breaker, nowMs + requestedMs);
    breaker.restsSinceMs = nowMs;
    return;
  }
  if (reason === "down") {
    breaker.failures++;
    slotOf(breaker, nowMs).bad++;
  }
  // Calls that were under way when it opened say nothing new.
  if (breaker.openUntilMs > nowMs) return;
  const wasOpen = breaker.openUntilMs !== 0;
  if (reason === "down" && !wasOpen && !isTooBad(breaker, nowMs)) return;
  const firstMs = reason === "rejected" ? REJECTED_REST_MS : FIRST_REST_MS;
  breaker.reason = reason;
  breaker.isAsked = false;
  breaker.restMs = Math.min(Math.max(2 * breaker.restMs, firstMs), LONGEST_REST_MS);
  breaker.openUntilMs = nowMs + breaker.restMs;
  breaker.restsSinceMs = nowMs;
  breaker.slots.length = 0;
}

/** The upstream wants to be left alone until then. */
function askFor(breaker: Breaker, untilMs: number): void {
  breaker.reason = "limited";
  breaker.openUntilMs = Math.max(breaker.openUntilMs, untilMs);
  breaker.isAsked = true;
}

/** Nothing that happened to it matters any more. */
export function isForgotten({ failedAtMs, openUntilMs }: Breaker, nowMs: number): boolean {
  return nowMs - Math.max(failedAtMs, openUntilMs) > LONGEST_RETRY_AFTER_MS;
}

/** For who looks at it. */
export type CellState = "closed" | "open" | "half_open";

export function stateOf({ openUntilMs }: Breaker, nowMs: number): CellState {
  if (openUntilMs === 0) return "closed";
  return openUntilMs > nowMs ? "open" : "half_open";
}

function note({ outcomes }: Breaker, verdict: Verdict, atMs: number): void {
  outcomes.push({ atMs, verdict });
  if (outcomes.length > OUTCOMES_KEPT) outcomes.shift();
}

function slotOf({ slots }: Breaker, nowMs: number): Breaker["slots"][number] {
  const at = Math.floor(nowMs / SLOT_MS);
  const last = slots.at(-1);
  if (last?.at === at) return last;
  const slot = { at, ok: 0, bad: 0 };
  slots.push(slot);
  if (slots.length > SLOTS) slots.shift();
  return slot;
}

function isTooBad({ failures, slots }: Breaker, nowMs: number): boolean {
  if (failures >= FAILURES_TO_REST) return true;
  const oldest = Math.floor(nowMs / SLOT_MS) - SLOTS;
  let ok = 0;
  let bad = 0;
  for (const slot of slots)
    if (slot.at > oldest) {
      ok += slot.ok;
      bad += slot.bad;
    }
  return ok + bad >= LEAST_OUTCOMES && bad >= BAD_SHARE * (ok + bad);
}
