// The table of every list screen: columns as chosen, selection, keyboard; rows become cards on phones.
// Refuses to hide what it does: every action of a row is in its menu, failures keep the old rows.
import { ArrowDown, ArrowUp, ArrowUpDown } from "lucide-react";
import { Fragment, useEffect, useMemo, useRef } from "react";
import type { ReactNode } from "react";
import { formatNumber } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import type { ListState } from "../lib/list.ts";
import { Empty, FailureNotice } from "./feedback.tsx";
import type { EmptyProps } from "./feedback.tsx";
import type { MenuGroups } from "./menu.tsx";
import { Pagination } from "./pagination.tsx";
import { useAnnouncements } from "./table-announcements.ts";
import { useColumnChoice } from "./table-columns.ts";
import type { Column } from "./table-columns.ts";
import { useTableEdges } from "./table-edges.ts";
import { useFocusRestore, useTableKeys } from "./table-keyboard.ts";
import { SkeletonRows, TableRow } from "./table-row.tsx";
import { BulkBar, useSelection } from "./table-selection.tsx";
import type { KeyedRow, Selection } from "./table-selection.tsx";
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
  bulk?: (rows: readonly Row[], clear: () => void, all?: number) => ReactNode;
  /** All that match are named by the filter (`all` of `bulk`) and not loaded. */
  selectsFilter?: boolean;
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

export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { columns, list, rowKey, bulk, onSelection } = props;
  const t = useT();
  const settings = useColumnChoice(columns, props.columnsKey);
  const body = useRef<HTMLTableSectionElement>(null);
  const box = useTableEdges();

  const data = list.rows;
  const byId = new Map(columns.map((column) => [column.id, column]));
  const visible = settings.order.flatMap((id): Column<Row>[] => {
    const column = settings.hidden.has(id) ? undefined : byId.get(id);
    if (!column) return [];
    const { from, ...anyWidth } = column;
    return [from !== undefined && settings.chosen.has(id) ? anyWidth : column];
  });
  const rows = useMemo(() => data.map((row) => ({ id: String(rowKey(row)), original: row })), [data]);
  const focusRestore = useFocusRestore(body, rows);
  const selection = useSelection(rows, { data, rowKey, isSelectable: props.isSelectable });
  useEffect(() => {
    onSelection?.(selection.rows);
    // The caller's function is made anew with every render: only what is selected counts.
  }, [selection.key]);
  const canSelect = bulk !== undefined;
  const focusRow = useTableKeys({ ...props, body, rows, selection, canSelect });
  useAnnouncements(props);

  const isLoading = list.phase === "loading";
  return (
    <div className="relative">
      {list.phase === "failed" ? <FailureNotice text={list.failure} onRetry={list.refresh} /> : null}
      <div
        ref={box}
        className="table-box"
        aria-busy={isLoading || list.phase === "refreshing"}
        data-selecting={selection.count > 0 ? "" : undefined}
      >
        {list.phase === "refreshing" ? (
          <progress className="progress progress-primary refresh-bar" aria-hidden />
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
              {canSelect ? <SelectPageCell {...props} selection={selection} /> : null}
              <HeadCells {...props} visible={visible} />
              <th role="columnheader" className="cell-menu">
                <span className="sr-only">{t("table.actions")}</span>
                <TableSettings columns={columns} settings={settings} />
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup" ref={body} {...focusRestore}>
            {isLoading ? (
              <SkeletonRows count={Math.min(props.pageSize, 10)} columns={visible} canSelect={canSelect} />
            ) : (
              <BodyRows {...props} {...{ rows, visible, selection, focusRow }} />
            )}
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
              count: selection.all ?? selection.rows.length,
              number: formatNumber(selection.all ?? selection.rows.length),
            })
          : null}
      </span>
      {selection.count > 0 && bulk ? (
        <BulkBar
          selection={selection}
          shown={selectableCount(rows, props.isSelectable)}
          total={list.total}
          loadAll={props.loadAll}
          selectsFilter={props.selectsFilter}
          bulk={bulk}
        />
      ) : null}
      <Pagination
        page={props.page}
        pageSize={props.pageSize}
        total={list.total}
        isMore={list.isMore}
        shown={props.paged ?? rows.length}
        onPage={props.onPage}
        onPageSize={props.onPageSize}
      />
    </div>
  );
}

function selectableCount<Row>(
  rows: readonly KeyedRow<Row>[],
  isSelectable: ((row: Row) => boolean) | undefined,
): number {
  return isSelectable ? rows.filter(({ original }) => isSelectable(original)).length : rows.length;
}

interface SelectPageProps<Row> extends Pick<DataTableProps<Row>, "list" | "isSelectable"> {
  selection: Selection<Row>;
}

/** The checkbox of all rows of the page. */
function SelectPageCell<Row>({ list, isSelectable, selection }: SelectPageProps<Row>) {
  const t = useT();
  const selectable = isSelectable ? list.rows.filter(isSelectable).length : list.rows.length;
  return (
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
  );
}

interface HeadCellsProps<Row> extends Pick<DataTableProps<Row>, "sort" | "onSort"> {
  visible: readonly Column<Row>[];
}

function HeadCells<Row>({ visible, sort, onSort }: HeadCellsProps<Row>) {
  return visible.map((column) => {
    const sorted = sort?.id === column.id ? sort : undefined;
    return (
      <th
        key={column.id}
        role="columnheader"
        scope="col"
        data-column={column.id}
        data-align={column.align}
        data-identity={column.isIdentity ? "" : undefined}
        data-elastic={column.isElastic ? "" : undefined}
        data-from={column.from}
        style={column.width ? { width: column.width } : undefined}
        aria-sort={sorted && (sorted.isDescending ? "descending" : "ascending")}
      >
        {column.isSortable && onSort ? (
          <SortButton title={column.title} sort={sorted} onClick={() => onSort(nextSort(sort, column.id))} />
        ) : (
          column.title
        )}
      </th>
    );
  });
}

interface BodyRowsProps<Row extends object> extends DataTableProps<Row> {
  rows: readonly KeyedRow<Row>[];
  visible: readonly Column<Row>[];
  selection: Selection<Row>;
  focusRow: (index: number) => void;
}

function BodyRows<Row extends object>(props: BodyRowsProps<Row>) {
  const { rows, visible, selection, fresh, bulk } = props;
  const width = visible.length + (bulk === undefined ? 0 : 1) + 1;
  const check = (id: string, row: Row) => {
    if (bulk === undefined) return "absent";
    if (props.isSelectable?.(row) === false) return "blocked";
    return selection.has(id) ? "checked" : "unchecked";
  };
  if (rows.length === 0) return <EmptyRow {...props} width={width} />;
  return rows.map(({ id, original }, index) => (
    <Fragment key={id}>
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
        name={props.rowName(original)}
        menu={props.rowMenu?.(original) ?? []}
        isMuted={props.isMuted?.(original) ?? false}
        isNew={fresh !== undefined && index < fresh.count}
        check={check(id, original)}
        onChoose={(isRange) => selection.toggle(index, isRange)}
        href={props.rowHref?.(original)}
        onOpen={props.onOpen}
        onStep={(by) => props.focusRow(index + by)}
      />
    </Fragment>
  ));
}

interface EmptyRowProps extends Pick<DataTableProps<object>, "isFiltered" | "onClearFilters" | "empty"> {
  width: number;
}

/** With filters it offers to clear them. */
function EmptyRow({ isFiltered, onClearFilters, empty, width }: EmptyRowProps) {
  const t = useT();
  const clear = onClearFilters ? (
    <button type="button" className="btn btn-sm btn-default" onClick={onClearFilters}>
      {t("table.clearFilters")}
    </button>
  ) : undefined;
  return (
    <tr role="row" className="empty-row">
      <td role="cell" colSpan={width}>
        {isFiltered ? (
          <Empty title={t("table.noMatch")} text={t("table.noMatchText")} action={clear} />
        ) : (
          <Empty {...empty} />
        )}
      </td>
    </tr>
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
