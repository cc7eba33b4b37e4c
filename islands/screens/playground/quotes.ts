// Ids of the quotes that were shown for the question being written: what is sent with it, so that the price that was told is kept.
// Refuses one that is about to end: the server would refuse the whole question for it.

interface Kept {
  id: string;
  /** Unix seconds. */
  expiresAt: number;
}

/** So long before its end it is not sent any more. */
const MARGIN_SECONDS = 10;

const kept = new Map<string, Kept>();

const placeOf = (model: string, group: string): string => `${group}\n${model}`;

export function keepQuote(model: string, group: string, quote: Kept): void {
  kept.set(placeOf(model, group), quote);
}

/** The header with the quote of this model, where one was shown and still stands at `nowMs`. */
export function quoteHeader(model: string, group: string, nowMs: number): Record<string, string> {
  const quote = kept.get(placeOf(model, group));
  if (!quote || quote.expiresAt - MARGIN_SECONDS <= nowMs / 1000) return {};
  return { "x-quote": quote.id };
}
