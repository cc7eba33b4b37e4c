// "Export CSV" of a list: asks for every page of the current filter, shows how far it is, and hands the file over.
// Refuses to go on in silence: it can be cancelled, and a cut list says so.
import { useEffect, useRef, useState } from "react";
import type { CollectOptions, CsvCell } from "../lib/csv.ts";
import { formatNumber } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { timeLeftText } from "../lib/time-left.ts";
import { toast, toastFailure } from "../lib/toasts.ts";

/** More rows than this are a matter for the API; the page asks for 100 at a time. */
const MOST_EXPORTED = 20_000;

export interface CsvSource<Row> extends Pick<CollectOptions<Row>, "load" | "rowKey"> {
  /** File name without its ending. */
  name: string;
  heads: readonly string[];
  cells: (row: Row) => readonly CsvCell[];
}

export interface CsvExport {
  /** Rows so far and of how many (-1: unknown); undefined while nothing runs. */
  progress: { done: number; total: number; elapsedMs: number } | undefined;
  start: () => void;
  cancel: () => void;
}

/** What writes the file is fetched with the first export; `source` may fetch its part as well. */
export function useCsvExport<Row>(source: () => CsvSource<Row> | Promise<CsvSource<Row>>): CsvExport {
  const [progress, setProgress] = useState<CsvExport["progress"]>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const run = async () => {
    if (running.current) return;
    const controller = new AbortController();
    running.current = controller;
    const startedMs = performance.now();
    const show = (done: number, total: number) =>
      setProgress({ done, total, elapsedMs: performance.now() - startedMs });
    show(0, -1);
    try {
      const [{ collectRows, csvText, downloadText }, { name, heads, cells, load, rowKey }] =
        await Promise.all([import("../lib/csv.ts"), source()]);
      const { rows, isCut } = await collectRows({
        load,
        rowKey,
        pageSize: 100,
        most: MOST_EXPORTED,
        signal: controller.signal,
        onProgress: show,
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
    } catch (error) {
      toastFailure(error, "export");
    } finally {
      running.current = undefined;
      setProgress(undefined);
    }
  };
  return { progress, start: () => void run(), cancel: () => running.current?.abort() };
}

/** Stands above the list while an export runs. */
export function ExportProgress({ progress, cancel }: CsvExport) {
  if (!progress) return null;
  const { done, total, elapsedMs } = progress;
  const numbers = { done: formatNumber(done), total: formatNumber(total) };
  return (
    <div className="mb-2 flex flex-wrap items-center gap-3 text-dense">
      <progress
        className="progress progress-primary w-auto min-w-30 grow"
        max={Math.max(1, total)}
        value={total < 0 ? undefined : done}
      />
      <span role="status" className="tabular-nums">
        {t(total < 0 ? "table.export.runningOpen" : "table.export.running", numbers)}{" "}
        <span className="text-muted">{timeLeftText(done, Math.min(total, MOST_EXPORTED), elapsedMs)}</span>
      </span>
      <button type="button" className="btn btn-sm btn-default" onClick={cancel}>
        {t("table.export.cancel")}
      </button>
    </div>
  );
}
