// How long an open task has been waiting, on the steady clock of the process that watches it.
// Refuses to let a time of day that was set make a running task look lost: it would be ended and given back.
import type { Clock } from "../deps.ts";

const MAX_TASKS = 100_000;

interface Seen {
  /** By the time of day, when this process first saw the task. */
  ageMs: number;
  atMs: number;
}

const seenBy = new WeakMap<Clock, Map<string, Seen>>();

/** `sinceMs`: Unix milliseconds as stored. A task from the future (the clock was set back) counts from now. */
export function taskAgeMs(clock: Clock, family: string, id: number, sinceMs: number): number {
  let seen = seenBy.get(clock);
  if (!seen) seenBy.set(clock, (seen = new Map()));
  const key = `${family}:${id}`;
  const nowMs = clock.monotonicMs();
  let entry = seen.get(key);
  if (!entry) {
    seen.set(key, (entry = { ageMs: Math.max(0, clock.nowMs() - sinceMs), atMs: nowMs }));
    const [oldest] = seen.keys();
    if (seen.size > MAX_TASKS && oldest !== undefined) seen.delete(oldest);
  }
  return entry.ageMs + nowMs - entry.atMs;
}
