// First rows of the channel screen, the counts of its views, the groups and type names that it shows.
import type { ChannelPageData } from "../../islands/screens/channel/row.ts";
import { listChannels, summarizeChannels } from "../core/channels/list.ts";
import { groupNames } from "../core/users/groups.ts";
import { channelFilterOf, channelSearchFields } from "../http/queries/channels.ts";
import { sentBy } from "../http/queries/sent.ts";
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
  const { offset, pageSize } = pagingOf(context);
  const remembered = rememberedOf(context);
  const filter = channelFilterOf({ ...sentBy(channelSearchFields, url.searchParams), ...remembered });
  const [{ items, total }, summary] = await Promise.all([
    listChannels(deps, { ...filter, offset, limit: pageSize }),
    summarizeChannels(deps),
  ]);
  return { rows: items, total, summary, groups: groupNames(deps), types: TYPES, pageSize, remembered };
}
