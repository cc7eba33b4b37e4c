// The journal's files as room to write in: the one in use, those with entries that wait for the tables, those that are
// kept for a while, and spares. Refuses to remove what the tables may still need.
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Logger } from "../../deps.ts";
import { TAIL_BYTES } from "./frames.ts";
import { createSegment, createSegmentLater, SEGMENT_BYTES, syncDirectory } from "./files.ts";
import { nameOf } from "./recovery.ts";
import type { StorePosition, SurveyedFile } from "./recovery.ts";

/** One file. */
export interface Segment {
  path: string;
  /** Open while it is written to or waits for that. */
  fd: number | undefined;
  size: number;
  /** Highest position in it. */
  last: number;
  end: number;
  /** When the tables no longer need it, it stays until then. */
  keptUntilMs: number;
}

export type OpenSegment = Segment & { fd: number };

export interface Segments {
  readonly dataDir: string;
  readonly logger: Logger;
  readonly keepMs: number;
  readonly monotonicMs: () => number;
  /** The one that is written to. */
  current: OpenSegment | undefined;
  /** Others that are not wholly in the tables. */
  waiting: Segment[];
  /** Wholly in the tables, oldest first. */
  kept: Segment[];
  /** Ready to be written to. */
  spare: Segment[];
  /** A write into it failed: what it may have left behind its end must not pass for an entry. */
  torn: Segment | undefined;
  /** The highest number in a file's name. */
  names: number;
  /** There is no room on the disk for another file. */
  isOut: boolean;
  isMaking: boolean;
  isClosed: boolean;
}

/** Further files are removed when nobody needs them any more. */
const MAX_SPARE = 2;
const ZEROS = Buffer.alloc(TAIL_BYTES);

const { O_RDWR, O_DSYNC } = constants;

export function createSegments(
  deps: Pick<Segments, "dataDir" | "logger" | "keepMs" | "monotonicMs">,
): Segments {
  return {
    ...deps,
    current: undefined,
    waiting: [],
    kept: [],
    spare: [],
    torn: undefined,
    names: 0,
    isOut: false,
    isMaking: false,
    isClosed: false,
  };
}

/** Each write is durable when it returns: one system call, and no separate sync. */
function opened(segment: Segment): OpenSegment {
  const fd = segment.fd ?? openSync(segment.path, O_RDWR | O_DSYNC);
  return Object.assign(segment, { fd });
}

function blankSegment(path: string): Segment {
  return { path, fd: undefined, size: SEGMENT_BYTES, last: 0, end: 0, keptUntilMs: 0 };
}

function nextPath(segments: Segments): string {
  return join(segments.dataDir, `journal-${++segments.names}.log`);
}

/** Makes a kept file a spare one; with `early` also one that was to stay a while yet. */
function takeBack(segments: Segments, early: boolean): boolean {
  const { kept, spare, logger, monotonicMs } = segments;
  const at = kept.findIndex(
    (each) => each.size >= SEGMENT_BYTES && (early || each.keptUntilMs <= monotonicMs()),
  );
  const [segment] = at < 0 ? [] : kept.splice(at, 1);
  if (!segment) return false;
  if (early) logger.warn("an applied journal file is used anew before its time", { path: segment.path });
  spare.push(opened(segment));
  return true;
}

/** A name may have been taken meanwhile: a journal that was closed here finishes the file that it had begun. */
function newFile(segments: Segments): string {
  for (;;) {
    try {
      return createSegment(segments.dataDir, nextPath(segments));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

/** On the event loop: for a start, and for the proof that there is room. */
function makeSpare(segments: Segments): void {
  const { spare } = segments;
  if (spare.length === 0 && !takeBack(segments, false)) spare.push(opened(blankSegment(newFile(segments))));
}

/** Off the event loop: what the next full file needs is there before it is needed. */
function makeSpareLater(segments: Segments): void {
  const { spare, dataDir, logger } = segments;
  if (segments.isMaking || segments.isClosed || spare.length > 0) return;
  if (takeBack(segments, false)) return;
  segments.isMaking = true;
  createSegmentLater(dataDir, nextPath(segments))
    .then((path) => {
      if (!segments.isClosed) spare.push(opened(blankSegment(path)));
    })
    .catch((error: unknown) => {
      if (segments.isClosed || takeBack(segments, true)) return;
      segments.isOut = true;
      logger.error("there is no room for another journal file: calls are refused until there is", {
        error: String(error),
      });
    })
    .finally(() => {
      segments.isMaking = false;
    });
}

/**
 * Where the next write goes. A file takes frames until the next one does not fit; only one larger than a file makes it
 * longer. `last` is the position behind which a file that is begun goes on.
 */
export function roomFor(segments: Segments, bytes: number, last: number): OpenSegment {
  const { current, spare } = segments;
  if (current && (current.end === 0 || current.end + bytes <= SEGMENT_BYTES)) return current;
  let next = spare.pop();
  while (next && !isInPlace(next)) next = spare.pop();
  next ??= blankSegment(createSegment(segments.dataDir, nextPath(segments)));
  if (current) segments.waiting.push(current);
  const begun = Object.assign(opened(next), { last, end: 0 });
  segments.current = begun;
  makeSpareLater(segments);
  return begun;
}

/** False while there is no room beyond the present file, or the last write failed. */
export function isSound({ isOut, torn, spare, current }: Segments): boolean {
  return !isOut && torn === undefined && (spare.length > 0 || (current?.end ?? 0) < SEGMENT_BYTES / 2);
}

/** What a failed write may have left whole on the disk was not answered for. */
export function wipeTorn(segments: Segments): void {
  const { torn } = segments;
  if (!torn) return;
  writeSync(opened(torn).fd, ZEROS, 0, TAIL_BYTES, torn.end);
  segments.torn = undefined;
}

/** Makes room and proves by a durable write that entries can be written; true when they can. */
export function proveWritable(segments: Segments, isWriting: boolean): boolean {
  // A write that is under way has the place of the proof, and its outcome is one.
  if (isWriting && segments.torn) return false;
  try {
    makeSpare(segments);
    const next = segments.current ?? segments.spare.at(-1);
    if (!isWriting) wipeTorn(segments);
    if (!isWriting && next) writeSync(opened(next).fd, ZEROS, 0, TAIL_BYTES, next.end);
    segments.isOut = false;
    return true;
  } catch {
    return false;
  }
}

/** The tables have all of these: they stay for a while, some as spares, and those whose time is over go. */
export function keepForAWhile(segments: Segments, applied: readonly Segment[]): void {
  const { kept, spare, monotonicMs, keepMs } = segments;
  for (const segment of applied) {
    if (segment.fd !== undefined) closeSync(segment.fd);
    segment.fd = undefined;
    segment.keptUntilMs = monotonicMs() + keepMs;
    kept.push(segment);
  }
  const now = monotonicMs();
  while (spare.length + (segments.isMaking ? 1 : 0) < MAX_SPARE && takeBack(segments, false));
  const over = kept.filter((each) => each.keptUntilMs <= now);
  if (over.length === 0) return;
  segments.kept = kept.filter((each) => each.keptUntilMs > now);
  for (const { path } of over) rmSync(path, { force: true });
}

/** The tables fell back to this mark: files with entries above it wait again. */
export function waitAgain(segments: Segments, mark: number): void {
  const { kept, waiting } = segments;
  segments.waiting = [...kept.filter((each) => each.last > mark), ...waiting].sort((a, b) => a.last - b.last);
  segments.kept = kept.filter((each) => each.last <= mark);
}

/** Removes what has been kept long enough, and leaves a file that was deleted or replaced under this process. */
export function lookAfter(segments: Segments, isWriting: boolean): void {
  const { kept, current, logger, monotonicMs } = segments;
  if ((kept[0]?.keptUntilMs ?? Number.POSITIVE_INFINITY) <= monotonicMs()) keepForAWhile(segments, []);
  if (!current || isWriting || isInPlace(current)) return;
  logger.error("the journal file was deleted or replaced: a new one is begun", { path: current.path });
  closeSync(current.fd);
  if (segments.torn === current) segments.torn = undefined;
  segments.current = undefined;
}

/** Sorts what earlier runs left; `last` is the position with which the journal goes on. */
export function takeUpFiles(
  segments: Segments,
  files: readonly SurveyedFile[],
  stored: StorePosition,
  last: number,
): void {
  const { dataDir, waiting, kept, spare } = segments;
  const numbers = readdirSync(dataDir).map((name) => Number(/^journal-(\d+)\.log/.exec(name)?.[1] ?? 0));
  segments.names = Math.max(0, ...numbers);
  const foreign = files.filter((file) => file.foreign > 0 && file.last === 0);
  if (foreign.length > 0) putAway(segments, foreign, stored);
  const own = files.filter((file) => !foreign.includes(file));
  const goesOn = own.find(
    (file) => file.isClean && file.last === last && file.lastEnd + TAIL_BYTES < SEGMENT_BYTES,
  );
  for (const file of own) {
    if (file === goesOn) segments.current = opened(segmentOf(segments, file));
    else if (!file.isBlank) (file.last > stored.mark ? waiting : kept).push(segmentOf(segments, file));
    else if (file.size === SEGMENT_BYTES && spare.length < MAX_SPARE)
      spare.push(opened(blankSegment(file.path)));
    else rmSync(file.path, { force: true });
  }
  waiting.sort((a, b) => a.last - b.last);
  kept.sort((a, b) => a.keptUntilMs - b.keptUntilMs);
  // Now rather than when the first call waits for it; a directory that cannot hold it is told at the start.
  if (!segments.current) makeSpare(segments);
  makeSpareLater(segments);
}

function segmentOf({ monotonicMs, keepMs }: Segments, { path, size, last, lastEnd }: SurveyedFile): Segment {
  // The file says by the time of day how long it has been kept; from here on the steady clock counts.
  const keptMs = Math.max(0, Date.now() - statSync(path).mtimeMs);
  const keptUntilMs = monotonicMs() + Math.max(0, keepMs - keptMs);
  return { path, fd: undefined, size, last, end: lastEnd, keptUntilMs };
}

function putAway({ logger, dataDir }: Segments, files: readonly SurveyedFile[], stored: StorePosition): void {
  logger.error("journal files of another node or database were put away", {
    books: stored.mark,
    files: files.map((file) => nameOf(file.path)).join(" "),
    upTo: Math.max(...files.map((file) => file.foreignLast)),
  });
  for (const { path } of files) renameSync(path, `${path}.foreign-${Date.now()}`);
  syncDirectory(dataDir);
}

export function closeFiles(segments: Segments): void {
  const { waiting, spare, current } = segments;
  segments.isClosed = true;
  for (const { fd } of [...waiting, ...spare, ...(current ? [current] : [])])
    if (fd !== undefined) closeSync(fd);
  segments.current = undefined;
}

function isInPlace({ path, fd }: Segment): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (fd === undefined || !found) return found !== undefined;
  const open = fstatSync(fd);
  return found.ino === open.ino && found.dev === open.dev;
}
