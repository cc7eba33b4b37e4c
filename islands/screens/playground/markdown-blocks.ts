// Markdown as blocks of tokens, read as it grows: what is finished is not read again with every piece of a stream.
// Refuses to fail: what the reader cannot take (nesting without end, one paragraph of a megabyte) stays plain text.
import { Lexer, Marked } from "marked";
import type { Token, TokenizerAndRendererExtension, TokensList } from "marked";

export interface FormulaToken {
  type: "formula";
  raw: string;
  text: string;
  isBlock: boolean;
}

export interface Block {
  raw: string;
  token: Token;
  /** Still growing: its code is not coloured yet. */
  isOpen: boolean;
}

/** Words and signs within one paragraph are looked at up to here; a longer one is drawn as it is. */
const MOST_INLINE_CHARS = 20_000;

/** A picture that an answer brings along: one alone is longer than that. */
const DATA_PICTURE = /!\[([^\]\n]{0,1000})\]\((data:image\/(?:png|jpeg|webp|gif);base64,[\w+/=]+)\)/g;

const BLOCK_FORMULA = /^(?: {0,3}\$\$([\s\S]{1,2000}?)\$\$| {0,3}\\\[([\s\S]{1,2000}?)\\\])[ \t]*(?:\n+|$)/;
/** `$x$` is a formula, "$5 and $6" is money: no space inside the signs, no digit after them. */
const INLINE_FORMULA =
  /^(?:\$\$([^$]+?)\$\$|\$(?![\s$])((?:[^$\n\\]|\\.)+?)(?<![\s\\])\$(?![\d$])|\\\((.+?)\\\)|\\\[([\s\S]{1,2000}?)\\\])/;

function startOf(text: string): number | undefined {
  const at = text.search(/\$|\\\(|\\\[/);
  return at < 0 ? undefined : at;
}

function formula(level: "block" | "inline", rule: RegExp): TokenizerAndRendererExtension {
  return {
    name: "formula",
    level,
    // Of blocks it would cut every paragraph at its dollars: what stands within one is the inline rule's.
    ...(level === "inline" ? { start: (text: string) => startOf(text) } : {}),
    tokenizer(text) {
      const match = rule.exec(text);
      if (!match) return undefined;
      const [raw, ...inner] = match;
      const tex = inner.find((each) => each !== undefined) ?? "";
      return { type: "formula", raw, text: tex.trim(), isBlock: level === "block" };
    },
  };
}

/** The reader takes the square of a line's length to find out that no heading is underlined with it. */
const MOST_HEADING_CHARS = 2000;

const marked = new Marked({ gfm: true, breaks: true });
marked.use({
  tokenizer: {
    // HTML is text here: as a block it would swallow the lists and the code that follow it.
    html: () => undefined,
    lheading(text) {
      const end = text.indexOf("\n");
      // Undefined: none. False: the reader's own rule decides.
      return (end < 0 ? text.length : end) > MOST_HEADING_CHARS ? undefined : false;
    },
  },
  extensions: [formula("block", BLOCK_FORMULA), formula("inline", INLINE_FORMULA)],
});

/** Nobody writes such; reading it takes the square of its depth. */
const TOO_DEEP = /^[ \t]*(?:>[ \t]*){50}|^[ \t]{200,}(?:[-*+]|\d{1,9}[.)])[ \t]/m;

const plain = (text: string): Token => ({ type: "plain", raw: text, text });

/** A long paragraph: its pictures, and what stands between them where that is not too long in turn. */
function readLong(lexer: Lexer, src: string, into: Token[]): void {
  const read = (piece: string) => {
    if (piece.length > MOST_INLINE_CHARS) into.push({ type: "text", raw: piece, text: piece });
    else if (piece !== "") lexer.inlineTokens(piece, into);
  };
  let end = 0;
  for (const match of src.matchAll(DATA_PICTURE)) {
    const [raw, label = "", href = ""] = match;
    read(src.slice(end, match.index));
    into.push({ type: "image", raw, href, title: null, text: label, tokens: [] });
    end = match.index + raw.length;
  }
  read(src.slice(end));
}

/** Never throws. The texts of the tokens together are the text. */
function lex(text: string): Token[] {
  if (TOO_DEEP.test(text)) return [plain(text)];
  const lexer = new Lexer(marked.defaults);
  const tokens: TokensList = lexer.tokens;
  try {
    lexer.blockTokens(text, tokens);
    for (const { src, tokens: into } of lexer.inlineQueue) {
      if (src.length > MOST_INLINE_CHARS) readLong(lexer, src, into);
      else lexer.inlineTokens(src, into);
    }
    return [...tokens];
  } catch (error) {
    // Nested deeper than the stack is.
    if (!(error instanceof RangeError)) console.error(error);
    return [plain(text)];
  }
}

/** "[name]: address" anywhere may turn what was read before it into links. */
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;

/** One answer while it grows. */
export class GrowingMarkdown {
  #finished: Block[] = [];
  #finishedText = "";

  /** Blocks of the whole text. Those that cannot change any more are the same objects as before. */
  read(source: string, isGrowing: boolean): readonly Block[] {
    const text = source.replaceAll(/\r\n?/g, "\n");
    const hasDefinitions = !isGrowing && DEFINITION.test(text);
    if (hasDefinitions || !text.startsWith(this.#finishedText)) {
      this.#finished = [];
      this.#finishedText = "";
    }
    const tokens = lex(text.slice(this.#finishedText.length));
    const last = tokens.findLastIndex(({ type }) => type !== "space");
    const rest: Block[] = [];
    let isWhole = true;
    tokens.forEach((token, index) => {
      isWhole &&= text.startsWith(token.raw, this.#finishedText.length);
      const isFinished = isWhole && !hasDefinitions && index < last;
      if (isFinished) this.#finishedText += token.raw;
      if (token.type === "space" || token.type === "def") return;
      const block = { raw: token.raw, token, isOpen: isGrowing && index >= last };
      (isFinished ? this.#finished : rest).push(block);
    });
    return [...this.#finished, ...rest];
  }
}
