// Page and page size of a list's first load, from the address and the remembered size; only sizes that the console offers.
import { pageOf } from "../http/paging.ts";
import type { LoaderContext } from "./page.ts";

const SIZES = [10, 20, 50, 100];

/** `page` counts from 1. The size: `?page_size=`, else the remembered one, else 10. */
export function pagingOf({ url, pageSize }: Pick<LoaderContext, "url" | "pageSize">) {
  const sizes = [Number(url.searchParams.get("page_size") ?? ""), pageSize ?? 0];
  const size = sizes.find((each) => SIZES.includes(each));
  return pageOf({ p: url.searchParams.get("p") ?? undefined, page_size: size?.toString() }, 1);
}
