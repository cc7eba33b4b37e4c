// Whether a client brought words itself that stand in its upstream's refusal: upstreams repeat what they do not like. Refuses to
// look into what is too long to be repeated with changes; there the words are sought as they are.
import type { RelayBody } from "../wire/read-body.ts";

/** What a client sent of its own. */
export interface ClientWords {
  readonly request: Pick<Request, "url" | "headers">;
  /** Absent: it has none, or what it sends is no body (frames of a session). */
  readonly body?: Pick<RelayBody, "json" | "form">;
}

/** Longer texts are sought through as they are: nobody repeats them in an error. */
const MAX_UNWOUND_CHARS = 64 * 1024;
/** Of a body: some 50 ms of work. */
const MAX_UNWOUND_IN_ALL = 4 * 1024 * 1024;

/** The letters and digits alone: what is left of a text whatever an upstream does to its spaces, quotes and marks. */
function bare(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "");
}

/** JSON within a string, as arguments of tools are, with its escapes undone. */
function unescaped(text: string): string {
  return text
    .replaceAll(/\\u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll(/\\[nrtbf]/g, " ");
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

/** Takes texts, joined to larger ones, until one holds the words in any form that its reader may give them. */
class Search {
  isFound = false;
  readonly #plain: string;
  readonly #core: string;
  #parts: string[] = [];
  #chars = 0;
  #unwoundLeft = MAX_UNWOUND_IN_ALL;

  constructor(words: string) {
    this.#plain = words.toLowerCase();
    this.#core = bare(words);
  }

  read(text: string): void {
    if (this.isFound || text === "") return;
    if (text.length > MAX_UNWOUND_CHARS) {
      this.isFound = this.#isPlainIn(text);
      return;
    }
    this.#parts.push(text);
    this.#chars += text.length;
    if (this.#chars > MAX_UNWOUND_CHARS) this.finish();
  }

  /** What was read last. */
  finish(): void {
    const text = this.#parts.join("\n");
    this.#parts = [];
    this.#chars = 0;
    if (this.isFound || text === "") return;
    this.#unwoundLeft -= text.length;
    this.isFound = this.#unwoundLeft < 0 ? this.#isPlainIn(text) : this.#isUnwoundIn(text);
  }

  #isPlainIn(text: string): boolean {
    return text.toLowerCase().includes(this.#plain);
  }

  #isUnwoundIn(text: string): boolean {
    const forms = [text];
    if (text.includes("\\")) forms.push(unescaped(text));
    if (text.includes("%")) forms.push(unquoted(text));
    return forms.some(
      (form) => this.#isPlainIn(form) || (this.#core !== "" && bare(form).includes(this.#core)),
    );
  }
}

/** Names of members included; as deep as bodies may nest (read-body.ts). */
function readJson(search: Search, value: unknown): void {
  if (search.isFound) return;
  if (typeof value === "string") search.read(value);
  else if (Array.isArray(value)) for (const each of value) readJson(search, each);
  else if (typeof value === "object" && value !== null)
    for (const [name, each] of Object.entries(value)) {
      search.read(name);
      readJson(search, each);
    }
}

function readForm(search: Search, { parts }: NonNullable<RelayBody["form"]>): void {
  for (const { name, filename, type, bytes } of parts) {
    for (const text of [name, filename ?? "", type]) search.read(text);
    search.read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  }
}

/**
 * True where the client's address, headers, fields, file names or files hold the words, upper and lower case alike, whatever
 * stands between their letters. Asked for refusals alone: it reads the whole body.
 */
export function clientSaid({ request: { url, headers }, body }: ClientWords, words: string): boolean {
  const search = new Search(words);
  search.read(url);
  for (const [name, value] of headers) {
    search.read(name);
    search.read(value);
  }
  if (body?.form) readForm(search, body.form);
  if (body) readJson(search, body.json);
  search.finish();
  return search.isFound;
}
