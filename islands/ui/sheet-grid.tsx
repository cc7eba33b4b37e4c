// The sheet as a grid: one stop of the Tab key, the current cell told by aria-activedescendant, only what is in sight drawn.
// Refuses to lose the focus: it stays on the grid, whichever rows come and go below it.
import { useEffect, useId, useRef } from "react";
import type { ClipboardEvent, KeyboardEvent, MouseEvent } from "react";
import { CellEditor } from "./sheet-editor.tsx";
import { SheetHead } from "./sheet-head.tsx";
import { SheetRow } from "./sheet-row.tsx";
import { cellCount, HEADS, cellAt, moveOf } from "./sheet-moves.ts";
import type { SheetSize } from "./sheet-moves.ts";
import { useSheet } from "./sheet-state.ts";
import type { SheetProps } from "./sheet-types.ts";
import { drawnColumns, ROW_HEIGHT, useCellInSight, useSheetWindow } from "./sheet-window.ts";

type Sheet<Row> = ReturnType<typeof useSheet<Row>>;

/** Row and column of the cell that an event happened in. */
function placeOf({ target }: { target: EventTarget }): { row: number; column: number } | undefined {
  const cell = target instanceof Element ? target.closest<HTMLElement>("[data-row]") : null;
  return cell ? { row: Number(cell.dataset["row"]), column: Number(cell.dataset["column"]) } : undefined;
}

const isControl = ({ target }: { target: EventTarget }): boolean =>
  target instanceof Element && target.closest("input, select, button, a") !== null;

/** What keys do while no cell is edited. True: the key was the sheet's. */
function pressed<Row>(
  event: KeyboardEvent,
  sheet: Sheet<Row>,
  props: SheetProps<Row>,
  size: SheetSize,
): boolean {
  const { key, shiftKey: isShift } = event;
  const isMod = event.ctrlKey || event.metaKey;
  const { selected, range, row, column } = sheet;
  const next = event.altKey ? undefined : moveOf({ key, isShift, isMod }, selected, size);
  if (next) {
    sheet.select(next);
    return true;
  }
  if (isMod) {
    const acts: Record<string, (() => void) | undefined> = {
      a: sheet.selectAll,
      d: sheet.fill,
      z: isShift ? props.onRedo : props.onUndo,
      y: props.onRedo,
    };
    const act = Object.hasOwn(acts, key.toLowerCase()) ? acts[key.toLowerCase()] : undefined;
    act?.();
    return act !== undefined;
  }
  if (event.altKey) return false;
  if (selected.row === HEADS) {
    if (key !== "Enter" || !column?.isSortable) return false;
    props.onSort?.(column.id);
    return true;
  }
  if (key === "Enter" && selected.column === 0 && props.onOpenRow && row !== undefined) {
    props.onOpenRow(row);
  } else if (key === "Enter" || key === "F2") sheet.edit();
  else if (key === "Delete" || key === "Backspace") sheet.clear();
  else if (key === "Escape" && cellCount(range) > 1) sheet.select(cellAt(selected.row, selected.column));
  else if (key === " " && props.onTick) tickRange(props, range);
  // A letter on a cell that nobody writes stays the page's: its shortcuts.
  else if (key.length === 1 && key !== " " && column?.parse) sheet.edit(key);
  else return false;
  return true;
}

/** Ticks the rows of the range; where all are ticked it takes the ticks away. */
function tickRange<Row>({ rows, keyOf, ticked, onTick }: SheetProps<Row>, range: Sheet<Row>["range"]): void {
  const keys = rows.slice(range.top, range.bottom + 1).map(keyOf);
  onTick?.(keys, !keys.every((key) => ticked?.has(key)));
}

/** What a pointer does: a press selects, a stretched one a range, a double click edits. */
function usePointer<Row>(sheet: Sheet<Row>, props: SheetProps<Row>, focus: () => void) {
  const isStretching = useRef(false);
  const wasCurrent = useRef(false);
  useEffect(() => {
    const end = () => {
      isStretching.current = false;
    };
    window.addEventListener("mouseup", end);
    return () => window.removeEventListener("mouseup", end);
  }, []);
  const { selected } = sheet;
  return {
    onMouseDown(event: MouseEvent) {
      const place = placeOf(event);
      if (!place || event.button !== 0) return;
      if (isControl(event)) {
        // The focus stays with the grid, as after a press beside the button; a field being edited keeps its own.
        if (event.target instanceof Element && event.target.closest("[data-editor]")) return;
        event.preventDefault();
        focus();
        return;
      }
      wasCurrent.current = place.row === selected.row && place.column === selected.column;
      if (place.row === HEADS) return;
      isStretching.current = true;
      sheet.select(event.shiftKey ? { ...selected, ...place } : cellAt(place.row, place.column));
    },
    onMouseOver(event: MouseEvent) {
      const place = isStretching.current && event.buttons === 1 ? placeOf(event) : undefined;
      if (place && place.row >= 0) sheet.select({ ...selected, ...place });
    },
    onDoubleClick(event: MouseEvent) {
      const place = placeOf(event);
      if (place && place.row >= 0 && !isControl(event)) sheet.edit();
    },
    onClick(event: MouseEvent) {
      const place = placeOf(event);
      if (!place) return;
      const button = event.target instanceof Element ? event.target.closest("button") : null;
      if (button) {
        const column = props.columns[place.column];
        if (place.row === HEADS && column) props.onSort?.(column.id);
        const row = props.rows[place.row];
        if (row !== undefined && button.matches("[data-open-row]")) props.onOpenRow?.(row);
      } else if (wasCurrent.current && "pointerType" in event.nativeEvent) {
        // A finger has no double click: the second tap edits.
        if (event.nativeEvent.pointerType === "touch") sheet.edit();
      }
    },
  };
}

export function SheetGrid<Row>(props: SheetProps<Row>) {
  const { label, rows, columns, keyOf } = props;
  const id = useId();
  const sheet = useSheet(props);
  const { t, selected, range, editor, told } = sheet;
  const { box, from, to, page, across } = useSheetWindow(rows.length);
  const widths = columns.map(({ width }) => width);
  const columnsDrawn = drawnColumns(widths, across, selected.column);
  useCellInSight(box, selected, widths);
  const focus = () => box.current?.focus({ preventScroll: true });
  useEffect(() => {
    if (!props.goTo) return;
    const { rowKey, columnId } = props.goTo;
    const row = rows.findIndex((each) => keyOf(each) === rowKey);
    if (row >= 0)
      sheet.select(
        cellAt(
          row,
          Math.max(
            0,
            columns.findIndex(({ id: each }) => each === columnId),
          ),
        ),
      );
    focus();
  }, [props.goTo]);
  const size = { rows: rows.length, columns: columns.length, page, hasHeads: props.onSort !== undefined };
  const pointer = usePointer(sheet, props, focus);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing || event.target !== box.current) return;
    if (pressed(event, sheet, props, size)) event.preventDefault();
  };
  const ofGrid = (event: ClipboardEvent, run: () => void) => {
    if (event.target instanceof Element && event.target.closest("[data-editor]")) return;
    event.preventDefault();
    run();
  };
  const copy = (event: ClipboardEvent) => event.clipboardData.setData("text/plain", sheet.copy());
  const cellId = (row: number, column: number) => `${id}${row}-${column}`;
  // The current row is drawn wherever the window stands: it is what the grid says it is at.
  const drawn = Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);
  if (selected.row >= 0 && selected.row < rows.length) {
    if (selected.row < from) drawn.unshift(selected.row);
    else if (selected.row >= to) drawn.push(selected.row);
  }
  const width = widths.reduce((sum, each) => sum + each, 0);
  const cells = cellCount(range);
  return (
    <>
      <div
        ref={box}
        className="sheet"
        role="grid"
        tabIndex={0}
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length}
        aria-multiselectable
        aria-activedescendant={cellId(selected.row, selected.column)}
        aria-describedby={`${id}keys`}
        onKeyDown={onKeyDown}
        onCopy={(event) => ofGrid(event, () => copy(event))}
        onCut={(event) =>
          ofGrid(event, () => {
            copy(event);
            sheet.clear();
          })
        }
        onPaste={(event) => ofGrid(event, () => sheet.paste(event.clipboardData.getData("text/plain")))}
        {...pointer}
      >
        <SheetHead {...{ props, selected, width, cellId }} drawn={columnsDrawn} />
        <div
          role="rowgroup"
          className="relative"
          style={{ minWidth: width, height: rows.length * ROW_HEIGHT }}
        >
          {drawn.map((at) => {
            const row = rows[at];
            return row === undefined ? null : (
              <SheetRow
                key={keyOf(row)}
                {...{ props, row, at, selected, range, cellId }}
                drawn={columnsDrawn}
                editor={
                  editor && selected.row === at ? (
                    <CellEditor sheet={sheet} isLow={at > 2 && at >= to - 14} onDone={focus} size={size} />
                  ) : undefined
                }
              />
            );
          })}
        </div>
      </div>
      <div className="flex min-h-6 flex-wrap items-baseline gap-x-4 pt-1 text-xs text-muted">
        <p role="status" className={told.isProblem ? "text-error" : undefined}>
          {told.text === "" && cells > 1
            ? t("sheet.range", {
                rows: range.bottom - range.top + 1,
                columns: range.right - range.left + 1,
              })
            : told.text}
        </p>
        <p id={`${id}keys`} className="ml-auto max-lg:hidden">
          {t("sheet.keys")}
        </p>
      </div>
    </>
  );
}
