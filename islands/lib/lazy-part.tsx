// Parts of a screen that the first paint does not need (editors, dialogs): own chunk, fetched when the page is idle.
// Refuses to take part in the server render: it appears after hydration, when it is opened.
import { Suspense, lazy, useEffect, useState } from "react";
import type { ComponentType } from "react";

const IDLE_LIMIT_MS = 3000;

/**
 * `const Editor = lazyPart(() => import("./token/drawer.tsx"))`; the module's default export is the component. Render it
 * only while it is open.
 */
export function lazyPart<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): ComponentType<Props> {
  const Part = lazy(load);
  // A failed early fetch is no failure: opening the part asks again and says so.
  const fetchEarly = () => void load().catch(() => undefined);
  if (typeof requestIdleCallback === "function") requestIdleCallback(fetchEarly, { timeout: IDLE_LIMIT_MS });
  else if (typeof window !== "undefined") setTimeout(fetchEarly, IDLE_LIMIT_MS);
  return function LazyPart(props: Props) {
    const [isMounted, setMounted] = useState(false);
    useEffect(() => setMounted(true), []);
    if (!isMounted) return null;
    return (
      <Suspense fallback={null}>
        <Part {...props} />
      </Suspense>
    );
  };
}
