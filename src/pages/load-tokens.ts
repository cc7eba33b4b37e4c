// First rows of the API key screen, with the groups and models that its editor offers.
import type { TokenPageData } from "../../islands/screens/token/row.ts";
import { buyerOf } from "../core/channels/catalogue.ts";
import { modelsForUser } from "../core/channels/models.ts";
import { noticesInForce } from "../core/site/model-notices.ts";
import { autoGroups, groupChoices, usableGroups } from "../core/users/groups.ts";
import { listTokens } from "../core/users/tokens.ts";
import { sentBy } from "../http/queries/sent.ts";
import { tokenFilterOf, tokenSearchFields } from "../http/queries/tokens.ts";
import { announcedFor, pricesToCome } from "./announced-prices.ts";
import { firstGroups, firstNames } from "./choices.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export async function loadTokens(context: LoaderContext): Promise<TokenPageData> {
  const { deps, user, url } = context;
  const { offset, pageSize } = pagingOf(context);
  if (!user) return { rows: [], total: 0, groups: {}, auto: [], models: [], isCut: false, pageSize };
  const { items, total } = await listTokens(deps, user, {
    ...tokenFilterOf(sentBy(tokenSearchFields, url.searchParams)),
    offset,
    limit: pageSize,
  });
  const groups = firstGroups(groupChoices(deps, user), user.group);
  const models = firstNames(modelsForUser(deps, user));
  return {
    rows: items,
    total,
    groups: groups.first,
    auto: autoGroups(deps, user),
    models: models.first,
    isCut: groups.isCut || models.isCut,
    pageSize,
    notices: noticesInForce(deps, Object.keys(usableGroups(deps, user))),
    pricesToCome: pricesToCome(await announcedFor(deps, buyerOf(deps, user))),
  };
}
