// Prices out of a text: the maps of the options as JSON, rows in dollars as JSON, or lines of a spreadsheet.
// Refuses entries that are no price, one by one: each is named, the others are taken.
import {
  isDollars,
  isPriceName,
  readPriceRow,
  readPriceRules,
  TOKEN_KINDS,
} from "../../../../src/shared/price-row.ts";
import type { PriceRow, TokenKind } from "../../../../src/shared/price-row.ts";
import { PRICE_MAPS } from "../../../../src/shared/row-maps.ts";
import { readBlock } from "../../../../src/shared/tsv.ts";
import { typedNumber } from "../../../lib/typed-number.ts";
import type { Desk, Edit } from "../desk.ts";

/** The map that a JSON object of plain numbers is; rows and whole maps say themselves what they are. */
export type SingleMap = (typeof PRICE_MAPS)[number];

interface ImportProblem {
  /** Model, or the line where there is none. */
  place: string;
  /** Below `desk.models.importProblem`. */
  reason: "name" | "number" | "row" | "line";
}

export interface Imported {
  edits: Edit[];
  problems: ImportProblem[];
  /** The text is JSON of plain numbers: which map it is has to be said. */
  isSingle: boolean;
  /** No text that is understood at all. */
  isUnknown: boolean;
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const nothing = (): Imported => ({ edits: [], problems: [], isSingle: false, isUnknown: false });

/** What a name is read by in the head of a spreadsheet, whatever the language of the page is. */
const HEADS: Readonly<Record<string, TokenKind | "call" | "model">> = {
  ...Object.fromEntries(TOKEN_KINDS.map((kind) => [kind, kind])),
  model: "model",
  name: "model",
  模型: "model",
  模型名称: "model",
  call: "call",
  "per call": "call",
  按次: "call",
  每次: "call",
  input: "in",
  prompt: "in",
  输入: "in",
  output: "out",
  completion: "out",
  输出: "out",
  "cache read": "cache_read",
  cached: "cache_read",
  缓存读取: "cache_read",
  "cache write": "cache_write",
  缓存写入: "cache_write",
};

/** Without a head: the order of the sheet. */
const PLAIN_ORDER = ["model", "in", "out", "cache_read", "cache_write"] as const;

type ImportDesk = Pick<Desk, "rowOf" | "editsOfRows">;

export function readImport(desk: ImportDesk, text: string, single: SingleMap): Imported {
  const trimmed = text.replace(/^\uFEFF/, "").trim();
  if (trimmed === "") return nothing();
  if (/^[[{]/.test(trimmed)) return ofJson(desk, trimmed, single);
  return ofLines(desk, trimmed);
}

function ofJson(desk: ImportDesk, text: string, single: SingleMap): Imported {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ...nothing(), isUnknown: true };
  }
  if (!isMap(value)) return { ...nothing(), isUnknown: true };
  const keys = Object.keys(value);
  const maps = PRICE_MAPS.filter((key) => isMap(value[key]));
  if (maps.length > 0) {
    const found = nothing();
    for (const key of maps) addMap(found, key, value[key] as Record<string, unknown>);
    return found;
  }
  const rows = isMap(value["prices"]) ? value["prices"] : value;
  if (keys.length > 0 && Object.values(rows).every(isMap) && single !== "PriceRules")
    return ofRows(desk, rows);
  const found = { ...nothing(), isSingle: true };
  addMap(found, single, value);
  return found;
}

function addMap({ edits, problems }: Imported, key: SingleMap, map: Record<string, unknown>): void {
  for (const [name, after] of Object.entries(map)) {
    if (!isPriceName(name)) problems.push({ place: name, reason: "name" });
    else if (key === "PriceRules" ? readPriceRules(after).row === undefined : !isDollars(after))
      problems.push({ place: name, reason: key === "PriceRules" ? "row" : "number" });
    else edits.push({ key, name, after });
  }
}

function ofRows(desk: ImportDesk, rows: Record<string, unknown>): Imported {
  const found = nothing();
  const taken = new Map<string, PriceRow>();
  for (const [name, value] of Object.entries(rows)) {
    const { row } = readPriceRow(value);
    if (!isPriceName(name)) found.problems.push({ place: name, reason: "name" });
    else if (!row || (row.call === undefined && row.in === undefined))
      found.problems.push({ place: name, reason: "row" });
    else taken.set(name, row);
  }
  found.edits.push(...desk.editsOfRows(taken));
  return found;
}

/** Lines between tabs, as spreadsheets copy them, or between commas, as the export writes them. */
function ofLines(desk: ImportDesk, text: string): Imported {
  const lines = readBlock(text, text.includes("\t") ? "\t" : ",");
  const [first = []] = lines;
  const heads = first.map((cell) => HEADS[cell.trim().toLowerCase()]);
  const hasHeads = heads.includes("model") || heads.filter(Boolean).length > 1;
  const columns = hasHeads ? heads : PLAIN_ORDER;
  const nameAt = Math.max(0, columns.indexOf("model"));
  const found = nothing();
  const rows = new Map<string, PriceRow>();
  for (const [at, cells] of lines.entries()) {
    if ((at === 0 && hasHeads) || cells.every((cell) => cell.trim() === "")) continue;
    const name = (cells[nameAt] ?? "").trim();
    const read = rowOfCells(desk.rowOf(name), columns, cells);
    if (!isPriceName(name)) found.problems.push({ place: String(at + 1), reason: "line" });
    else if (read === undefined) found.problems.push({ place: name, reason: "number" });
    else if (read.call === undefined && read.in === undefined)
      found.problems.push({ place: name, reason: "row" });
    else rows.set(name, read);
  }
  if (rows.size === 0 && found.problems.length === lines.length) return { ...nothing(), isUnknown: true };
  found.edits.push(...desk.editsOfRows(rows));
  return found;
}

/** The row with the cells of a line; undefined where one of them is no number. Empty cells leave what there is. */
function rowOfCells(
  before: PriceRow | undefined,
  columns: readonly (TokenKind | "call" | "model" | undefined)[],
  cells: readonly string[],
): PriceRow | undefined {
  const prices: PriceRow = {};
  for (const [at, column] of columns.entries()) {
    const text = (cells[at] ?? "").trim();
    if (column === undefined || column === "model" || text === "") continue;
    const { value } = typedNumber(text);
    if (!isDollars(value)) return undefined;
    prices[column] = value;
  }
  const { call: wasCall, unit, ...rest } = before ?? {};
  if (prices.call !== undefined) {
    const { tools, when } = rest;
    return { call: prices.call, ...(unit && { unit }), ...(tools && { tools }), ...(when && { when }) };
  }
  if (Object.keys(prices).length === 0) return before;
  return wasCall === undefined ? { ...rest, ...prices } : prices;
}
