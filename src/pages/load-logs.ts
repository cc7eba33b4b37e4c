// First rows and figures of the usage log, for the filters that stand in the address.
// Refuses other people's rows to ordinary users: they read their own.
import type { LogPageData } from "../../islands/screens/log/row.ts";
import { logHistogram } from "../core/logs/histogram.ts";
import { listLogs, listOwnLogs } from "../core/logs/list.ts";
import { logStat } from "../core/logs/statistics.ts";
import { inLanguage } from "../http/log-texts.ts";
import { adminLogFields, adminLogFilter, logFields, logFilterOf } from "../http/queries/logs.ts";
import { sentBy } from "../http/queries/sent.ts";
import { Role } from "../shared/enums.ts";
import { sentRange } from "./address-range.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

/** Relative ranges end a little ahead, so that a call of this second is in. */
const RANGE = { fallback: "7d", aheadSeconds: 60 } as const;

export async function loadLogs(context: LoaderContext): Promise<LogPageData> {
  const { deps, user, url } = context;
  const { offset, pageSize } = pagingOf(context);
  const isAdmin = (user?.role ?? Role.guest) >= Role.admin;
  if (!user) {
    const histogram = { from: 0, step: 60, buckets: [], isCut: false };
    return { rows: [], total: 0, stat: { quota: 0, rpm: 0, tpm: 0 }, histogram, isAdmin, pageSize };
  }
  const range = sentRange(context, RANGE);
  const filter = isAdmin
    ? await adminLogFilter(deps, { ...sentBy(adminLogFields, url.searchParams), ...range })
    : { ...logFilterOf({ ...sentBy(logFields, url.searchParams), ...range }), userId: user.id };
  const paging = { limit: pageSize, offset };
  const [list, stat, histogram] = await Promise.all([
    isAdmin ? listLogs(deps, filter, paging) : listOwnLogs(deps, user, filter, paging),
    logStat(deps, filter),
    logHistogram(deps, filter),
  ]);
  return {
    rows: inLanguage(list.items, context.language),
    total: list.total,
    isMore: list.isMore,
    stat,
    histogram,
    isAdmin,
    pageSize,
  };
}
