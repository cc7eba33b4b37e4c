// The shape of a list screen: header, filters, table, and what opens over it. Screens say what stands in it.
import { Plus } from "lucide-react";
import type { ReactNode } from "react";
import { address } from "../lib/boot.ts";
import type { ShownList } from "../lib/list-screen.ts";
import { patchUrl, setQuery } from "../lib/url-state.ts";
import { FilterBar } from "./filter-bar.tsx";
import type { FilterBarProps } from "./filter-bar.tsx";
import { PageHeader } from "./page-header.tsx";
import type { PageHeaderProps } from "./page-header.tsx";
import { DataTable } from "./table.tsx";
import type { DataTableProps } from "./table.tsx";

type QueryPatch = Record<string, string | number | undefined>;

/** What the screen's state gives to the table is not repeated. */
type TableParts<Row extends object> = Omit<
  DataTableProps<Row>,
  | "label"
  | "list"
  | "columnsKey"
  | "page"
  | "pageSize"
  | "onPage"
  | "onPageSize"
  | "isFiltered"
  | "onClearFilters"
  | "onSelection"
  | "loadAll"
> & {
  /** What a row sets in the address to open; undefined: this one cannot be opened. Absent: `rowHref` and `onOpen` do. */
  openQuery?: (row: Row) => QueryPatch | undefined;
};

export interface ListScreenProps<Row extends object> {
  screen: ShownList<Row>;
  /** Storage key of the table's columns. */
  columnsKey: string;
  header: PageHeaderProps;
  /** Most have `ListViews`. */
  views?: ReactNode;
  filters: Omit<FilterBarProps, "query" | "onChange"> & Partial<Pick<FilterBarProps, "onChange">>;
  table: TableParts<Row>;
  /** Between the header and the views. */
  top?: ReactNode;
  /** Between the filters and the table. */
  notices?: ReactNode;
  /** Puts the table into a box, or something else in its place. */
  wrapTable?: (table: ReactNode) => ReactNode;
  /** What opens over the list: drawers, dialogs. */
  children?: ReactNode;
}

export function ListScreen<Row extends object>(props: ListScreenProps<Row>) {
  const { screen, columnsKey, header, filters, wrapTable = (table) => table } = props;
  const { query, setFilters } = screen.table;
  return (
    <>
      <PageHeader {...header} />
      {props.top}
      {props.views}
      <FilterBar onChange={setFilters} {...filters} query={query} />
      {props.notices}
      {wrapTable(
        <ListTable screen={screen} label={header.title} columnsKey={columnsKey} parts={props.table} />,
      )}
      {props.children}
    </>
  );
}

interface ListTableProps<Row extends object> {
  screen: ShownList<Row>;
  label: string;
  columnsKey: string;
  parts: TableParts<Row>;
}

function ListTable<Row extends object>({ screen, label, columnsKey, parts }: ListTableProps<Row>) {
  const { table } = screen;
  const { openQuery, ...rest } = parts;
  const opening = openQuery && {
    rowHref: (row: Row) => {
      const patch = openQuery(row);
      return patch && patchUrl(address.peek(), patch);
    },
    onOpen: (row: Row) => {
      const patch = openQuery(row);
      if (patch) setQuery(patch);
    },
  };
  return (
    <DataTable
      {...opening}
      {...rest}
      label={label}
      list={screen.list}
      columnsKey={columnsKey}
      page={table.page}
      pageSize={table.pageSize}
      onPage={table.setPage}
      onPageSize={table.setPageSize}
      isFiltered={screen.isFiltered}
      onClearFilters={screen.clearFilters}
      onSelection={(rows) => {
        screen.selected.current = rows;
      }}
      // Where something else than rows is paged, the rows beyond the page are not one list.
      loadAll={parts.paged === undefined ? screen.loadAll : undefined}
    />
  );
}

/** The primary action of most lists: opens the drawer of a new row. */
export function NewButton({ label, isSmall = false }: { label: string; isSmall?: boolean }) {
  return (
    <button
      type="button"
      className={isSmall ? "btn btn-sm btn-primary" : "btn btn-primary"}
      onClick={() => setQuery({ new: 1 })}
    >
      <Plus aria-hidden size={16} />
      {label}
    </button>
  );
}
