// Lines of bills in one shape, and how amounts, moments and counts are read for them: exact, or not at all.
import { refuse } from "../../shared/failures.ts";
import type { TokenKind } from "../../shared/price-row.ts";

/** What a line is of: a kind of token; "" = calls, or everything. */
export type BillKind = TokenKind | "";

export interface BillLine {
  /** What the line is about within its source; equal ones of one file are added up where the source has sums. */
  bucket: string;
  /** Start of the UTC day, Unix seconds. */
  day: number;
  model: string;
  kind: BillKind;
  requestId: string;
  /** Null: the source does not say. */
  requests: number | null;
  tokens: number | null;
  amountNanos: number | null;
}

interface RefusedLine {
  /** Line of the file, or place in the list: from 1. */
  line: number;
  problem: "day" | "amount" | "currency" | "tokens" | "unfinished";
}

export interface ReadBill {
  lines: BillLine[];
  refused: RefusedLine[];
  /** Where the next page is, of sources that have pages. */
  nextPage: string | undefined;
}

export const DAY_SECONDS = 86_400;
export const MOST_LINES = 50_000;
export const MAX_TEXT = 255;
/** Exponents occur where programs write small numbers. */
const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i;

/**
 * A decimal as whole nanos: text or number, times 10^scale dollars; half a nano goes away from 0. Exact, unlike a product
 * of doubles. Undefined: it is no amount, or beyond what sums can hold.
 */
export function decimalNanos(value: unknown, scale = 0): number | undefined {
  const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : "";
  const match = DECIMAL.exec(text);
  if (!match) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = match;
  if (whole === "" && fraction === "") return undefined;
  const shift = 9 + scale + Number(exponent) - fraction.length;
  if (Math.abs(shift) > 60) return undefined;
  const digits = BigInt((whole + fraction).replace(/^0+(?=\d)/, "") || "0");
  let nanos = digits;
  if (shift >= 0) nanos = digits * 10n ** BigInt(shift);
  else {
    const divisor = 10n ** BigInt(-shift);
    nanos = (digits + divisor / 2n) / divisor;
  }
  const number = Number(nanos);
  if (!Number.isSafeInteger(number)) return undefined;
  return sign === "-" && number !== 0 ? -number : number;
}

export function countOf(value: unknown): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value.replaceAll(",", "")) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

export type Json = Record<string, unknown>;

export function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_TEXT) : "";
}

/** Unix seconds as number or digits, or a date as text, which is UTC where it names no zone. */
export function momentOf(value: unknown): number | undefined {
  if (typeof value === "number" || (typeof value === "string" && /^\d{9,13}$/.test(value.trim()))) {
    const number = Number(value);
    const seconds = number > 1e11 ? number / 1000 : number;
    return Number.isFinite(seconds) && seconds > 0 ? Math.floor(seconds) : undefined;
  }
  if (typeof value !== "string") return undefined;
  const text = value.trim().replaceAll("/", "-");
  const match = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](.*))?$/.exec(text);
  if (!match) return undefined;
  const [, year = "", month = "", day = "", rest = ""] = match;
  const date = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(rest)
    ? rest
    : rest === ""
      ? "00:00:00Z"
      : `${rest.replace(/ UTC$/, "")}Z`;
  const parsed = Date.parse(`${date}T${zoned}`);
  // 31 February is no day, whatever Date makes of it.
  return Number.isNaN(parsed) || new Date(`${date}T00:00:00Z`).getUTCDate() !== Number(day)
    ? undefined
    : Math.floor(parsed / 1000);
}

export const dayOf = (seconds: number): number => seconds - (seconds % DAY_SECONDS);

/** Collects lines; those of one bucket are added up. */
export class Bill {
  readonly #lines = new Map<string, BillLine>();
  readonly refused: RefusedLine[] = [];

  add(line: BillLine): void {
    const known = this.#lines.get(line.bucket);
    if (!known) {
      if (this.#lines.size >= MOST_LINES) throw refuse("bill_lines_many", { max: MOST_LINES });
      this.#lines.set(line.bucket, line);
      return;
    }
    const sum = (a: number | null, b: number | null) =>
      a === null && b === null ? null : (a ?? 0) + (b ?? 0);
    known.requests = sum(known.requests, line.requests);
    known.tokens = sum(known.tokens, line.tokens);
    known.amountNanos = sum(known.amountNanos, line.amountNanos);
  }

  /** A line of its own, also where another says the same: two equal calls are two calls. */
  addRow(line: Omit<BillLine, "bucket">, id: string): void {
    let bucket = `${id}|${line.kind}`;
    for (let n = 2; this.#lines.has(bucket); n++) bucket = `${id}#${n}|${line.kind}`;
    this.add({ ...line, bucket });
  }

  refuse(line: number, problem: RefusedLine["problem"]): void {
    this.refused.push({ line, problem });
  }

  read(nextPage?: unknown): ReadBill {
    const next = typeof nextPage === "string" && nextPage !== "" ? nextPage : undefined;
    return { lines: [...this.#lines.values()], refused: this.refused, nextPage: next };
  }
}
