// "Export CSV" of a list: asks for every page of the current filter, shows how far it is, and hands the file over.
// Refuses to go on in silence: it can be cancelled, and a cut list says so.
import { useEffect, useRef, useState } from "react";
import type { CollectOptions, CsvCell } from "../lib/csv.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { toastFailure } from "../lib/toasts.ts";

const CsvProgress = lazyPart(() => import("./csv-progress.tsx"));

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
      const [{ runExport }, rows] = await Promise.all([import("./csv-run.ts"), source()]);
      await runExport(rows, { signal: controller.signal, onProgress: show });
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
  return progress ? <CsvProgress progress={progress} cancel={cancel} /> : null;
}
