// The expressions by which newer instances of the family price models, as far as a row can say the same: a chain of
// thresholds on the prompt's length over sums of tokens. Refuses everything else, with its place in the text.
import type { PriceRow, TokenPrices } from "../../../shared/price-row.ts";
import { MAX_DOLLARS } from "../../../shared/price-row.ts";
import { BadEntry } from "./source.ts";

/** What an expression says of prompts from above `over` tokens up to the next one's; dollars per million tokens. */
interface Segment {
  over: number;
  sum: Map<string, number>;
}

type Node = { sum: Map<string, number> } | { limit: number; low: Node; high: Node };

const VARIABLES: ReadonlySet<string> = new Set(["p", "c", "cr", "cc", "cc1h", "img", "img_o", "ai", "ao"]);
/** Input that `p` is without where an expression names it: then `p` is not the whole length of the prompt. */
const BESIDE_P: readonly string[] = ["cr", "cc", "cc1h", "img", "ai"];
const MAX_DEPTH = 32;
const MAX_CHARS = 10_000;

const TOKEN =
  /\s*(?:(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|("(?:[^"\\]|\\.)*")|(<=|>=|[<>?:(),*+]))/y;

interface Token {
  at: number;
  text: string;
  number: number | undefined;
}

function bad(at: number): BadEntry {
  return new BadEntry("unit", `billing_expr:${at}`);
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match) throw bad(text.length - text.slice(from).trimStart().length);
    const [, number, word, quoted, sign] = match;
    const told = number ?? word ?? quoted ?? sign ?? "";
    tokens.push({
      at: TOKEN.lastIndex - told.length,
      text: told,
      number: number === undefined ? undefined : Number(number.replaceAll("_", "")),
    });
  }
  return tokens;
}

/** Reads a token list from left to right; every method throws where the text goes another way. */
class Reader {
  readonly #tokens: readonly Token[];
  readonly #end: number;
  #next = 0;
  /** Where a condition asked about `p`. */
  promptAt: number | undefined;

  constructor(text: string, offset: number) {
    this.#tokens = tokensOf(text).map((token) => ({ ...token, at: token.at + offset }));
    this.#end = text.length + offset;
  }

  #peek(ahead = 0): Token | undefined {
    return this.#tokens[this.#next + ahead];
  }

  #is(text: string, ahead = 0): boolean {
    return this.#peek(ahead)?.text === text;
  }

  #fail(): BadEntry {
    return bad(this.#peek()?.at ?? this.#end);
  }

  #take(text?: string): Token {
    const token = this.#peek();
    if (!token || (text !== undefined && token.text !== text)) throw this.#fail();
    this.#next += 1;
    return token;
  }

  #number(): number {
    const { number } = this.#peek() ?? {};
    if (number === undefined || !Number.isFinite(number)) throw this.#fail();
    this.#next += 1;
    return number;
  }

  whole(): Node {
    const node = this.#chain(0);
    if (this.#peek()) throw this.#fail();
    return node;
  }

  #chain(depth: number): Node {
    if (depth > MAX_DEPTH) throw this.#fail();
    const isCondition =
      (this.#is("len") || this.#is("p")) && ["<", "<=", ">", ">="].some((sign) => this.#is(sign, 1));
    if (!isCondition) return this.#branch(depth);
    const asked = this.#take();
    if (asked.text === "p") this.promptAt ??= asked.at;
    const sign = this.#take().text;
    const at = this.#peek();
    const limit = this.#number();
    if (!Number.isSafeInteger(limit) || limit < 0) throw bad(at?.at ?? this.#end);
    this.#take("?");
    const yes = this.#chain(depth + 1);
    this.#take(":");
    const no = this.#chain(depth + 1);
    // Below the limit and at it, or only below.
    const last = sign === "<=" || sign === ">" ? limit : limit - 1;
    return sign.startsWith("<") ? { limit: last, low: yes, high: no } : { limit: last, low: no, high: yes };
  }

  #branch(depth: number): Node {
    if (this.#is("(")) {
      this.#take("(");
      const inner = this.#chain(depth + 1);
      this.#take(")");
      return inner;
    }
    if (!this.#is("tier")) return { sum: this.#sum() };
    this.#take("tier");
    this.#take("(");
    if (!this.#peek()?.text.startsWith('"')) throw this.#fail();
    this.#take();
    this.#take(",");
    const sum = this.#sum();
    this.#take(")");
    return { sum };
  }

  #sum(): Map<string, number> {
    const sum = new Map<string, number>();
    for (;;) {
      const isNumberFirst = this.#peek()?.number !== undefined;
      const price = isNumberFirst ? this.#number() : undefined;
      if (isNumberFirst) this.#take("*");
      const name = this.#peek()?.text ?? "";
      if (!VARIABLES.has(name) || sum.has(name)) throw this.#fail();
      this.#take();
      if (!isNumberFirst) this.#take("*");
      const at = this.#peek();
      const dollars = price ?? this.#number();
      if (dollars > MAX_DOLLARS) throw bad(at?.at ?? this.#end);
      sum.set(name, dollars);
      if (!this.#is("+")) return sum;
      this.#take("+");
    }
  }
}

/** The pieces of a chain in rising order of length; what no length reaches is left out. */
function segmentsOf(node: Node, above: number, upTo: number): Segment[] {
  if ("sum" in node) return above < upTo ? [{ over: above, sum: node.sum }] : [];
  return [
    ...segmentsOf(node.low, above, Math.min(upTo, node.limit)),
    ...segmentsOf(node.high, Math.max(above, node.limit), upTo),
  ];
}

/** Every kind written out: what an expression does not name costs what input or output does. */
function pricesOf(sum: ReadonlyMap<string, number>): TokenPrices {
  const input = sum.get("p") ?? 0;
  const output = sum.get("c") ?? 0;
  const write = sum.get("cc") ?? input;
  return {
    in: input,
    out: output,
    cache_read: sum.get("cr") ?? input,
    cache_write: write,
    cache_write_1h: sum.get("cc1h") ?? write,
    image_in: sum.get("img") ?? input,
    image_out: sum.get("img_o") ?? output,
    audio_in: sum.get("ai") ?? input,
    audio_out: sum.get("ao") ?? output,
  };
}

/** The row that says what the expression does. Throws BadEntry with the place of what no row can say. */
export function rowOfExpression(text: unknown): PriceRow {
  if (typeof text !== "string" || text.length > MAX_CHARS) throw bad(0);
  const [, version = ""] = /^(\s*v1:)/.exec(text) ?? [];
  // What stands behind this sign depends on the request in words of its own.
  const more = text.indexOf("|||");
  if (more >= 0) throw bad(more);
  const reader = new Reader(text.slice(version.length), version.length);
  const segments = segmentsOf(reader.whole(), -1, Infinity);
  if (reader.promptAt !== undefined && segments.some(({ sum }) => BESIDE_P.some((name) => sum.has(name))))
    throw bad(reader.promptAt);
  const [base, ...longer] = segments;
  if (!base) throw bad(0);
  const row: PriceRow = pricesOf(base.sum);
  if (longer.length === 0) return row;
  return { ...row, when: longer.map(({ over, sum }) => ({ over, set: pricesOf(sum) })) };
}
