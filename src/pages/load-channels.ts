// First rows of the channel screen, with the groups and the preset models that its editor offers.
// Refuses nothing; the page's row asks for an administrator.
import { listChannels } from "../core/channels.ts";
import { groupNames } from "../core/models.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export async function loadChannels(context: LoaderContext) {
  const { deps, url } = context;
  const { page, pageSize } = pagingOf(context);
  const query = url.searchParams;
  const { items, total } = await listChannels(deps, {
    keyword: query.get("keyword") ?? "",
    group: query.get("group") ?? "",
    model: query.get("model") ?? "",
    idSort: query.get("sort") === "-id",
    tagMode: false,
    offset: (page - 1) * pageSize,
    limit: pageSize,
  });
  return { rows: items, total, groups: groupNames(deps), presets: deps.presets?.byType ?? {}, pageSize };
}
