// What every list screen stands on: filters, page and order in the address, the rows of that page, the selection, and
// every row of the filter for what goes beyond the page.
import { useEffect, useRef } from "react";
import { useList } from "./list.ts";
import type { ListPage, ListState, LiveListState } from "./list.ts";
import type { TableQuery } from "./table-query.ts";
import { toast } from "./toasts.ts";
import { setQuery } from "./url-state.ts";
import type { ListPageData } from "./wire.ts";

/** Rows per request where every row of a filter is fetched. */
export const FETCH_ALL_PAGE_SIZE = 100;

export type Filters = Readonly<Record<string, string>>;

export interface PageRequest {
  /** From 1. */
  page: number;
  pageSize: number;
  signal?: AbortSignal | undefined;
}

export interface ListScreenOptions<Row> {
  /** The first page, out of the boot data. */
  data: ListPageData<Row>;
  table: TableQuery;
  /** Parameters that narrow the list, by their names in the address; "" where the address has none. */
  filters: Filters;
  /** Parameters among the filters that arrange the list and narrow nothing: order, grouping. */
  arranging?: readonly string[];
  fetchPage: (request: PageRequest) => Promise<ListPage<Row>>;
}

/** What the page shows of a list. */
export interface ShownList<Row> {
  table: TableQuery;
  list: ListState<Row>;
  isFiltered: boolean;
  clearFilters: () => void;
  /** Every row of the filter, page after page. */
  loadAll: () => Promise<readonly Row[]>;
  selected: { current: readonly Row[] };
}

export interface ListScreenState<Row> extends ShownList<Row> {
  list: LiveListState<Row>;
  /** Changes with filters, range, page and page size. */
  queryKey: string;
}

/** Changes with the filters and the range of time: whatever is summed over the list changes with it. */
export function filterKeyOf(filters: Filters, { query }: TableQuery): string {
  return JSON.stringify([filters, query.range, query.start_timestamp, query.end_timestamp]);
}

export function useListScreen<Row>(options: ListScreenOptions<Row>): ListScreenState<Row> {
  const { data, table, filters, arranging = [], fetchPage } = options;
  const { page, pageSize } = table;
  const selected = useRef<readonly Row[]>([]);
  const queryKey = `${filterKeyOf(filters, table)} ${page} ${pageSize}`;
  const list = useList<Row>({
    initial: data,
    queryKey,
    load: (signal) => fetchPage({ page, pageSize, signal }),
  });
  // A page that is no longer there (its last rows were deleted, an old address): the last one that is.
  const { phase, rows: shown, total } = list;
  const last = Math.max(1, Math.ceil(total / pageSize));
  const isPast = phase === "ready" && shown.length === 0 && total > 0 && page > last;
  useEffect(() => {
    if (isPast) setQuery({ p: last === 1 ? undefined : last }, { replace: true });
  }, [isPast, last]);
  const narrowing = Object.keys(filters).filter((name) => !arranging.includes(name));
  return {
    table,
    list,
    queryKey,
    selected,
    isFiltered: narrowing.some((name) => filters[name] !== ""),
    clearFilters: () => table.setFilters(Object.fromEntries(narrowing.map((name) => [name, undefined]))),
    async loadAll() {
      const rows: Row[] = [];
      for (let at = 1; ; at++) {
        const next = await fetchPage({ page: at, pageSize: FETCH_ALL_PAGE_SIZE });
        rows.push(...next.rows);
        if (next.rows.length < FETCH_ALL_PAGE_SIZE) return rows;
      }
    },
  };
}

/** An action of the page's header on the selected rows; says so when there are none. */
export function onSelected<Row>(
  { selected }: Pick<ShownList<Row>, "selected">,
  emptyText: string,
  run: (rows: readonly Row[]) => void,
): () => void {
  return () => {
    if (selected.current.length === 0) toast({ tone: "error", text: emptyText });
    else run(selected.current);
  };
}
