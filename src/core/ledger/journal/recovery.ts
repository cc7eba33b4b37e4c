// What a start makes of the journal's files: which entries go on where the tables end, and whether any are missing.
// Refuses to guess: a gap, or two versions of one position, is a finding with a sentence, never a silent loss.
import { endsInZeros, framesOf } from "./frames.ts";
import type { Frame } from "./frames.ts";

/** Where the tables of this journal stand. */
export interface StorePosition {
  /** Everything up to here is entered, set aside or skipped. */
  mark: number;
  /** Up to here the journal was durable, as the tables know. */
  journaled: number;
  /** Whose positions these are. */
  history: string;
}

/** A frame that the tables do not have, or not wholly. */
export interface Placement extends Pick<Frame, "first" | "count" | "begin" | "end" | "checksum"> {
  path: string;
}

export interface SurveyedFile {
  path: string;
  size: number;
  /** Neither a whole frame nor anything else but zeros. */
  isBlank: boolean;
  /** Frames of another journal, and their highest position. */
  foreign: number;
  foreignLast: number;
  /** Own frames that reach above the mark, as they lie in the file. */
  frames: Placement[];
  /** Highest own position; 0 without own frames. */
  last: number;
  /** Where its frame ends, and whether the write that made it ended there: nothing above the mark, then zeros. */
  lastEnd: number;
  isClean: boolean;
  /** Begins with something that is neither a whole frame nor zeros. */
  beginsTorn: boolean;
}

/** A hole in what must be entered. */
export interface Finding {
  from: number;
  to: number;
  sentence: string;
}

export interface Recovery {
  /** From the mark on without a gap. */
  chain: Placement[];
  /** Last position of the chain; the mark where there is none. */
  end: number;
  findings: Finding[];
  /** Something other than zeros behind the end: a write torn by a crash, which nobody was answered for, or damage. */
  warnings: string[];
}

export function surveyFile(path: string, bytes: Buffer, stored: StorePosition): SurveyedFile {
  const file: SurveyedFile = {
    path,
    size: bytes.length,
    isBlank: false,
    foreign: 0,
    foreignLast: 0,
    frames: [],
    last: 0,
    lastEnd: 0,
    isClean: false,
    beginsTorn: false,
  };
  let isAnyBehind = false;
  let firstBegin = bytes.length;
  for (const frame of framesOf(bytes)) {
    firstBegin = Math.min(firstBegin, frame.begin);
    const last = frame.first + frame.count - 1;
    if (frame.history !== stored.history) {
      file.foreign++;
      file.foreignLast = Math.max(file.foreignLast, last);
      continue;
    }
    if (last > stored.mark) {
      const { first, count, begin, end, checksum } = frame;
      file.frames.push({ path, first, count, begin, end, checksum });
      isAnyBehind = true;
    }
    if (last > file.last) {
      file.last = last;
      file.lastEnd = frame.end;
      file.isClean = endsInZeros(bytes, frame.end);
      isAnyBehind = false;
    }
  }
  if (isAnyBehind) file.isClean = false;
  file.beginsTorn = bytes.subarray(0, firstBegin).some((byte) => byte !== 0);
  file.isBlank = !file.beginsTorn && file.last === 0 && file.foreign === 0;
  return file;
}

/** `101`, `101 to 150`. */
export function span(from: number, to: number): string {
  return from === to ? `position ${from}` : `positions ${from} to ${to}`;
}

export function recover(files: readonly SurveyedFile[], stored: StorePosition): Recovery {
  const frames = files.flatMap((file) => file.frames).sort((a, b) => a.first - b.first || b.count - a.count);
  const chain: Placement[] = [];
  const findings: Finding[] = [];
  let end = stored.mark;
  const missing = (from: number, to: number, next?: Placement) => {
    const before = chain.at(-1);
    const place = before
      ? `the last whole write before ends at byte ${before.end} of ${nameOf(before.path)}`
      : `the books end with position ${stored.mark}`;
    const behind = next
      ? `the next one lies in ${nameOf(next.path)}`
      : "the books know that they were durable";
    findings.push({
      from,
      to,
      sentence: `${span(from, to)} of the journal ${from === to ? "is" : "are"} missing or damaged: ${place}, ${behind}`,
    });
  };
  for (const frame of frames) {
    const last = lastOf(frame);
    const twin = frame.first <= end ? chain.findLast((each) => each.first <= frame.first) : undefined;
    if (twin) {
      // The same frame lying twice, as a copy makes it, is one.
      if (twin.first === frame.first && twin.checksum === frame.checksum) continue;
      findings.push({
        from: Math.max(frame.first, stored.mark + 1),
        to: last,
        sentence: `${span(frame.first, last)} of the journal stand there in two versions, in ${nameOf(twin.path)} and in ${nameOf(frame.path)}`,
      });
      continue;
    }
    if (frame.first > end + 1) missing(end + 1, frame.first - 1, frame);
    chain.push(frame);
    end = last;
  }
  if (end < stored.journaled) missing(end + 1, stored.journaled);
  return { chain, end, findings, warnings: findings.length === 0 ? warningsAt(files, end) : [] };
}

function warningsAt(files: readonly SurveyedFile[], end: number): string[] {
  const warnings: string[] = [];
  const reason = "a write that a crash tore, which nobody was answered for, or damage";
  const ending = files.filter((file) => file.last > 0 && file.last === end);
  const torn = ending.some((file) => file.isClean) ? undefined : ending[0];
  if (torn)
    warnings.push(
      `behind position ${end}, at byte ${torn.lastEnd} of ${nameOf(torn.path)}, stands something else than the zeros that end a write: ${reason}`,
    );
  for (const file of files)
    if (file.beginsTorn) warnings.push(`${nameOf(file.path)} begins with something unreadable: ${reason}`);
  return warnings;
}

export function lastOf(frame: Pick<Frame, "first" | "count">): number {
  return frame.first + frame.count - 1;
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
