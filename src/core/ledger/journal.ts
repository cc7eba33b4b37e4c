// The local files in which settlements are durable before the books have them: entries in order, each with its position.
// Refuses to start on a gap above the books' mark, and to overwrite or remove what the books may still need.
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  write,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Logger } from "../deps.ts";
import { frameOf, TAIL_BYTES } from "./journal-frames.ts";
import {
  createSegment,
  createSegmentLater,
  readFrame,
  SEGMENT_BYTES,
  syncDirectory,
} from "./journal-files.ts";
import { lastOf, nameOf, recover, surveyFile } from "./journal-recovery.ts";
import type { BooksPosition, Finding, Placement, SurveyedFile } from "./journal-recovery.ts";

export interface JournalEntry<T> {
  position: number;
  item: T;
}

export interface Journal<T> {
  /** Takes up what earlier runs left behind the last position in the books; throws JournalDamaged where a part is missing. */
  resume(books: BooksPosition): void;
  /** Durable when it returns; all or a throw. */
  append(items: readonly T[]): void;
  /** The same off the event loop. No other append before it has resolved. */
  appendLater(items: readonly T[]): Promise<void>;
  /** The oldest entries behind a position. */
  read(after: number, limit: number): JournalEntry<T>[];
  /** The books have everything up to here; what it stood in is kept for a while once `makeDurable` resolves. */
  trim(upTo: number, makeDurable: () => Promise<void>): void;
  /** The books fell back to a lower mark: what follows is read again. Throws JournalDamaged when it is not all there. */
  rewind(mark: number): void;
  /** Writes down durably what the books refuse for its content, for a person to look at. */
  setAside(entry: JournalEntry<T>, reason: string, nowMs: number): void;
  /** False while there is no room beyond the present file, or the last write failed: nothing new may be begun. */
  isSound(): boolean;
  /** Makes room and proves with a durable write that entries can be written; true when they can. */
  prove(): boolean;
  /**
   * Removes what has been kept long enough, and leaves a file that was deleted or replaced under this process: what is
   * written to it would be lost.
   */
  lookAfterFiles(): void;
  readonly lastPosition: number;
  close(): void;
}

export interface JournalOptions {
  /** How long files stay whose entries the books have: an older state of the books gets them again. */
  keepMs?: number;
  monotonicMs?: () => number;
}

/** The start is stopped with this sentence, or a running process shuts with it. */
export class JournalDamaged extends Error {
  constructor(
    dataDir: string,
    readonly findings: readonly Finding[],
  ) {
    const [first] = findings;
    const more =
      findings.length > 1 ? ` (and ${findings.length - 1} more, which "weir journal check" lists)` : "";
    super(
      `${first?.sentence ?? "the journal is damaged"}${more}. Nothing was changed in ${dataDir}: put the file back, or ` +
        `bring a copy of it in with "weir journal enter FILE", or give them up with "weir journal skip ${first?.from}-${first?.to}".`,
    );
  }
}

/** One file. */
interface Segment {
  path: string;
  /** Open while it is written to or waits for that. */
  fd: number | undefined;
  size: number;
  /** Highest position in it. */
  last: number;
  end: number;
  /** When the books no longer need it, it stays until then. */
  keptUntilMs: number;
}

export const SET_ASIDE_FILE = "refused-settlements.jsonl";
export const JOURNAL_NAME = /^journal-(\d+)\.log$/;
export const KEEP_MINUTES = 15;
/** So many of the oldest entries that wait for the books are at hand; the rest is read from the files. */
const MAX_RECENT = 4000;
/** Further files are removed when nobody needs them any more. */
const MAX_FREE = 2;
const ZEROS = Buffer.alloc(TAIL_BYTES);

const { O_RDWR, O_DSYNC } = constants;

/** Every journal file of a directory, read one after the other. */
export function surveyAll(dataDir: string, books: BooksPosition): SurveyedFile[] {
  return readdirSync(dataDir)
    .filter((name) => JOURNAL_NAME.test(name))
    .map((name) => {
      const path = join(dataDir, name);
      return surveyFile(path, readFileSync(path), books);
    });
}

export function openJournal<T>(dataDir: string, logger: Logger, options: JournalOptions = {}): Journal<T> {
  const { keepMs = KEEP_MINUTES * 60_000, monotonicMs = () => performance.now() } = options;
  /** The one that is written to. */
  let current: (Segment & { fd: number }) | undefined;
  /** Others that are not wholly in the books. */
  let segments: Segment[] = [];
  /** Wholly in the books, oldest first. */
  let kept: Segment[] = [];
  /** Ready to be written to. */
  const free: Segment[] = [];
  let names = 0;
  let history = "";
  let last = 0;
  let trimmed = 0;
  /** The oldest entries behind `trimmed`, without a gap. */
  let recent: JournalEntry<T>[] = [];
  /** Where those lie that are not in `recent`, in order. */
  let placements: Placement[] = [];
  /** A write into it failed: what it may have left behind its end must not pass for an entry. */
  let torn: Segment | undefined;
  let isOut = false;
  let isMaking = false;
  let isWriting = false;
  let isFreeing = false;
  let isClosed = false;

  /** Each write is durable when it returns: one system call, and no separate sync. */
  function ready(segment: Segment): Segment & { fd: number } {
    const fd = segment.fd ?? openSync(segment.path, O_RDWR | O_DSYNC);
    return Object.assign(segment, { fd });
  }

  const blank = (path: string): Segment => ({
    path,
    fd: undefined,
    size: SEGMENT_BYTES,
    last: 0,
    end: 0,
    keptUntilMs: 0,
  });

  const nextPath = () => join(dataDir, `journal-${++names}.log`);

  /** A file that nobody needs any more; with `early` also one that was to stay a while yet. */
  function takeBack(early: boolean): boolean {
    const at = kept.findIndex(
      (each) => each.size >= SEGMENT_BYTES && (early || each.keptUntilMs <= monotonicMs()),
    );
    const [segment] = at < 0 ? [] : kept.splice(at, 1);
    if (!segment) return false;
    if (early) logger.warn("an applied journal file is used anew before its time", { path: segment.path });
    free.push(ready(segment));
    return true;
  }

  /** Off the event loop: what the next full file needs is there before it is needed. */
  function makeSpareLater(): void {
    if (isMaking || isClosed || free.length > 0) return;
    if (takeBack(false)) return;
    isMaking = true;
    createSegmentLater(dataDir, nextPath())
      .then((path) => {
        if (!isClosed) free.push(ready(blank(path)));
      })
      .catch((error: unknown) => {
        if (isClosed || takeBack(true)) return;
        isOut = true;
        logger.error("there is no room for another journal file: calls are refused until there is", {
          error: String(error),
        });
      })
      .finally(() => {
        isMaking = false;
      });
  }

  /** A file takes frames until the next one does not fit; only one larger than a file makes it longer. */
  function room(bytes: number): Segment & { fd: number } {
    if (current && (current.end === 0 || current.end + bytes <= SEGMENT_BYTES)) return current;
    let next = free.pop();
    while (next && !isInPlace(next)) next = free.pop();
    next ??= blank(createSegment(dataDir, nextPath()));
    if (current) segments.push(current);
    current = Object.assign(ready(next), { last, end: 0 });
    makeSpareLater();
    return current;
  }

  /** What a failed write may have left whole on the disk was not answered for. */
  function wipeTorn(): void {
    if (!torn) return;
    writeSync(ready(torn).fd, ZEROS, 0, TAIL_BYTES, torn.end);
    torn = undefined;
  }

  function wrote(segment: Segment, bytes: number, items: readonly T[]): void {
    const first = last + 1;
    const isNext = recent.length === 0 ? trimmed === last : recent.at(-1)?.position === last;
    if (isNext && recent.length + items.length <= MAX_RECENT) {
      for (const item of items) recent.push({ position: ++last, item });
    } else {
      last += items.length;
      const { path, end: begin } = segment;
      placements.push({
        path,
        first,
        count: items.length,
        begin,
        end: begin + bytes - TAIL_BYTES,
        checksum: "",
      });
    }
    segment.last = last;
    segment.end += bytes - TAIL_BYTES;
  }

  function readFiles(after: number, limit: number): JournalEntry<T>[] {
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

  function keep(used: readonly Segment[]): void {
    for (const segment of used) {
      if (segment.fd !== undefined) closeSync(segment.fd);
      segment.fd = undefined;
      segment.keptUntilMs = monotonicMs() + keepMs;
      kept.push(segment);
    }
    const now = monotonicMs();
    while (free.length + (isMaking ? 1 : 0) < MAX_FREE && takeBack(false));
    const over = kept.filter((each) => each.keptUntilMs <= now);
    if (over.length === 0) return;
    kept = kept.filter((each) => each.keptUntilMs > now);
    for (const { path } of over) rmSync(path, { force: true });
  }

  function putAway(files: readonly SurveyedFile[], books: BooksPosition): void {
    logger.error("journal files of another node or database were put away", {
      books: books.mark,
      files: files.map((file) => nameOf(file.path)).join(" "),
      upTo: Math.max(...files.map((file) => file.foreignLast)),
    });
    for (const { path } of files) renameSync(path, `${path}.foreign-${Date.now()}`);
    syncDirectory(dataDir);
  }

  function segmentOf({ path, size, last: highest, lastEnd }: SurveyedFile): Segment {
    // The file says by the time of day how long it has been kept; from here on the steady clock counts.
    const keptMs = Math.max(0, Date.now() - statSync(path).mtimeMs);
    const keptUntilMs = monotonicMs() + Math.max(0, keepMs - keptMs);
    return { path, fd: undefined, size, last: highest, end: lastEnd, keptUntilMs };
  }

  return {
    resume(books) {
      const files = surveyAll(dataDir, books);
      const found = recover(files, books);
      if (found.findings.length > 0) throw new JournalDamaged(dataDir, found.findings);
      for (const warning of found.warnings) logger.warn(warning);
      const numbers = readdirSync(dataDir).map((name) => Number(/^journal-(\d+)\.log/.exec(name)?.[1] ?? 0));
      names = Math.max(0, ...numbers);
      const strange = files.filter((file) => file.foreign > 0 && file.last === 0);
      if (strange.length > 0) putAway(strange, books);

      history = books.history;
      trimmed = books.mark;
      last = found.end;
      placements = found.chain;
      const own = files.filter((file) => !strange.includes(file));
      const goesOn = own.find(
        (file) => file.isClean && file.last === last && file.lastEnd + TAIL_BYTES < SEGMENT_BYTES,
      );
      for (const file of own) {
        if (file === goesOn) current = ready(segmentOf(file));
        else if (!file.isBlank) (file.last > trimmed ? segments : kept).push(segmentOf(file));
        else if (file.size === SEGMENT_BYTES && free.length < MAX_FREE) free.push(ready(blank(file.path)));
        else rmSync(file.path, { force: true });
      }
      segments.sort((a, b) => a.last - b.last);
      kept.sort((a, b) => a.keptUntilMs - b.keptUntilMs);
      // Now rather than when the first call waits for it; a directory that cannot hold it is told at the start.
      if (!current && free.length === 0 && !takeBack(false))
        free.push(ready(blank(createSegment(dataDir, nextPath()))));
      makeSpareLater();
    },

    append(items) {
      if (isWriting || isClosed) throw new Error("the journal is being written to, or closed");
      wipeTorn();
      const frame = frameOf(history, last + 1, items);
      const segment = room(frame.length);
      try {
        for (let done = 0; done < frame.length;)
          done += writeSync(segment.fd, frame, done, frame.length - done, segment.end + done);
      } catch (error) {
        torn = segment;
        throw error;
      }
      wrote(segment, frame.length, items);
    },

    async appendLater(items) {
      if (isWriting || isClosed) throw new Error("the journal is being written to, or closed");
      isWriting = true;
      let segment: Segment | undefined;
      try {
        wipeTorn();
        const frame = frameOf(history, last + 1, items);
        const { fd, end } = (segment = room(frame.length));
        for (let done = 0; done < frame.length;) done += await writeLater(fd, frame, done, end + done);
        wrote(segment, frame.length, items);
      } catch (error) {
        torn ??= segment;
        throw error;
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
      if (placements.length > 0) {
        const rest = placements.findIndex((each) => lastOf(each) > upTo);
        placements = rest < 0 ? [] : placements.slice(rest);
      }
      if (isFreeing || segments.length === 0 || (segments[0]?.last ?? 0) > upTo) return;
      isFreeing = true;
      makeDurable()
        .then(() => {
          if (isClosed) return;
          const upToNow = Math.min(upTo, trimmed);
          const used = segments.filter((segment) => segment.last <= upToNow && segment !== torn);
          segments = segments.filter((segment) => !used.includes(segment));
          keep(used);
        })
        // Its room is asked for again with the next trim.
        .catch((error: unknown) => {
          if (!isClosed) logger.warn("journal could not be freed", { error: String(error) });
        })
        .finally(() => {
          isFreeing = false;
        });
    },

    rewind(mark) {
      const books: BooksPosition = { mark, journaled: last, history };
      const found = recover(surveyAll(dataDir, books), books);
      if (found.findings.length > 0) throw new JournalDamaged(dataDir, found.findings);
      // A write that is under way may be seen already: it is not an entry before it is told.
      placements = found.chain.filter((each) => lastOf(each) <= last);
      recent = [];
      trimmed = mark;
      segments = [...kept.filter((each) => each.last > mark), ...segments].sort((a, b) => a.last - b.last);
      kept = kept.filter((each) => each.last <= mark);
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

    isSound: () =>
      !isOut && torn === undefined && (free.length > 0 || (current?.end ?? 0) < SEGMENT_BYTES / 2),

    prove() {
      // A write that is under way has the place of the proof, and its outcome is one.
      if (isWriting && torn) return false;
      try {
        if (free.length === 0 && !takeBack(false))
          free.push(ready(blank(createSegment(dataDir, nextPath()))));
        const next = current ?? free.at(-1);
        if (!isWriting) wipeTorn();
        if (!isWriting && next) writeSync(ready(next).fd, ZEROS, 0, TAIL_BYTES, next.end);
        isOut = false;
        return true;
      } catch {
        return false;
      }
    },

    lookAfterFiles() {
      if ((kept[0]?.keptUntilMs ?? Number.POSITIVE_INFINITY) <= monotonicMs()) keep([]);
      if (!current || isWriting || isInPlace(current)) return;
      logger.error("the journal file was deleted or replaced: a new one is begun", { path: current.path });
      closeSync(current.fd);
      if (torn === current) torn = undefined;
      current = undefined;
    },

    get lastPosition() {
      return last;
    },

    close() {
      isClosed = true;
      for (const { fd } of [...segments, ...free, ...(current ? [current] : [])])
        if (fd !== undefined) closeSync(fd);
      current = undefined;
    },
  };
}

function isInPlace({ path, fd }: Segment): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  if (fd === undefined || !there) return there !== undefined;
  const open = fstatSync(fd);
  return there.ino === open.ino && there.dev === open.dev;
}

function writeLater(file: number, bytes: Buffer, from: number, position: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  write(file, bytes, from, bytes.length - from, position, (error, done) =>
    error ? reject(error) : resolve(done),
  );
  return promise;
}

/** Entries that are durable here and not in the books. Changes nothing: a server may be running. */
export function countWaiting(dataDir: string, books: BooksPosition): number {
  const positions = new Set<number>();
  for (const { first, count } of surveyAll(dataDir, books).flatMap((file) => file.frames))
    for (let each = Math.max(first, books.mark + 1); each < first + count; each++) positions.add(each);
  return positions.size;
}
