// Rows as CSV that spreadsheets open as they are, and such files read again.
// Refuses to let a cell run: texts that a spreadsheet would take for a formula are defused.

export type CsvCell = string | number | boolean | null | undefined;

/** Spreadsheets take these beginnings for formulas. Numbers are written as numbers and stay what they are. */
const FORMULA = /^[=+\-@\t\r]/;

/** Without it spreadsheets read Chinese as Latin. */
export const BYTE_ORDER_MARK = "\uFEFF";

export function csvCell(value: CsvCell): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const text = String(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** One line with its end. */
export function csvLine(cells: readonly CsvCell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

export interface CsvRow {
  /** Of the file, from 1: where the row begins. */
  line: number;
  cells: string[];
}

/** What defused a cell is taken off again, so that a file comes back as it went out. */
const plain = (cell: string): string => (/^'[=+\-@\t\r]/.test(cell) ? cell.slice(1) : cell);

/** Reads quoted cells, line ends of any system and a byte order mark; empty lines are left out. */
export function parseCsv(text: string): CsvRow[] {
  const rows: CsvRow[] = [];
  let cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  let line = 1;
  let start = 1;
  const endCell = () => {
    cells.push(plain(cell));
    cell = "";
  };
  const endRow = () => {
    endCell();
    if (cells.some((each) => each.trim() !== "")) rows.push({ line: start, cells });
    cells = [];
  };
  for (let at = text.startsWith(BYTE_ORDER_MARK) ? 1 : 0; at < text.length; at++) {
    const char = text[at];
    if (char === "\n") line += 1;
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (char === '"' && cell === "") isQuoted = true;
    else if (char === ",") endCell();
    else if (char === "\n") {
      endRow();
      start = line;
    } else if (char !== "\r") cell += char;
  }
  endRow();
  return rows;
}
