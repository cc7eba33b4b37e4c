// Rows as CSV that spreadsheets open as they are.
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
