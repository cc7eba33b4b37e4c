// First figures of the dashboard, for the range and split that stand in the address.
// Refuses other people's use to ordinary users; a range that is refused leaves the page to say so.
import { usageQueryOf } from "../../islands/screens/detail/usage-query.ts";
import type { DetailPageData } from "../../islands/screens/detail/data.ts";
import { dashboard, hasUsage } from "../core/logs/dashboard.ts";
import { firstSteps } from "../core/site/first-steps.ts";
import { assertOwnRange } from "../core/logs/statistics.ts";
import { userIdNamed } from "../http/queries/logs.ts";
import { Role } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import type { LoaderContext } from "./page.ts";

export async function loadDetail(context: LoaderContext): Promise<DetailPageData> {
  const { deps, user, url, status } = context;
  const isAdmin = (user?.role ?? Role.guest) >= Role.admin;
  const zone = deps.options.get("site.time_zone");
  const everyMinutes = deps.options.get("DataExportInterval");
  const isRoot = user?.role === Role.root;
  if (!user) return { isAdmin: false, isRoot, use: undefined, used: 0, first: undefined, everyMinutes };
  const query = Object.fromEntries(url.searchParams);
  const { range, step, figure, by, scope } = usageQueryOf(query, deps.clock.nowMs(), zone, status, isAdmin);
  const userId = scope === "me" ? user.id : scope && (await userIdNamed(deps, scope.username));
  const ask = async () => {
    if (!isAdmin) assertOwnRange(range.from, range.to - 1);
    return dashboard(deps, {
      userId,
      from: range.from,
      to: range.to,
      step,
      figure,
      by,
      zone: zone,
    });
  };
  const [use, isUsed] = await Promise.all([
    ask().catch((error: unknown) => {
      if (error instanceof Failure) return undefined;
      throw error;
    }),
    // Also of the administrator's own figures: a site that has sold a call needs no list of first steps.
    hasUsage(deps, isAdmin ? undefined : user.id),
  ]);
  return {
    isAdmin,
    isRoot,
    use,
    used: user.usedQuota,
    everyMinutes,
    first: isUsed ? undefined : await firstSteps(deps, user),
  };
}
