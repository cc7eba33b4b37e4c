// What is noted of one call while it runs, so that it can be told once when it is over.
export interface CallRecord {
  /** How it ended was told. */
  isTold: boolean;
  /** performance.now() when the upstream was asked that answered last; 0: nobody was. */
  askedMs: number;
  /** Milliseconds spent at upstreams that failed before. */
  triedMs: number;
}

export function newRecord(): CallRecord {
  return { isTold: false, askedMs: 0, triedMs: 0 };
}
