// A process's part of a limit that all living ones keep together without asking each other.
// Refuses to round up: the parts are exactly the limit.

/** Which of the living nodes this one is, from 0. */
export interface NodePlace {
  nodes: number;
  rank: number;
}

/** What of a cap is this node's: all nodes together have exactly the cap; the rest of the division goes round by id. */
export function shareOf(cap: number, { nodes, rank }: NodePlace, id: number): number {
  const extra = (rank + id) % nodes < cap % nodes ? 1 : 0;
  return Math.floor(cap / nodes) + extra;
}
