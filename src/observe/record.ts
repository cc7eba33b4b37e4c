// What is noted of one call while it runs, so that it can be told once when it is over.
import type { CallTrace } from "./traces.ts";

export interface CallRecord {
  /** How it ended was told. */
  isTold: boolean;
  /** performance.now() when the upstream was asked that answered last; 0: nobody was. */
  askedMs: number;
  /** Milliseconds spent at upstreams that failed before. */
  triedMs: number;
  /** Undefined: nobody traces. */
  trace: CallTrace | undefined;
  /** What a traced stream said of itself. */
  words: StreamWords | undefined;
}

/** Of an answer that came in pieces, as its upstream worded it. */
export interface StreamWords {
  model: string | undefined;
  id: string | undefined;
  /** Why it ended; one for each choice. */
  reasons: string[];
}

export function newRecord(trace?: CallTrace): CallRecord {
  return { isTold: false, askedMs: 0, triedMs: 0, trace, words: undefined };
}
