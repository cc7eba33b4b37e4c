// How late the event loop is: a timer that says by how much it was late itself, often while the process works and seldom
// while it rests. Refuses to keep an idle process awake: the runtime's own monitor took 0.1 to 0.5 % of a core at rest.
import { METRICS } from "./names.ts";
import { createTally, observe } from "./tally.ts";
import type { Tally } from "./tally.ts";

const BUSY_MS = 25;
const RESTING_MS = 500;
/** Above this share of a core the process is at work. */
const BUSY_SHARE = 0.1;
/** A machine that slept is not a loop that was late. */
const LONGEST_SECONDS = 60;

export interface EventLoopWatch {
  readonly delays: Tally;
  stop(): void;
}

export interface EventLoopParts {
  nowMs?: () => number;
  /** Microseconds of processor time since the start. */
  usedUs?: () => number;
}

function processorUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

export function watchEventLoop({
  nowMs = () => performance.now(),
  usedUs = processorUs,
}: EventLoopParts = {}): EventLoopWatch {
  const delays = createTally(METRICS.weir_eventloop_delay_seconds.buckets);
  let pauseMs = RESTING_MS;
  let dueMs = 0;
  let usedBefore = usedUs();
  let lookedMs = nowMs();
  let timer: ReturnType<typeof setTimeout>;

  function arm(): void {
    dueMs = nowMs() + pauseMs;
    timer = setTimeout(tick, pauseMs);
    timer.unref();
  }

  function tick(): void {
    const now = nowMs();
    const late = Math.max(0, now - dueMs) / 1000;
    // A seldom look stands for as many as there would have been: shares of the looks are shares of the time.
    if (late < LONGEST_SECONDS) observe(delays, late, pauseMs / BUSY_MS);
    if (now - lookedMs >= RESTING_MS) {
      const used = usedUs();
      pauseMs = used - usedBefore > (now - lookedMs) * 1000 * BUSY_SHARE ? BUSY_MS : RESTING_MS;
      usedBefore = used;
      lookedMs = now;
    }
    arm();
  }

  arm();
  return { delays, stop: () => clearTimeout(timer) };
}
