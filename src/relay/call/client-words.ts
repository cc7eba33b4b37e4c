// Whether a client brought words itself that stand in its upstream's refusal: upstreams repeat what they do not like. Refuses to
// trust a parser with it, since of a member that stands twice in a body the upstream may repeat the other one; and to work on
// without end: whoever holds a key chooses what is sought through, and everybody waits meanwhile.
import type { FormPart } from "../wire/multipart.ts";
import type { RelayBody } from "../wire/read-body.ts";

/** What a client sent of its own. */
export interface ClientWords {
  readonly request: Pick<Request, "url" | "headers">;
  /** Absent: it has none, or what it sends is no body (frames of a session). */
  readonly body?: Pick<RelayBody, "text" | "form">;
}

/** What all that is sought of one refusal has taken so far. */
export interface SearchWork {
  /** Letters of ASCII, or what takes as long, looked at however they are written: some 10 to 20 ns each. */
  loose: number;
  /** Letters sought through as they are, upper and lower case alike. */
  plain: number;
  /** Bytes of files sought through as they are. */
  bytes: number;
}

/**
 * Together some milliseconds. What is beyond `loose` is sought through as it is, and what is beyond the others cannot be told from
 * words that the client wrote.
 */
export const MOST_WORK: Readonly<SearchWork> = {
  loose: 160 * 1024,
  plain: 1024 * 1024,
  bytes: 16 * 1024 * 1024,
};

/** Texts are looked at in pieces that overlap by the words, however their letters are written. */
const PIECE_CHARS = 2048;
const MOST_CHARS_A_LETTER = 16;
const MOST_OVERLAP = 2048;
/** What a letter beyond ASCII, and an escape that is undone, take in letters of ASCII. */
const WIDE_COST = 16;
const ESCAPE_COST = 64;
/** What a letter takes among which escapes are looked for. */
const UNDO_COST = 3;
/** Shorter words ("402") are found in any long text once nothing stands between its letters. */
const LEAST_LOOSE_LETTERS = 6;
/** So much of a text field is decoded: beyond, it is sought through as a file. */
const FIELD_BYTES = 32 * 1024;
/** Escapes in the rest of such a body are not undone: they count as if the words stood there. */
const HIDDEN = /\\u[0-9a-f]{4}/i;
/** So many beginnings of such an escape in a file are looked at. */
const MOST_HIDDEN = 1000;

const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text);

/**
 * The letters and digits alone: what is left of a text whatever an upstream does to its spaces, quotes and marks. Accents go before
 * letters are decomposed (UAX 15, NFKD): a long row of them would be sorted, in the square of its length. The two letters that
 * become whole sentences go too.
 */
function bare(text: string): string {
  if (isAscii(text)) return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "");
  return text
    .replaceAll(/[\p{M}\ufdfa\ufdfb]+/gu, "")
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "");
}

/** Escapes of JSON undone, of JSON within its strings as well, as arguments of tools are. */
function unescaped(text: string, work: SearchWork): string {
  work.loose += UNDO_COST * text.length;
  return text
    .replaceAll(/\\u([0-9a-f]{4})/gi, (_, code: string) => {
      work.loose += ESCAPE_COST;
      return String.fromCharCode(Number.parseInt(code, 16));
    })
    .replaceAll(/\\[nrtbf]/g, " ")
    .replaceAll("\\", "");
}

/** Percent signs of an address, or of a form; what is broken stays. */
function unquoted(text: string, work: SearchWork): string {
  work.loose += UNDO_COST * text.length;
  return text.replaceAll("+", " ").replaceAll(/(?:%[0-9a-f]{2})+/gi, (coded) => {
    work.loose += ESCAPE_COST;
    try {
      return decodeURIComponent(coded);
    } catch {
      return coded;
    }
  });
}

/** Words that have not been found yet. */
class Search {
  readonly #left: Set<string>;
  readonly #cores = new Map<string, string>();
  readonly #overlap: number;

  constructor(
    words: readonly string[],
    readonly work: SearchWork,
  ) {
    this.#left = new Set(words);
    let longest = 0;
    for (const each of this.#left) {
      const core = bare(each);
      if (core.length >= LEAST_LOOSE_LETTERS) this.#cores.set(each, core);
      longest = Math.max(longest, each.length);
    }
    this.#overlap = Math.min(MOST_CHARS_A_LETTER * longest, MOST_OVERLAP);
  }

  get isOver(): boolean {
    return this.#left.size === 0;
  }

  /** Seeks in a text (JSON, or any other) for the words in any form that its reader may give them. */
  text(text: string, isJson = false): void {
    let at = 0;
    for (; at < text.length && !this.isOver; at += PIECE_CHARS) {
      if (this.work.loose >= MOST_WORK.loose) return this.#plain(text.slice(at), isJson);
      this.#piece(text.slice(at, at + PIECE_CHARS + this.#overlap));
    }
  }

  /** Seeks in a text field of a form. */
  field({ bytes }: FormPart): void {
    const field = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.text(field.toString("utf8", 0, FIELD_BYTES), true);
    if (field.length > FIELD_BYTES && !this.isOver) this.#bytes(field.subarray(FIELD_BYTES - this.#overlap));
  }

  /** Seeks in the bytes of a file for the words as they are. */
  file({ bytes }: FormPart): void {
    this.#bytes(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  #bytes(file: Buffer): void {
    for (const each of this.#left) {
      const spellings = new Set([each, each.toLowerCase(), each.toUpperCase()]);
      this.work.bytes += file.length * spellings.size;
      if (this.work.bytes > MOST_WORK.bytes) return this.#cannotTell();
      for (const spelling of spellings) if (file.includes(spelling)) this.#left.delete(each);
    }
    if (!this.isOver && hasEscapes(file)) this.#cannotTell();
  }

  #cannotTell(): void {
    this.#left.clear();
  }

  #piece(piece: string): void {
    this.#forms(piece);
    if (piece.includes("\\")) this.#forms(unescaped(piece, this.work));
    if (piece.includes("%")) this.#forms(unquoted(piece, this.work));
  }

  #forms(text: string): void {
    this.work.loose += text.length * (isAscii(text) ? 1 : WIDE_COST);
    const lower = text.toLowerCase();
    const letters = bare(text);
    for (const each of this.#left) {
      const core = this.#cores.get(each);
      if (lower.includes(each.toLowerCase()) || (core !== undefined && letters.includes(core)))
        this.#left.delete(each);
    }
  }

  #plain(text: string, isJson: boolean): void {
    this.work.plain += text.length * (1 + this.#left.size / 4);
    if (this.work.plain > MOST_WORK.plain || (isJson && HIDDEN.test(text))) return this.#cannotTell();
    const lower = text.toLowerCase();
    for (const each of this.#left) if (lower.includes(each.toLowerCase())) this.#left.delete(each);
  }
}

/** Whether letters of a file may be escapes of JSON; true where that takes too long to say. */
function hasEscapes(file: Buffer): boolean {
  let seen = 0;
  for (let at = file.indexOf("\\u"); at !== -1; at = file.indexOf("\\u", at + 2))
    if (++seen > MOST_HIDDEN || HIDDEN.test(file.toString("latin1", at, at + 6))) return true;
  return false;
}

/**
 * True where the client's address, headers, body, file names or files hold each of the words, upper and lower case alike, and but
 * for short ones whatever stands between their letters; files and what is long hold them as they are. True as well where there is
 * too much to tell. Asked for refusals alone; `work` counts what it took.
 */
export function clientSaid(
  { request: { url, headers }, body }: ClientWords,
  words: readonly string[],
  work: SearchWork = { loose: 0, plain: 0, bytes: 0 },
): boolean {
  const search = new Search(words, work);
  search.text([url, ...[...headers].map(([name, value]) => `${name}: ${value}`)].join("\n"));
  const parts = body?.form?.parts ?? [];
  if (parts.length > 0)
    search.text(parts.map(({ name, filename = "", type }) => `${name}\n${filename}\n${type}`).join("\n"));
  if (body !== undefined) search.text(body.text, true);
  // What is short and is repeated comes before what is long and hardly ever is.
  for (const part of parts) if (part.filename === undefined && !search.isOver) search.field(part);
  for (const part of parts) if (part.filename !== undefined && !search.isOver) search.file(part);
  return search.isOver;
}
