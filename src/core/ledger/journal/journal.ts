// The local files in which settlements are durable before the tables have them: entries in order, each with its position.
// Refuses to start on a gap above the tables' mark, and to overwrite or remove what the tables may still need.
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, write, writeSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../../deps.ts";
import { frameOf } from "./frames.ts";
import { lastOf, recover, surveyFile } from "./recovery.ts";
import type { StorePosition, Finding, SurveyedFile } from "./recovery.ts";
import {
  closeFiles,
  createSegments,
  isSound,
  keepForAWhile,
  lookAfter,
  proveWritable,
  roomFor,
  takeUpFiles,
  waitAgain,
  wipeTorn,
} from "./segments.ts";
import type { Segment, Segments } from "./segments.ts";
import { dropApplied, noteWritten, readWaiting } from "./waiting.ts";
import type { JournalEntry, WaitingEntries } from "./waiting.ts";

export interface Journal<T> {
  /** Takes up what earlier runs left behind the last position in the tables; throws JournalDamaged where a part is missing. */
  resume(stored: StorePosition): void;
  /** Durable when it returns; all or a throw. */
  append(items: readonly T[]): void;
  /** The same off the event loop. No other append before it has resolved. */
  appendLater(items: readonly T[]): Promise<void>;
  /** The oldest entries behind a position. */
  read(after: number, limit: number): JournalEntry<T>[];
  /** The tables have everything up to here; what it stood in is kept for a while once `makeDurable` resolves. */
  trim(upTo: number, makeDurable: () => Promise<void>): void;
  /** The tables fell back to a lower mark: what follows is read again. Throws JournalDamaged when it is not all there. */
  rewind(mark: number): void;
  /** Writes down durably what the tables refuse for its content, for a person to look at. */
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
  /** How long files stay whose entries the tables have: an older state of the tables gets them again. */
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

export const SET_ASIDE_FILE = "refused-settlements.jsonl";
export const JOURNAL_NAME = /^journal-(\d+)\.log$/;
export const KEEP_MINUTES = 15;

/** Every journal file of a directory, read one after the other. */
export function surveyAll(dataDir: string, stored: StorePosition): SurveyedFile[] {
  return readdirSync(dataDir)
    .filter((name) => JOURNAL_NAME.test(name))
    .map((name) => {
      const path = join(dataDir, name);
      return surveyFile(path, readFileSync(path), stored);
    });
}

/** An open journal. */
interface State<T> {
  readonly segments: Segments;
  readonly waiting: WaitingEntries<T>;
  /** Whose positions these are. */
  history: string;
  isWriting: boolean;
  /** Files of applied entries are being made durable elsewhere before they count as free. */
  isFreeing: boolean;
}

export function openJournal<T>(dataDir: string, logger: Logger, options: JournalOptions = {}): Journal<T> {
  const { keepMs = KEEP_MINUTES * 60_000, monotonicMs = () => performance.now() } = options;
  const segments = createSegments({ dataDir, logger, keepMs, monotonicMs });
  const waiting: WaitingEntries<T> = { last: 0, trimmed: 0, recent: [], placements: [] };
  const state: State<T> = { segments, waiting, history: "", isWriting: false, isFreeing: false };
  return {
    resume: (stored) => resume(state, stored),
    append: (items) => append(state, items),
    appendLater: (items) => appendLater(state, items),
    read: (after, limit) => readWaiting(waiting, after, limit),
    trim(upTo, makeDurable) {
      dropApplied(waiting, upTo);
      freeApplied(state, upTo, makeDurable);
    },
    rewind: (mark) => rewind(state, mark),
    setAside: (entry, reason, nowMs) => setAside(dataDir, entry, reason, nowMs),
    isSound: () => isSound(segments),
    prove: () => proveWritable(segments, state.isWriting),
    lookAfterFiles: () => lookAfter(segments, state.isWriting),
    get lastPosition() {
      return waiting.last;
    },
    close: () => closeFiles(segments),
  };
}

function resume<T>(state: State<T>, stored: StorePosition): void {
  const { segments, waiting } = state;
  const { dataDir, logger } = segments;
  const files = surveyAll(dataDir, stored);
  const found = recover(files, stored);
  if (found.findings.length > 0) throw new JournalDamaged(dataDir, found.findings);
  for (const warning of found.warnings) logger.warn(warning);
  state.history = stored.history;
  waiting.trimmed = stored.mark;
  waiting.last = found.end;
  waiting.placements = found.chain;
  takeUpFiles(segments, files, stored, found.end);
}

function assertIdle<T>({ isWriting, segments }: State<T>): void {
  if (isWriting || segments.isClosed) throw new Error("the journal is being written to, or closed");
}

function append<T>(state: State<T>, items: readonly T[]): void {
  assertIdle(state);
  const { segments, waiting } = state;
  wipeTorn(segments);
  const frame = frameOf(state.history, waiting.last + 1, items);
  const segment = roomFor(segments, frame.length, waiting.last);
  try {
    for (let done = 0; done < frame.length;)
      done += writeSync(segment.fd, frame, done, frame.length - done, segment.end + done);
  } catch (error) {
    segments.torn = segment;
    throw error;
  }
  noteWritten(waiting, segment, frame.length, items);
}

async function appendLater<T>(state: State<T>, items: readonly T[]): Promise<void> {
  assertIdle(state);
  const { segments, waiting } = state;
  state.isWriting = true;
  let segment: Segment | undefined;
  try {
    wipeTorn(segments);
    const frame = frameOf(state.history, waiting.last + 1, items);
    const { fd, end } = (segment = roomFor(segments, frame.length, waiting.last));
    for (let done = 0; done < frame.length;) done += await writeLater(fd, frame, done, end + done);
    noteWritten(waiting, segment, frame.length, items);
  } catch (error) {
    segments.torn ??= segment;
    throw error;
  } finally {
    state.isWriting = false;
  }
}

/** Files that are wholly applied are kept for a while, once what the tables have of them is durable there. */
function freeApplied<T>(state: State<T>, upTo: number, makeDurable: () => Promise<void>): void {
  const { segments, waiting } = state;
  const [oldest] = segments.waiting;
  if (state.isFreeing || !oldest || oldest.last > upTo) return;
  state.isFreeing = true;
  makeDurable()
    .then(() => {
      if (segments.isClosed) return;
      const upToNow = Math.min(upTo, waiting.trimmed);
      const applied = segments.waiting.filter((each) => each.last <= upToNow && each !== segments.torn);
      segments.waiting = segments.waiting.filter((each) => !applied.includes(each));
      keepForAWhile(segments, applied);
    })
    // Its room is looked for again with the next trim.
    .catch((error: unknown) => {
      if (!segments.isClosed) segments.logger.warn("journal could not be freed", { error: String(error) });
    })
    .finally(() => {
      state.isFreeing = false;
    });
}

function rewind<T>({ segments, waiting, history }: State<T>, mark: number): void {
  const stored: StorePosition = { mark, journaled: waiting.last, history };
  const found = recover(surveyAll(segments.dataDir, stored), stored);
  if (found.findings.length > 0) throw new JournalDamaged(segments.dataDir, found.findings);
  // A write that is under way may be seen already: it is not an entry before it has ended.
  waiting.placements = found.chain.filter((each) => lastOf(each) <= waiting.last);
  waiting.recent = [];
  waiting.trimmed = mark;
  waitAgain(segments, mark);
}

function setAside<T>(
  dataDir: string,
  { position, item }: JournalEntry<T>,
  reason: string,
  nowMs: number,
): void {
  const file = openSync(join(dataDir, SET_ASIDE_FILE), "a", 0o600);
  try {
    writeSync(file, `${JSON.stringify({ position, reason, at: Math.floor(nowMs / 1000), item })}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function writeLater(file: number, bytes: Buffer, from: number, position: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  write(file, bytes, from, bytes.length - from, position, (error, done) =>
    error ? reject(error) : resolve(done),
  );
  return promise;
}

/** Entries that are durable here and not in the tables. Changes nothing: a server may be running. */
export function countWaiting(dataDir: string, stored: StorePosition): number {
  const positions = new Set<number>();
  for (const { first, count } of surveyAll(dataDir, stored).flatMap((file) => file.frames))
    for (let each = Math.max(first, stored.mark + 1); each < first + count; each++) positions.add(each);
  return positions.size;
}
