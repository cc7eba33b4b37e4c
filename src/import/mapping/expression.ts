// Prices that the later products write as an expression: a chain of tiers by length, read into a row of prices and its tiers.
// Refuses whatever says more than a row can, with the place where it does: the model then keeps its other price.
import { MAX_RULES, TOKEN_KINDS } from "../../shared/price-row.ts";
import type { PriceRow, PriceRule, TokenKind, TokenPrices } from "../../shared/price-row.ts";
import { need, NUMBER, rest, take, Unreadable } from "./expression-reader.ts";
import type { Reader } from "./expression-reader.ts";
import { readFactors } from "./expression-rules.ts";

export type ReadExpression = { row: PriceRow; problem?: undefined } | { row?: undefined; problem: string };

const VARIABLES: Readonly<Record<string, TokenKind>> = {
  p: "in",
  c: "out",
  cr: "cache_read",
  cc: "cache_write",
  cc1h: "cache_write_1h",
  img: "image_in",
  img_o: "image_out",
  ai: "audio_in",
  ao: "audio_out",
};
/** What a kind costs where the expression does not name it: as text, in or out. */
const OUTPUTS: ReadonlySet<TokenKind> = new Set<TokenKind>(["out", "image_out", "audio_out"]);
/** Input that `p` leaves out as soon as one of them is named. */
const BESIDE_P: readonly TokenKind[] = ["cache_read", "cache_write", "image_in", "audio_in"];

/** Tokens of input above which these prices hold; 0: from the beginning. */
interface Segment {
  over: number;
  prices: TokenPrices;
}

const NAME = /[a-z][a-z0-9_]*/;

/** `p * 2.5 + c * 15`, factors in either order. */
function sum(reader: Reader): TokenPrices {
  const prices: TokenPrices = {};
  do {
    const first = take(reader, NUMBER);
    if (first !== undefined) need(reader, /\*/);
    const kind = VARIABLES[need(reader, NAME)];
    if (!kind) throw new Unreadable(`${reader.at}`);
    const price = first ?? (take(reader, /\*/) === undefined ? "1" : need(reader, NUMBER));
    prices[kind] = (prices[kind] ?? 0) + Number(price);
  } while (take(reader, /\+/) !== undefined);
  return prices;
}

/** `tier("name", sum)`. */
function tier(reader: Reader): TokenPrices {
  need(reader, /tier\s*\(/);
  need(reader, /"[^"]*"|'[^']*'/);
  need(reader, /,/);
  const prices = sum(reader);
  need(reader, /\)/);
  return prices;
}

/** In the order of their lengths. */
function chain(reader: Reader): Segment[] {
  if (take(reader, /\((?=\s*(?:len|p)\b)/) !== undefined) {
    const inner = chain(reader);
    need(reader, /\)/);
    return inner;
  }
  const variable = take(reader, /(?:len|p)\b/);
  if (variable === undefined) return [{ over: 0, prices: tier(reader) }];
  if (variable === "p") reader.readsP = true;
  const operator = need(reader, /<=|>=|<|>/);
  const limit = Number(need(reader, NUMBER));
  if (!Number.isSafeInteger(limit)) throw new Unreadable(`${reader.at}`);
  // Above so many tokens it is the other side's.
  const over = operator === "<" || operator === ">=" ? limit - 1 : limit;
  need(reader, /\?/);
  const first = chain(reader);
  need(reader, /:/);
  const second = chain(reader);
  const [below, above] = operator.startsWith("<") ? [first, second] : [second, first];
  return [
    ...below.filter((each) => each.over < over),
    ...above
      .filter(
        (each, index) =>
          each.over > over || above[index + 1] === undefined || (above[index + 1]?.over ?? 0) > over,
      )
      .map((each) => ({ ...each, over: Math.max(over, each.over) })),
  ];
}

/** A kind that is not named costs what text costs, and is written out: here it would have a price of its own. */
function written(prices: TokenPrices): TokenPrices {
  const whole: TokenPrices = {};
  for (const kind of TOKEN_KINDS) {
    if (kind === "thinking") continue;
    whole[kind] = prices[kind] ?? (OUTPUTS.has(kind) ? (prices.out ?? 0) : (prices.in ?? 0));
  }
  return whole;
}

/** `[v1:] cond ? tier("…", sum) : …`, then `||| rules` or `* (rule)…`; dollars per million tokens. */
export function readExpression(expression: string): ReadExpression {
  const reader: Reader = { text: expression.trim().replace(/^v1:\s*/, ""), at: 0, readsP: false };
  try {
    const segments = chain(reader);
    // What a request is, and when it comes, stands behind the tiers: as factors, or as rules of their own.
    const factors = take(reader, /\|\|\||\*/) === undefined ? [] : readFactors(reader);
    if (rest(reader) !== "") throw new Unreadable(rest(reader));
    if (reader.readsP && segments.some(({ prices }) => BESIDE_P.some((kind) => prices[kind] !== undefined)))
      throw new Unreadable("p");
    const [base, ...tiers] = segments;
    const when: PriceRule[] = [
      ...tiers.map(({ over, prices }) => ({ over, set: written(prices) })),
      ...factors,
    ];
    if (when.length > MAX_RULES) throw new Unreadable(`${when.length} > ${MAX_RULES}`);
    return { row: { ...written(base?.prices ?? {}), ...(when.length === 0 ? {} : { when }) } };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return { problem: error.message };
  }
}
