// The selection of a table: rows of the page, ranges, and on request every row that matches the filter; its bar of actions.
// Refuses to keep what is no longer shown: a new page of rows forgets the rows of the old one.
import { X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import { formatNumber } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { toastFailure } from "../lib/toasts.ts";

export interface KeyedRow<Row> {
  id: string;
  original: Row;
}

export interface Selection<Row> {
  has: (id: string) => boolean;
  /** The selected rows: of the page, or every matching one. */
  rows: readonly Row[];
  /** On this page. */
  count: number;
  /** Changes with what is selected. */
  key: string;
  toggle: (index: number, isRange: boolean) => void;
  setPage: (isOn: boolean) => void;
  clear: () => void;
  /** Rows beyond the page are selected too. */
  isBeyond: boolean;
  /** Selects what is loaded, unless rows or selection have changed until it is there. */
  extend: (load: () => Promise<readonly Row[]>) => Promise<void>;
  /** So many match the filter and all of them are meant, without being loaded; undefined: what `rows` holds. */
  all: number | undefined;
  setAll: (count: number) => void;
}

export interface SelectionOptions<Row> {
  data: readonly Row[];
  rowKey: (row: Row) => number | string;
  isSelectable?: ((row: Row) => boolean) | undefined;
}

export function useSelection<Row>(
  rows: readonly KeyedRow<Row>[],
  { data, rowKey, isSelectable = () => true }: SelectionOptions<Row>,
): Selection<Row> {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [beyond, setBeyond] = useState<readonly Row[]>();
  const [all, setAll] = useState<number>();
  const last = useRef<number>(undefined);
  /** Counts what the selection is made of. */
  const round = useRef(0);
  useEffect(() => {
    round.current++;
    setBeyond(undefined);
    setAll(undefined);
  }, [data, chosen]);
  const selected = rows.filter(({ id }) => chosen.has(id));
  const free = (some: readonly KeyedRow<Row>[]) => some.filter(({ original }) => isSelectable(original));
  return {
    has: (id) => chosen.has(id),
    rows: beyond ?? selected.map(({ original }) => original),
    count: selected.length,
    key: beyond ? "all" : selected.map(({ id }) => id).join(" "),
    isBeyond: beyond !== undefined || all !== undefined,
    async extend(load) {
      const began = round.current;
      const found = await load();
      if (began !== round.current) return;
      // Rows move to another page while the pages are read.
      const unique = new Map(found.map((row) => [rowKey(row), row]));
      setBeyond([...unique.values()].filter(isSelectable));
    },
    all,
    setAll,
    toggle(index, isRange) {
      const from = isRange && last.current !== undefined ? last.current : index;
      const [low, high] = from < index ? [from, index] : [index, from];
      const value = isRange || !chosen.has(rows[index]?.id ?? "");
      const next = new Set(chosen);
      for (const { id } of free(rows.slice(low, high + 1))) {
        if (value) next.add(id);
        else next.delete(id);
      }
      setChosen(next);
      last.current = index;
    },
    setPage: (isOn) => setChosen(new Set(isOn ? free(rows).map(({ id }) => id) : [])),
    clear: () => setChosen(new Set()),
  };
}

export interface BulkBarProps<Row> {
  selection: Selection<Row>;
  /** Rows on this page, and of the filter (-1: unknown). */
  shown: number;
  total: number;
  /** Every row of the filter; absent: only the page can be selected. */
  loadAll: (() => Promise<readonly Row[]>) | undefined;
  /** The server knows the filter: all that match are named by it and not loaded. */
  selectsFilter?: boolean | undefined;
  /** `all`: so many match the filter, and those are meant in place of `rows`. */
  bulk: (rows: readonly Row[], clear: () => void, all?: number) => ReactNode;
}

export function BulkBar<Row>({
  selection,
  shown,
  total,
  loadAll,
  selectsFilter = false,
  bulk,
}: BulkBarProps<Row>) {
  const t = useT();
  const [isLoading, setLoading] = useState(false);
  const count = selection.all ?? selection.rows.length;
  // Phones have no box for the whole page: what needs none of its rows is offered at once.
  const isWhole = selectsFilter || (loadAll !== undefined && selection.count === shown);
  const canExtend = isWhole && !selection.isBeyond && total > selection.count;
  const extend = async () => {
    if (selectsFilter) selection.setAll(total);
    if (selectsFilter || !loadAll) return;
    setLoading(true);
    try {
      await selection.extend(loadAll);
    } catch (error) {
      toastFailure(error);
    } finally {
      setLoading(false);
    }
  };
  return (
    <div className="bulk-bar" role="toolbar" aria-label={t("table.bulk")} tabIndex={-1}>
      <b className="tabular-nums">
        {t(selection.isBeyond ? "table.selectedAll" : "table.selected", {
          count,
          number: formatNumber(count),
        })}
      </b>
      {canExtend ? (
        <button
          type="button"
          className="btn btn-sm btn-ghost text-primary"
          aria-busy={isLoading}
          disabled={isLoading}
          onClick={(event) => {
            // The button goes; whoever pressed it goes on from here.
            event.currentTarget.parentElement?.focus();
            void extend();
          }}
        >
          {t("table.selectMatching", { count: total, number: formatNumber(total) })}
        </button>
      ) : null}
      {bulk(selection.rows, selection.clear, selection.all)}
      <button
        type="button"
        className="btn btn-ghost btn-square btn-sm"
        aria-label={t("table.clearSelection")}
        title={t("table.clearSelection")}
        onClick={selection.clear}
      >
        <X aria-hidden />
      </button>
    </div>
  );
}

/** An action on the selected rows. */
export function BulkButton({
  label,
  isDanger = false,
  onClick,
}: {
  label: string;
  isDanger?: boolean;
  onClick: () => void;
}) {
  return (
    <button
      type="button"
      className={isDanger ? "btn btn-sm btn-error btn-soft" : "btn btn-sm btn-default"}
      onClick={onClick}
    >
      {label}
    </button>
  );
}
