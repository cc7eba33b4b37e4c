// Whether a client brought words itself that stand in its upstream's refusal: upstreams repeat what they do not like. Refuses to
// trust a parser with it: of a member that stands twice in a body the upstream may repeat the other one.
import type { RelayBody } from "../wire/read-body.ts";

/** What a client sent of its own. */
export interface ClientWords {
  readonly request: Pick<Request, "url" | "headers">;
  /** Absent: it has none, or what it sends is no body (frames of a session). */
  readonly body?: Pick<RelayBody, "text" | "form">;
}

/** Texts are sought through in pieces that overlap by the words, however their letters are written. */
const PIECE_CHARS = 64 * 1024;
const MOST_CHARS_A_LETTER = 16;
/** Shorter words ("402") are found in any long text once nothing stands between its letters. */
const LEAST_LOOSE_LETTERS = 6;
/** So much is looked at letter by letter, some 100 ms of work; beyond, the words are sought as they are. */
const MOST_LOOSE_CHARS = 4 * 1024 * 1024;
/** Escapes in the rest of such a body are not undone: they count as if the words stood there. */
const HIDDEN = /\\u[0-9a-f]{4}/i;

/** The letters and digits alone: what is left of a text whatever an upstream does to its spaces, quotes and marks. */
function bare(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "");
}

/** Escapes of JSON undone, of JSON within its strings as well, as arguments of tools are. */
function unescaped(text: string): string {
  return text
    .replaceAll(/\\+u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll(/\\+[nrtbf]/g, " ");
}

/** Percent signs of an address, or of a form; what is broken stays. */
function unquoted(text: string): string {
  return text.replaceAll("+", " ").replaceAll(/(?:%[0-9a-f]{2})+/gi, (coded) => {
    try {
      return decodeURIComponent(coded);
    } catch {
      return coded;
    }
  });
}

/** Answers whether a text (JSON, or any other) holds the words in any form that its reader may give them. */
function seeker(words: string): (text: string, isJson?: boolean) => boolean {
  const plain = words.toLowerCase();
  const core = bare(words);
  const overlap = MOST_CHARS_A_LETTER * words.length;
  let looseChars = MOST_LOOSE_CHARS;
  const isIn = (text: string): boolean =>
    text.toLowerCase().includes(plain) || (core.length >= LEAST_LOOSE_LETTERS && bare(text).includes(core));
  const holds = (piece: string, isJson: boolean): boolean => {
    looseChars -= piece.length;
    if (looseChars < 0) return piece.toLowerCase().includes(plain) || (isJson && HIDDEN.test(piece));
    if (isIn(piece) || (piece.includes("\\") && isIn(unescaped(piece)))) return true;
    return piece.includes("%") && isIn(unquoted(piece));
  };
  return (text, isJson = false) => {
    for (let at = 0; at < text.length; at += PIECE_CHARS)
      if (holds(text.slice(at, at + PIECE_CHARS + overlap), isJson)) return true;
    return false;
  };
}

/** The heads of a form's parts, and what is in them. */
function* textsOf({ parts }: NonNullable<RelayBody["form"]>): Generator<string> {
  yield parts.map(({ name, filename = "", type }) => `${name}\n${filename}\n${type}`).join("\n");
  for (const { bytes } of parts)
    yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/**
 * True where the client's address, headers, body, file names or files hold the words, upper and lower case alike, and but for
 * short ones whatever stands between their letters. Asked for refusals alone: it reads the whole body.
 */
export function clientSaid({ request: { url, headers }, body }: ClientWords, words: string): boolean {
  const isIn = seeker(words);
  const head = [url, ...[...headers].map(([name, value]) => `${name}: ${value}`)].join("\n");
  if (isIn(head) || (body !== undefined && isIn(body.text, true))) return true;
  if (body?.form) for (const text of textsOf(body.form)) if (isIn(text)) return true;
  return false;
}
