// The live tail of the usage log: the newest rows every five seconds, and a count for those who listen.
// Refuses to poll a hidden tab; a failed round ends the tail and says why.
import { useEffect, useRef } from "react";
import type { ListPage } from "../../lib/list.ts";
import { announce, toastFailure } from "../../lib/toasts.ts";
import type { LogRow } from "../../lib/wire.ts";

const LIVE_MS = 5000;
const ANNOUNCE_MS = 10_000;

export interface LiveTailOptions {
  isLive: boolean;
  /** Changes with whatever begins the tail anew. */
  tailKey: string;
  rowKey: (row: LogRow) => string;
  /** The rows that are shown. */
  rows: readonly LogRow[];
  fetchNewest: (signal: AbortSignal) => Promise<ListPage<LogRow>>;
  /** `freshCount`: how many of the newest rows are not shown yet. */
  onRound: (newest: ListPage<LogRow>, freshCount: number, signal: AbortSignal) => Promise<void>;
  onStart: (rows: readonly LogRow[]) => void;
  /** Also before the first start: the tail is off. */
  onStop: () => void;
  /** A round failed. */
  onEnd: () => void;
}

/** Says how many rows came in, at most every ten seconds. */
function createAnnouncer(): (count: number) => void {
  let unannounced = 0;
  let announcedAtMs = 0;
  return (count) => {
    unannounced += count;
    if (unannounced === 0 || Date.now() - announcedAtMs < ANNOUNCE_MS) return;
    announce("log.newRows", { count: unannounced });
    unannounced = 0;
    announcedAtMs = Date.now();
  };
}

export function useLiveTail(options: LiveTailOptions): void {
  const latest = useRef(options);
  latest.current = options;
  const { isLive, tailKey } = options;
  useEffect(() => {
    if (!isLive) {
      latest.current.onStop();
      return undefined;
    }
    const { rows, rowKey, onStart } = latest.current;
    onStart(rows);
    const controller = new AbortController();
    const { signal } = controller;
    const seen = new Set(rows.map(rowKey));
    const announceNew = createAnnouncer();
    let timer: ReturnType<typeof setTimeout>;

    const poll = async () => {
      const newest = await latest.current.fetchNewest(signal);
      if (signal.aborted) return;
      const shown = new Set(latest.current.rows.map(rowKey));
      const count = newest.rows.filter((row) => !shown.has(rowKey(row))).length;
      announceNew(newest.rows.filter((row) => !seen.has(rowKey(row))).length);
      for (const row of newest.rows) seen.add(rowKey(row));
      await latest.current.onRound(newest, count, signal);
    };
    const again = () => {
      timer = setTimeout(() => {
        // Nobody looks at a hidden tab.
        const round = document.hidden ? Promise.resolve() : poll();
        round.then(again, (error: unknown) => {
          if (signal.aborted) return;
          toastFailure(error, "live");
          latest.current.onEnd();
        });
      }, LIVE_MS);
    };
    again();
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [isLive, tailKey]);
}
