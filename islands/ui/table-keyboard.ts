// The table by keyboard: shortcuts that move, open, select, edit and turn pages; and the focus of a row that goes away.
import { useLayoutEffect, useRef } from "react";
import type { FocusEvent, RefObject } from "react";
import { useShortcut } from "../lib/keys.ts";
import { lastPage } from "./pagination.tsx";
import type { KeyedRow, Selection } from "./table-selection.tsx";
import type { DataTableProps } from "./table.tsx";

type Body = RefObject<HTMLTableSectionElement | null>;

/**
 * A row that goes away (it no longer fits the filter, it was deleted) hands the focus to its successor, an empty table takes
 * it itself. Whoever works by keyboard would otherwise start over at the top of the page.
 */
export function useFocusRestore(body: Body, rows: readonly unknown[]) {
  const index = useRef<number>(undefined);
  useLayoutEffect(() => {
    if (index.current === undefined || document.activeElement !== document.body) return;
    const next = body.current?.querySelector<HTMLElement>(
      `tr[data-index="${Math.min(index.current, rows.length - 1)}"]`,
    );
    (next ?? body.current?.closest("table"))?.focus({ preventScroll: true });
  }, [body, rows]);
  return {
    onFocus: (event: FocusEvent) => {
      const row = event.target.closest<HTMLElement>("tr[data-index]");
      index.current = row ? Number(row.dataset["index"]) : undefined;
    },
    // Not called for what React takes out of the page: only where somebody left.
    onBlur: () => {
      index.current = undefined;
    },
  };
}

export interface TableKeysOptions<Row> extends Pick<
  DataTableProps<Row>,
  "list" | "onOpen" | "page" | "pageSize" | "onPage"
> {
  body: Body;
  rows: readonly KeyedRow<Row>[];
  selection: Selection<Row>;
  canSelect: boolean;
}

/** Answers what moves the focus to a row; beyond the ends it stays at them. */
export function useTableKeys<Row>(options: TableKeysOptions<Row>): (index: number) => void {
  const { body, rows, selection, canSelect, list, onOpen, page, pageSize, onPage } = options;
  const rowAt = (index: number) => body.current?.querySelector<HTMLElement>(`tr[data-index="${index}"]`);
  const focused = () => {
    const row = document.activeElement?.closest<HTMLTableRowElement>("tr[data-index]");
    return row && body.current?.contains(row) ? Number(row.dataset.index) : undefined;
  };
  const focusRow = (index: number) => {
    const row = rowAt(Math.min(rows.length - 1, Math.max(0, index)));
    row?.focus();
    row?.scrollIntoView({ block: "nearest" });
  };
  const withFocused = (run: (index: number) => void) => () => {
    const index = focused();
    if (index !== undefined) run(index);
  };
  const step = (by: number) => () => focusRow((focused() ?? -by) + by);
  const open = withFocused((index) => {
    const row = rows[index];
    if (row) onOpen?.(row.original);
  });
  const select = (isRange: boolean) => withFocused((at) => selection.toggle(at, isRange));
  const edit = withFocused((at) => rowAt(at)?.querySelector<HTMLElement>("[data-quick-edit]")?.click());
  const last = lastPage(list.total, pageSize);
  const hasNext = last === undefined ? rows.length === pageSize : page < last;
  useShortcut({ keys: "j", label: "table.key.down", run: step(1) });
  useShortcut({ keys: "k", label: "table.key.up", run: step(-1) });
  useShortcut(onOpen && { keys: "o", label: "table.key.open", run: open });
  useShortcut(canSelect ? { keys: "x", label: "table.key.select", run: select(false) } : undefined);
  useShortcut(canSelect ? { keys: "shift+x", label: "table.key.range", run: select(true) } : undefined);
  useShortcut({ keys: "e", label: "table.key.edit", run: edit });
  useShortcut({ keys: "[", label: "table.page.previous", run: () => page > 1 && onPage(page - 1) });
  useShortcut({ keys: "]", label: "table.page.next", run: () => hasNext && onPage(page + 1) });
  useShortcut({ keys: "r", label: "common.refresh", run: () => void list.refresh() });
  return focusRow;
}
