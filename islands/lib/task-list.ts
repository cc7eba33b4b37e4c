// Lists of drawing and creative tasks: asking for a page, refreshing by itself while something on it still runs.
// Refuses to poll a page that nobody looks at, and one on which everything has ended.
import { useEffect, useRef } from "react";
import { ApiFailure, fetchChecked } from "./api.ts";
import { t } from "./i18n.ts";
import { useList } from "./list.ts";
import type { LiveListState, ListPage } from "./list.ts";

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
export async function fetchTasks<Row>(
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

export function isRunning({ progress, status }: TaskLike): boolean {
  return progress !== "100%" && status !== "SUCCESS" && status !== "FAILURE";
}

export interface TaskListOptions<Row> {
  initial: ListPage<Row>;
  queryKey: string;
  load: (signal?: AbortSignal) => Promise<ListPage<Row>>;
}

export function useTaskList<Row extends TaskLike>(options: TaskListOptions<Row>): LiveListState<Row> {
  const list = useList<Row>(options);
  const latest = useRef({ list, load: options.load });
  latest.current = { list, load: options.load };
  const isActive = list.rows.some(isRunning);
  const { queryKey } = options;
  useEffect(() => {
    if (!isActive) return undefined;
    const controller = new AbortController();
    const timer = setInterval(() => {
      const { list: now, load } = latest.current;
      if (document.hidden || now.phase !== "ready") return;
      // A failed round is no news: the next one may work, and Refresh tells what is wrong.
      void load(controller.signal).then(
        (page) => controller.signal.aborted || latest.current.list.replace(page),
        () => undefined,
      );
    }, REFRESH_MS);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [isActive, queryKey]);
  return list;
}
