// What a list of redemption codes is narrowed by: the query string of /api/redemption and the address of /redemption.
import type { RedemptionQuery } from "../../core/users/redemptions.ts";
import { queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

export const redemptionListFields = {
  keyword: queryText(255),
  // † A view: 1 unused, 2 disabled, 3 used.
  status: queryText(4),
};

export function redemptionFilterOf(
  sent: Sent<typeof redemptionListFields>,
): Pick<RedemptionQuery, "keyword" | "status"> {
  return {
    keyword: sent.keyword,
    status: /^[123]$/.test(sent.status ?? "") ? Number(sent.status) : undefined,
  };
}
