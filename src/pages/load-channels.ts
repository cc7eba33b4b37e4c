// First rows of the channel screen, the counts of its views, the groups and type names that it shows.
// Refuses nothing; the page's row asks for an administrator.
import type { ChannelPageData } from "../../islands/screens/channel/row.ts";
import { listChannels, summarizeChannels } from "../core/channels/list.ts";
import { groupNames } from "../core/users/groups.ts";
import { PROVIDER_FORMS } from "../shared/provider-forms.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

/** By type: Chinese and English name, one text where they are equal. */
const TYPES = Object.fromEntries(
  PROVIDER_FORMS.map(({ id, label }) => [id, label.zh === label.en ? label.zh : [label.zh, label.en]]),
);

/** Tag mode and order by id are remembered; they count where the address asks for nothing. */
function rememberedOf({ url, remembered }: LoaderContext): Record<string, string> {
  if (url.search !== "" || !remembered) return {};
  return {
    ...(remembered("enable-tag-mode") === "true" ? { tag_mode: "true" } : {}),
    ...(remembered("id-sort") === "true" ? { sort: "-id" } : {}),
  };
}

export async function loadChannels(context: LoaderContext): Promise<ChannelPageData> {
  const { deps, url } = context;
  const { page, pageSize } = pagingOf(context);
  const remembered = rememberedOf(context);
  const query = (name: string) => remembered[name] ?? url.searchParams.get(name) ?? "";
  const [{ items, total }, summary] = await Promise.all([
    listChannels(deps, {
      keyword: query("keyword"),
      group: query("group"),
      model: query("model"),
      status: /^[123]$/.test(query("status")) ? Number(query("status")) : undefined,
      isUntested: query("untested") === "true",
      tag: query("tag"),
      sort: query("sort"),
      idSort: false,
      tagMode: query("tag_mode") === "true",
      offset: (page - 1) * pageSize,
      limit: pageSize,
    }),
    summarizeChannels(deps),
  ]);
  return { rows: items, total, summary, groups: groupNames(deps), types: TYPES, pageSize, remembered };
}
