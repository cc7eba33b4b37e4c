// How a test waits for what comes by itself: it looks again and again, and leaves the processor to what it waits for.
// Refuses to decide anything by time: a test's limit is the judge.

/** Looks that follow one another with the turns of the event loop; then there is a pause between them. */
const QUICK_LOOKS = 20;
const LONGEST_PAUSE_MS = 10;

/** Between two looks: nothing for what is nearly there, up to ten milliseconds for what another process has to do. */
export function nextLook(looks: number): Promise<void> {
  return new Promise((resolve) => {
    if (looks < QUICK_LOOKS) setImmediate(resolve);
    else setTimeout(resolve, Math.min(looks - QUICK_LOOKS + 1, LONGEST_PAUSE_MS));
  });
}

/** Looks until it is so. */
export async function untilSo(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await isSo()); looks++) await nextLook(looks);
}
