// Server-sent events over bytes: an incremental reader for any upstream's line ends and cuts, and a writer.
// Refuses lines and events above 10 MB, so that a broken upstream cannot fill the memory.
import { Failure } from "../../shared/failures.ts";

export interface SseEvent {
  /** "" when the event named no type. */
  event: string;
  data: string;
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
}

export interface SseReaderOptions {
  /** Fill `bytes` of each event, for callers that leave single frames out of a byte-exact stream. */
  keepBytes?: boolean;
  maxLineBytes?: number;
}

export const MAX_LINE_BYTES = 10 * 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const EMPTY = new Uint8Array(0);
const NONE: SseEvent[] = [];

/**
 * Reads the event stream format of the HTML standard, with one leniency: an event without its last blank line
 * counts when the stream ends. Lines end with LF, CR LF or CR; chunks may be cut anywhere. Only the values of
 * `data` and `event` lines are decoded; everything else stays bytes.
 */
export function createSseReader(options: SseReaderOptions = {}): SseReader {
  const cap = options.maxLineBytes ?? MAX_LINE_BYTES;
  const keep = options.keepBytes === true;
  /** Pieces of the line that no chunk has ended yet. */
  let carry: Uint8Array[] = [];
  let carryBytes = 0;
  /** Raw bytes of the event under way (keepBytes only). */
  let kept: Uint8Array[] = [];
  let eventName = "";
  let data = "";
  let dataLines = 0;
  let atStart = true;
  /** The last line ended with CR as the chunk's last byte: an LF that follows belongs to it. */
  let skipLf = false;

  const tooLong = (): Failure =>
    new Failure("broken-stream", "stream_line_too_long", {
      params: { limit: cap },
      internal: "SSE line cap",
    });

  const field = (line: Buffer, from: number, to: number): void => {
    const first = line[from];
    if (first === 0x64 && isField(line, from, to, DATA)) {
      const value = line.toString("utf8", valueStart(line, from + 4, to), to);
      data = dataLines === 0 ? value : `${data}\n${value}`;
      dataLines += 1;
      if (data.length > cap) throw tooLong();
    } else if (first === 0x65 && isField(line, from, to, EVENT)) {
      eventName = line.toString("utf8", valueStart(line, from + 5, to), to);
    }
  };
  const dispatch = (out: SseEvent[]): void => {
    if (dataLines > 0) {
      const event: SseEvent = { event: eventName, data };
      if (keep) {
        event.bytes = join(kept);
        kept = [];
      }
      out.push(event);
    }
    eventName = "";
    data = "";
    dataLines = 0;
  };

  return {
    push(chunk) {
      let bytes = chunk;
      if (skipLf && bytes.length > 0) {
        skipLf = false;
        if (bytes[0] === LF) {
          if (keep) kept.push(bytes.subarray(0, 1));
          bytes = bytes.subarray(1);
        }
      }
      if (bytes.length === 0) return NONE;
      // One look per chunk decides whether CR has to be searched for at all.
      const hasCr = bytes.includes(CR);
      if (carryBytes > 0) {
        const lf = bytes.indexOf(LF);
        if (lf === -1 && !hasCr) {
          if (carryBytes + bytes.length > cap) throw tooLong();
          carry.push(bytes.slice());
          carryBytes += bytes.length;
          return NONE;
        }
        carry.push(bytes);
        bytes = join(carry);
        carry = [];
        carryBytes = 0;
      }
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const size = buffer.length;
      const out: SseEvent[] = [];
      let position = 0;
      let keptFrom = 0;
      if (atStart) {
        // A byte order mark may itself be cut; wait for three bytes or a first byte that rules it out.
        if (buffer[0] === 0xef && size < 3) {
          carry.push(bytes.slice());
          carryBytes = size;
          return NONE;
        }
        atStart = false;
        if (buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf) position = 3;
      }
      let nextCr = hasCr ? buffer.indexOf(CR, position) : -1;
      while (position < size) {
        let end = buffer.indexOf(LF, position);
        let next = end + 1;
        if (nextCr !== -1 && nextCr < position) nextCr = buffer.indexOf(CR, position);
        if (nextCr !== -1 && (end === -1 || nextCr < end)) {
          end = nextCr;
          next = end + 1;
          if (next === size) skipLf = true;
          else if (buffer[next] === LF) next += 1;
        }
        if (end === -1) break;
        if (end - position > cap) throw tooLong();
        if (end === position) {
          if (keep && dataLines > 0) {
            kept.push(bytes.slice(keptFrom, next));
            keptFrom = next;
          }
          dispatch(out);
        } else field(buffer, position, end);
        position = next;
      }
      if (keep && position > keptFrom) kept.push(bytes.slice(keptFrom, position));
      if (position < size) {
        if (size - position > cap) throw tooLong();
        carry.push(bytes.slice(position));
        carryBytes = size - position;
      }
      return out;
    },
    end() {
      if (carryBytes > 0) {
        const bytes = join(carry);
        if (keep) kept.push(bytes);
        const marked = atStart && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
        field(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), marked ? 3 : 0, bytes.length);
        carry = [];
        carryBytes = 0;
      }
      const out: SseEvent[] = [];
      dispatch(out);
      return out;
    },
    rest: () => join([...kept, ...carry]),
  };
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
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
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
