// Rows of a list that follow the address: the first ones from the boot data, later ones from a call. They follow the language too:
// some of what stands in them the server has written.
// Refuses answers that were overtaken: only the answer to the latest query is shown.
import { useSignals } from "@preact/signals-react/runtime";
import { useCallback, useEffect, useRef, useState } from "react";
import { failureMessage, isAbort } from "./api.ts";
import { language } from "./i18n.ts";

export type ListPhase = "ready" | "loading" | "refreshing" | "failed";

export interface ListState<Row> {
  rows: readonly Row[];
  /** -1: the call does not tell. */
  total: number;
  /** `total` is where the count ended. */
  isMore?: boolean | undefined;
  phase: ListPhase;
  /** Public text of the last failure. */
  failure: string | undefined;
  /** Asks again for the same query; the rows stay while it runs. */
  refresh: () => Promise<void>;
  /** Changes rows in place (optimistic writes); returns an undo. */
  patch: (change: (rows: readonly Row[]) => readonly Row[]) => () => void;
}

export interface ListPage<Row> {
  rows: readonly Row[];
  total: number;
  isMore?: boolean | undefined;
}

export interface ListOptions<Row> {
  /** First page out of the boot data; undefined: load at once. */
  initial: ListPage<Row> | undefined;
  /** Changes with every filter, sort or page. */
  queryKey: string;
  load: (signal: AbortSignal) => Promise<ListPage<Row>>;
}

export interface LiveListState<Row> extends ListState<Row> {
  /** Shows another answer to the same query, got in another way (a live tail). */
  replace: (page: ListPage<Row>) => void;
}

export function useList<Row>({ initial, queryKey, load }: ListOptions<Row>): LiveListState<Row> {
  useSignals();
  const asked = `${language.value} ${queryKey}`;
  const [page, setPage] = useState<ListPage<Row>>(initial ?? { rows: [], total: -1 });
  const [phase, setPhase] = useState<ListPhase>(initial ? "ready" : "loading");
  const [failure, setFailure] = useState<string>();
  const answered = useRef(initial ? asked : undefined);
  const running = useRef<AbortController>(undefined);
  /** What the address asks for now: an action that ends late was begun under another one. */
  const latest = useRef({ asked, load });
  latest.current = { asked, load };
  /** Counts the pages that were shown: an undo belongs to its own. */
  const shownPages = useRef(0);

  const show = useCallback((next: ListPage<Row>, key: string) => {
    answered.current = key;
    shownPages.current++;
    setPage(next);
    setFailure(undefined);
  }, []);

  const refresh = useCallback(async () => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    // Whoever comes back before the answer, or after its failure, asks again.
    answered.current = undefined;
    setPhase((before) => (before === "loading" ? before : "refreshing"));
    const { asked: key, load: loadNow } = latest.current;
    try {
      const next = await loadNow(controller.signal);
      if (controller.signal.aborted) return;
      show(next, key);
      setPhase("ready");
    } catch (error) {
      if (controller.signal.aborted || isAbort(error)) return;
      setFailure(failureMessage(error));
      setPhase("failed");
    }
  }, [show]);

  useEffect(() => {
    if (answered.current !== asked) void refresh();
    return () => running.current?.abort();
  }, [asked, refresh]);

  const replace = useCallback(
    (next: ListPage<Row>) => {
      show(next, latest.current.asked);
      setPhase((before) => (before === "failed" ? "ready" : before));
    },
    [show],
  );
  const patch = useCallback((change: (rows: readonly Row[]) => readonly Row[]) => {
    let before: readonly Row[] = [];
    const on = shownPages.current;
    setPage((current) => {
      before = current.rows;
      return { ...current, rows: change(current.rows) };
    });
    return () => setPage((current) => (on === shownPages.current ? { ...current, rows: before } : current));
  }, []);

  return {
    rows: page.rows,
    total: page.total,
    isMore: page.isMore,
    phase,
    failure,
    refresh,
    patch,
    replace,
  };
}
