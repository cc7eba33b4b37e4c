// Limits repeated attempts by any key in a moving window: plain ones, and those of which only the wrong ones count.
// Refuses to grow without bound: the oldest keys are forgotten first.
import { add, createWindows, takeBack, waitSeconds } from "./rate-limit.ts";

export interface AttemptLimit {
  /** Takes one attempt. Undefined when allowed, else the seconds to wait. */
  take(key: string): number | undefined;
  /** Gives an attempt back: one that succeeded does not count. */
  giveBack(key: string): void;
}

const MAX_KEYS = 100_000;

/** A number, or what it is at the moment. */
type Limit = number | (() => number);

const nowOf = (limit: Limit): number => (typeof limit === "number" ? limit : limit());

/** `monotonicMs`: the steady clock. */
export function createAttemptLimit(
  rule: Limit,
  windowMs: number,
  monotonicMs: () => number,
  maxKeys = MAX_KEYS,
): AttemptLimit {
  const windows = createWindows<string>(maxKeys);
  return {
    take(key) {
      const limit = nowOf(rule);
      const nowMs = monotonicMs();
      const window = windows.of(key, windowMs, limit, nowMs);
      if (window.sum >= limit) return waitSeconds(window, nowMs);
      add(window, nowMs);
      return undefined;
    },
    giveBack: (key) => takeBack(windows.of(key, windowMs, nowOf(rule), monotonicMs())),
  };
}

export interface WrongLimit {
  /**
   * Lets one attempt in, or answers the seconds to wait. Attempts whose outcome is open take a place until `leave`: as
   * many wrong ones as the limit allows are never exceeded by coming all at once, and right ones never count.
   */
  enter(key: string): Promise<number | undefined>;
  leave(key: string, isWrong: boolean): void;
}

export interface WrongRule {
  limit: number;
  windowMs: number;
  /** When the limit is reached, everybody waits so long, and is then let in again for one wrong attempt at a time. */
  restMs?: number;
}

interface Door {
  /** Attempts whose outcome is open. */
  open: number;
  waiting: (() => void)[];
}

/** Waiting for outcomes costs memory: more than these are told to come back. */
const MAX_WAITING = 100;

export function createWrongLimit(
  { limit: rule, windowMs, restMs }: Omit<WrongRule, "limit"> & { limit: Limit },
  monotonicMs: () => number,
  maxKeys = MAX_KEYS,
): WrongLimit {
  const windows = createWindows<string>(maxKeys);
  /** Only keys with open attempts have one. */
  const doors = new Map<string, Door>();
  const restsUntilMs = new Map<string, number>();

  function rest(key: string, untilMs: number): void {
    restsUntilMs.delete(key);
    restsUntilMs.set(key, untilMs);
    const [oldest] = restsUntilMs.keys();
    if (restsUntilMs.size > maxKeys && oldest !== undefined) restsUntilMs.delete(oldest);
  }

  return {
    async enter(key) {
      for (;;) {
        const nowMs = monotonicMs();
        const untilMs = restsUntilMs.get(key) ?? 0;
        if (untilMs > nowMs) return Math.ceil((untilMs - nowMs) / 1000);
        const limit = nowOf(rule);
        const window = windows.of(key, windowMs, limit, nowMs);
        const left = Math.max(limit - window.sum, restMs === undefined ? 0 : 1);
        if (left === 0) return waitSeconds(window, nowMs);
        let door = doors.get(key);
        if (!door) doors.set(key, (door = { open: 0, waiting: [] }));
        if (door.open < left) {
          door.open += 1;
          return undefined;
        }
        const { waiting } = door;
        if (waiting.length >= MAX_WAITING) return 1;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    leave(key, isWrong) {
      const nowMs = monotonicMs();
      if (isWrong) {
        const limit = nowOf(rule);
        const window = windows.of(key, windowMs, limit, nowMs);
        add(window, nowMs);
        if (restMs !== undefined && window.sum >= limit) rest(key, nowMs + restMs);
      }
      const door = doors.get(key);
      if (!door) return;
      door.open -= 1;
      const waiting = door.waiting.splice(0);
      if (door.open === 0) doors.delete(key);
      for (const resolve of waiting) resolve();
    },
  };
}
