// Runs an export of a list: every page of the filter, one file, and what to say at the end.
// Refuses to cut in silence: a list of more rows than a file takes says so.
import { collectRows, csvText, downloadText } from "../lib/csv.ts";
import { formatNumber } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { toast } from "../lib/toasts.ts";
import type { CsvSource } from "./csv-export.tsx";

/** More rows than this are a matter for the API; the page asks for 100 at a time. */
export const MOST_EXPORTED = 20_000;

export interface CsvRun {
  signal: AbortSignal;
  /** Rows so far and of how many (-1: unknown). */
  onProgress: (done: number, total: number) => void;
}

/** Fetches, writes and hands over the file; rejects with what went wrong. */
export async function runExport<Row>(
  { name, heads, cells, load, rowKey }: CsvSource<Row>,
  { signal, onProgress }: CsvRun,
): Promise<void> {
  const { rows, isCut } = await collectRows({
    load,
    rowKey,
    pageSize: 100,
    most: MOST_EXPORTED,
    signal,
    onProgress,
  });
  downloadText(`${name}.csv`, csvText(heads, rows.map(cells)));
  toast({
    key: "export",
    tone: isCut ? "warning" : "success",
    stays: true,
    text: t(isCut ? "table.export.cut" : "table.export.done", {
      count: rows.length,
      number: formatNumber(rows.length),
    }),
  });
}
