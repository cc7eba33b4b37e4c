// The model request rate limit: how many calls, and how many successful ones, a user may make in a sliding window.
// Refuses by returning the number that was exceeded; memory stays bounded however large limits and user counts are.

export interface RateRule {
  windowMs: number;
  /** All requests, also failed ones; 0 = no limit. */
  total: number;
  /** Successful requests. */
  success: number;
}

export type RateRefusal = { which: "total" | "success"; limit: number; retryAfterSeconds: number };

export interface RateLimiter {
  /** Counts a request, or tells which limit it would exceed (it is then not counted). */
  admit(userId: number, rule: RateRule, nowMs: number): RateRefusal | undefined;
  /** Counts a success: call once an admitted request was answered with a status below 400. */
  succeeded(userId: number, rule: RateRule, nowMs: number): void;
}

/**
 * Moments that a user's window holds at most. Limits up to this number are exact to the millisecond: each request has
 * a moment of its own. Above it, requests of a short slice share one and leave together, at the end of their slice:
 * late by 1/4096 of the window at most, never early.
 */
const MAX_MOMENTS = 4096;
const MAX_USERS = 50_000;
/** Requests that left are cut off the lists once so many have gathered. */
const CUT_AT = 256;

interface Window {
  windowMs: number;
  /** Length of a slice. */
  grainMs: number;
  /** When each moment was (the last millisecond of its slice), ascending, from `head` on. */
  moments: number[];
  counts: number[];
  head: number;
  sum: number;
}

function grainOf(limit: number, windowMs: number): number {
  return limit <= MAX_MOMENTS ? 1 : Math.max(1, Math.ceil(windowMs / MAX_MOMENTS));
}

/** Lets go of what is a whole window old: a request at the very end of the window may come again. */
function advance(window: Window, nowMs: number): void {
  const { moments, counts, windowMs } = window;
  let { head } = window;
  while (head < moments.length && (moments[head] ?? 0) + windowMs <= nowMs) {
    window.sum -= counts[head] ?? 0;
    head += 1;
  }
  if (head === moments.length || head >= CUT_AT) {
    moments.splice(0, head);
    counts.splice(0, head);
    head = 0;
  }
  window.head = head;
}

function add(window: Window, nowMs: number): void {
  const { moments, counts, grainMs } = window;
  const moment = (Math.floor(nowMs / grainMs) + 1) * grainMs - 1;
  const last = moments.length - 1;
  // A clock that was set back makes no disorder.
  if (last >= window.head && (moments[last] ?? 0) >= moment) counts[last] = (counts[last] ?? 0) + 1;
  else {
    moments.push(moment);
    counts.push(1);
  }
  window.sum += 1;
}

/** When the oldest counted request leaves the window. */
function waitSeconds(window: Window, nowMs: number): number {
  const oldest = window.moments[window.head];
  if (oldest === undefined) return 1;
  return Math.max(1, Math.ceil((oldest + window.windowMs - nowMs) / 1000));
}

export function createRateLimiter(): RateLimiter {
  const totals = new Map<number, Window>();
  const successes = new Map<number, Window>();

  function windowOf(
    windows: Map<number, Window>,
    userId: number,
    windowMs: number,
    limit: number,
    nowMs: number,
  ): Window {
    const grainMs = grainOf(limit, windowMs);
    let window = windows.get(userId);
    if (!window || window.windowMs !== windowMs || window.grainMs !== grainMs) {
      if (windows.size >= MAX_USERS) makeRoom(windows, nowMs);
      // A changed rule counts on with what is known: it must not hand out a second allowance.
      const { moments, counts, head, sum } = window ?? { moments: [], counts: [], head: 0, sum: 0 };
      window = { windowMs, grainMs, moments, counts, head, sum };
      windows.set(userId, window);
    }
    advance(window, nowMs);
    return window;
  }

  return {
    admit(userId, rule, nowMs) {
      const { windowMs } = rule;
      if (windowMs <= 0) return undefined;
      const success = windowOf(successes, userId, windowMs, rule.success, nowMs);
      if (success.sum >= rule.success) {
        return { which: "success", limit: rule.success, retryAfterSeconds: waitSeconds(success, nowMs) };
      }
      if (rule.total > 0) {
        const total = windowOf(totals, userId, windowMs, rule.total, nowMs);
        if (total.sum >= rule.total) {
          return { which: "total", limit: rule.total, retryAfterSeconds: waitSeconds(total, nowMs) };
        }
        add(total, nowMs);
      }
      return undefined;
    },
    succeeded(userId, rule, nowMs) {
      if (rule.windowMs > 0) add(windowOf(successes, userId, rule.windowMs, rule.success, nowMs), nowMs);
    },
  };
}

/** Users who made no call within their window go first; then whoever came first has most likely left. */
function makeRoom(windows: Map<number, Window>, nowMs: number): void {
  for (const [id, window] of windows) {
    advance(window, nowMs);
    if (window.sum === 0) windows.delete(id);
  }
  const oldest = windows.size >= MAX_USERS ? windows.keys().next().value : undefined;
  if (oldest !== undefined) windows.delete(oldest);
}
