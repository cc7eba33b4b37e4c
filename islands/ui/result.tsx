// What came of an action, inside the page: brought into sight and given the focus, so that it is seen and read out.
// Refuses to take the focus from somebody who has gone on to type elsewhere; they hear of it.
import { useEffect, useRef } from "react";
import type { ReactNode } from "react";

export interface ResultProps {
  /** Id of the sentence inside that says what came of it. */
  labelledBy: string;
  className?: string;
  children: ReactNode;
}

/** Mount it with the result; a `key` of its own for each result shows the next one anew. */
export function Result({ labelledBy, className, children }: ResultProps) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (document.activeElement?.matches("input, textarea, select")) return;
    box.current?.focus({ preventScroll: true });
    box.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return (
    <section ref={box} tabIndex={-1} aria-labelledby={labelledBy} className={className}>
      {children}
    </section>
  );
}
