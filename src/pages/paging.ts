// Page and page size of a list's first load, from the address and the remembered size.
// Refuses sizes that the console does not offer.
import type { LoaderContext } from "./page.ts";

const SIZES = [10, 20, 50, 100];

/** `page` counts from 1. The size: `?page_size=`, else the remembered one, else 10. */
export function pagingOf({ url, pageSize }: Pick<LoaderContext, "url" | "pageSize">): {
  page: number;
  pageSize: number;
} {
  const page = Number(url.searchParams.get("p") ?? "1");
  const asked = Number(url.searchParams.get("page_size") ?? "");
  return {
    page: Number.isInteger(page) && page >= 1 ? page : 1,
    pageSize: [asked, pageSize ?? 0].find((size) => SIZES.includes(size)) ?? 10,
  };
}
