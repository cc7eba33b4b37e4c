// Work that the first paint does not need: done when the page is idle, in the browser only.

const IDLE_LIMIT_MS = 3000;

/** Runs when the browser has nothing else to do, after three seconds at the latest; never on the server. */
export function whenIdle(work: () => void): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(work, { timeout: IDLE_LIMIT_MS });
  else if (typeof window !== "undefined") setTimeout(work, IDLE_LIMIT_MS);
}
