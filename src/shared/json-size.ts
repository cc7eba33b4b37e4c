// What parsing a large JSON text would cost, and its outline without its long strings: both read from the bytes alone.
// Refuses to judge whether it is JSON: that is the parser's business.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;
/** So near a string's end is looked for byte by byte; further away the engine's own search is quicker. */
const NEAR_BYTES = 64;

/** How much of each a text may have. Bytes hardly count: one long string costs little, a million objects a second. */
export interface JsonBounds {
  /** Names in objects: each new one costs the engine a shape. */
  members: number;
  /** Lists and objects. */
  containers: number;
  /** Whatever stands behind a comma. */
  values: number;
}

/** Index behind the closing quote of the string that begins at `from`. */
function endOfString(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  for (;;) {
    let quote = at;
    const near = Math.min(at + NEAR_BYTES, bytes.length);
    while (quote < near && bytes[quote] !== QUOTE) quote++;
    if (quote === near) {
      quote = bytes.indexOf(QUOTE, quote);
      if (quote === -1) return bytes.length;
    }
    let before = quote - 1;
    while (bytes[before] === BACKSLASH) before--;
    at = quote + 1;
    if ((quote - 1 - before) % 2 === 0) return at;
  }
}

/** Whether the text has more of anything than it may. 64 MiB of numbers take 0.2 s (measured), of one string 0.01 s. */
export function isTooDense(bytes: Uint8Array, bounds: JsonBounds): boolean {
  let { members, containers, values } = bounds;
  for (let at = 0; at < bytes.length;) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      continue;
    }
    at++;
    if (byte === COMMA) {
      if (--values < 0) return true;
    } else if (byte === COLON) {
      if (--members < 0) return true;
    } else if ((byte === OPEN_LIST || byte === OPEN_OBJECT) && --containers < 0) return true;
  }
  return false;
}

/** The same text with every string longer than `maxString` bytes left empty: pictures in base64, say. */
export function outlineOf(bytes: Uint8Array, maxString: number): string {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let outline = "";
  let kept = 0;
  for (let at = bytes.indexOf(QUOTE); at !== -1;) {
    const end = endOfString(bytes, at);
    if (end - at - 2 > maxString) {
      outline += `${decoder.decode(bytes.subarray(kept, at))}""`;
      kept = end;
    }
    at = bytes.indexOf(QUOTE, end);
  }
  return outline + decoder.decode(bytes.subarray(kept));
}
