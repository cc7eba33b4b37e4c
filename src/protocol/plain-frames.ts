// Frames of a stream that are the last one again but for their text: compared as bytes, so that none of them is decoded.
// Refuses whatever may be anything else: then the frame has to be read.

/**
 * What may differ in frame after frame: the text, a number that counts them, or a string that says nothing (OpenAI's
 * `obfuscation`, which hides the length of words).
 */
export type Hole = "text" | "digits" | "filler";

/** What is the same in frame after frame: the event's bytes around its holes, one more than there are holes. */
export interface PlainShape {
  readonly fixed: readonly Uint8Array[];
  /** One of them is the text. */
  readonly holes: readonly Hole[];
  /** How a text with escapes counts: as it is written, or not without being read. */
  readonly escapes: "written" | "read";
  /** Bytes of all texts that `plainTextLength` measured last. */
  textBytes: number;
  /** UTF-16 units of the text that was measured last. */
  units: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;
const [DIGIT_0, DIGIT_9] = [0x30, 0x39];
/** The first byte that is no ASCII; those below the next go on with a character. */
const [CONTINUATION, NO_CONTINUATION] = [0x80, 0xc0];
/** The first bytes that begin characters of two, three and four bytes, and the first that begins none. */
const [TWO_BYTES, THREE_BYTES, FOUR_BYTES, NO_CHARACTER] = [0xc2, 0xe0, 0xf0, 0xf5];

const { compare } = Buffer.prototype;

/**
 * The shape of an event that has these texts around its holes. Null where they are no plain ASCII, or the bytes are no such
 * event.
 */
export function plainShapeOf(
  bytes: Uint8Array,
  { fixed, holes, escapes }: { fixed: readonly string[] } & Pick<PlainShape, "holes" | "escapes">,
): PlainShape | null {
  const parts = fixed.map((part) => Buffer.from(part, "utf8"));
  if (parts.some((part, at) => part.length !== fixed[at]?.length)) return null;
  const shape = { fixed: parts, holes, escapes, textBytes: 0, units: 0 };
  return plainTextLength(shape, bytes) === -1 ? null : shape;
}

/** Longer chunks are read: they are few, and one that is looked at in vain costs no more than a decoded frame. */
const MAX_BYTES = 16 * 1024;

/**
 * UTF-16 length of the texts of a chunk that is whole events of this shape and nothing else; -1 where it is not, where one of
 * the texts is empty or has to be read, and above 16 KB.
 */
export function plainTextLength(shape: PlainShape, bytes: Uint8Array): number {
  const { fixed, holes } = shape;
  const { length } = bytes;
  const last = fixed[holes.length] as Uint8Array;
  if (length > MAX_BYTES || !isAt(bytes, length - last.length, last)) return -1;
  let units = 0;
  let textBytes = 0;
  for (let at = 0; at < length;) {
    for (let part = 0; part < holes.length; part++) {
      const before = fixed[part] as Uint8Array;
      if (!isAt(bytes, at, before)) return -1;
      const begin = at + before.length;
      const hole = holes[part];
      if (hole === "text") {
        at = endOfText(shape, bytes, begin);
        units += shape.units;
        textBytes += at - begin;
      } else at = hole === "digits" ? endOfDigits(bytes, begin) : endOfFiller(bytes, begin);
      if (at === -1) return -1;
    }
    if (!isAt(bytes, at, last)) return -1;
    at += last.length;
  }
  shape.textBytes = textBytes;
  return units;
}

/** Where the text that begins there ends, at its quote, its length in `shape.units`; -1 where it is empty or has to be read. */
function endOfText(shape: PlainShape, bytes: Uint8Array, begin: number): number {
  const readsEscapes = shape.escapes === "read";
  let units = 0;
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
  shape.units = units;
  // An escaped quote would be part of the text.
  return wanted > 0 || end === begin || bytes[end - 1] === BACKSLASH ? -1 : end;
}

/** Where the number that begins there ends; -1 where there is none. */
function endOfDigits(bytes: Uint8Array, begin: number): number {
  let end = begin;
  for (let byte = bytes[end]; byte !== undefined && byte >= DIGIT_0 && byte <= DIGIT_9; byte = bytes[++end]);
  return end === begin ? -1 : end;
}

/** Where a string of plain ASCII ends, at its quote; it may be empty. */
function endOfFiller(bytes: Uint8Array, begin: number): number {
  let end = begin;
  for (let byte = bytes[end]; byte !== QUOTE; byte = bytes[++end])
    if (byte === undefined || byte < FIRST_PRINTABLE || byte >= CONTINUATION || byte === BACKSLASH) return -1;
  return end;
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
