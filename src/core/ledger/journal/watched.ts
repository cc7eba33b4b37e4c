// The journal as its watchers see it: how long its writes take, since when entries wait for the tables, what was put aside.
// Passes everything else through, and costs a batch two looks at the clock.
import type { Journal } from "./journal.ts";

/** Entries are dated so often at first: their age is told that exactly. */
const DATED_MS = 250;
/** After so many every second one goes, and they are taken half as often: an outage of days needs no more room. */
const MOST_DATES = 512;

export interface WatchedJournal<T> extends Journal<T> {
  /** For how long the oldest entry behind a position has been waiting; 0: none is. */
  oldestMs(applied: number): number;
  /** How many the tables refused since the start. */
  refused(): number;
}

export interface JournalWatchers {
  monotonicMs: () => number;
  /** A durable write of a batch took so long. */
  synced: (ms: number) => void;
}

export function watchJournal<T>(
  journal: Journal<T>,
  { monotonicMs, synced }: JournalWatchers,
): WatchedJournal<T> {
  let refused = 0;
  /** Entries behind `after` were written at `atMs` or later; the oldest first. */
  let dates: { after: number; atMs: number }[] = [];
  let everyMs = DATED_MS;

  function date(nowMs: number): void {
    const last = dates.at(-1);
    if (last && nowMs - last.atMs < everyMs) return;
    dates.push({ after: journal.lastPosition, atMs: nowMs });
    if (dates.length <= MOST_DATES) return;
    dates = dates.filter((_, place) => place % 2 === 0);
    everyMs *= 2;
  }

  /** The date in force is the last one that does not lie behind what is applied. */
  function forget(applied: number): void {
    if (applied >= journal.lastPosition) {
      dates = [];
      everyMs = DATED_MS;
    }
    while (dates.length > 1 && (dates[1]?.after ?? Infinity) <= applied) dates.shift();
  }

  return {
    ...journal,
    resume(stored) {
      journal.resume(stored);
      if (journal.lastPosition > stored.mark) dates = [{ after: stored.mark, atMs: monotonicMs() }];
    },
    append(items) {
      const startedMs = monotonicMs();
      date(startedMs);
      journal.append(items);
      synced(monotonicMs() - startedMs);
    },
    async appendLater(items) {
      const startedMs = monotonicMs();
      date(startedMs);
      await journal.appendLater(items);
      synced(monotonicMs() - startedMs);
    },
    setAside(entry, reason, nowMs) {
      refused++;
      journal.setAside(entry, reason, nowMs);
    },
    get lastPosition() {
      return journal.lastPosition;
    },
    trim(upTo, makeDurable) {
      journal.trim(upTo, makeDurable);
      forget(upTo);
    },
    oldestMs(applied) {
      forget(applied);
      const [oldest] = dates;
      return oldest ? monotonicMs() - oldest.atMs : 0;
    },
    refused: () => refused,
  };
}
