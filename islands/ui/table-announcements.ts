// What a table says aloud: how many rows a query found, and how they are sorted.
import { useEffect, useRef } from "react";
import { formatNumber } from "../lib/format.ts";
import { announce } from "../lib/toasts.ts";
import type { DataTableProps } from "./table.tsx";

type Announced<Row> = Pick<DataTableProps<Row>, "list" | "sort" | "columns" | "page" | "isQuiet">;

const QUIET_MS = 600;

/** Tells how many rows there are and how they are sorted, once a change has settled; not on the first paint. */
export function useAnnouncements<Row>({ list, sort, columns, page, isQuiet }: Announced<Row>): void {
  const isFirst = useRef(true);
  const isReady = list.phase === "ready";
  const sortText = sort ? `${sort.id} ${sort.isDescending}` : "";
  const announcedSort = useRef(sortText);
  useEffect(() => {
    if (!isReady || isQuiet) return undefined;
    if (isFirst.current) {
      isFirst.current = false;
      return undefined;
    }
    const timer = setTimeout(() => {
      if (announcedSort.current !== sortText && sort) {
        const column = columns.find(({ id }) => id === sort.id)?.title ?? sort.id;
        announce(sort.isDescending ? "table.sortedDown" : "table.sortedUp", { column });
      } else if (list.total >= 0) {
        announce("table.results", { count: list.total, number: formatNumber(list.total), page });
      }
      announcedSort.current = sortText;
    }, QUIET_MS);
    return () => clearTimeout(timer);
    // Only what people chose counts: a filter, a page, a sort; and what came of it.
  }, [isReady, isQuiet, list.total, page, sortText]);
}
