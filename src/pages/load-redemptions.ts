// First rows of the redemption code screen.
// Refuses nothing: the page's row lets administrators in only.
import type { RedemptionPageData } from "../../islands/screens/redemption/row.ts";
import { listRedemptions } from "../core/users/redemptions.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export async function loadRedemptions(context: LoaderContext): Promise<RedemptionPageData> {
  const { deps, url } = context;
  const { page, pageSize } = pagingOf(context);
  const status = url.searchParams.get("status") ?? "";
  const { items, total } = await listRedemptions(deps, {
    keyword: url.searchParams.get("keyword") ?? "",
    status: /^[123]$/.test(status) ? Number(status) : undefined,
    page,
    pageSize,
  });
  return { rows: items, total, pageSize };
}
