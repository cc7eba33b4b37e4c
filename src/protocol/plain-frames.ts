// Frames of a stream that are the last one again but for their text: compared as bytes, so that none of them is decoded.
// Refuses whatever may be anything else: then the frame has to be read.

/** What is the same in frame after frame: the event's bytes before its text, and those from the closing quote on. */
export interface PlainShape {
  readonly before: Uint8Array;
  readonly behind: Uint8Array;
  /** How a text with escapes counts: as it is written, or not without being read. */
  readonly escapes: "written" | "read";
  /** Bytes of all texts that `plainTextLength` measured last. */
  textBytes: number;
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
 * The shape of an event that has these texts around its own. Null where they are no plain ASCII, or the bytes are no such
 * event.
 */
export function plainShapeOf(
  bytes: Uint8Array,
  { before, behind, escapes }: { before: string; behind: string } & Pick<PlainShape, "escapes">,
): PlainShape | null {
  const head = Buffer.from(before, "utf8");
  const tail = Buffer.from(behind, "utf8");
  if (head.length !== before.length || tail.length !== behind.length) return null;
  const shape = { before: head, behind: tail, escapes, textBytes: 0 };
  return plainTextLength(shape, bytes) === -1 ? null : shape;
}

/** Longer chunks are read: they are few, and one that is looked at in vain costs no more than a decoded frame. */
const MAX_BYTES = 16 * 1024;

/**
 * UTF-16 length of the texts of a chunk that is whole events of this shape and nothing else; -1 where it is not, where one of
 * the texts is empty or has to be read, and above 16 KB.
 */
export function plainTextLength(shape: PlainShape, bytes: Uint8Array): number {
  const { before, behind } = shape;
  const readsEscapes = shape.escapes === "read";
  const { length } = bytes;
  if (length > MAX_BYTES || !isAt(bytes, length - behind.length, behind)) return -1;
  let units = 0;
  let textBytes = 0;
  for (let at = 0; at < length;) {
    if (!isAt(bytes, at, before)) return -1;
    const begin = at + before.length;
    let end = begin;
    for (let byte = bytes[end]; byte !== QUOTE; byte = bytes[++end]) {
      if (byte === undefined || byte < FIRST_PRINTABLE || (byte === BACKSLASH && readsEscapes)) return -1;
      if ((byte & CONTINUATION_MASK) !== CONTINUATION) units += byte >= FOUR_BYTES ? 2 : 1;
    }
    // An escaped quote would be part of the text.
    if (end === begin || bytes[end - 1] === BACKSLASH || !isAt(bytes, end, behind)) return -1;
    textBytes += end - begin;
    at = end + behind.length;
  }
  shape.textBytes = textBytes;
  return units;
}

/** Whether these bytes stand there. Called as a Buffer's method, so that the engine has to make no view of a chunk. */
function isAt(bytes: Uint8Array, at: number, part: Uint8Array): boolean {
  const end = at + part.length;
  return at >= 0 && end <= bytes.length && compare.call(bytes, part, 0, part.length, at, end) === 0;
}
