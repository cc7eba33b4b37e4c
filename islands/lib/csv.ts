// Rows as CSV that spreadsheets open as they are, and the download of a text made in the page.
// Refuses to let a cell run: texts that a spreadsheet would take for a formula are defused.

import { BYTE_ORDER_MARK, csvLine } from "../../src/shared/csv.ts";
import type { CsvCell } from "../../src/shared/csv.ts";

export { csvCell } from "../../src/shared/csv.ts";
export type { CsvCell } from "../../src/shared/csv.ts";

/** With a byte order mark: without it spreadsheets read Chinese as Latin. */
export function csvText(heads: readonly string[], rows: readonly (readonly CsvCell[])[]): string {
  return BYTE_ORDER_MARK + [heads, ...rows].map(csvLine).join("");
}

/** Hands a text to the browser as a file. */
export function downloadText(name: string, text: string, type = "text/csv;charset=utf-8"): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // The download has been taken over when the click returns; some browsers read the address a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export interface CollectOptions<Row> {
  /** Page from 1 of the same question. */
  load: (page: number, signal: AbortSignal) => Promise<{ rows: readonly Row[]; total: number }>;
  /** Rows that moved to a later page while others came in are taken once. */
  rowKey: (row: Row) => string | number;
  pageSize: number;
  /** No more rows than this. */
  most: number;
  signal: AbortSignal;
  onProgress?: (done: number, total: number) => void;
}

/** Every row of a question, page after page; `isCut` when there were more than `most`. */
export async function collectRows<Row>(
  options: CollectOptions<Row>,
): Promise<{ rows: Row[]; isCut: boolean }> {
  const { load, rowKey, pageSize, most, signal, onProgress } = options;
  const found = new Map<string | number, Row>();
  for (let page = 1; ; page++) {
    const { rows, total } = await load(page, signal);
    signal.throwIfAborted();
    for (const row of rows) found.set(rowKey(row), row);
    onProgress?.(Math.min(found.size, most), total);
    const isLast = rows.length < pageSize || (total >= 0 && page * pageSize >= total);
    if (found.size > most || (found.size === most && !isLast)) {
      return { rows: [...found.values()].slice(0, most), isCut: true };
    }
    if (isLast) return { rows: [...found.values()], isCut: false };
  }
}
