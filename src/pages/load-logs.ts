// First rows and figures of the usage log, for the filters that stand in the address.
// Refuses other people's rows to ordinary users: they read their own.
import type { LogPageData } from "../../islands/screens/log/row.ts";
import { listLogs, listOwnLogs, userIdOf } from "../core/logs/list.ts";
import type { LogFilter } from "../core/logs/filter.ts";
import { logHistogram } from "../core/logs/histogram.ts";
import { logStat } from "../core/logs/statistics.ts";
import { rangeOf } from "../../islands/lib/time-range.ts";
import { Role } from "../shared/enums.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

/** No user has it: the filter for a name that nobody bears. */
const NOBODY = -1;
/** Relative ranges end a little ahead, so that a call of this second is in. */
const AHEAD_SECONDS = 60;

function whole(text: string | null): number {
  return /^\d{1,15}$/.test(text ?? "") ? Number(text) : 0;
}

export async function loadLogs(context: LoaderContext): Promise<LogPageData> {
  const { deps, user, url, timeZone } = context;
  const { page, pageSize } = pagingOf(context);
  const isAdmin = (user?.role ?? Role.guest) >= Role.admin;
  if (!user) {
    const histogram = { from: 0, step: 60, buckets: [], isCut: false };
    return { rows: [], total: 0, stat: { quota: 0, rpm: 0, tpm: 0 }, histogram, isAdmin, pageSize };
  }
  const query = Object.fromEntries(url.searchParams);
  const range = rangeOf(query, deps.clock.nowMs(), timeZone, "7d");
  const filter: LogFilter = {
    type: whole(query.type ?? null),
    from: range.from,
    to: range.to + (range.preset ? AHEAD_SECONDS : 1),
  };
  if (query.token_name) filter.tokenName = query.token_name;
  if (query.model_name) filter.modelName = query.model_name;
  if (query.group) filter.group = query.group;
  if (isAdmin && whole(query.channel ?? null) > 0) filter.channelId = whole(query.channel ?? null);
  if (isAdmin && query.username) filter.userId = (await userIdOf(deps, query.username)) ?? NOBODY;
  const paging = { limit: pageSize, offset: (page - 1) * pageSize };
  const own: LogFilter = isAdmin ? filter : { ...filter, userId: user.id };
  const [list, stat, histogram] = await Promise.all([
    isAdmin ? listLogs(deps, filter, paging) : listOwnLogs(deps, user, filter, paging),
    logStat(deps, own),
    logHistogram(deps, own),
  ]);
  return { rows: list.items, total: list.total, stat, histogram, isAdmin, pageSize };
}
