// Looks for forbidden words in what a model says while it says it; a word may be cut over any number of pieces.
// Refuses to keep more of the text than the longest word needs.
import type { WordFilter } from "../../core/kit/word-filter.ts";
import { Failure } from "../../shared/failures.ts";
import type { Call } from "./call.ts";
import type { OutputScreen } from "../meter/meter.ts";

const hits = new WeakSet<Call>();

/** Whether the screen of this call has met a forbidden word. */
export function hasForbiddenOutput(call: Call): boolean {
  return hits.has(call);
}

/** `stops`: a hit ends the answer; otherwise it is only noted in the log. */
export function screenerOf(words: WordFilter, call: Call, stops: boolean): OutputScreen {
  let rest = "";
  return (delta) => {
    if (hits.has(call)) return undefined;
    const text = rest + delta;
    if (words.find(text) === undefined) {
      rest = text.slice(-words.longest);
      return undefined;
    }
    hits.add(call);
    return stops ? new Failure("client", "sensitive_words_detected") : undefined;
  };
}
