// The local files in which settlements are durable before the books have them: entries in order, each with its position.
// Refuses what a crash has torn, files of another database's history, and to overwrite what the books may still need.
import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  write,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Logger } from "./deps.ts";
import { frameOf, framesOf } from "./journal-frames.ts";

export interface JournalEntry<T> {
  position: number;
  item: T;
}

export interface Journal<T> {
  /** Takes up what earlier runs left behind the last position in the books; undefined: they never had a journal. */
  resume(mark: number | undefined): void;
  /** Durable when it returns; all or a throw. */
  append(items: readonly T[]): void;
  /** The same off the event loop. No other append before it has resolved. */
  appendLater(items: readonly T[]): Promise<void>;
  /** The oldest entries behind a position. */
  read(after: number, limit: number): JournalEntry<T>[];
  /** The books have everything up to here; what it stood in is used anew once `makeDurable`, when asked, resolves. */
  trim(upTo: number, makeDurable: () => Promise<void>): void;
  /** Writes down durably what the books refuse for its content, for a person to look at. */
  setAside(entry: JournalEntry<T>, reason: string, nowMs: number): void;
  readonly lastPosition: number;
  close(): void;
}

/** One file. Behind `end` it has room, or frames of an earlier use with lower positions. */
interface Segment {
  path: string;
  fd: number;
  first: number;
  last: number;
  end: number;
}

export const SET_ASIDE_FILE = "refused-settlements.jsonl";
const NAME = /^journal-(\d+)\.log$/;
const SEGMENT_BYTES = 1024 * 1024;
/** So many of the oldest entries that wait for the books are at hand; the rest is read from the files. */
const MAX_RECENT = 4000;
/** Further files, which an outage of the database has made, are removed. */
const MAX_FREE = 2;

const { O_RDWR, O_CREAT, O_DSYNC } = constants;

export function openJournal<T>(dataDir: string, logger: Logger): Journal<T> {
  /** Oldest first; the last one is written to. */
  let segments: Segment[] = [];
  const free: Segment[] = [];
  let names = 0;
  let last = 0;
  let trimmed = 0;
  /** The oldest entries behind `trimmed`, without a gap. */
  let recent: JournalEntry<T>[] = [];
  let isWriting = false;
  let isFreeing = false;
  let isClosed = false;

  /** Each write is durable when it returns: one system call, and no separate sync. */
  const open = (path: string): Segment => ({
    path,
    fd: openSync(path, O_RDWR | O_DSYNC),
    first: 0,
    last: 0,
    end: 0,
  });

  /** Filled at once: writing into room that is there is a quarter quicker than growing, and no full disk stops it. */
  function create(): Segment {
    const path = join(dataDir, `journal-${++names}.log`);
    const file = openSync(path, O_RDWR | O_CREAT, 0o600);
    try {
      writeSync(file, Buffer.alloc(SEGMENT_BYTES));
      fsyncSync(file);
    } catch (error) {
      rmSync(path, { force: true });
      throw error;
    } finally {
      closeSync(file);
    }
    const directory = openSync(dataDir, constants.O_RDONLY);
    fsyncSync(directory);
    closeSync(directory);
    return open(path);
  }

  function scan(path: string): Segment {
    const segment = open(path);
    for (const { first, count, end } of framesOf(readFileSync(path))) {
      if (segment.end === 0) segment.first = first;
      segment.last = first + count - 1;
      segment.end = end;
    }
    return segment;
  }

  /** A file takes frames until it is full; its last one may make it longer. */
  function room(): Segment {
    const current = segments.at(-1);
    if (current && current.end < SEGMENT_BYTES) return current;
    const next = Object.assign(free.pop() ?? create(), { first: last + 1, last, end: 0 });
    segments.push(next);
    return next;
  }

  function wrote(segment: Segment, bytes: number, items: readonly T[]): void {
    const isNext = recent.length === 0 ? trimmed === last : recent.at(-1)?.position === last;
    for (const item of items) {
      last++;
      if (isNext && recent.length < MAX_RECENT) recent.push({ position: last, item });
    }
    segment.last = last;
    segment.end += bytes;
  }

  function readFiles(after: number, limit: number): JournalEntry<T>[] {
    const entries: JournalEntry<T>[] = [];
    for (const segment of segments) {
      if (segment.last <= after) continue;
      for (const frame of framesOf(readFileSync(segment.path).subarray(0, segment.end))) {
        if (frame.first + frame.count <= after + 1) continue;
        const items = JSON.parse(frame.body.toString()) as T[];
        for (const [index, item] of items.entries()) {
          if (frame.first + index > after) entries.push({ position: frame.first + index, item });
          if (entries.length === limit) return entries;
        }
      }
    }
    return entries;
  }

  function setFree(used: readonly Segment[]): void {
    for (const segment of used) {
      if (free.length < MAX_FREE) free.push(segment);
      else {
        closeSync(segment.fd);
        rmSync(segment.path, { force: true });
      }
    }
  }

  function putAway(history: readonly Segment[], mark: number | undefined): void {
    logger.error("the journal does not belong to this database and was put away", {
      database: mark ?? "none",
      from: history[0]?.first,
      to: history.at(-1)?.last,
    });
    for (const { path, fd } of history) {
      closeSync(fd);
      renameSync(path, `${path}.foreign-${Date.now()}`);
    }
  }

  return {
    resume(mark) {
      const found: Segment[] = [];
      for (const name of readdirSync(dataDir)) {
        const number = NAME.exec(name)?.[1];
        if (number === undefined) continue;
        names = Math.max(names, Number(number));
        found.push(scan(join(dataDir, name)));
      }
      found.sort((a, b) => a.first - b.first);
      // One history: what follows without a gap up to the newest entry. Files before it have been used up.
      let begin = Math.max(0, found.length - 1);
      while (begin > 0 && found[begin - 1]?.last === (found[begin]?.first ?? 0) - 1) begin--;
      const history = found.slice(begin);
      const newest = history.at(-1)?.last ?? 0;
      const known = mark ?? 0;
      setFree(found.slice(0, begin));
      if (newest <= known) setFree(history);
      // Applying entries that do not go on where the books end would charge people for another history's calls.
      else if (mark === undefined || (history[0]?.first ?? 0) > known + 1) putAway(history, mark);
      else segments = history;
      last = segments.length > 0 ? newest : known;
      trimmed = known;
      // Now rather than when the first call waits for it; a directory that cannot hold it is told at the start.
      if (segments.length + free.length === 0) free.push(create());
    },

    append(items) {
      if (isWriting) throw new Error("the journal is being written to");
      const segment = room();
      const frame = frameOf(last + 1, items);
      for (let done = 0; done < frame.length;)
        done += writeSync(segment.fd, frame, done, frame.length - done, segment.end + done);
      wrote(segment, frame.length, items);
    },

    async appendLater(items) {
      if (isWriting) throw new Error("the journal is being written to");
      isWriting = true;
      try {
        const segment = room();
        const frame = frameOf(last + 1, items);
        for (let done = 0; done < frame.length;)
          done += await writeLater(segment.fd, frame, done, segment.end + done);
        wrote(segment, frame.length, items);
      } finally {
        isWriting = false;
      }
    },

    read(after, limit) {
      if (after >= last) return [];
      const from = after + 1 - (recent[0]?.position ?? Number.POSITIVE_INFINITY);
      return from >= 0 && from < recent.length ? recent.slice(from, from + limit) : readFiles(after, limit);
    },

    trim(upTo, makeDurable) {
      trimmed = upTo;
      recent = recent.slice(Math.max(0, upTo + 1 - (recent[0]?.position ?? upTo + 1)));
      if (isFreeing || segments.length < 2 || (segments[0]?.last ?? 0) > upTo) return;
      isFreeing = true;
      makeDurable()
        .then(() => {
          if (isClosed) return;
          const used = segments.slice(0, -1).filter((segment) => segment.last <= upTo);
          segments = segments.slice(used.length);
          setFree(used);
        })
        // Its room is asked for again with the next trim.
        .catch((error: unknown) => {
          if (!isClosed) logger.warn("journal could not be freed", { error: String(error) });
        })
        .finally(() => {
          isFreeing = false;
        });
    },

    setAside({ position, item }, reason, nowMs) {
      const file = openSync(join(dataDir, SET_ASIDE_FILE), "a", 0o600);
      try {
        writeSync(file, `${JSON.stringify({ position, reason, at: Math.floor(nowMs / 1000), item })}\n`);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    },

    get lastPosition() {
      return last;
    },

    close() {
      isClosed = true;
      for (const { fd } of [...segments, ...free]) closeSync(fd);
    },
  };
}

/** Entries that are durable here and not in the books, whose mark is given. Changes nothing: a server may be running. */
export function countWaiting(dataDir: string, mark: number): number {
  let waiting = 0;
  for (const name of readdirSync(dataDir)) {
    if (!NAME.test(name)) continue;
    for (const { first, count } of framesOf(readFileSync(join(dataDir, name))))
      waiting += Math.min(count, Math.max(0, first + count - 1 - mark));
  }
  return waiting;
}

function writeLater(file: number, bytes: Buffer, from: number, position: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  write(file, bytes, from, bytes.length - from, position, (error, done) =>
    error ? reject(error) : resolve(done),
  );
  return promise;
}
