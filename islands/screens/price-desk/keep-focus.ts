// Keeps the focus where somebody works: what was pressed may be gone with what it brought about.
import { useEffect, useRef } from "react";
import type { RefObject } from "react";

/** Give it to the element around; whenever `shown` changes and nothing has the focus any more, that element gets it. */
export function useKeptFocus(shown: unknown): RefObject<HTMLDivElement | null> {
  const around = useRef<HTMLDivElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current && document.activeElement === document.body)
      around.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [shown]);
  return around;
}
