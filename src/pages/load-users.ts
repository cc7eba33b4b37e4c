// First rows of the user screen, and the groups that its filter and editor offer.
import type { UserPageData } from "../../islands/screens/user/row.ts";
import { listUsers } from "../core/users/user-list.ts";
import { sentBy } from "../http/queries/sent.ts";
import { userFilterOf, userSearchFields } from "../http/queries/users.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export async function loadUsers(context: LoaderContext): Promise<UserPageData> {
  const { deps, url, user } = context;
  const { page, pageSize } = pagingOf(context);
  const { items, total } = await listUsers(deps, user ?? { id: 0, role: 0 }, {
    ...userFilterOf(sentBy(userSearchFields, url.searchParams)),
    page,
    pageSize,
  });
  return {
    rows: items,
    total,
    pageSize,
    groups: Object.keys(deps.options.get("GroupRatio")).sort(),
    lowQuota: deps.options.get("QuotaRemindThreshold"),
  };
}
