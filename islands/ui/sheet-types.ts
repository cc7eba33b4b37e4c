// What a sheet is given: columns that read and parse cells, rows by key, and where several edits go as one step.
// Holds types only.
import type { ReactNode } from "react";

/** null: the cell was cleared. */
type CellValue = string | number | boolean | null;
export type ParsedCell =
  | { value: CellValue; problem?: undefined }
  /** Translated: a sentence that says what is wrong. */
  | { value?: undefined; problem: string };

export interface SheetColumn<Row> {
  id: string;
  /** Translated. */
  label: string;
  /** Behind the label, in grey: "$ / 1M". */
  unit?: string;
  /** Numbers stand right; choices are edited in a list. */
  kind: "text" | "number" | "choice";
  /** In pixels; the first column, which names its row, takes what is left over. */
  width: number;
  /** What is shown, copied and edited. */
  read: (row: Row) => string;
  /** Shown in place of the text. */
  render?: (row: Row) => ReactNode;
  /** What a text means here; "" is how cells are cleared. Absent: nobody writes here. */
  parse?: (text: string, row: Row) => ParsedCell;
  isReadOnly?: (row: Row) => boolean;
  /** Nobody wrote it: it follows from something else. */
  isMuted?: (row: Row) => boolean;
  /** Texts to choose from. */
  choices?: readonly string[];
  /** Its head sorts. */
  isSortable?: boolean;
}

export interface CellWrite {
  rowKey: string;
  columnId: string;
  value: CellValue;
}

/** A cell that was not taken, and why. */
export interface CellProblem {
  rowKey: string;
  columnId: string;
  problem: string;
}

interface SheetSort {
  column: string;
  isDescending: boolean;
}

export interface SheetProps<Row> {
  /** Accessible name. */
  label: string;
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** The first one names the row: it stays in sight. */
  columns: readonly SheetColumn<Row>[];
  /** Everything of one action, as one step that undo takes back; answers cells that cannot be taken. */
  write: (cells: readonly CellWrite[], label: string) => readonly CellProblem[] | void;
  /** Text that a changed cell had before; undefined where nothing changed. */
  changed?: (rowKey: string, columnId: string) => string | undefined;
  onUndo?: () => void;
  onRedo?: () => void;
  /** Enter on the name, or a click on it. */
  onOpenRow?: (row: Row) => void;
  /** Rows that are ticked for what is done to several; Space ticks. */
  ticked?: ReadonlySet<string>;
  onTick?: (rowKeys: readonly string[], isOn: boolean) => void;
  sort?: SheetSort | undefined;
  onSort?: (columnId: string) => void;
  /** Takes the focus to a cell, each time another object is given: to what was just added. */
  goTo?: { rowKey: string; columnId: string } | undefined;
  /** In place of rows. */
  empty?: ReactNode;
}
