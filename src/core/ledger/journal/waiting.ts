// The journal's entries that the tables do not have yet: the oldest of them in memory, the others by their place in the
// files.
import { readFrame } from "./files.ts";
import { TAIL_BYTES } from "./frames.ts";
import { lastOf } from "./recovery.ts";
import type { Placement } from "./recovery.ts";
import type { Segment } from "./segments.ts";

export interface JournalEntry<T> {
  position: number;
  item: T;
}

export interface WaitingEntries<T> {
  /** Position of the last durable entry. */
  last: number;
  /** The tables have everything up to here. */
  trimmed: number;
  /** The oldest entries behind `trimmed`, without a gap. */
  recent: JournalEntry<T>[];
  /** Where those lie that are not in `recent`, in order. */
  placements: Placement[];
}

/** So many of the oldest entries that wait for the tables are at hand; the rest is read from the files. */
const MAX_RECENT = 4000;

/** Takes note of items that were written, with their tail, at the end of the segment. */
export function noteWritten<T>(
  waiting: WaitingEntries<T>,
  segment: Segment,
  bytes: number,
  items: readonly T[],
): void {
  const { recent, last } = waiting;
  const isNext = recent.length === 0 ? waiting.trimmed === last : recent.at(-1)?.position === last;
  const begin = segment.end;
  segment.end += bytes - TAIL_BYTES;
  if (isNext && recent.length + items.length <= MAX_RECENT) {
    let position = last;
    for (const item of items) recent.push({ position: ++position, item });
  } else {
    waiting.placements.push({
      path: segment.path,
      first: last + 1,
      count: items.length,
      begin,
      end: segment.end,
      checksum: "",
    });
  }
  waiting.last += items.length;
  segment.last = waiting.last;
}

/** The oldest entries behind a position. */
export function readWaiting<T>(waiting: WaitingEntries<T>, after: number, limit: number): JournalEntry<T>[] {
  const { recent, last } = waiting;
  if (after >= last) return [];
  const from = after + 1 - (recent[0]?.position ?? Number.POSITIVE_INFINITY);
  return from >= 0 && from < recent.length
    ? recent.slice(from, from + limit)
    : readPlaced(waiting, after, limit);
}

function readPlaced<T>({ placements }: WaitingEntries<T>, after: number, limit: number): JournalEntry<T>[] {
  const entries: JournalEntry<T>[] = [];
  let at = placements.findIndex((each) => lastOf(each) > after);
  for (; at >= 0 && at < placements.length; at++) {
    const place = placements[at];
    if (!place) break;
    const items = readFrame<T>(place.path, place.begin, place.end);
    for (const [index, item] of items.entries()) {
      if (place.first + index > after) entries.push({ position: place.first + index, item });
      if (entries.length === limit) return entries;
    }
  }
  return entries;
}

/** The tables have everything up to here. */
export function dropApplied<T>(waiting: WaitingEntries<T>, upTo: number): void {
  const { recent, placements } = waiting;
  waiting.trimmed = upTo;
  waiting.recent = recent.slice(Math.max(0, upTo + 1 - (recent[0]?.position ?? upTo + 1)));
  if (placements.length === 0) return;
  const rest = placements.findIndex((each) => lastOf(each) > upTo);
  waiting.placements = rest < 0 ? [] : placements.slice(rest);
}
