// The list of the channel screen and what hangs on it: counts of the views, results of tests, a run over all channels.
// Refuses to lose the address: filters, order and page stand there; only closed tags are the page's own.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, call, callForBody } from "../../lib/api.ts";
import { bootData } from "../../lib/boot.ts";
import { useListScreen } from "../../lib/list-screen.ts";
import type { PageRequest, ShownList } from "../../lib/list-screen.ts";
import type { ListState } from "../../lib/list.ts";
import { useTableQuery } from "../../lib/table-query.ts";
import type { TableQuery } from "../../lib/table-query.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { ChannelRow, ChannelSummary } from "../../lib/wire.ts";
import type { ChannelPageData, ListRow, TestState } from "./row.ts";
import { groupByTag, isTagRow, VIEW_FIELDS } from "./row.ts";

/** A run over many channels, as the bar above the list shows it: how far it is, then what came of it until it is closed. */
export interface RunProgress {
  kind: "tests" | "balances";
  isRunning: boolean;
  isCancelled: boolean;
  done: number;
  total: number;
  failed: number;
  /** Beside the total: what cannot be tested. */
  skipped: number;
  elapsedMs: number;
  /** Of what failed or was skipped: name and reason, where this page knows them. */
  reasons?: readonly string[];
  cancel: () => void;
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
  /** With the parameters in force: the address, or what this browser remembers where the address is bare. */
  table: TableQuery;
  list: ListState<ChannelRow>;
  /** The rows as they are shown: in tag mode with the heads of the tags. */
  shown: ShownList<ListRow>;
  isTagMode: boolean;
  summary: ChannelSummary;
  /** List and counts anew. */
  refresh: () => Promise<void>;
  toggleTag: (tag: string) => void;
  tests: ReadonlyMap<number, TestState>;
  setTest: (id: number, state: TestState | undefined) => void;
  run: RunProgress | undefined;
  setRun: (run: RunProgress | undefined) => void;
}

type ChannelFilters = Record<(typeof VIEW_FIELDS)[number], string>;

async function fetchChannels(filters: ChannelFilters, { page, pageSize }: PageRequest) {
  const { data, total } = await callForBody(
    api.channel.search.get({ query: { ...filters, p: String(page - 1), page_size: String(pageSize) } }),
  );
  return { rows: data, total };
}

/** Until the page has come alive a bare address stands for what is remembered; then it is written out. */
function useRememberedQuery({ pageSize, remembered }: ChannelPageData): TableQuery {
  const table = useTableQuery(pageSize);
  const [isFresh, setFresh] = useState(true);
  const isBare = Object.keys(table.query).length === 0;
  useEffect(() => {
    if (isBare && Object.keys(remembered).length > 0) setQuery(remembered, { replace: true });
    setFresh(false);
    // Once, for the first address.
  }, []);
  return isFresh && isBare ? { ...table, query: { ...remembered } } : table;
}

/** How far a run over all channels is; nothing is shown of it once the page is left. */
function useRunProgress(): Pick<Channels, "run" | "setRun"> {
  const [run, setRun] = useState<RunProgress>();
  const isGone = useRef(false);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  return {
    run,
    setRun: (next) => {
      if (!isGone.current) setRun(next);
    },
  };
}

export function useChannels(): Channels {
  const data = bootData<ChannelPageData>();
  const table = useRememberedQuery(data);
  const filters = Object.fromEntries(
    VIEW_FIELDS.map((name) => [name, table.query[name] ?? ""]),
  ) as ChannelFilters;
  const isTagMode = filters.tag_mode === "true";
  const screen = useListScreen<ChannelRow>({
    data,
    table,
    filters,
    arranging: ["tag_mode", "sort"],
    fetchPage: (request) => fetchChannels(filters, request),
  });
  const { list } = screen;

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
  const selected = useRef<readonly ListRow[]>([]);
  const [tests, setTests] = useState<ReadonlyMap<number, TestState>>(new Map());

  return {
    data,
    table,
    list,
    shown: { ...screen, selected, list: { ...list, rows, refresh, patch: () => () => undefined } },
    isTagMode,
    summary,
    refresh,
    toggleTag(tag) {
      const next = new Set(closed);
      if (!next.delete(tag)) next.add(tag);
      setClosed(next);
    },
    tests,
    setTest: (id, state) =>
      setTests((before) => {
        const next = new Map(before);
        if (state) next.set(id, state);
        else next.delete(id);
        return next;
      }),
    ...useRunProgress(),
  };
}

/** The channels among rows: heads of tags are none. */
export function plainRows(rows: readonly ListRow[]): ChannelRow[] {
  return rows.filter((row): row is ChannelRow => !isTagRow(row));
}
