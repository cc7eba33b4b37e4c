// What pasting, filling and clearing would write, cell by cell, and what of it cannot be taken.
// Refuses to write anything itself, and to give up the good cells for one bad one.
import type { CellProblem, CellWrite, SheetColumn } from "./sheet-types.ts";
import type { Range } from "./sheet-moves.ts";

export interface SheetCells<Row> {
  rows: readonly Row[];
  columns: readonly SheetColumn<Row>[];
  keyOf: (row: Row) => string;
  /** Sentence for a cell that nobody writes. */
  readOnly: string;
}

export interface EditPlan {
  writes: CellWrite[];
  problems: CellProblem[];
  /** Values that would have come to lie beyond the last row or column. */
  lost: number;
  /** The cells that were meant. */
  range: Range;
}

interface Target {
  row: number;
  column: number;
  text: string;
}

function planned<Row>(cells: SheetCells<Row>, targets: Iterable<Target>, range: Range): EditPlan {
  const plan: EditPlan = { writes: [], problems: [], lost: 0, range };
  for (const { row: at, column: beside, text } of targets) {
    const row = cells.rows[at];
    const column = cells.columns[beside];
    if (row === undefined || !column) {
      plan.lost += text === "" ? 0 : 1;
      continue;
    }
    // What stands there already is neither written nor refused: blocks come with names and with what nobody changed.
    if (text.trim() === column.read(row)) continue;
    const place = { rowKey: cells.keyOf(row), columnId: column.id };
    if (!column.parse || column.isReadOnly?.(row)) {
      plan.problems.push({ ...place, problem: cells.readOnly });
      continue;
    }
    const { value, problem } = column.parse(text.trim(), row);
    if (problem === undefined) plan.writes.push({ ...place, value });
    else plan.problems.push({ ...place, problem });
  }
  return plan;
}

/** A text into one cell. */
export function setCell<Row>(cells: SheetCells<Row>, row: number, column: number, text: string): EditPlan {
  const range = { top: row, bottom: row, left: column, right: column };
  return planned(cells, [{ row, column, text }], range);
}

/** The same text into every cell of a range. */
export function fillRange<Row>(cells: SheetCells<Row>, range: Range, text: string): EditPlan {
  return planned(
    cells,
    targetsOf(range, () => text),
    range,
  );
}

export function clearRange<Row>(cells: SheetCells<Row>, range: Range): EditPlan {
  // Names and figures in between stay what they are, without a word: a whole row is cleared like this, too.
  const isWritten = (column: number) => cells.columns[column]?.parse !== undefined;
  const targets = [...targetsOf(range, () => "")].filter(({ column }) => isWritten(column));
  return planned(cells, targets, range);
}

/** The top row of the range into those below; a single row takes what stands above it. */
export function fillDown<Row>(cells: SheetCells<Row>, range: Range): EditPlan {
  const isSingle = range.top === range.bottom;
  const from = isSingle ? range.top - 1 : range.top;
  const to = { ...range, top: from + 1 };
  const source = cells.rows[from];
  if (source === undefined) return planned(cells, [], range);
  return planned(
    cells,
    targetsOf(to, (_, column) => cells.columns[column]?.read(source) ?? ""),
    to,
  );
}

/** A block at the range: one that fits into it several times is repeated, any other begins at its first cell. */
export function pasteBlock<Row>(
  cells: SheetCells<Row>,
  range: Range,
  block: readonly (readonly string[])[],
): EditPlan {
  const height = block.length;
  const width = Math.max(...block.map((line) => line.length));
  const selected = { height: range.bottom - range.top + 1, width: range.right - range.left + 1 };
  const down = selected.height % height === 0 ? selected.height : height;
  const across = selected.width % width === 0 ? selected.width : width;
  const to = { ...range, bottom: range.top + down - 1, right: range.left + across - 1 };
  return planned(
    cells,
    targetsOf(to, (row, column) => block[(row - to.top) % height]?.[(column - to.left) % width] ?? ""),
    {
      ...to,
      bottom: Math.min(to.bottom, cells.rows.length - 1),
      right: Math.min(to.right, cells.columns.length - 1),
    },
  );
}

function* targetsOf(
  { top, bottom, left, right }: Range,
  textAt: (row: number, column: number) => string,
): Iterable<Target> {
  for (let row = top; row <= bottom; row++) {
    for (let column = left; column <= right; column++) yield { row, column, text: textAt(row, column) };
  }
}

/** Texts of a range, for the clipboard. */
export function textsOf<Row>({ rows, columns }: SheetCells<Row>, range: Range): string[][] {
  return rows
    .slice(range.top, range.bottom + 1)
    .map((row) => columns.slice(range.left, range.right + 1).map((column) => column.read(row)));
}
