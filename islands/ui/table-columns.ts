// What a column of a table is, and the remembered choice of columns (shown or not, order).
// Refuses unknown columns in what was stored: an older or newer version wrote it.
import { useLayoutEffect, useMemo, useState } from "react";
import type { ComponentType, ReactNode } from "react";
import { readJson, removeItem, writeItem } from "../lib/storage.ts";

/** Turns a cell into an input in place. Enter saves, Esc reverts; `save` throws to roll back. An empty number is ignored. */
export interface QuickEdit<Row> {
  kind: "text" | "number" | "select";
  /** For "select": what can be chosen. */
  choices?: readonly { value: string; label: string }[];
  /** Text of what is wrong with a value, translated; a wrong one is not sent. */
  check?: (value: string) => string | undefined;
  value: (row: Row) => string | number;
  /** Optimistic: the cell shows the new value at once. */
  save: (row: Row, value: string) => Promise<void>;
  min?: number;
  max?: number;
  isAllowed?: (row: Row) => boolean;
}

export interface EditableCellProps<Row> {
  row: Row;
  title: string;
  edit: QuickEdit<Row>;
  children: ReactNode;
}

export interface Column<Row> {
  id: string;
  /** Translated. */
  title: string;
  cell: (row: Row) => ReactNode;
  align?: "start" | "end";
  /** CSS width, "12rem"; the rest shares what is left. */
  width?: string;
  /** The first column: real link with an address, pinned, never hidden. */
  isIdentity?: boolean;
  isHiddenByDefault?: boolean;
  /** Only where the call can sort. */
  isSortable?: boolean;
  /**
   * Table width in px below which it stands back; the widths that exist are rules of table.css. Absent: never. Whoever asks for
   * it in the menu gets it at any width.
   */
  from?: 760 | 990 | 1100 | 1280;
  /** Takes what room the others leave, and cuts its text; one or two of a table. */
  isElastic?: boolean;
  /**
   * Place in the card of two lines that a row becomes on phones; default "hidden": the drawer tells it. Title, aside (cut) and
   * badge stand in the first line, line (cut) and facts (never cut) in the second.
   */
  card?: "title" | "aside" | "badge" | "line" | "fact" | "hidden";
  /** Made by `editable` of table-cell.tsx: only tables with such cells bring what they need. */
  edit?: QuickEdit<Row> & { Cell: ComponentType<EditableCellProps<Row>> };
}

export interface ColumnChoice {
  order: string[];
  hidden: ReadonlySet<string>;
  /** Shown because somebody said so: at any width. */
  chosen: ReadonlySet<string>;
}

type Stored = Record<string, boolean>;

function isStored(value: unknown): value is Stored {
  return (
    value !== null &&
    typeof value === "object" &&
    !Array.isArray(value) &&
    Object.values(value).every((each) => typeof each === "boolean")
  );
}

/** Event on document after the stored columns of a table were replaced; detail is their key. */
const COLUMNS_EVENT = "weir:columns";

/** Puts a stored choice (of a saved view) in place of the present one; tables that show it follow. */
export function applyColumns(key: string, stored: string): void {
  writeItem(key, stored);
  document.dispatchEvent(new CustomEvent<string>(COLUMNS_EVENT, { detail: key }));
}

/** Stored as {column: shown} in display order. Unknown names are dropped, new columns stand where they are defined. */
export function mergeStored<Row>(columns: readonly Column<Row>[], stored: Stored | undefined): ColumnChoice {
  const natural = columns.map(({ id }) => id);
  const hidden = new Set(columns.filter((column) => column.isHiddenByDefault).map(({ id }) => id));
  if (!stored) return { order: natural, hidden, chosen: new Set() };
  const order = Object.keys(stored).filter((id) => natural.includes(id));
  natural.forEach((id, index) => {
    if (!order.includes(id)) order.splice(index, 0, id);
  });
  for (const column of columns) {
    const isShown = stored[column.id];
    if (isShown === true || column.isIdentity) hidden.delete(column.id);
    else if (isShown === false) hidden.add(column.id);
  }
  return { order, hidden, chosen: new Set(order.filter((id) => stored[id] === true)) };
}

export interface ColumnSettings extends ColumnChoice {
  show: (id: string, isShown: boolean) => void;
  move: (id: string, by: number) => void;
  reset: () => void;
}

export function useColumnChoice<Row>(
  columns: readonly Column<Row>[],
  key: string | undefined,
): ColumnSettings {
  const [stored, setStored] = useState<Stored>();
  // Before the first paint of the browser; the server cannot know what was stored here.
  useLayoutEffect(() => {
    if (key === undefined) return undefined;
    const read = () =>
      setStored(readJson<Stored | undefined>(key, (v): v is Stored => isStored(v), undefined));
    const onChange = (event: Event) => {
      if ((event as CustomEvent<string>).detail === key) read();
    };
    read();
    document.addEventListener(COLUMNS_EVENT, onChange);
    return () => document.removeEventListener(COLUMNS_EVENT, onChange);
  }, [key]);
  const choice = useMemo(() => mergeStored(columns, stored), [columns, stored]);
  // What stands back in narrow tables is stored only when somebody asked for it.
  const narrow = useMemo(
    () => new Set(columns.flatMap((column) => (column.from === undefined ? [] : column.id))),
    [columns],
  );
  const write = (order: readonly string[], hidden: ReadonlySet<string>, touched: string) => {
    const isStored = (id: string) =>
      id === touched || hidden.has(id) || choice.chosen.has(id) || !narrow.has(id);
    const next = Object.fromEntries(order.filter(isStored).map((id) => [id, !hidden.has(id)]));
    setStored(next);
    if (key !== undefined) writeItem(key, JSON.stringify(next));
  };
  return {
    ...choice,
    show(id, isShown) {
      const hidden = new Set(choice.hidden);
      if (isShown) hidden.delete(id);
      else hidden.add(id);
      write(choice.order, hidden, id);
    },
    move(id, by) {
      const order = [...choice.order];
      const from = order.indexOf(id);
      const to = Math.min(order.length - 1, Math.max(0, from + by));
      order.splice(from, 1);
      order.splice(to, 0, id);
      write(order, choice.hidden, id);
    },
    reset() {
      setStored(undefined);
      if (key !== undefined) removeItem(key);
    },
  };
}
