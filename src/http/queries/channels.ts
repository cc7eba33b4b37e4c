// What a list of channels is narrowed and ordered by: the query string of /api/channel and the address of /channel.
import type { ChannelFilter } from "../../core/channels/list.ts";
import { isOn, queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

export const channelListFields = {
  id_sort: queryText(10),
  tag_mode: queryText(10),
  // † Narrower lists for the console's views, and an order by other columns.
  status: queryText(4),
  untested: queryText(10),
  tag: queryText(64),
  sort: queryText(32),
};

export const channelSearchFields = {
  ...channelListFields,
  keyword: queryText(1024),
  group: queryText(64),
  model: queryText(255),
};

export function channelFilterOf(sent: Sent<typeof channelSearchFields>): ChannelFilter {
  return {
    keyword: sent.keyword,
    group: sent.group,
    model: sent.model,
    idSort: isOn(sent.id_sort),
    tagMode: isOn(sent.tag_mode),
    status: /^[123]$/.test(sent.status ?? "") ? Number(sent.status) : undefined,
    isUntested: isOn(sent.untested),
    tag: sent.tag?.trim() || undefined,
    sort: sent.sort,
  };
}
