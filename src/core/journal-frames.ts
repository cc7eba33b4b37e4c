// How entries stand in a journal file: frames, each with its positions and a checksum, so that a torn one is noticed.
// Refuses to say anything about files; journal.ts has them.
import { crc32 } from "node:zlib";

export interface Frame {
  /** Position of the first entry. */
  first: number;
  count: number;
  /** The entries as one JSON array. */
  body: Buffer;
  /** Where the frame ends in its file. */
  end: number;
}

const HEADER = /^weir1 (\d{1,16}) (\d{1,9}) (\d{1,10}) ([0-9a-f]{1,8})\n/;
const MAX_HEADER_BYTES = 64;

/** Over the positions too: a frame of an earlier use of the room must not pass for one of this use. */
function checksum(first: number, count: number, body: Buffer): string {
  return crc32(body, crc32(`${first} ${count}`)).toString(16);
}

export function frameOf(first: number, items: readonly unknown[]): Buffer {
  const body = Buffer.from(JSON.stringify(items));
  const header = `weir1 ${first} ${items.length} ${body.length} ${checksum(first, items.length, body)}\n`;
  return Buffer.concat([Buffer.from(header), body]);
}

/** The whole frames at the beginning of a file, each going on where the one before ends. */
export function* framesOf(bytes: Buffer): Generator<Frame> {
  let at = 0;
  let expected: number | undefined;
  for (;;) {
    const header = HEADER.exec(bytes.toString("latin1", at, at + MAX_HEADER_BYTES));
    if (!header) return;
    const [first, count, length] = [Number(header[1]), Number(header[2]), Number(header[3])];
    const start = at + header[0].length;
    const body = bytes.subarray(start, start + length);
    if (body.length < length || checksum(first, count, body) !== header[4]) return;
    if (expected !== undefined && first !== expected) return;
    at = start + length;
    expected = first + count;
    yield { first, count, body, end: at };
  }
}
