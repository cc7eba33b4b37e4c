// Page, page size and sort of a list in the address, and the remembered page size.
// Refuses page sizes outside the offered ones: the address may say anything.
import { KEYS, writeCookie, writeItem } from "./storage.ts";
import { numberOf, setQuery, useQuery } from "./url-state.ts";
import type { Query } from "./url-state.ts";

export const PAGE_SIZES = [10, 20, 50, 100] as const;

export interface TableQuery {
  query: Query;
  /** Counted from 1, as people see it. */
  page: number;
  pageSize: number;
  sort: { id: string; isDescending: boolean } | undefined;
  setPage: (page: number) => void;
  setPageSize: (size: number) => void;
  /** undefined: back to the natural order. */
  setSort: (sort: { id: string; isDescending: boolean } | undefined) => void;
  /** Changes filters and goes back to page 1. */
  setFilters: (patch: Record<string, string | undefined>) => void;
}

/** `?p=3&page_size=20&sort=-used`. `defaultPageSize` is what the loader used (the remembered size). */
export function useTableQuery(defaultPageSize: number): TableQuery {
  const query = useQuery();
  const requested = numberOf(query.page_size, defaultPageSize);
  const pageSize = (PAGE_SIZES as readonly number[]).includes(requested) ? requested : 10;
  const sortText = query.sort ?? "";
  return {
    query,
    page: numberOf(query.p, 1, 1),
    pageSize,
    sort:
      sortText === ""
        ? undefined
        : { id: sortText.replace(/^-/, ""), isDescending: sortText.startsWith("-") },
    setPage: (page) => setQuery({ p: page === 1 ? undefined : page }),
    setPageSize: (size) => {
      writeItem(KEYS.pageSize, String(size));
      writeCookie(KEYS.pageSize, String(size));
      setQuery({ page_size: size, p: undefined });
    },
    setSort: (sort) => setQuery({ sort: sort && `${sort.isDescending ? "-" : ""}${sort.id}`, p: undefined }),
    setFilters: (patch) => setQuery({ ...patch, p: undefined }),
  };
}
