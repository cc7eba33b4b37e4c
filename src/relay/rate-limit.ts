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

/** The window is cut into this many slices: counting is late by at most one slice, never too generous. */
const SLICES = 60;
const MAX_USERS = 50_000;

interface Window {
  sliceMs: number;
  counts: Uint32Array;
  sum: number;
  /** Number of the newest slice since the epoch. */
  newest: number;
}

function advance(window: Window, nowMs: number): void {
  const slice = Math.floor(nowMs / window.sliceMs);
  const passed = slice - window.newest;
  if (passed <= 0) return;
  if (passed > SLICES) {
    window.counts.fill(0);
    window.sum = 0;
  } else {
    for (let i = 1; i <= passed; i++) {
      const at = (window.newest + i) % (SLICES + 1);
      window.sum -= window.counts[at] ?? 0;
      window.counts[at] = 0;
    }
  }
  window.newest = slice;
}

function add(window: Window): void {
  const at = window.newest % (SLICES + 1);
  window.counts[at] = (window.counts[at] ?? 0) + 1;
  window.sum += 1;
}

/** When the oldest counted slice leaves the window. */
function waitSeconds(window: Window, nowMs: number): number {
  for (let back = SLICES; back >= 0; back--) {
    const slice = window.newest - back;
    if (slice >= 0 && (window.counts[slice % (SLICES + 1)] ?? 0) > 0) {
      return Math.max(1, Math.ceil(((slice + SLICES + 1) * window.sliceMs - nowMs) / 1000));
    }
  }
  return 1;
}

export function createRateLimiter(): RateLimiter {
  const totals = new Map<number, Window>();
  const successes = new Map<number, Window>();

  function windowOf(windows: Map<number, Window>, userId: number, rule: RateRule, nowMs: number): Window {
    const sliceMs = Math.max(1, rule.windowMs / SLICES);
    let window = windows.get(userId);
    if (!window || window.sliceMs !== sliceMs) {
      if (windows.size >= MAX_USERS) {
        // Insertion order: the user who came first has most likely left.
        const oldest = windows.keys().next().value;
        if (oldest !== undefined) windows.delete(oldest);
      }
      window = {
        sliceMs,
        counts: new Uint32Array(SLICES + 1),
        sum: 0,
        newest: Math.floor(nowMs / sliceMs),
      };
      windows.set(userId, window);
    }
    advance(window, nowMs);
    return window;
  }

  return {
    admit(userId, rule, nowMs) {
      if (rule.windowMs <= 0) return undefined;
      const success = windowOf(successes, userId, rule, nowMs);
      if (success.sum >= rule.success) {
        return { which: "success", limit: rule.success, retryAfterSeconds: waitSeconds(success, nowMs) };
      }
      if (rule.total > 0) {
        const total = windowOf(totals, userId, rule, nowMs);
        if (total.sum >= rule.total) {
          return { which: "total", limit: rule.total, retryAfterSeconds: waitSeconds(total, nowMs) };
        }
        add(total);
      }
      return undefined;
    },
    succeeded(userId, rule, nowMs) {
      if (rule.windowMs > 0) add(windowOf(successes, userId, rule, nowMs));
    },
  };
}
