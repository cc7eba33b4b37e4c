// Cells of foreign databases as this program's values: padded texts, flags as 0/1 or t/f, whole numbers as text, JSON as text
// or already parsed, and nulls anywhere.
// Refuses nothing: what cannot be read counts as absent, and whoever must know is told.
import { MAX_QUOTA } from "../shared/money.ts";
import type { SourceRow } from "./source.ts";

/**
 * "" for null. Trailing blanks are padding of fixed columns. NUL, which PostgreSQL cannot keep, and halves of surrogate pairs
 * are taken out.
 */
export function textOf(row: SourceRow, column: string): string {
  return plainText(row[column]).trimEnd();
}

function plainText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value.replaceAll("\0", "").toWellFormed();
  if (value instanceof Uint8Array) return plainText(Buffer.from(value).toString("utf8"));
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "object") return JSON.stringify(value);
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean"
    ? String(value)
    : "";
}

export interface WholeNumber {
  value: number;
  /** It lay beyond what is exact, and was cut to it. */
  isCapped: boolean;
}

/** Fractions are cut, null and what is no number are the fallback. */
export function exactWhole(row: SourceRow, column: string, fallback = 0): WholeNumber {
  const cell = row[column];
  if (typeof cell === "boolean") return { value: Number(cell), isCapped: false };
  if (cell instanceof Date) return { value: Math.floor(cell.getTime() / 1000), isCapped: false };
  if (cell === null || cell === undefined || cell === "") return { value: fallback, isCapped: false };
  const value = Math.trunc(Number(typeof cell === "bigint" ? cell : plainText(cell)));
  if (Number.isNaN(value)) return { value: fallback, isCapped: false };
  if (Math.abs(value) <= MAX_QUOTA) return { value: value === 0 ? 0 : value, isCapped: false };
  return { value: Math.sign(value) * MAX_QUOTA, isCapped: true };
}

export const wholeOf = (row: SourceRow, column: string, fallback = 0): number =>
  exactWhole(row, column, fallback).value;

/** Columns of 32 bits here. */
export const smallOf = (row: SourceRow, column: string, fallback = 0): number =>
  Math.max(-2_147_483_648, Math.min(2_147_483_647, wholeOf(row, column, fallback)));

export function realOf(row: SourceRow, column: string): number {
  const value = Number(plainText(row[column]) || "0");
  return Number.isFinite(value) ? value : 0;
}

export function flagOf(row: SourceRow, column: string, fallback = false): boolean {
  const cell = row[column];
  if (cell === null || cell === undefined) return fallback;
  if (cell instanceof Uint8Array) return cell.some((byte) => byte !== 0 && byte !== 0x30);
  return /^(1|t|true|y|yes)$/i.test(plainText(cell));
}

/** Whether the cell holds anything: of `deleted_at`, whose zone is lost on some engines, no more than that counts. */
export const isGiven = (row: SourceRow, column: string): boolean => {
  const cell = row[column];
  return cell !== null && cell !== undefined && cell !== "";
};

/** Unix seconds of a moment that stands there as text, as a date or as a number; 0: none. */
export function secondsOf(row: SourceRow, column: string): number {
  const cell = row[column];
  if (cell === null || cell === undefined) return 0;
  if (cell instanceof Date) return Math.floor(cell.getTime() / 1000);
  if (typeof cell === "number" || typeof cell === "bigint") return wholeOf(row, column);
  const text = plainText(cell).trim();
  if (/^\d+$/.test(text)) return wholeOf(row, column);
  // "2025-06-01 10:20:30.123+08:00", as SQLite's driver of Go writes it.
  const parsed = Date.parse(text.replace(" ", "T").replace(/(\.\d{3})\d+/, "$1"));
  return Number.isNaN(parsed) ? 0 : Math.floor(parsed / 1000);
}

/** Undefined: the text is no JSON, or the cell is empty. */
export function jsonOf(row: SourceRow, column: string): unknown {
  const cell = row[column];
  if (cell !== null && typeof cell === "object" && !(cell instanceof Uint8Array) && !(cell instanceof Date))
    return cell;
  const text = plainText(cell).trim();
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** An object of JSON; empty where there is none. */
export function objectOf(row: SourceRow, column: string): Record<string, unknown> {
  const value = jsonOf(row, column);
  return isObject(value) ? value : {};
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The cell's JSON as text, "" for none; `isBroken`: there is something, and it is no JSON. */
export function jsonText(row: SourceRow, column: string): { text: string; isBroken: boolean } {
  const text = textOf(row, column).trim();
  if (text === "" || text === "null") return { text: "", isBroken: false };
  const value = jsonOf(row, column);
  return value === undefined ? { text: "", isBroken: true } : { text, isBroken: false };
}
