// The list of the channel screen and what hangs on it: counts of the views, results of tests, a run over all channels.
// Refuses to lose the address: filters, order and page stand there; only closed tags are the page's own.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, call, callForBody } from "../../lib/api.ts";
import { bootData } from "../../lib/boot.ts";
import { useList } from "../../lib/list.ts";
import type { ListState } from "../../lib/list.ts";
import { useTableQuery } from "../../lib/table-query.ts";
import type { TableQuery } from "../../lib/table-query.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { ChannelPageData, ListRow, TestState } from "./row.ts";
import { groupByTag, VIEW_FIELDS } from "./row.ts";
import type { ChannelRow, ChannelSummary } from "../../lib/wire.ts";

export interface RunProgress {
  isRunning: boolean;
  done: number;
  total: number;
  failed: number;
}

const RUN_KEY = "channel test run";

/** Whether this tab began a run over all channels whose end it has not seen. */
export function isRunStarted(): boolean {
  try {
    return sessionStorage.getItem(RUN_KEY) !== null;
  } catch {
    return false;
  }
}

export function noteRun(isStarted: boolean): void {
  try {
    if (isStarted) sessionStorage.setItem(RUN_KEY, "1");
    else sessionStorage.removeItem(RUN_KEY);
  } catch {
    // Without storage a reload only loses sight of the run.
  }
}

export interface Channels {
  data: ChannelPageData;
  table: TableQuery;
  /** Parameters in force: the address, or what this browser remembers where the address is bare. */
  query: Record<string, string>;
  list: ListState<ChannelRow>;
  /** The rows as they are shown: in tag mode with the heads of the tags. */
  shown: ListState<ListRow>;
  isTagMode: boolean;
  isFiltered: boolean;
  summary: ChannelSummary;
  /** List and counts anew. */
  refresh: () => Promise<void>;
  toggleTag: (tag: string) => void;
  tests: ReadonlyMap<number, TestState>;
  setTest: (id: number, state: TestState) => void;
  run: RunProgress | undefined;
  setRun: (run: RunProgress | undefined) => void;
  /** Every channel of the filter, for actions beyond the page. */
  loadAll: () => Promise<readonly ChannelRow[]>;
}

export function useChannels(): Channels {
  const data = bootData<ChannelPageData>();
  const table = useTableQuery(data.pageSize);
  const { page, pageSize } = table;
  // Until the page has come alive a bare address stands for what is remembered; then it is written out.
  const [isFresh, setFresh] = useState(true);
  const isBare = Object.keys(table.query).length === 0;
  const query = isFresh && isBare ? { ...data.remembered } : table.query;
  useEffect(() => {
    if (isBare && Object.keys(data.remembered).length > 0) setQuery(data.remembered, { replace: true });
    setFresh(false);
    // Once, for the first address.
  }, []);

  const filters = Object.fromEntries(VIEW_FIELDS.map((name) => [name, query[name] ?? ""])) as Record<
    (typeof VIEW_FIELDS)[number],
    string
  >;
  const isTagMode = filters.tag_mode === "true";
  const isFiltered = VIEW_FIELDS.some(
    (name) => name !== "tag_mode" && name !== "sort" && filters[name] !== "",
  );
  const ask = async (paging: { p?: string; page_size?: string }) => {
    const found = await callForBody(api.channel.search.get({ query: { ...filters, ...paging } }));
    return { rows: found.data, total: found.total };
  };
  const list = useList<ChannelRow>({
    initial: data,
    queryKey: JSON.stringify([filters, page, pageSize]),
    load: () => ask({ p: String(page - 1), page_size: String(pageSize) }),
  });

  const [summary, setSummary] = useState(data.summary);
  const { refresh: refreshList } = list;
  const refresh = useCallback(async () => {
    const counts = call(api.channel.summary.get()).then(setSummary);
    // The list tells its own failures.
    await Promise.all([refreshList(), counts.catch(() => undefined)]);
  }, [refreshList]);

  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo<readonly ListRow[]>(
    () => (isTagMode ? groupByTag(list.rows, closed) : list.rows),
    [isTagMode, list.rows, closed],
  );
  const [tests, setTests] = useState<ReadonlyMap<number, TestState>>(new Map());
  const [run, setRun] = useState<RunProgress>();
  const isGone = useRef(false);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);

  return {
    data,
    table,
    query,
    list,
    shown: { ...list, rows, refresh, patch: () => () => undefined },
    isTagMode,
    isFiltered,
    summary,
    refresh,
    toggleTag(tag) {
      const next = new Set(closed);
      if (!next.delete(tag)) next.add(tag);
      setClosed(next);
    },
    tests,
    setTest: (id, state) => setTests((before) => new Map(before).set(id, state)),
    run,
    setRun: (next) => {
      if (!isGone.current) setRun(next);
    },
    async loadAll() {
      const rows: ChannelRow[] = [];
      for (let at = 0; ; at++) {
        const next = await ask({ p: String(at), page_size: "100" });
        rows.push(...next.rows);
        if (next.rows.length < 100) return rows;
      }
    },
  };
}
