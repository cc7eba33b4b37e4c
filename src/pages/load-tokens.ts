// First rows of the API key screen, with the groups and models that its editor offers.
// Refuses everybody else's keys: only the visitor's own are read.
import type { TokenPageData } from "../../islands/screens/token/row.ts";
import { modelsForUser } from "../core/channels/models.ts";
import { groupChoices } from "../core/users/groups.ts";
import { listTokens } from "../core/users/tokens.ts";
import { fewGroups, fewNames } from "./choices.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export async function loadTokens(context: LoaderContext): Promise<TokenPageData> {
  const { deps, user, url } = context;
  const { page, pageSize } = pagingOf(context);
  if (!user) return { rows: [], total: 0, groups: {}, models: [], isCut: false, pageSize };
  const { items, total } = await listTokens(deps, user, {
    keyword: url.searchParams.get("keyword") ?? "",
    token: url.searchParams.get("token") ?? "",
    status: Number(url.searchParams.get("status")) || 0,
    offset: (page - 1) * pageSize,
    limit: pageSize,
  });
  const groups = fewGroups(groupChoices(deps, user), user.group);
  const models = fewNames(modelsForUser(deps, user));
  return {
    rows: items,
    total,
    groups: groups.few,
    models: models.few,
    isCut: groups.isCut || models.isCut,
    pageSize,
  };
}
