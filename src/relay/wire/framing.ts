// Server-sent events over bytes: an incremental reader for any upstream's line ends and cuts, and a writer.
// Refuses lines and events above 10 MB, so that a broken upstream cannot fill the memory.
import { Failure } from "../../shared/failures.ts";

export interface SseEvent {
  /** "" when the event named no type. */
  event: string;
  data: string;
  /** Bytes of `data` as UTF-8; where `bytes` are the chunk itself, and nobody has to count them. */
  dataBytes?: number;
  /** The event's own bytes with its blank line, when the reader was asked to keep them. */
  bytes?: Uint8Array;
}

export interface SseReader {
  /** Events completed by this chunk. Throws a broken-stream Failure above the size cap. */
  push: (chunk: Uint8Array) => SseEvent[];
  /** The event that the stream left without its blank line, if any. */
  end: () => SseEvent[];
  /** Bytes taken but not yet part of an event that was handed out (only with keepBytes). */
  rest: () => Uint8Array;
  /** Nothing of an event was taken that is not handed out: the next chunk begins one. */
  isBetween: () => boolean;
  /** The last chunk ended in the middle of CR LF, or with a CR: nothing may be put behind it. */
  isInLineEnd: () => boolean;
}

export interface SseReaderOptions {
  /** Fill `bytes` of each event, for callers that leave single frames out of a byte-exact stream. */
  keepBytes?: boolean;
  maxLineBytes?: number;
}

const MAX_LINE_BYTES = 10 * 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const EMPTY = new Uint8Array(0);
const NONE: SseEvent[] = [];

/** What the reader holds between two chunks. */
interface ReaderState {
  readonly capBytes: number;
  readonly keepsBytes: boolean;
  /** Pieces of the line that no chunk has ended yet. */
  carry: Uint8Array[];
  carryBytes: number;
  /** Raw bytes of the event under way (keepBytes only). */
  kept: Uint8Array[];
  keptBytes: number;
  eventName: string;
  data: string;
  dataLines: number;
  /** Nothing was read yet: a byte order mark may stand here. */
  isAtStart: boolean;
  /** The last line ended with CR as the chunk's last byte: an LF that follows belongs to it. */
  skipsLf: boolean;
}

/**
 * Reads the event stream format of the HTML standard, with one leniency: an event without its last blank line
 * counts when the stream ends. Lines end with LF, CR LF or CR; chunks may be cut anywhere. Only the values of
 * `data` and `event` lines are decoded; everything else stays bytes.
 */
export function createSseReader(options: SseReaderOptions = {}): SseReader {
  const state: ReaderState = {
    capBytes: options.maxLineBytes ?? MAX_LINE_BYTES,
    keepsBytes: options.keepBytes === true,
    carry: [],
    carryBytes: 0,
    kept: [],
    keptBytes: 0,
    eventName: "",
    data: "",
    dataLines: 0,
    isAtStart: true,
    skipsLf: false,
  };
  return {
    push: (chunk) => readChunk(state, chunk),
    end: () => readRest(state),
    rest: () => join([...state.kept, ...state.carry]),
    isBetween: () => isBetween(state),
    isInLineEnd: () => state.skipsLf,
  };
}

function tooLong(limit: number): Failure {
  return new Failure("broken-stream", "stream_line_too_long", {
    params: { limit },
    internal: "SSE line cap",
  });
}

/** Takes over the line that lies between these places. */
function readField(state: ReaderState, line: Buffer, from: number, to: number): void {
  const first = line[from];
  if (first === 0x64 && isField(line, from, to, DATA)) {
    const value = line.toString("utf8", valueStart(line, from + 4, to), to);
    state.data = state.dataLines === 0 ? value : `${state.data}\n${value}`;
    state.dataLines += 1;
    if (state.data.length > state.capBytes) throw tooLong(state.capBytes);
  } else if (first === 0x65 && isField(line, from, to, EVENT)) {
    state.eventName = line.toString("utf8", valueStart(line, from + 5, to), to);
  }
}

/** A blank line: the event is complete, if it has any data. */
function dispatch(state: ReaderState, out: SseEvent[]): void {
  if (state.dataLines > 0) {
    const event: SseEvent = { event: state.eventName, data: state.data };
    if (state.keepsBytes) {
      event.bytes = join(state.kept);
      state.kept = [];
      state.keptBytes = 0;
    }
    out.push(event);
  }
  state.eventName = "";
  state.data = "";
  state.dataLines = 0;
}

/** Beside its data an event has names, comments and line ends: as much again, and a broken upstream sends them for ever. */
function keep(state: ReaderState, bytes: Uint8Array): void {
  state.kept.push(bytes);
  state.keptBytes += bytes.length;
  if (state.keptBytes > 2 * state.capBytes) throw tooLong(state.capBytes);
}

/** Keeps a copy of what belongs to a line that has not ended: the chunk's own memory may be large. */
function carryOver(state: ReaderState, bytes: Uint8Array): void {
  if (state.carryBytes + bytes.length > state.capBytes) throw tooLong(state.capBytes);
  state.carry.push(bytes.slice());
  state.carryBytes += bytes.length;
}

/** The chunk without the LF that belongs to the CR before it. */
function withoutSplitLf(state: ReaderState, chunk: Uint8Array): Uint8Array {
  if (!state.skipsLf || chunk.length === 0) return chunk;
  state.skipsLf = false;
  if (chunk[0] !== LF) return chunk;
  if (state.keepsBytes) keep(state, chunk.subarray(0, 1));
  return chunk.subarray(1);
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();
/** `data: ` and the blank line behind what it says. */
const LONE_HEAD_BYTES = 6;
const LONE_TAIL_BYTES = 2;

/**
 * The chunk where it is one whole event of one data line, as nearly all upstreams send them: read without taking it apart.
 * Undefined where it may be anything else. Nothing here asks for the chunk's `buffer`, which the engine would make for it.
 */
function loneEvent(state: ReaderState, chunk: Uint8Array): SseEvent | undefined {
  const end = chunk.length - LONE_TAIL_BYTES;
  if (end <= LONE_HEAD_BYTES || end > state.capBytes || !isDataLine(chunk, end)) return undefined;
  if (!isBetween(state) || chunk.indexOf(LF) !== end || chunk.includes(CR)) return undefined;
  state.isAtStart = false;
  const event: SseEvent = { event: "", data: decoder.decode(chunk).slice(LONE_HEAD_BYTES, -LONE_TAIL_BYTES) };
  if (state.keepsBytes) {
    event.bytes = chunk;
    event.dataBytes = end - LONE_HEAD_BYTES;
  }
  return event;
}

function isBetween({ carryBytes, dataLines, kept, skipsLf, eventName }: ReaderState): boolean {
  return carryBytes === 0 && dataLines === 0 && kept.length === 0 && !skipsLf && eventName === "";
}

/** Whether the bytes begin like a data line and end, from `end` on, like an event. */
function isDataLine(bytes: Uint8Array, end: number): boolean {
  if (bytes[end] !== LF || bytes[end + 1] !== LF || bytes[4] !== COLON || bytes[5] !== SPACE) return false;
  for (let i = 0; i < DATA.length; i++) if (bytes[i] !== DATA[i]) return false;
  return true;
}

function readChunk(state: ReaderState, chunk: Uint8Array): SseEvent[] {
  const lone = loneEvent(state, chunk);
  if (lone) return [lone];
  let bytes = withoutSplitLf(state, chunk);
  if (bytes.length === 0) return NONE;
  // One look per chunk decides whether CR has to be searched for at all.
  const hasCr = bytes.includes(CR);
  if (state.carryBytes > 0) {
    if (!hasCr && bytes.indexOf(LF) === -1) {
      carryOver(state, bytes);
      return NONE;
    }
    state.carry.push(bytes);
    bytes = join(state.carry);
    state.carry = [];
    state.carryBytes = 0;
  }
  let from = 0;
  if (state.isAtStart) {
    // A byte order mark may itself be cut; wait for three bytes or a first byte that rules it out.
    if (bytes[0] === 0xef && bytes.length < 3) {
      carryOver(state, bytes);
      return NONE;
    }
    state.isAtStart = false;
    if (beginsWithMark(bytes)) from = 3;
  }
  return readLines(state, bytes, from, hasCr);
}

/** Events of the lines that end in these bytes; what follows the last of them is carried over. */
function readLines(state: ReaderState, bytes: Uint8Array, from: number, hasCr: boolean): SseEvent[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = buffer.length;
  const { capBytes, keepsBytes } = state;
  const out: SseEvent[] = [];
  let position = from;
  let keptFrom = 0;
  let nextCr = hasCr ? buffer.indexOf(CR, position) : -1;
  while (position < size) {
    let end = buffer.indexOf(LF, position);
    let next = end + 1;
    if (nextCr !== -1 && nextCr < position) nextCr = buffer.indexOf(CR, position);
    if (nextCr !== -1 && (end === -1 || nextCr < end)) {
      end = nextCr;
      next = end + 1;
      if (next === size) state.skipsLf = true;
      else if (buffer[next] === LF) next += 1;
    }
    if (end === -1) break;
    if (end - position > capBytes) throw tooLong(capBytes);
    if (end === position) {
      if (keepsBytes && state.dataLines > 0) {
        keep(state, bytes.slice(keptFrom, next));
        keptFrom = next;
      }
      dispatch(state, out);
    } else readField(state, buffer, position, end);
    position = next;
  }
  if (keepsBytes && position > keptFrom) keep(state, bytes.slice(keptFrom, position));
  if (position < size) carryOver(state, bytes.subarray(position));
  return out;
}

/** The stream has ended: its last line counts, and its last event without the blank line. */
function readRest(state: ReaderState): SseEvent[] {
  if (state.carryBytes > 0) {
    const bytes = join(state.carry);
    if (state.keepsBytes) keep(state, bytes);
    const from = state.isAtStart && beginsWithMark(bytes) ? 3 : 0;
    readField(state, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), from, bytes.length);
    state.carry = [];
    state.carryBytes = 0;
  }
  const out: SseEvent[] = [];
  dispatch(state, out);
  return out;
}

function beginsWithMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

const DATA = [0x64, 0x61, 0x74, 0x61];
const EVENT = [0x65, 0x76, 0x65, 0x6e, 0x74];

/** Whether the line is exactly this field: the name, then a colon or the line's end. */
function isField(line: Buffer, from: number, to: number, name: readonly number[]): boolean {
  const after = from + name.length;
  if (after > to || (after < to && line[after] !== COLON)) return false;
  for (let i = 1; i < name.length; i++) if (line[from + i] !== name[i]) return false;
  return true;
}

/** Where the value begins: behind the colon and at most one space. */
function valueStart(line: Buffer, colon: number, to: number): number {
  if (colon >= to) return to;
  return line[colon + 1] === SPACE && colon + 1 < to ? colon + 2 : colon + 1;
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length === 0) return EMPTY;
  const only = pieces[0];
  if (pieces.length === 1 && only) return only;
  let size = 0;
  for (const piece of pieces) size += piece.length;
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** One frame; `data` with line breaks becomes several data lines. */
export function sseFrame(data: string, event = ""): string {
  const head = event === "" ? "" : `event: ${event}\n`;
  if (!/[\r\n]/.test(data)) return `${head}data: ${data}\n\n`;
  const lines = data.split(/\r\n|\r|\n/);
  return `${head}${lines.map((line) => `data: ${line}\n`).join("")}\n`;
}

/** A comment line with its blank line: keeps connections alive, clients ignore it. */
export function sseComment(text: string): string {
  return `: ${text.replace(/[\r\n]+/g, " ")}\n\n`;
}

/** Shorter ones may be empty objects. */
const SHORT_OBJECT = 8;

/** A data line that is no JSON object, or an empty one, would break every client; the text around it is good. */
export function isNoise(data: string): boolean {
  const { length } = data;
  return data.charCodeAt(0) !== 0x7b || data.charCodeAt(length - 1) !== 0x7d || length < SHORT_OBJECT
    ? !/^\s*\{\s*[^}\s][^]*\}\s*$/.test(data)
    : false;
}

const LIST = /^\s*\[\s*\{/;

/**
 * The same events, where one holds a list of objects one event for each of them: some servers wrap every chunk of Gemini's
 * so, and no client reads it. The very same array where there is none.
 */
export function unlisted(events: readonly SseEvent[]): readonly SseEvent[] {
  if (!events.some(({ data }) => LIST.test(data))) return events;
  return events.flatMap((event) => membersOf(event.data)?.map((data) => withData(event, data)) ?? [event]);
}

function membersOf(data: string): string[] | undefined {
  if (!LIST.test(data)) return undefined;
  let list: unknown;
  try {
    list = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (!Array.isArray(list) || !list.every((item) => typeof item === "object" && item !== null))
    return undefined;
  // One alone stays as its upstream wrote it.
  return list.length === 1 ? [data.trim().slice(1, -1).trim()] : list.map((item) => JSON.stringify(item));
}

function withData({ event, bytes }: SseEvent, data: string): SseEvent {
  return bytes ? { event, data, bytes: encoder.encode(sseFrame(data, event)) } : { event, data };
}
