// Lists of drawing and creative tasks: asking for a page, refreshing by itself while something on it still runs.
// Refuses to poll a page that nobody looks at, and one on which everything has ended.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useRef } from "react";
import { ApiFailure, fetchChecked } from "./api.ts";
import { nowMs, siteZone } from "./boot.ts";
import { t } from "./i18n.ts";
import { useListScreen } from "./list-screen.ts";
import type { Filters, ListScreenState, PageRequest } from "./list-screen.ts";
import type { ListPage } from "./list.ts";
import type { TableQuery } from "./table-query.ts";
import { rangeOf } from "./time-range.ts";
import type { Preset, TimeRange } from "./time-range.ts";
import type { ListPageData } from "./wire.ts";

const REFRESH_MS = 5000;

/** What both kinds of rows share. */
export interface TaskLike {
  id: number;
  /** "35%", "100%", or whatever the upstream says. */
  progress: string;
  status: string;
}

interface PageBody<Row> {
  success?: boolean;
  message?: string;
  code?: string;
  total?: number;
  data?: Row[] | { items: Row[]; total: number } | null;
}

/** A page of one of the task lists; both shapes of the answer are known: rows alone, and rows with their total. */
async function fetchTasks<Row>(
  path: string,
  query: Record<string, string>,
  signal?: AbortSignal,
): Promise<ListPage<Row>> {
  const filled = Object.entries(query).filter(([, value]) => value !== "");
  const response = await fetchChecked(
    `${path}?${new URLSearchParams(filled).toString()}`,
    signal ? { signal } : {},
  );
  const body = (await response.json().catch(() => ({ success: false }))) as PageBody<Row>;
  if (body.success === false) {
    throw new ApiFailure(
      body.code ?? "bad_answer",
      response.status,
      body.message || t("common.failure.bad_answer"),
    );
  }
  const data = body.data ?? [];
  return Array.isArray(data)
    ? { rows: data, total: body.total ?? -1 }
    : { rows: data.items, total: data.total };
}

/** Percent of a progress text; undefined where it is no number. */
export function percentOf(progress: string): number | undefined {
  const found = /^\s*(\d{1,3}(?:\.\d+)?)\s*%?\s*$/.exec(progress);
  return found ? Math.min(100, Number(found[1])) : undefined;
}

function isRunning({ progress, status }: TaskLike): boolean {
  return progress !== "100%" && status !== "SUCCESS" && status !== "FAILURE";
}

/** Fetches the page again every five seconds while a task on it runs. */
function useTaskRefresh<Row extends TaskLike>(
  { list, queryKey }: Pick<ListScreenState<Row>, "list" | "queryKey">,
  load: (signal: AbortSignal) => Promise<ListPage<Row>>,
): void {
  const latest = useRef({ list, load });
  latest.current = { list, load };
  const isActive = list.rows.some(isRunning);
  useEffect(() => {
    if (!isActive) return undefined;
    const controller = new AbortController();
    const timer = setInterval(() => {
      const { list: now, load: loadNow } = latest.current;
      if (document.hidden || now.phase === "loading" || now.phase === "refreshing") return;
      // A failed round is no news: the next one may work, and Refresh tells what is wrong.
      void loadNow(controller.signal).then(
        (page) => controller.signal.aborted || latest.current.list.replace(page),
        () => undefined,
      );
    }, REFRESH_MS);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [isActive, queryKey]);
}

export interface TaskScreenOptions<Row> {
  data: ListPageData<Row>;
  table: TableQuery;
  filters: Filters;
  path: string;
  /** The range of an address that names none. */
  defaultRange: Preset;
  /** The call's parameters for a range. */
  periodOf: (range: TimeRange) => { start_timestamp: string; end_timestamp: string };
}

export interface TaskScreenState<Row> extends ListScreenState<Row> {
  range: TimeRange;
  /** The page's call, as of this moment. */
  request: () => { path: string; query: Record<string, string> };
}

export function useTaskScreen<Row extends TaskLike>(options: TaskScreenOptions<Row>): TaskScreenState<Row> {
  useSignals();
  const { data, table, filters, path, defaultRange, periodOf } = options;
  const { query } = table;
  const parameters = ({ page, pageSize }: PageRequest) => ({
    ...filters,
    // Relative ranges end now.
    ...periodOf(rangeOf(query, Date.now(), siteZone.peek(), defaultRange)),
    // These calls count their pages from 0.
    p: String(page - 1),
    page_size: String(pageSize),
  });
  const fetchPage = (request: PageRequest) => fetchTasks<Row>(path, parameters(request), request.signal);
  const screen = useListScreen<Row>({ data, table, filters, fetchPage });
  useTaskRefresh(screen, (signal) => fetchPage({ page: table.page, pageSize: table.pageSize, signal }));
  return {
    ...screen,
    range: rangeOf(query, nowMs.value, siteZone.value, defaultRange),
    request: () => ({ path, query: parameters(table) }),
  };
}
