// Frames of a stream that are the last one again but for their text: compared as bytes, so that none of them is decoded.
// Refuses whatever may be anything else: then the frame has to be read.

/** What is the same in frame after frame: the event's bytes before its text, and those from the closing quote on. */
export interface PlainShape {
  readonly before: Uint8Array;
  readonly behind: Uint8Array;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;
/** Bytes that go on with a character of UTF-8 are 10xxxxxx; one of four bytes, which UTF-16 writes as two units, begins with 1111. */
const CONTINUATION = 0x80;
const CONTINUATION_MASK = 0xc0;
const FOUR_BYTES = 0xf0;

const { compare } = Buffer.prototype;

/**
 * The shape of an event of one data line whose JSON has these texts around the content. Null where they are no plain
 * ASCII, or the bytes are not such an event: `data: `, the JSON, and a blank line.
 */
export function plainShapeOf(
  bytes: Uint8Array,
  { before, behind }: { before: string; behind: string },
): PlainShape | null {
  const head = Buffer.from(`data: ${before}`, "utf8");
  const tail = Buffer.from(`${behind}\n\n`, "utf8");
  if (head.length !== before.length + 6 || tail.length !== behind.length + 2) return null;
  const shape = { before: head, behind: tail };
  return hasShape(shape, bytes) ? shape : null;
}

function hasShape({ before, behind }: PlainShape, bytes: Uint8Array): boolean {
  const { length } = bytes;
  const end = length - behind.length;
  if (end <= before.length || bytes[end] !== QUOTE) return false;
  // Called as a Buffer's method, so that the engine has to make no view of a chunk.
  return (
    compare.call(bytes, before, 0, before.length, 0, before.length) === 0 &&
    compare.call(bytes, behind, 0, behind.length, end, length) === 0
  );
}

/**
 * UTF-16 length of the text of an event of this shape; -1 where the event has another one, or its text ends before, is empty
 * or is no text of one line. Escapes count as they are written.
 */
export function plainTextLength(shape: PlainShape, bytes: Uint8Array): number {
  if (!hasShape(shape, bytes)) return -1;
  const end = bytes.length - shape.behind.length;
  // An escaped quote would be part of the text.
  if (bytes[end - 1] === BACKSLASH) return -1;
  let units = 0;
  for (let at = shape.before.length; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE || byte < FIRST_PRINTABLE) return -1;
    if ((byte & CONTINUATION_MASK) !== CONTINUATION) units += byte >= FOUR_BYTES ? 2 : 1;
  }
  return units;
}
