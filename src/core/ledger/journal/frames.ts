// How entries stand in a journal file: frames, each with its positions, its history and a checksum, so that a torn or
// foreign one is noticed. It knows nothing of files; journal.ts and recovery.ts have them.
import { crc32 } from "node:zlib";

export interface Frame {
  /** Position of the first entry. */
  first: number;
  count: number;
  /** Whose positions these are. */
  history: string;
  /** Where the frame begins and ends in its file, and where between them the entries stand as one JSON array. */
  begin: number;
  bodyBegin: number;
  end: number;
  checksum: string;
}

const HEADER = /^weir2 ([0-9a-f]{16}) (\d{1,16}) (\d{1,9}) (\d{1,10}) ([0-9a-f]{1,8})\n/;
const MAGIC = "weir2 ";
const MAX_HEADER_BYTES = 80;

/**
 * So many zero bytes end each write; the next frame is written over them. Where something else stands behind the last
 * frame, a write was torn or a disk was damaged.
 */
export const TAIL_BYTES = 64;

/** Over the positions too: a frame of an earlier use of the room must not pass for one of this use. */
function checksum(history: string, first: number, count: number, body: Buffer): string {
  return crc32(body, crc32(`${history} ${first} ${count}`)).toString(16);
}

/** The frame with its tail of zeros, as one write. */
export function frameOf(history: string, first: number, items: readonly unknown[]): Buffer {
  const text = JSON.stringify(items);
  const length = Buffer.byteLength(text);
  // Room for the longest header in front; what is written begins where this one does. No copy is made.
  const bytes = Buffer.allocUnsafe(MAX_HEADER_BYTES + length + TAIL_BYTES);
  bytes.write(text, MAX_HEADER_BYTES);
  bytes.fill(0, MAX_HEADER_BYTES + length);
  const body = bytes.subarray(MAX_HEADER_BYTES, MAX_HEADER_BYTES + length);
  const sum = checksum(history, first, items.length, body);
  const header = `${MAGIC}${history} ${first} ${items.length} ${length} ${sum}\n`;
  // A header has ASCII only.
  const begin = MAX_HEADER_BYTES - header.length;
  bytes.write(header, begin, "latin1");
  return bytes.subarray(begin);
}

/** The whole frame that begins at a place, if one does. */
export function frameAt(bytes: Buffer, at: number): Frame | undefined {
  const header = HEADER.exec(bytes.toString("latin1", at, Math.min(bytes.length, at + MAX_HEADER_BYTES)));
  if (!header) return undefined;
  const [history, sum] = [header[1] ?? "", header[5] ?? ""];
  const [first, count, length] = [Number(header[2]), Number(header[3]), Number(header[4])];
  const bodyBegin = at + header[0].length;
  const end = bodyBegin + length;
  if (end > bytes.length || first < 1 || count < 1) return undefined;
  if (checksum(history, first, count, bytes.subarray(bodyBegin, end)) !== sum) return undefined;
  return { first, count, history, begin: at, bodyBegin, end, checksum: sum };
}

/**
 * Every whole frame of a file, wherever it begins: behind a damaged place the next header is looked for. No entry can
 * pass for a header, which ends in a line feed: JSON text has none.
 */
export function* framesOf(bytes: Buffer): Generator<Frame> {
  for (let at = bytes.indexOf(MAGIC); at >= 0;) {
    const frame = frameAt(bytes, at);
    if (frame) yield frame;
    at = bytes.indexOf(MAGIC, frame ? frame.end : at + 1);
  }
}

export function itemsOf<T>(bytes: Buffer, frame: Frame): T[] {
  return JSON.parse(bytes.toString("utf8", frame.bodyBegin, frame.end)) as T[];
}

/** A write ended here as writes do. */
export function endsInZeros(bytes: Buffer, end: number): boolean {
  const tail = bytes.subarray(end, end + TAIL_BYTES);
  return tail.length === TAIL_BYTES && tail.every((byte) => byte === 0);
}
