// What a stream that is passed on needs to know of its payment: how far it is paid, and how more is reserved.
import type { SseEvent } from "./framing.ts";

export interface StreamHold {
  /**
   * UTF-16 units of output up to which nothing needs to be counted: even if each were as many tokens as it can be, they
   * would be paid. Compared with every event.
   */
  readonly freeChars: number;
  /** Output tokens that are paid so far. */
  readonly paidTokens: number;
  /** What is short where something is not paid: the balance, or the call's own cap. */
  readonly shortOf: "balance" | "max-cost";
  /** Past that: whether everything that came so far is paid, after the hold was lengthened where it can be. */
  cover(chars: number): Promise<boolean>;
}

/** Nothing is counted: the call costs nothing by the token of its answer. */
export const UNHELD: StreamHold = {
  freeChars: Infinity,
  paidTokens: Infinity,
  shortOf: "balance",
  cover: () => Promise.resolve(true),
};

/** Events of one chunk, of which the one at `at` has been metered and is not paid; `before`: the output up to it. */
export interface Unpaid {
  events: readonly SseEvent[];
  at: number;
  before: number;
}

/** One frame that was passed on, for an end that has to fit to it. */
export interface PassedFrame {
  event: string;
  data: string;
}
