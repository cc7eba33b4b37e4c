// Where a key leads in a sheet: pure, so that every key can be tried without a page.
// Refuses to leave the sheet: beyond its edges the cell stays.

/** A range of cells: one corner stays where it was begun, the other is the current cell. */
export interface Selected {
  row: number;
  column: number;
  anchorRow: number;
  anchorColumn: number;
}

export interface SheetSize {
  rows: number;
  columns: number;
  /** Rows that fit into the window. */
  page: number;
  /** Heads can be walked to, above the first row, because they sort. */
  hasHeads: boolean;
}

export interface Range {
  top: number;
  bottom: number;
  left: number;
  right: number;
}

export const START: Selected = { row: 0, column: 0, anchorRow: 0, anchorColumn: 0 };
/** The row of the heads. */
export const HEADS = -1;

export const cellAt = (row: number, column: number): Selected => ({
  row,
  column,
  anchorRow: row,
  anchorColumn: column,
});

export function rangeOf({ row, column, anchorRow, anchorColumn }: Selected): Range {
  return {
    top: Math.min(row, anchorRow),
    bottom: Math.max(row, anchorRow),
    left: Math.min(column, anchorColumn),
    right: Math.max(column, anchorColumn),
  };
}

export function cellCount({ top, bottom, left, right }: Range): number {
  return (bottom - top + 1) * (right - left + 1);
}

export function isWithin({ top, bottom, left, right }: Range, row: number, column: number): boolean {
  return row >= top && row <= bottom && column >= left && column <= right;
}

interface PressedKey {
  key: string;
  isShift: boolean;
  /** Ctrl, or Cmd on Apple. */
  isMod: boolean;
}

/** Where the key leads; undefined where it does not move. */
export function moveOf(
  { key, isShift, isMod }: PressedKey,
  at: Selected,
  size: SheetSize,
): Selected | undefined {
  const last = { row: size.rows - 1, column: size.columns - 1 };
  const { row, column } = at;
  const targets: Record<string, () => { row?: number; column?: number }> = {
    ArrowUp: () => ({ row: isMod ? 0 : row - 1 }),
    ArrowDown: () => ({ row: isMod ? last.row : row + 1 }),
    ArrowLeft: () => ({ column: isMod ? 0 : column - 1 }),
    ArrowRight: () => ({ column: isMod ? last.column : column + 1 }),
    Home: () => ({ column: 0, ...(isMod && { row: 0 }) }),
    End: () => ({ column: last.column, ...(isMod && { row: last.row }) }),
    PageUp: () => ({ row: Math.max(0, row - size.page) }),
    PageDown: () => ({ row: row + size.page }),
  };
  const target = Object.hasOwn(targets, key) ? targets[key]?.() : undefined;
  if (!target) return undefined;
  const first = size.hasHeads && !isShift && !isMod ? HEADS : 0;
  const next = {
    row: Math.max(first, Math.min(last.row, target.row ?? row)),
    column: Math.max(0, Math.min(last.column, target.column ?? column)),
  };
  if (!isShift) return cellAt(next.row, next.column);
  // A head is no cell that could be selected.
  return { ...next, anchorRow: Math.max(0, at.anchorRow), anchorColumn: at.anchorColumn };
}
