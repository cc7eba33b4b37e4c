// Marks on which sides a table has more than it shows: its pinned columns then draw an edge (views/table.css).
// Refuses to wait for React: scrolling renders nothing anew.
import { useEffect, useRef } from "react";
import type { RefObject } from "react";

/** For the box that scrolls; the marks are data-more-left and data-more-right. */
export function useTableEdges(): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = ref.current;
    if (!box) return undefined;
    const mark = () => {
      const right = box.scrollWidth - box.clientWidth - box.scrollLeft;
      box.toggleAttribute("data-more-left", box.scrollLeft > 1);
      box.toggleAttribute("data-more-right", right > 1);
    };
    // The table grows and shrinks with its rows, its columns and the fonts.
    const watch = new ResizeObserver(mark);
    for (const each of [box, ...box.querySelectorAll("table")]) watch.observe(each);
    box.addEventListener("scroll", mark, { passive: true });
    return () => {
      watch.disconnect();
      box.removeEventListener("scroll", mark);
    };
  }, []);
  return ref;
}
