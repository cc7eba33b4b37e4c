// Whether an element has come near the window: work for what is out of sight can wait until somebody scrolls there.
import { useEffect, useState } from "react";
import type { RefObject } from "react";

/** So near to the window counts as in sight. */
const NEAR = "400px";

/** True from when the element comes near the window, for good; at once where nothing can observe. */
export function useSeen(box: RefObject<HTMLElement | null>): boolean {
  const [isSeen, setSeen] = useState(typeof IntersectionObserver === "undefined");
  useEffect(() => {
    if (isSeen || !box.current) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
      },
      { rootMargin: NEAR },
    );
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [isSeen]);
  return isSeen;
}
