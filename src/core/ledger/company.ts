// How long a batch waits for others to join it. Where answers wait for the commit, the first settlement behind a commit would make
// a batch of one otherwise, and everybody else waits for that commit before their own begins.
// Refuses to hold up a lone caller: only who has lately travelled in company waits for it.

/** Of the time that a commit takes: what a caller loses by waiting is made up for by one commit less. */
const SHARE = 0.25;
const MOST_MS = 5;
/** Of the newest batch in the running means. */
const NEWEST = 0.3;

/** For a batch that no answer waits for: one transaction for all that settle meanwhile. */
const GATHER_MS = 200;
/**
 * While one batch follows another. A transaction costs the process two to three milliseconds, however few its entries are; at thirty
 * calls a second a sixth of a call's processor time went there. Other nodes, which look twice a second, still know within one.
 */
const STEADY_MS = 350;
const FOLLOWS_MS = 1000;

export interface Company {
  /**
   * Milliseconds that an entry which no answer waits for waits for others. Whoever waits for the tables (`drain`) begins the batch at
   * once.
   */
  gatherMs(): number;
  /** Milliseconds that a batch of so many entries is worth waiting for others; 0: it begins at once. */
  waitMs(entries: number): number;
  /** A batch of so many was committed after so long. */
  committed(entries: number, tookMs: number): void;
}

export function createCompany(monotonicMs = () => performance.now()): Company {
  let committedAtMs = -Infinity;
  let usualEntries = 1;
  let usualMs = 0;
  return {
    gatherMs: () => (monotonicMs() - committedAtMs < FOLLOWS_MS ? STEADY_MS : GATHER_MS),
    waitMs: (entries) => (entries >= Math.round(usualEntries) ? 0 : Math.min(MOST_MS, usualMs * SHARE)),
    committed(entries, tookMs) {
      committedAtMs = monotonicMs();
      usualEntries += NEWEST * (entries - usualEntries);
      usualMs += NEWEST * (tookMs - usualMs);
    },
  };
}
