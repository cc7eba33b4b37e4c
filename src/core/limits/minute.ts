// What somebody did in the last 60 seconds: a sum over moments that leaves each of them exactly a minute later.
// Every `nowMs` is of the steady clock.

export const MINUTE_MS = 60_000;
/** Moments that are kept apart; beyond, what comes within the same slice shares one, and leaves with its last millisecond. */
const MOST_MOMENTS = 4096;
const SLICE_MS = Math.ceil(MINUTE_MS / MOST_MOMENTS);
const CUT_AT = 256;

export interface Minute {
  sum(nowMs: number): number;
  /** Answers the moment that it counts with. */
  add(amount: number, nowMs: number): number;
  /** What was added with that moment never happened; nothing where it has left already. */
  takeBack(amount: number, moment: number): void;
  /** Milliseconds until no more than `most` is left of what is there now; 0: that is so already. */
  waitMs(most: number, nowMs: number): number;
}

export function createMinute(): Minute {
  /** Ascending, from `head` on. */
  const moments: number[] = [];
  const amounts: number[] = [];
  let head = 0;
  let sum = 0;

  function advance(nowMs: number): void {
    while (head < moments.length && (moments[head] ?? 0) + MINUTE_MS <= nowMs) {
      sum -= amounts[head] ?? 0;
      head += 1;
    }
    if (head === moments.length || head >= CUT_AT) {
      moments.splice(0, head);
      amounts.splice(0, head);
      head = 0;
    }
  }

  return {
    sum(nowMs) {
      advance(nowMs);
      return sum;
    },
    add(amount, nowMs) {
      advance(nowMs);
      const last = moments.length - 1;
      const isCrowded = moments.length - head >= MOST_MOMENTS;
      const moment = isCrowded ? (Math.floor(nowMs / SLICE_MS) + 1) * SLICE_MS - 1 : nowMs;
      if (last >= head && (moments[last] ?? 0) >= moment) amounts[last] = (amounts[last] ?? 0) + amount;
      else {
        moments.push(moment);
        amounts.push(amount);
      }
      sum += amount;
      return moments.at(-1) ?? moment;
    },
    takeBack(amount, moment) {
      for (let at = moments.length - 1; at >= head && (moments[at] ?? 0) >= moment; at--) {
        if (moments[at] !== moment) continue;
        amounts[at] = (amounts[at] ?? 0) - amount;
        sum -= amount;
        return;
      }
    },
    waitMs(most, nowMs) {
      advance(nowMs);
      let left = sum;
      for (let at = head; left > most && at < moments.length; at++) {
        left -= amounts[at] ?? 0;
        if (left <= most) return (moments[at] ?? 0) + MINUTE_MS - nowMs;
      }
      return left > most ? MINUTE_MS : 0;
    },
  };
}
