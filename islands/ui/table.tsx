// The table of every list screen: state by TanStack, markup and keyboard are ours; rows become cards on phones.
// Refuses to hide what it does: every action of a row is in its menu, failures keep the old rows.
import {
  columnOrderingFeature,
  columnVisibilityFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { ArrowDown, ArrowUp, ArrowUpDown, Ellipsis, X } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import type { ReactNode } from "react";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import type { ListState } from "../lib/list.ts";
import { Empty, Notice } from "./feedback.tsx";
import type { EmptyProps } from "./feedback.tsx";
import { Menu } from "./menu.tsx";
import type { MenuGroups } from "./menu.tsx";
import { Pagination, lastPage } from "./pagination.tsx";
import { EditableCell } from "./table-cell.tsx";
import { useColumnChoice } from "./table-columns.ts";
import type { Column } from "./table-columns.ts";
import { TableSettings } from "./table-settings.tsx";

/** Selection is a set of our own: the feature would be a fifth of the library for one page of rows. */
const features = tableFeatures({ columnOrderingFeature, columnVisibilityFeature });

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
  /** Address that opens the row; the identity cell links to it. */
  rowHref?: (row: Row) => string;
  onOpen?: (row: Row) => void;
  rowMenu?: (row: Row) => MenuGroups;
  /** Muted row: disabled things. */
  isMuted?: (row: Row) => boolean;
  /** Buttons of the bar that appears with a selection; absent: rows cannot be selected. */
  bulk?: (rows: readonly Row[], clear: () => void) => ReactNode;
  sort?: SortState | undefined;
  onSort?: (sort: SortState | undefined) => void;
  page: number;
  pageSize: number;
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

export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { columns, list, rowKey, rowName, sort, onSort, page, pageSize, bulk, rowMenu } = props;
  const t = useT();
  const settings = useColumnChoice(columns, props.columnsKey);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const body = useRef<HTMLTableSectionElement>(null);
  const lastSelected = useRef<number>(undefined);

  const definitions = useMemo(() => columns.map(({ id, title }) => ({ id, header: title })), [columns]);
  const data = list.rows as Row[];
  const table = useTable({
    features,
    columns: definitions,
    data,
    getRowId: (row: Row) => String(rowKey(row)),
    state: {
      columnOrder: settings.order,
      columnVisibility: Object.fromEntries([...settings.hidden].map((id) => [id, false])),
    },
  });
  const byId = new Map(columns.map((column) => [column.id, column]));
  const visible = table.getVisibleLeafColumns().flatMap(({ id }) => byId.get(id) ?? []);
  const rows = table.getRowModel().rows;
  // Rows that left the page are no longer selected.
  const selected = rows.filter(({ id }) => chosen.has(id));
  const clear = () => setChosen(new Set());
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
  const select = (index: number, isRange: boolean) => {
    const from = isRange && lastSelected.current !== undefined ? lastSelected.current : index;
    const [low, high] = from < index ? [from, index] : [index, from];
    const value = isRange || !chosen.has(rows[index]?.id ?? "");
    setChosen((before) => {
      const next = new Set(before);
      for (const { id } of rows.slice(low, high + 1)) {
        if (value) next.add(id);
        else next.delete(id);
      }
      return next;
    });
    lastSelected.current = index;
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
      ? { keys: "x", label: "table.key.select", run: withFocused((at) => select(at, false)) }
      : undefined,
  );
  useShortcut(
    canSelect
      ? { keys: "shift+x", label: "table.key.range", run: withFocused((at) => select(at, true)) }
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

  return (
    <div className="table-area">
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
      <div className="table-box" aria-busy={isBusy} data-selecting={selected.length > 0 ? "" : undefined}>
        {list.phase === "refreshing" ? <div className="refresh-bar" aria-hidden /> : null}
        <table className="data-table" role="table" aria-label={props.label} aria-rowcount={list.total}>
          <thead role="rowgroup">
            <tr role="row">
              {canSelect ? (
                <th role="columnheader" className="cell-check">
                  <input
                    type="checkbox"
                    className="checkbox"
                    aria-label={t("table.selectPage")}
                    checked={rows.length > 0 && selected.length === rows.length}
                    ref={(box) => {
                      if (box) box.indeterminate = selected.length > 0 && selected.length < rows.length;
                    }}
                    onChange={(event) =>
                      setChosen(new Set(event.target.checked ? rows.map(({ id }) => id) : []))
                    }
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
          <tbody role="rowgroup" ref={body}>
            {isLoading
              ? Array.from({ length: Math.min(pageSize, 10) }, (_, index) => (
                  <tr key={index} role="row" aria-hidden className="skeleton-row">
                    {canSelect ? <td className="cell-check" /> : null}
                    {visible.map((column) => (
                      <td
                        key={column.id}
                        role="cell"
                        data-card={column.card ?? "line"}
                        data-align={column.align}
                      >
                        <span
                          className="skeleton cell-skeleton"
                          style={{ width: `${40 + ((index * 7 + column.id.length * 11) % 45)}%` }}
                        />
                      </td>
                    ))}
                    <td className="cell-menu" />
                  </tr>
                ))
              : rows.map((row, index) => {
                  const { original } = row;
                  const menu = rowMenu?.(original) ?? [];
                  const name = rowName(original);
                  return (
                    <tr
                      key={row.id}
                      role="row"
                      tabIndex={-1}
                      data-index={index}
                      data-muted={props.isMuted?.(original) ? "" : undefined}
                      data-open={props.onOpen ? "" : undefined}
                      aria-selected={canSelect ? chosen.has(row.id) : undefined}
                      onClick={(event) => {
                        if (isInteractive(event.target) || getSelection()?.toString()) return;
                        props.onOpen?.(original);
                      }}
                      onKeyDown={(event) => {
                        if (event.target !== event.currentTarget) return;
                        if (event.key === "Enter") props.onOpen?.(original);
                        else if (event.key === "ArrowDown") focusRow(Math.min(rows.length - 1, index + 1));
                        else if (event.key === "ArrowUp") focusRow(Math.max(0, index - 1));
                        else return;
                        event.preventDefault();
                      }}
                    >
                      {canSelect ? (
                        <td role="cell" className="cell-check">
                          <input
                            type="checkbox"
                            className="checkbox"
                            aria-label={t("table.selectRow", { name })}
                            checked={chosen.has(row.id)}
                            onClick={(event) => {
                              if (!event.shiftKey) return;
                              event.preventDefault();
                              select(index, true);
                            }}
                            onChange={() => select(index, false)}
                          />
                        </td>
                      ) : null}
                      {visible.map((column) => (
                        <td
                          key={column.id}
                          role="cell"
                          data-align={column.align}
                          data-identity={column.isIdentity ? "" : undefined}
                          data-card={column.card ?? "line"}
                          data-label={column.title}
                        >
                          <Cell
                            column={column}
                            row={original}
                            href={column.isIdentity ? props.rowHref?.(original) : undefined}
                            onOpen={props.onOpen}
                          />
                        </td>
                      ))}
                      <td role="cell" className="cell-menu">
                        {menu.some((group) => group.length > 0) ? (
                          <Menu
                            label={t("table.rowMenu", { name })}
                            groups={menu}
                            className="icon-button icon-small"
                          >
                            <Ellipsis aria-hidden size={16} />
                          </Menu>
                        ) : null}
                      </td>
                    </tr>
                  );
                })}
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
      {selected.length > 0 && bulk ? (
        <div className="bulk-bar" role="toolbar" aria-label={t("table.bulk")}>
          <b className="tabular-nums" role="status">
            {t("table.selected", { count: selected.length })}
          </b>
          {bulk(
            selected.map(({ original }) => original),
            clear,
          )}
          <button
            type="button"
            className="icon-button"
            aria-label={t("table.clearSelection")}
            title={t("table.clearSelection")}
            onClick={clear}
          >
            <X aria-hidden />
          </button>
        </div>
      ) : null}
      <Pagination
        page={page}
        pageSize={pageSize}
        total={list.total}
        shown={rows.length}
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

interface CellProps<Row> {
  column: Column<Row>;
  row: Row;
  href: string | undefined;
  onOpen: ((row: Row) => void) | undefined;
}

function Cell<Row>({ column, row, href, onOpen }: CellProps<Row>) {
  const content = column.cell(row);
  if (href !== undefined) {
    return (
      <a
        href={href}
        className="row-link"
        onClick={(event) => {
          if (!onOpen || event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          onOpen(row);
        }}
      >
        {content}
      </a>
    );
  }
  if (column.edit && column.edit.isAllowed?.(row) !== false) {
    return (
      <EditableCell row={row} title={column.title} edit={column.edit}>
        {content}
      </EditableCell>
    );
  }
  return content;
}

function isInteractive(target: EventTarget): boolean {
  return (
    target instanceof Element &&
    target.closest("a, button, input, select, textarea, label, [role=menu]") !== null
  );
}
