// Which rows of a long sheet are drawn: those in sight and a few around them. The box scrolls over room for all.
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

export interface SheetWindow {
  box: RefObject<HTMLDivElement | null>;
  /** First drawn row, and the one after the last. */
  from: number;
  to: number;
  /** Whole rows in sight. */
  page: number;
}

interface Shown {
  first: number;
  page: number;
}

export function useSheetWindow(count: number): SheetWindow {
  const box = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Shown>({ first: 0, page: ASSUMED_ROWS });
  useLayoutEffect(() => {
    const at = box.current;
    if (!at) return undefined;
    const look = () => {
      const first = Math.floor(at.scrollTop / ROW_HEIGHT / STEP) * STEP;
      // The head takes a row of its own.
      const page = Math.floor(at.clientHeight / ROW_HEIGHT) - 1;
      setShown((before) => {
        const next = { first, page: page > 0 ? page : ASSUMED_ROWS };
        return next.first === before.first && next.page === before.page ? before : next;
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
