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
/** The first byte that is no ASCII; those below the next go on with a character. */
const [CONTINUATION, NO_CONTINUATION] = [0x80, 0xc0];
/** The first bytes that begin characters of two, three and four bytes, and the first that begins none. */
const [TWO_BYTES, THREE_BYTES, FOUR_BYTES, NO_CHARACTER] = [0xc2, 0xe0, 0xf0, 0xf5];

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
    /** Bytes that the last character still wants. */
    let wanted = 0;
    for (let byte = bytes[end]; byte !== QUOTE; byte = bytes[++end]) {
      if (byte === undefined || byte < FIRST_PRINTABLE || (byte === BACKSLASH && readsEscapes)) return -1;
      if (byte >= CONTINUATION && byte < NO_CONTINUATION) {
        // Half a character counts as a reader of texts counts it.
        if (--wanted < 0) return -1;
        continue;
      }
      if (wanted > 0) return -1;
      units += byte >= FOUR_BYTES ? 2 : 1;
      if (byte >= CONTINUATION) wanted = bytesBehind(byte);
      if (wanted < 0) return -1;
    }
    // An escaped quote would be part of the text.
    if (wanted > 0 || end === begin || bytes[end - 1] === BACKSLASH || !isAt(bytes, end, behind)) return -1;
    textBytes += end - begin;
    at = end + behind.length;
  }
  shape.textBytes = textBytes;
  return units;
}

/** How many bytes go on with a character that begins with this one; -1 where none does (RFC 3629). */
function bytesBehind(byte: number): number {
  if (byte < TWO_BYTES || byte >= NO_CHARACTER) return -1;
  if (byte < THREE_BYTES) return 1;
  return byte < FOUR_BYTES ? 2 : 3;
}

/** Whether these bytes stand there. Called as a Buffer's method, so that the engine has to make no view of a chunk. */
function isAt(bytes: Uint8Array, at: number, part: Uint8Array): boolean {
  const end = at + part.length;
  return at >= 0 && end <= bytes.length && compare.call(bytes, part, 0, part.length, at, end) === 0;
}
