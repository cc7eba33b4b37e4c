// Limits repeated attempts (sign-in, codes) by any key: two numbers of memory per key, no burst at window edges.
// Refuses to grow without bound: the oldest keys are forgotten first.

export interface AttemptLimit {
  /** Takes one attempt. Undefined when allowed, else the seconds to wait. */
  take(key: string): number | undefined;
  /** Gives an attempt back: a successful sign-in does not count. */
  giveBack(key: string): void;
}

/**
 * Generic cell rate algorithm (ITU-T I.371): `limit` attempts may come at once, then one per windowMs / limit.
 */
export function createAttemptLimit(
  limit: number,
  windowMs: number,
  nowMs: () => number,
  maxKeys = 100_000,
): AttemptLimit {
  const intervalMs = windowMs / limit;
  /** Key -> theoretical arrival time of the next attempt. */
  const arrivals = new Map<string, number>();
  return {
    take(key) {
      const now = nowMs();
      const arrival = Math.max(arrivals.get(key) ?? now, now);
      const waitMs = arrival + intervalMs - now - windowMs;
      if (waitMs > 1e-6) return Math.ceil(waitMs / 1000);
      arrivals.delete(key);
      arrivals.set(key, arrival + intervalMs);
      if (arrivals.size > maxKeys) {
        const oldest = arrivals.keys().next().value;
        if (oldest !== undefined) arrivals.delete(oldest);
      }
      return undefined;
    },
    giveBack(key) {
      const arrival = arrivals.get(key);
      if (arrival !== undefined) arrivals.set(key, arrival - intervalMs);
    },
  };
}
