// The table of every list screen: columns as chosen, selection, keyboard; rows become cards on phones.
// Refuses to hide what it does: every action of a row is in its menu, failures keep the old rows.
import { ArrowDown, ArrowUp, ArrowUpDown } from "lucide-react";
import { Fragment, useEffect, useLayoutEffect, useMemo, useRef } from "react";
import type { ReactNode } from "react";
import { formatNumber } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import type { ListState } from "../lib/list.ts";
import { Empty, Notice } from "./feedback.tsx";
import { announce } from "../lib/toasts.ts";
import type { EmptyProps } from "./feedback.tsx";
import type { MenuGroups } from "./menu.tsx";
import { Pagination, lastPage } from "./pagination.tsx";
import { useColumnChoice } from "./table-columns.ts";
import type { Column } from "./table-columns.ts";
import { SkeletonRows, TableRow } from "./table-row.tsx";
import { BulkBar, useSelection } from "./table-selection.tsx";
import { TableSettings } from "./table-settings.tsx";

export interface SortState {
  id: string;
  isDescending: boolean;
}

export interface DataTableProps<Row> {
  /** Accessible name: "Channels". */
  label: string;
  columns: readonly Column<Row>[];
  list: ListState<Row>;
  rowKey: (row: Row) => string | number;
  /** Name of a row for its checkbox and menu: "Select alpha". */
  rowName: (row: Row) => string;
  /** Address that opens the row; the identity cell links to it. Undefined: this one cannot be opened. */
  rowHref?: (row: Row) => string | undefined;
  onOpen?: (row: Row) => void;
  rowMenu?: (row: Row) => MenuGroups;
  /** Muted row: disabled things. */
  isMuted?: (row: Row) => boolean;
  /** Rows that cannot be selected where others can: heads of groups. */
  isSelectable?: (row: Row) => boolean;
  /** Buttons of the bar that appears with a selection; absent: rows cannot be selected. */
  bulk?: (rows: readonly Row[], clear: () => void) => ReactNode;
  /** Every row of the filter, for "select all N matching"; absent: only rows of the page can be selected. */
  loadAll?: () => Promise<readonly Row[]>;
  /** Told of every change of the selection. */
  onSelection?: (rows: readonly Row[]) => void;
  /** The first so many rows came in while somebody was reading: they are marked, and a line stands below them. */
  fresh?: { count: number; text: string };
  /** Says no result counts: something else on the page does. */
  isQuiet?: boolean;
  sort?: SortState | undefined;
  onSort?: (sort: SortState | undefined) => void;
  page: number;
  pageSize: number;
  /** How many of what is paged stand on this page, where that is not its rows: tags with their channels. */
  paged?: number;
  onPage: (page: number) => void;
  onPageSize: (size: number) => void;
  /** Storage key of the column settings. */
  columnsKey?: string;
  empty: EmptyProps;
  /** With filters the empty state offers to clear them. */
  isFiltered?: boolean;
  onClearFilters?: () => void;
}

/** Never → ascending → descending → never. */
function nextSort(current: SortState | undefined, id: string): SortState | undefined {
  if (current?.id !== id) return { id, isDescending: false };
  return current.isDescending ? undefined : { id, isDescending: true };
}

const QUIET_MS = 600;

/** Tells how many rows there are and how they are sorted, once a change has settled; not on the first paint. */
function useAnnouncements<Row>({ list, sort, columns, page, isQuiet }: DataTableProps<Row>): void {
  const isFirst = useRef(true);
  const isReady = list.phase === "ready";
  const sortText = sort ? `${sort.id} ${sort.isDescending}` : "";
  const saidSort = useRef(sortText);
  useEffect(() => {
    if (!isReady || isQuiet) return undefined;
    if (isFirst.current) {
      isFirst.current = false;
      return undefined;
    }
    const timer = setTimeout(() => {
      if (saidSort.current !== sortText && sort) {
        const column = columns.find(({ id }) => id === sort.id)?.title ?? sort.id;
        announce(sort.isDescending ? "table.sortedDown" : "table.sortedUp", { column });
      } else if (list.total >= 0) {
        announce("table.results", { count: list.total, number: formatNumber(list.total), page });
      }
      saidSort.current = sortText;
    }, QUIET_MS);
    return () => clearTimeout(timer);
    // Only what people asked for counts: a question, a page, a sort; and what came of it.
  }, [isReady, isQuiet, list.total, page, sortText]);
}

/**
 * A row that goes away (it no longer fits the filter, it was deleted) hands the focus to its successor, an empty table takes
 * it itself. Whoever works by keyboard would otherwise start over at the top of the page.
 */
function useKeptFocus(body: React.RefObject<HTMLTableSectionElement | null>, rows: readonly unknown[]) {
  const index = useRef<number>(undefined);
  useLayoutEffect(() => {
    if (index.current === undefined || document.activeElement !== document.body) return;
    const next = body.current?.querySelector<HTMLElement>(
      `tr[data-index="${Math.min(index.current, rows.length - 1)}"]`,
    );
    (next ?? body.current?.closest("table"))?.focus({ preventScroll: true });
  }, [body, rows]);
  return {
    onFocus: (event: React.FocusEvent) => {
      const row = event.target.closest<HTMLElement>("tr[data-index]");
      index.current = row ? Number(row.dataset["index"]) : undefined;
    },
    // Not called for what React takes out of the page: only where somebody left.
    onBlur: () => {
      index.current = undefined;
    },
  };
}

export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { columns, list, rowKey, rowName, sort, onSort, page, pageSize, bulk, rowMenu } = props;
  const t = useT();
  const settings = useColumnChoice(columns, props.columnsKey);
  const body = useRef<HTMLTableSectionElement>(null);

  const data = list.rows;
  const byId = new Map(columns.map((column) => [column.id, column]));
  const visible = settings.order.flatMap((id) => (settings.hidden.has(id) ? [] : (byId.get(id) ?? [])));
  const rows = useMemo(() => data.map((row) => ({ id: String(rowKey(row)), original: row })), [data]);
  const keptFocus = useKeptFocus(body, rows);
  const selection = useSelection(rows, data, props.isSelectable);
  const selectable = props.isSelectable ? data.filter(props.isSelectable).length : rows.length;
  const { onSelection, fresh } = props;
  useEffect(() => {
    onSelection?.(selection.rows);
    // The caller's function is made anew with every render: only what is selected counts.
  }, [selection.key]);
  const isLoading = list.phase === "loading";
  const isBusy = isLoading || list.phase === "refreshing";
  const canSelect = bulk !== undefined;
  const width = visible.length + (canSelect ? 1 : 0) + 1;

  const focused = () => {
    const row = document.activeElement?.closest<HTMLTableRowElement>("tr[data-index]");
    return row && body.current?.contains(row) ? Number(row.dataset.index) : undefined;
  };
  const focusRow = (index: number) => {
    const row = body.current?.querySelector<HTMLElement>(`tr[data-index="${index}"]`);
    row?.focus();
    row?.scrollIntoView({ block: "nearest" });
  };
  const withFocused = (run: (index: number) => void) => () => {
    const index = focused();
    if (index !== undefined) run(index);
  };
  const step = (by: number) => () => {
    const at = focused();
    focusRow(at === undefined ? 0 : Math.min(rows.length - 1, Math.max(0, at + by)));
  };
  const open = withFocused((index) => {
    const row = rows[index];
    if (row) props.onOpen?.(row.original);
  });
  useShortcut({ keys: "j", label: "table.key.down", run: step(1) });
  useShortcut({ keys: "k", label: "table.key.up", run: step(-1) });
  useShortcut(props.onOpen && { keys: "o", label: "table.key.open", run: open });
  useShortcut(
    canSelect
      ? { keys: "x", label: "table.key.select", run: withFocused((at) => selection.toggle(at, false)) }
      : undefined,
  );
  useShortcut(
    canSelect
      ? { keys: "shift+x", label: "table.key.range", run: withFocused((at) => selection.toggle(at, true)) }
      : undefined,
  );
  useShortcut({
    keys: "e",
    label: "table.key.edit",
    run: withFocused((at) => {
      body.current?.querySelector<HTMLElement>(`tr[data-index="${at}"] [data-quick-edit]`)?.click();
    }),
  });
  const last = lastPage(list.total, pageSize);
  useShortcut({ keys: "[", label: "table.page.previous", run: () => page > 1 && props.onPage(page - 1) });
  useShortcut({
    keys: "]",
    label: "table.page.next",
    run: () => (last === undefined ? rows.length === pageSize : page < last) && props.onPage(page + 1),
  });
  useShortcut({ keys: "r", label: "common.refresh", run: () => void list.refresh() });
  useAnnouncements(props);

  return (
    <div className="relative">
      {list.phase === "failed" ? (
        <Notice
          tone="error"
          action={
            <button type="button" className="btn btn-sm btn-default" onClick={() => void list.refresh()}>
              {t("common.retry")}
            </button>
          }
        >
          {list.failure}
        </Notice>
      ) : null}
      <div className="table-box" aria-busy={isBusy} data-selecting={selection.count > 0 ? "" : undefined}>
        {list.phase === "refreshing" ? (
          <progress
            className="progress progress-primary sticky top-0 left-0 z-6 -mb-0.5 block h-0.5 rounded-none"
            aria-hidden
          />
        ) : null}
        <table
          className="data-table"
          role="table"
          tabIndex={-1}
          aria-label={props.label}
          aria-rowcount={list.total}
        >
          <thead role="rowgroup">
            <tr role="row">
              {canSelect ? (
                <th role="columnheader" className="cell-check">
                  <input
                    type="checkbox"
                    className="checkbox"
                    aria-label={t("table.selectPage")}
                    checked={selectable > 0 && selection.count === selectable}
                    ref={(box) => {
                      if (box) box.indeterminate = selection.count > 0 && selection.count < selectable;
                    }}
                    onChange={(event) => selection.setPage(event.target.checked)}
                  />
                </th>
              ) : null}
              {visible.map((column) => (
                <th
                  key={column.id}
                  role="columnheader"
                  scope="col"
                  data-align={column.align}
                  data-identity={column.isIdentity ? "" : undefined}
                  style={column.width ? { width: column.width } : undefined}
                  aria-sort={
                    sort?.id === column.id ? (sort.isDescending ? "descending" : "ascending") : undefined
                  }
                >
                  {column.isSortable && onSort ? (
                    <SortButton
                      title={column.title}
                      sort={sort?.id === column.id ? sort : undefined}
                      onClick={() => onSort(nextSort(sort, column.id))}
                    />
                  ) : (
                    column.title
                  )}
                </th>
              ))}
              <th role="columnheader" className="cell-menu">
                <span className="sr-only">{t("table.actions")}</span>
                <TableSettings columns={columns} settings={settings} />
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup" ref={body} {...keptFocus}>
            {isLoading ? (
              <SkeletonRows count={Math.min(pageSize, 10)} columns={visible} canSelect={canSelect} />
            ) : (
              rows.map((row, index) => {
                const { original } = row;
                return (
                  <Fragment key={row.id}>
                    {fresh && fresh.count > 0 && index === fresh.count ? (
                      <tr role="row" className="fresh-line">
                        <td role="cell" colSpan={width}>
                          {fresh.text}
                        </td>
                      </tr>
                    ) : null}
                    <TableRow
                      row={original}
                      index={index}
                      columns={visible}
                      name={rowName(original)}
                      menu={rowMenu?.(original) ?? []}
                      isMuted={props.isMuted?.(original) ?? false}
                      isNew={fresh !== undefined && index < fresh.count}
                      isChosen={
                        !canSelect
                          ? undefined
                          : props.isSelectable?.(original) === false
                            ? null
                            : selection.has(row.id)
                      }
                      onChoose={(isRange) => selection.toggle(index, isRange)}
                      href={props.rowHref?.(original)}
                      onOpen={props.onOpen}
                      onStep={(by) => focusRow(Math.min(rows.length - 1, Math.max(0, index + by)))}
                    />
                  </Fragment>
                );
              })
            )}
            {!isLoading && rows.length === 0 ? (
              <tr role="row" className="empty-row">
                <td role="cell" colSpan={width}>
                  {props.isFiltered ? (
                    <Empty
                      title={t("table.noMatch")}
                      text={t("table.noMatchText")}
                      action={
                        props.onClearFilters ? (
                          <button
                            type="button"
                            className="btn btn-sm btn-default"
                            onClick={props.onClearFilters}
                          >
                            {t("table.clearFilters")}
                          </button>
                        ) : undefined
                      }
                    />
                  ) : (
                    <Empty {...props.empty} />
                  )}
                </td>
              </tr>
            ) : null}
          </tbody>
        </table>
        {isLoading ? (
          <span className="sr-only" role="status">
            {t("common.loading")}
          </span>
        ) : null}
      </div>
      <span className="sr-only" role="status">
        {selection.count > 0
          ? t("table.selected", {
              count: selection.rows.length,
              number: formatNumber(selection.rows.length),
            })
          : null}
      </span>
      {selection.count > 0 && bulk ? (
        <BulkBar
          selection={selection}
          shown={rows.length}
          total={list.total}
          loadAll={props.loadAll}
          bulk={bulk}
        />
      ) : null}
      <Pagination
        page={page}
        pageSize={pageSize}
        total={list.total}
        shown={props.paged ?? rows.length}
        onPage={props.onPage}
        onPageSize={props.onPageSize}
      />
    </div>
  );
}

function SortButton({
  title,
  sort,
  onClick,
}: {
  title: string;
  sort: SortState | undefined;
  onClick: () => void;
}) {
  const Icon = sort === undefined ? ArrowUpDown : sort.isDescending ? ArrowDown : ArrowUp;
  return (
    <button type="button" className="sort-button" data-active={sort ? "" : undefined} onClick={onClick}>
      {title}
      <Icon aria-hidden size={12} />
    </button>
  );
}
