// Which cells of a large sheet are drawn: rows in sight and a few around them, and of many columns the same. The box scrolls
// over room for all.
// Refuses to render with every pixel: only when the drawn part has to move.
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { RefObject } from "react";

/** In pixels, with the line below. */
export const ROW_HEIGHT = 36;
/** Rows drawn beyond the edge on either side. */
const AROUND = 8;
/** The drawn part moves by this many rows at a time. */
const STEP = 4;
/** Before the box could be measured. */
const ASSUMED_ROWS = 24;

/** Of fewer columns all are drawn. */
const MANY_COLUMNS = 24;
/** Pixels drawn beyond the edge on either side, and by how many the drawn part moves at a time. */
const AROUND_PX = 256;
const STEP_PX = 256;
/** Before the box could be measured. */
const ASSUMED_PX = 1600;

/** A column that is drawn, and the room before it of those that are not, in pixels. */
interface DrawnColumn {
  at: number;
  gap: number;
}

export interface DrawnColumns {
  columns: readonly DrawnColumn[];
  /** Room behind the last one. */
  rest: number;
}

/**
 * The columns that are drawn of a box that has scrolled by `left` and shows `width` pixels beside the pinned names. The first
 * one always is, and so is the current one: it is what the grid says it is at.
 */
export function drawnColumns(
  widths: readonly number[],
  { left, width }: { left: number; width: number },
  current: number,
): DrawnColumns {
  const columns: DrawnColumn[] = [];
  let rest = 0;
  let begin = 0;
  for (const [at, own] of widths.entries()) {
    const isInSight = begin + own > left - AROUND_PX && begin < left + width + STEP_PX + AROUND_PX;
    if (at === 0 || at === current || widths.length <= MANY_COLUMNS || isInSight) {
      columns.push({ at, gap: rest });
      rest = 0;
    } else rest += own;
    if (at > 0) begin += own;
  }
  return { columns, rest };
}

export interface SheetWindow {
  box: RefObject<HTMLDivElement | null>;
  /** First drawn row, and the one after the last. */
  from: number;
  to: number;
  /** Whole rows in sight. */
  page: number;
  /** What of the columns is in sight, in pixels. */
  across: { left: number; width: number };
}

interface Shown {
  first: number;
  page: number;
  left: number;
  width: number;
}

const isSameShown = (a: Shown, b: Shown): boolean =>
  a.first === b.first && a.page === b.page && a.left === b.left && a.width === b.width;

export function useSheetWindow(count: number): SheetWindow {
  const box = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Shown>({ first: 0, page: ASSUMED_ROWS, left: 0, width: ASSUMED_PX });
  useLayoutEffect(() => {
    const at = box.current;
    if (!at) return undefined;
    const look = () => {
      const first = Math.floor(at.scrollTop / ROW_HEIGHT / STEP) * STEP;
      // The head takes a row of its own.
      const page = Math.floor(at.clientHeight / ROW_HEIGHT) - 1;
      setShown((before) => {
        const next = {
          first,
          page: page > 0 ? page : ASSUMED_ROWS,
          left: Math.floor(at.scrollLeft / STEP_PX) * STEP_PX,
          width: at.clientWidth > 0 ? at.clientWidth : ASSUMED_PX,
        };
        return isSameShown(next, before) ? before : next;
      });
    };
    look();
    at.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => {
      at.removeEventListener("scroll", look);
      window.removeEventListener("resize", look);
    };
  }, []);
  // Fewer rows than before: the box stands at its new end by itself, but may say so late.
  const first = Math.max(0, Math.min(shown.first, count - shown.page));
  return {
    box,
    from: Math.max(0, first - AROUND),
    to: Math.min(count, first + shown.page + STEP + AROUND),
    page: shown.page,
    across: shown,
  };
}

/** Keeps the current cell in sight, clear of the head and of the pinned names. */
export function useCellInSight(
  box: RefObject<HTMLDivElement | null>,
  { row, column }: { row: number; column: number },
  widths: readonly number[],
): void {
  const isFirst = useRef(true);
  useEffect(() => {
    const at = box.current;
    // Nobody moved yet.
    if (isFirst.current || !at) {
      isFirst.current = false;
      return;
    }
    const top = Math.max(0, row) * ROW_HEIGHT;
    const room = at.clientHeight - 2 * ROW_HEIGHT;
    if (top < at.scrollTop) at.scrollTop = top;
    else if (top > at.scrollTop + room) at.scrollTop = top - room;
    if (column === 0) return;
    const [pinned = 0] = widths;
    const left = widths.slice(1, column).reduce((sum, width) => sum + width, 0);
    const rightmost = left + (widths[column] ?? 0) - (at.clientWidth - pinned);
    if (left < at.scrollLeft) at.scrollLeft = left;
    else if (rightmost > at.scrollLeft) at.scrollLeft = rightmost;
  }, [box, row, column]);
}
