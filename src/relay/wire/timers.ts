// The clock and the timers of what is relayed, passed in so that tests have hands on them.

export interface Timers {
  set(run: () => void, ms: number): unknown;
  clear(handle: unknown): void;
  nowMs(): number;
}

export const realTimers: Timers = {
  set: (run, ms) => setTimeout(run, ms),
  clear: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
  nowMs: () => performance.now(),
};
