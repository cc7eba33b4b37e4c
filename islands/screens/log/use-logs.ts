// Rows, figures and histogram of the usage log for the filter in the address, and the live tail.
// Refuses to move the reader: what comes in while somebody reads below the top waits until it is asked for.
import { useEffect, useRef, useState } from "react";
import { api, call } from "../../lib/api.ts";
import { timeZone } from "../../lib/boot.ts";
import { useList } from "../../lib/list.ts";
import type { ListPage, ListState } from "../../lib/list.ts";
import { rangeOf } from "../../lib/time-range.ts";
import type { Query } from "../../lib/url-state.ts";
import { announce, toastFailure } from "../../lib/toasts.ts";
import type { LogPageData } from "./row.ts";
import { rowKeyOf } from "./row.ts";
import type { LogHistogramData, LogRow, LogStat } from "../../lib/wire.ts";

const LIVE_MS = 5000;
const ANNOUNCE_MS = 10_000;
/** Relative ranges end now; a little ahead, so that a fast call right now is in. */
const AHEAD_SECONDS = 60;
export const DEFAULT_RANGE = "7d";

export type LogFilters = Record<"type" | "token_name" | "model_name" | "group", string> & {
  username?: string;
  channel?: string;
};

export function filtersOf(query: Query, isAdmin: boolean): LogFilters {
  return {
    type: query.type ?? "0",
    token_name: query.token_name ?? "",
    model_name: query.model_name ?? "",
    group: query.group ?? "",
    ...(isAdmin ? { username: query.username ?? "", channel: query.channel ?? "" } : {}),
  };
}

/** Parameters of the call for the range in the address, as of this moment. */
export function periodOf(query: Query, nowMs: number): { start_timestamp: string; end_timestamp: string } {
  const range = rangeOf(query, nowMs, timeZone.peek(), DEFAULT_RANGE);
  return {
    start_timestamp: String(range.from),
    end_timestamp: String(range.preset ? range.to + AHEAD_SECONDS : range.to),
  };
}

export type LogParameters = LogFilters & { start_timestamp: string; end_timestamp: string };

export async function fetchLogs(
  isAdmin: boolean,
  parameters: LogParameters,
  page: number,
  pageSize: number,
  signal: AbortSignal,
): Promise<ListPage<LogRow>> {
  const query = { ...parameters, p: String(page), page_size: String(pageSize) };
  const fetch = { signal };
  const { items, total } = await (isAdmin
    ? call(api.log.get({ query, fetch }))
    : call(api.log.self.get({ query, fetch })));
  return { rows: items, total };
}

async function fetchFigures(
  isAdmin: boolean,
  query: LogParameters,
  signal: AbortSignal,
): Promise<{ stat: LogStat; histogram: LogHistogramData }> {
  const fetch = { signal };
  const [stat, histogram] = isAdmin
    ? await Promise.all([
        call(api.log.stat.get({ query, fetch })),
        call(api.log.histogram.get({ query, fetch })),
      ])
    : await Promise.all([
        call(api.log.self.stat.get({ query, fetch })),
        call(api.log.self.histogram.get({ query, fetch })),
      ]);
  return { stat, histogram };
}

export interface Logs {
  list: ListState<LogRow>;
  stat: LogStat;
  histogram: LogHistogramData;
  /** Rows at the top that came in since the reader began. */
  freshCount: number;
  /** Rows that wait because somebody reads. */
  waiting: number;
  showWaiting: () => void;
  endLive: () => void;
}

export interface LogsOptions {
  data: LogPageData;
  query: Query;
  page: number;
  pageSize: number;
  isLive: boolean;
  onLiveEnd: () => void;
  /** Whether new rows would move what somebody looks at. */
  isReading: () => boolean;
}

export function useLogs({ data, query, page, pageSize, isLive, onLiveEnd, isReading }: LogsOptions): Logs {
  const { isAdmin } = data;
  const [figures, setFigures] = useState({ stat: data.stat, histogram: data.histogram });
  const [baseline, setBaseline] = useState<ReadonlySet<string>>();
  const [waiting, setWaiting] = useState<ListPage<LogRow> & { count: number }>();
  const filters = filtersOf(query, isAdmin);
  const filterText = JSON.stringify([filters, query.range, query.start_timestamp, query.end_timestamp]);

  const figuresFor = useRef(filterText);
  const list = useList<LogRow>({
    initial: data,
    queryKey: `${filterText} ${page} ${pageSize}`,
    async load(signal) {
      const parameters = { ...filters, ...periodOf(query, Date.now()) };
      const isTurn = figuresFor.current === filterText && page !== 1;
      // Figures are beside the point of the list: without them the rows are still shown.
      const beside = isTurn
        ? Promise.resolve()
        : fetchFigures(isAdmin, parameters, signal).then((next) => {
            figuresFor.current = filterText;
            setFigures(next);
          });
      const [rows] = await Promise.all([
        fetchLogs(isAdmin, parameters, page, pageSize, signal),
        beside.catch(toastFailure),
      ]);
      setWaiting(undefined);
      setBaseline((before) => before && new Set(rows.rows.map((row) => rowKeyOf(row, isAdmin))));
      return rows;
    },
  });

  const key = (row: LogRow) => rowKeyOf(row, isAdmin);
  const latest = useRef({ list, filters, query, pageSize, isReading, onLiveEnd });
  latest.current = { list, filters, query, pageSize, isReading, onLiveEnd };

  useEffect(() => {
    if (!isLive) {
      setBaseline(undefined);
      setWaiting(undefined);
      return undefined;
    }
    setBaseline(new Set(latest.current.list.rows.map(key)));
    const controller = new AbortController();
    const { signal } = controller;
    let unannounced = 0;
    let announcedAtMs = 0;
    let timer: ReturnType<typeof setTimeout>;
    const seen = new Set(latest.current.list.rows.map(key));

    const poll = async () => {
      const now = latest.current;
      const parameters = { ...now.filters, ...periodOf(now.query, Date.now()) };
      const next = await fetchLogs(isAdmin, parameters, 1, now.pageSize, signal);
      if (signal.aborted) return;
      const shown = new Set(latest.current.list.rows.map(key));
      const count = next.rows.filter((row) => !shown.has(key(row))).length;
      unannounced += next.rows.filter((row) => !seen.has(key(row))).length;
      for (const row of next.rows) seen.add(key(row));
      if (count > 0) {
        if (latest.current.isReading()) setWaiting({ ...next, count });
        else latest.current.list.replace(next);
      }
      if (unannounced > 0 && Date.now() - announcedAtMs >= ANNOUNCE_MS) {
        announce("log.newRows", { count: unannounced });
        unannounced = 0;
        announcedAtMs = Date.now();
      }
      setFigures(await fetchFigures(isAdmin, parameters, signal));
    };
    const again = () => {
      timer = setTimeout(() => {
        // Nobody looks at a hidden tab.
        const round = document.hidden ? Promise.resolve() : poll();
        round.then(again, (error: unknown) => {
          if (signal.aborted) return;
          toastFailure(error, "live");
          latest.current.onLiveEnd();
        });
      }, LIVE_MS);
    };
    again();
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [isLive, isAdmin, filterText, page]);

  const freshCount = baseline ? list.rows.findIndex((row) => baseline.has(key(row))) : 0;
  return {
    list,
    ...figures,
    freshCount: Math.max(0, freshCount),
    waiting: waiting?.count ?? 0,
    showWaiting() {
      if (waiting) list.replace(waiting);
      setWaiting(undefined);
    },
    endLive: onLiveEnd,
  };
}
