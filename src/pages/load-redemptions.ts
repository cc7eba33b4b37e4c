// First rows of the redemption code screen.
import type { RedemptionPageData } from "../../islands/screens/redemption/row.ts";
import { listRedemptions } from "../core/users/redemptions.ts";
import { redemptionFilterOf, redemptionListFields } from "../http/queries/redemptions.ts";
import { sentBy } from "../http/queries/sent.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export async function loadRedemptions(context: LoaderContext): Promise<RedemptionPageData> {
  const { deps, url } = context;
  const { page, pageSize } = pagingOf(context);
  const filter = redemptionFilterOf(sentBy(redemptionListFields, url.searchParams));
  const { items, total } = await listRedemptions(deps, { ...filter, page, pageSize });
  return { rows: items, total, pageSize };
}
