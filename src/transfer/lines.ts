// Text that comes in pieces, as whole lines. Refuses a line longer than any row may be, and a last one that was cut.
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

export async function* textOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for await (const piece of bytes) yield decoder.decode(piece, { stream: true });
  yield decoder.decode();
}
