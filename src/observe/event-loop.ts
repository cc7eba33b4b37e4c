// How late the event loop is: a timer that says by how much it was late itself, often while the process works and seldom
// while it rests. Refuses to keep an idle process awake: the runtime's own monitor took 0.1 to 0.5 % of a core at rest, and
// at rest it looks when others wake the process anyway.
import { METRICS } from "./names.ts";
import { createTally, observe } from "./tally.ts";
import type { Tally } from "./tally.ts";

const BUSY_MS = 25;
const RESTING_MS = 500;
/** While nobody calls at all. */
const UNUSED_MS = 2500;
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
  /** Calls at intervals, until what it returns is called: the timer that the process shares (db/look-around.ts). */
  lookEvery?: (ms: number, look: (look?: { dueMs: number }) => void, unusedMs?: number) => () => void;
}

function ownInterval(ms: number, look: () => void): () => void {
  const timer = setInterval(() => look(), ms);
  timer.unref();
  return () => clearInterval(timer);
}

function processorUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

export function watchEventLoop({
  nowMs = () => performance.now(),
  usedUs = processorUs,
  lookEvery = ownInterval,
}: EventLoopParts = {}): EventLoopWatch {
  const delays = createTally(METRICS.weir_eventloop_delay_seconds.buckets);
  let pauseMs = RESTING_MS;
  let tickedMs = nowMs();
  let usedBefore = usedUs();
  let lookedMs = tickedMs;
  let stopLooks: () => void;

  /** The first look on a shared timer may come sooner: then it was not late. */
  function watch(ms: number): void {
    pauseMs = ms;
    stopLooks = ms === BUSY_MS ? ownInterval(ms, () => tick()) : lookEvery(ms, tick, UNUSED_MS);
  }

  function tick({ dueMs } = { dueMs: pauseMs }): void {
    const now = nowMs();
    const late = Math.max(0, now - tickedMs - dueMs) / 1000;
    tickedMs = now;
    // A seldom look stands for as many as there would have been: shares of the looks are shares of the time.
    if (late < LONGEST_SECONDS) observe(delays, late, Math.round(dueMs / BUSY_MS));
    // A shared timer's step may be a little short.
    if (now - lookedMs < RESTING_MS - BUSY_MS) return;
    const used = usedUs();
    const isBusy = used - usedBefore > (now - lookedMs) * 1000 * BUSY_SHARE;
    usedBefore = used;
    lookedMs = now;
    if (isBusy === (pauseMs === BUSY_MS)) return;
    stopLooks();
    watch(isBusy ? BUSY_MS : RESTING_MS);
  }

  watch(RESTING_MS);
  return { delays, stop: () => stopLooks() };
}
