// Rows, figures and histogram of the usage log for the filter in the address, and the live tail.
// Refuses to move the reader: what comes in while somebody reads below the top waits until somebody wants it.
import { useEffect, useRef, useState } from "react";
import { api, call } from "../../lib/api.ts";
import { siteZone } from "../../lib/boot.ts";
import { rowKeyOf } from "../../lib/log-key.ts";
import { filterKeyOf, useListScreen } from "../../lib/list-screen.ts";
import type { ListScreenState, PageRequest } from "../../lib/list-screen.ts";
import type { ListPage } from "../../lib/list.ts";
import type { TableQuery } from "../../lib/table-query.ts";
import { rangeOf } from "../../lib/time-range.ts";
import type { Query } from "../../lib/url-state.ts";
import { toastFailure } from "../../lib/toasts.ts";
import type { LogHistogramData, LogRow, LogStat } from "../../lib/wire.ts";
import { useLiveTail } from "./live-tail.ts";
import type { LogPageData } from "./row.ts";

/** Relative ranges end now; a little ahead, so that a fast call right now is in. */
const AHEAD_SECONDS = 60;
export const DEFAULT_RANGE = "7d";

/** As they stand in the address; "" where it has none. The last two are the administrators'. */
type LogFilters = Record<"type" | "token_name" | "model_name" | "group" | "request_id", string> & {
  username?: string;
  channel?: string;
};

function filtersOf(query: Query, isAdmin: boolean): LogFilters {
  return {
    type: query.type === "0" ? "" : (query.type ?? ""),
    token_name: query.token_name ?? "",
    model_name: query.model_name ?? "",
    group: query.group ?? "",
    request_id: query.request_id ?? "",
    ...(isAdmin ? { username: query.username ?? "", channel: query.channel ?? "" } : {}),
  };
}

export type LogParameters = LogFilters & { start_timestamp: string; end_timestamp: string };

/** Parameters of the calls for filters and range in the address, as of this moment. */
export function logParameters(query: Query, isAdmin: boolean): LogParameters {
  const filters = filtersOf(query, isAdmin);
  const range = rangeOf(query, Date.now(), siteZone.peek(), DEFAULT_RANGE);
  return {
    ...filters,
    type: filters.type || "0",
    start_timestamp: String(range.from),
    end_timestamp: String(range.preset ? range.to + AHEAD_SECONDS : range.to),
  };
}

async function fetchLogs(
  isAdmin: boolean,
  parameters: LogParameters,
  { page, pageSize, signal }: PageRequest,
): Promise<ListPage<LogRow>> {
  const query = { ...parameters, p: String(page), page_size: String(pageSize) };
  const fetch = signal ? { signal } : {};
  const {
    items,
    total,
    total_more: isMore,
  } = await (isAdmin ? call(api.log.get({ query, fetch })) : call(api.log.self.get({ query, fetch })));
  return { rows: items, total, isMore };
}

interface LogFigures {
  stat: LogStat;
  histogram: LogHistogramData;
}

async function fetchFigures(
  isAdmin: boolean,
  query: LogParameters,
  signal: AbortSignal | undefined,
): Promise<LogFigures> {
  const fetch = signal ? { signal } : {};
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

export interface Logs extends LogFigures {
  screen: ListScreenState<LogRow>;
  /** Rows at the top that came in since the reader began. */
  freshCount: number;
  /** Rows that wait because somebody reads. */
  waiting: number;
  showWaiting: () => void;
}

export interface LogsOptions {
  data: LogPageData;
  table: TableQuery;
  isLive: boolean;
  onLiveEnd: () => void;
  /** Whether new rows would move what somebody looks at. */
  isReading: () => boolean;
}

export function useLogs({ data, table, isLive, onLiveEnd, isReading }: LogsOptions): Logs {
  const { isAdmin } = data;
  const { query, page, pageSize } = table;
  const [figures, setFigures] = useState<LogFigures>({ stat: data.stat, histogram: data.histogram });
  /** The rows that were there when the reader began. */
  const [baseline, setBaseline] = useState<ReadonlySet<string>>();
  const [waiting, setWaiting] = useState<ListPage<LogRow> & { count: number }>();
  const filters = filtersOf(query, isAdmin);
  const filterKey = filterKeyOf(filters, table);
  const figuresFor = useRef(filterKey);
  const keysOf = (rows: readonly LogRow[]) => new Set(rows.map((row) => rowKeyOf(row, isAdmin)));

  const screen = useListScreen<LogRow>({
    data,
    table,
    filters,
    async fetchPage(request) {
      const parameters = logParameters(query, isAdmin);
      const isTurn = figuresFor.current === filterKey && page !== 1;
      // Figures are beside the point of the list: without them the rows are still shown.
      const beside = isTurn
        ? Promise.resolve()
        : fetchFigures(isAdmin, parameters, request.signal).then((next) => {
            figuresFor.current = filterKey;
            setFigures(next);
          });
      const [found] = await Promise.all([
        fetchLogs(isAdmin, parameters, request),
        beside.catch(toastFailure),
      ]);
      setWaiting(undefined);
      setBaseline((before) => before && keysOf(found.rows));
      return found;
    },
  });
  const { list } = screen;

  // What is new stands on page 1: another page would show its rows as its own.
  const isTailed = isLive && page === 1;
  useEffect(() => {
    if (isLive && page !== 1) onLiveEnd();
  }, [isLive, page]);
  useLiveTail({
    isLive: isTailed,
    tailKey: `${isAdmin} ${filterKey} ${page}`,
    rowKey: (row) => rowKeyOf(row, isAdmin),
    rows: list.rows,
    fetchNewest: (signal) => fetchLogs(isAdmin, logParameters(query, isAdmin), { page: 1, pageSize, signal }),
    onRound: async (newest, freshCount, signal) => {
      if (freshCount > 0) {
        if (isReading()) setWaiting({ ...newest, count: freshCount });
        else list.replace(newest);
      }
      setFigures(await fetchFigures(isAdmin, logParameters(query, isAdmin), signal));
    },
    onStart: (rows) => setBaseline(keysOf(rows)),
    onStop: () => {
      setBaseline(undefined);
      setWaiting(undefined);
    },
    onEnd: onLiveEnd,
  });

  const known = baseline ? list.rows.findIndex((row) => baseline.has(rowKeyOf(row, isAdmin))) : 0;
  return {
    screen,
    ...figures,
    freshCount: Math.max(0, known),
    waiting: waiting?.count ?? 0,
    showWaiting() {
      if (waiting) list.replace(waiting);
      setWaiting(undefined);
    },
  };
}
