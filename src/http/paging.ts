// Page numbers, page sizes and row ids as clients send them; absurd values become the nearest sensible ones.
import { t } from "elysia";
import type { FailureCode } from "../shared/failure-codes.ts";
import { refuse } from "../shared/failures.ts";

const DEFAULT_PAGE_SIZE = 10;
const MAX_PAGE_SIZE = 100;
/** Scripts read whole tables of administrators' lists, and of the log, in pages of this size. */
export const LARGE_PAGE_SIZE = 1000;

/** Query parameters of lists; texts, so that a wrong number never turns into an error page. */
export const pageQuery = {
  p: t.Optional(t.String({ maxLength: 20 })),
  page_size: t.Optional(t.String({ maxLength: 20 })),
  size: t.Optional(t.String({ maxLength: 20 })),
};

interface SentPage {
  p?: string | undefined;
  page_size?: string | undefined;
  size?: string | undefined;
}

/** Whether the call asks for a page: clients of old ask for none and expect every row, up to a bound. */
export function asksForPage({ p, page_size: pageSize, size }: SentPage): boolean {
  return p !== undefined || pageSize !== undefined || size !== undefined;
}

/**
 * `firstPage` is the number that this call's clients use for the first page (0 or 1). A larger size than `maxPageSize` rows
 * counts as that size: the answer says what it gave.
 */
export function pageOf(
  query: SentPage,
  firstPage: 0 | 1,
  maxPageSize = MAX_PAGE_SIZE,
): { page: number; pageSize: number; offset: number } {
  const size = Number(query.page_size ?? query.size ?? DEFAULT_PAGE_SIZE);
  const pageSize = Number.isInteger(size) && size > 0 ? Math.min(size, maxPageSize) : DEFAULT_PAGE_SIZE;
  const sent = Number(query.p ?? firstPage);
  const page = Number.isInteger(sent) && sent >= firstPage ? Math.min(sent, 1_000_000) : firstPage;
  return { page, pageSize, offset: (page - firstPage) * pageSize };
}

/** A row id in a path; anything else gives undefined, which callers answer like a missing object. */
export function idOf(text: string): number | undefined {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** A row id in a path, where anything else is answered as a missing row. */
export function rowIdOf(text: string, missing: FailureCode = "record_missing"): number {
  const id = idOf(text);
  if (id === undefined) throw refuse(missing);
  return id;
}
