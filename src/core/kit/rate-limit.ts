// Moving windows, and the model request rate limit on them: how many calls, and how many successful ones, a user may make.
// Refuses by returning the number that was exceeded; memory stays bounded however large limits and user counts are.
// Every `nowMs` is of the steady clock: a time of day that is set must neither block nor free anybody.

export interface RateRule {
  windowMs: number;
  /** All requests, also failed ones; 0 = no limit. */
  total: number;
  /** Successful requests. */
  success: number;
}

type RateRefusal = { which: "total" | "success"; limit: number; retryAfterSeconds: number };

/** Where a user stands under the limit that leaves least. */
export interface RateState {
  limit: number;
  remaining: number;
  /** Until all of it is there again, if nothing else is asked for. */
  resetMs: number;
}

export interface RateLimiter {
  /**
   * Counts a request, or tells which limit it would exceed (it is then not counted). An admitted one takes the place of a
   * success until `ended`: otherwise any number of simultaneous ones would pass.
   */
  admit(userId: number, rule: RateRule, nowMs: number): RateRefusal | undefined;
  /**
   * Call once for every admitted request. `isSuccess`: it was answered with a status below 400; `isUndone`: another process
   * had no room for it, it does not count.
   */
  ended(userId: number, rule: RateRule, isSuccess: boolean, nowMs: number, isUndone?: boolean): void;
  /** What counts of the user by now: requests, 0 where they are not limited, and successes with those that may be one yet. */
  counted(userId: number, rule: RateRule, nowMs: number): { total: number; success: number };
  state(userId: number, rule: RateRule, nowMs: number): RateState;
}

/**
 * Moments that a window holds at most. Limits up to this number are exact to the millisecond: each request has
 * a moment of its own. Above it, requests of a short slice share one and leave together, at the end of their slice:
 * late by 1/4096 of the window at most, never early.
 */
const MAX_MOMENTS = 4096;
const MAX_USERS = 50_000;
/** Requests that left are cut off the lists once so many have gathered. */
const CUT_AT = 256;

/** What one key did lately: read `sum`, write by `add` and `takeBack`. */
export interface Window {
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

export function add(window: Window, nowMs: number): void {
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

/** Takes back the newest that was counted. */
export function takeBack(window: Window): void {
  const last = window.moments.length - 1;
  const count = window.counts[last];
  if (last < window.head || count === undefined) return;
  window.sum -= 1;
  if (count > 1) window.counts[last] = count - 1;
  else {
    window.moments.pop();
    window.counts.pop();
  }
}

/** Seconds until the oldest that was counted leaves the window. */
export function waitSeconds(window: Window, nowMs: number): number {
  const oldest = window.moments[window.head];
  if (oldest === undefined) return 1;
  return Math.max(1, Math.ceil((oldest + window.windowMs - nowMs) / 1000));
}

export interface Windows<Key> {
  /** The key's window with what is over already gone; made where there is none. */
  of(key: Key, windowMs: number, limit: number, nowMs: number): Window;
}

/** At most `maxKeys` windows; those that nothing is in any more make room first, then the oldest. */
export function createWindows<Key>(maxKeys = MAX_USERS): Windows<Key> {
  const windows = new Map<Key, Window>();
  return {
    of(key, windowMs, limit, nowMs) {
      const grainMs = grainOf(limit, windowMs);
      let window = windows.get(key);
      if (!window || window.windowMs !== windowMs || window.grainMs !== grainMs) {
        if (windows.size >= maxKeys) makeRoom(windows, maxKeys, nowMs);
        // A changed rule counts on with what is known: it must not hand out a second allowance.
        const { moments, counts, head, sum } = window ?? { moments: [], counts: [], head: 0, sum: 0 };
        window = { windowMs, grainMs, moments, counts, head, sum };
        windows.set(key, window);
      }
      advance(window, nowMs);
      return window;
    },
  };
}

export function createRateLimiter(): RateLimiter {
  const totals = createWindows<number>();
  const successes = createWindows<number>();
  /** Admitted and not ended, by user; whoever has none is not in it. */
  const open = new Map<number, number>();
  return {
    admit(userId, rule, nowMs) {
      const { windowMs } = rule;
      if (windowMs <= 0) return undefined;
      const success = successes.of(userId, windowMs, rule.success, nowMs);
      const openCount = open.get(userId) ?? 0;
      if (success.sum + openCount >= rule.success) {
        // An open call that fails gives its place back at any time.
        const retryAfterSeconds = success.sum >= rule.success ? waitSeconds(success, nowMs) : 1;
        return { which: "success", limit: rule.success, retryAfterSeconds };
      }
      if (rule.total > 0) {
        const total = totals.of(userId, windowMs, rule.total, nowMs);
        if (total.sum >= rule.total) {
          return { which: "total", limit: rule.total, retryAfterSeconds: waitSeconds(total, nowMs) };
        }
        add(total, nowMs);
      }
      open.set(userId, openCount + 1);
      return undefined;
    },
    ended(userId, rule, isSuccess, nowMs, isUndone = false) {
      if (rule.windowMs <= 0) return;
      const openCount = open.get(userId) ?? 0;
      if (openCount > 1) open.set(userId, openCount - 1);
      else open.delete(userId);
      if (isUndone && rule.total > 0) takeBack(totals.of(userId, rule.windowMs, rule.total, nowMs));
      if (isSuccess) add(successes.of(userId, rule.windowMs, rule.success, nowMs), nowMs);
    },
    counted: (userId, { windowMs, total, success }, nowMs) => ({
      total: total > 0 ? totals.of(userId, windowMs, total, nowMs).sum : 0,
      success: successes.of(userId, windowMs, success, nowMs).sum + (open.get(userId) ?? 0),
    }),
    state(userId, rule, nowMs) {
      const success = successes.of(userId, rule.windowMs, rule.success, nowMs);
      const narrowest = stateOf(success, rule.success, open.get(userId) ?? 0, nowMs);
      if (rule.total <= 0) return narrowest;
      const total = stateOf(totals.of(userId, rule.windowMs, rule.total, nowMs), rule.total, 0, nowMs);
      return total.remaining <= narrowest.remaining ? total : narrowest;
    },
  };
}

function stateOf(window: Window, limit: number, openCount: number, nowMs: number): RateState {
  const newest = window.moments.at(-1);
  const leftMs = window.sum > 0 && newest !== undefined ? newest + window.windowMs - nowMs : 0;
  return {
    limit,
    remaining: Math.max(0, limit - window.sum - openCount),
    resetMs: openCount > 0 ? window.windowMs : Math.max(0, leftMs),
  };
}

/** Windows looked at for one that is new: a flood of keys must not walk through all the others for each of them. */
const LOOKS = 64;

/** Whoever did nothing within its window goes first; then whoever came first has most likely left. */
function makeRoom<Key>(windows: Map<Key, Window>, maxKeys: number, nowMs: number): void {
  let looks = LOOKS;
  for (const [key, window] of windows) {
    if (looks-- <= 0) break;
    advance(window, nowMs);
    windows.delete(key);
    if (window.sum > 0) windows.set(key, window);
  }
  if (windows.size < maxKeys) return;
  const [oldest] = windows.keys();
  if (oldest !== undefined) windows.delete(oldest);
}
