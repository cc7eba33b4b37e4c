// The events of answers as they came, kept while the page is open: for "Raw events".
// Refuses to keep more than some megabytes: the oldest answers go first.

export interface RawEvent {
  data: string;
  /** Since the question was sent. */
  ms: number;
}

const MOST_CHARS = 8_000_000;

const kept = new Map<string, RawEvent[]>();
let chars = 0;

/** By the id of the answer's message; empty for one that came before the page was opened, or long ago. */
export function rawEventsOf(id: string): readonly RawEvent[] {
  return kept.get(id) ?? [];
}

export function keepRawEvent(id: string, event: RawEvent): void {
  const events = kept.get(id) ?? [];
  if (events.length === 0) kept.set(id, events);
  events.push(event);
  chars += event.data.length;
  for (const [oldest, { length }] of kept) {
    if (chars <= MOST_CHARS || oldest === id) return;
    if (length > 0) chars -= sizeOf(kept.get(oldest) ?? []);
    kept.delete(oldest);
  }
}

function sizeOf(events: readonly RawEvent[]): number {
  return events.reduce((sum, { data }) => sum + data.length, 0);
}
