// Text that comes in pieces, as whole lines. Refuses a line longer than any row may be, a last one that was cut, and, by the
// number of its line, what is no UTF-8.
import { TransferRefused } from "./format.ts";

/** The longest text of a column has some millions of characters. */
const MAX_LINE_CHARS = 64 * 1024 * 1024;

/** Each with its line feed. */
export async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const piece of pieces) {
    rest += piece;
    let from = 0;
    for (let at = rest.indexOf("\n"); at !== -1; at = rest.indexOf("\n", from)) {
      yield rest.slice(from, at + 1);
      from = at + 1;
    }
    rest = rest.slice(from);
    if (rest.length > MAX_LINE_CHARS)
      throw new TransferRefused("the export has a line that is too long to be one");
  }
  if (rest !== "") throw new TransferRefused("the export is cut off in the middle of a line");
}

const LINE_FEED = 0x0a;

/** Undefined where the bytes are no text. */
function decoded(decoder: TextDecoder, piece?: Uint8Array): string | undefined {
  try {
    return piece ? decoder.decode(piece, { stream: true }) : decoder.decode();
  } catch {
    return undefined;
  }
}

const strictDecoder = (): TextDecoder => new TextDecoder("utf-8", { fatal: true });

/** The line feeds of a piece before its damage. No character lies across one: each line is judged alone, the first after the rest. */
function feedsBeforeDamage(piece: Uint8Array): number {
  let feeds = 0;
  for (let at = piece.indexOf(LINE_FEED); at !== -1; feeds++) {
    const next = piece.indexOf(LINE_FEED, at + 1);
    const line = piece.subarray(at + 1, next === -1 ? piece.length : next + 1);
    if (decoded(strictDecoder(), line) === undefined) return feeds + 1;
    at = next;
  }
  // What came with an earlier piece, or its own beginning.
  return 0;
}

export async function* textOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = strictDecoder();
  const damaged = (line: number) =>
    new TransferRefused(`line ${line} of the export is damaged: it is no UTF-8`);
  let lines = 0;
  for await (const piece of bytes) {
    const text = decoded(decoder, piece);
    if (text === undefined) throw damaged(lines + feedsBeforeDamage(piece) + 1);
    for (let at = piece.indexOf(LINE_FEED); at !== -1; at = piece.indexOf(LINE_FEED, at + 1)) lines++;
    yield text;
  }
  if (decoded(decoder) === undefined) throw damaged(lines + 1);
}
