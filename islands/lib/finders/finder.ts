// What an area of the console gives to the palette: rows that a question finds, as commands that open them.
import type { Command } from "../commands.ts";
import { pinyinWords } from "../pinyin.ts";

export interface Question {
  /** Trimmed, never empty. */
  text: string;
  /** Of who asks. The server checks again. */
  role: number;
  /** Aborted once the question has changed. */
  signal: AbortSignal;
  /** What is asked for once while the palette is open; `what` names it. */
  once: <T>(what: string, load: () => Promise<T>) => Promise<T>;
}

export interface Finder {
  /** Key of the dictionary; "channel 42" asks this finder alone. */
  title: string;
  /** Lowest role that may ask. */
  role: number;
  find: (question: Question) => Promise<readonly Command[]>;
}

/** Rows of an area in the palette. */
export const MOST_FOUND = 5;
/** Rows whose Han names are looked through by pinyin: the server's search reads letters only. */
const MOST_READ = "100";

export interface NamedRows<Row> {
  area: string;
  name: (row: Row) => string;
  /** The list's own search, of so many rows. */
  load: (keyword: string, size: string, signal: AbortSignal | undefined) => Promise<readonly Row[]>;
}

/**
 * Rows that the list's search finds, then those among its first ones whose names are pronounced like the question. The row
 * of which the question is the id comes first.
 */
export async function namedRows<Row extends { id: number }>(
  { text, signal, once }: Question,
  { area, name, load }: NamedRows<Row>,
): Promise<Row[]> {
  const typed = text.toLowerCase().replaceAll(" ", "");
  const isNumber = /^\d+$/.test(typed);
  const [found, first] = await Promise.all([
    // A number stands in many names: the row with this id may come after all of them.
    load(text, isNumber ? MOST_READ : String(MOST_FOUND), signal),
    /^[a-z]+$/.test(typed) ? once(area, () => load("", MOST_READ, undefined)) : [],
  ]);
  const pronounced = first.filter((row) => pinyinWords(name(row)).includes(typed));
  const rows = [...new Map([...found, ...pronounced].map((row) => [row.id, row])).values()];
  if (isNumber) rows.sort((a, b) => Number(b.id === Number(typed)) - Number(a.id === Number(typed)));
  return rows.slice(0, MOST_FOUND);
}
