// What forgets trouble by time, without a timer: whoever asks whether there is any looks now and then whether it is over. Refuses
// to look more often than once a minute, so that asking costs a comparison.

/** Trouble is remembered for minutes: one more is nothing. */
const EVERY_MS = 60_000;

/** `sweep` forgets what is over; times are of the steady clock. */
export function atMostEachMinute(sweep: (nowMs: number) => void): (nowMs: number) => void {
  let dueMs = -Infinity;
  return (nowMs) => {
    if (nowMs < dueMs) return;
    dueMs = nowMs + EVERY_MS;
    sweep(nowMs);
  };
}
