// The dashboard's figures for the question in the address: first ones from the page, later ones and new ones by one call.
// Refuses to blank what is shown while it asks again, or when that fails.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect } from "react";
import { api, call } from "../../lib/api.ts";
import { status, siteZone, user } from "../../lib/boot.ts";
import { useList } from "../../lib/list.ts";
import type { ListPhase } from "../../lib/list.ts";
import type { Query } from "../../lib/url-state.ts";
import { usageQueryOf } from "./usage-query.ts";
import type { UsageQuery } from "./usage-query.ts";
import type { DetailPageData } from "./data.ts";
import type { UsageSummary } from "../../lib/wire.ts";

/** Parameters of the call, by its own names. */
export function parametersOf({ range, step, figure, by, scope }: UsageQuery) {
  return {
    start_timestamp: String(range.from),
    end_timestamp: String(range.to - 1),
    granularity: step,
    figure,
    by,
    time_zone: siteZone.peek(),
    ...(typeof scope === "object" ? scope : {}),
  };
}

export function pathOf({ scope }: UsageQuery): string {
  return scope === "me" ? "/api/data/self/summary" : "/api/data/summary";
}

export function useDetail(
  data: DetailPageData,
  query: Query,
  usage: UsageQuery,
): {
  use: UsageSummary | undefined;
  phase: ListPhase;
  failure: string | undefined;
  refresh: () => Promise<void>;
} {
  useSignals();
  // Hours are the same everywhere; days and weeks are those of the zone.
  const zone = usage.step === "hour" && usage.range.preset !== "today" ? "" : siteZone.value;
  const { range, step, figure, by, scope } = usage;
  const list = useList<UsageSummary>({
    initial: data.use && { rows: [data.use], total: 1 },
    // Relative ranges stay relative: the passing of time is no new question.
    queryKey: JSON.stringify([range.preset ?? [range.from, range.to], step, figure, by, scope, zone]),
    async load(signal) {
      const now = usageQueryOf(query, Date.now(), siteZone.peek(), status.peek(), data.isAdmin);
      const options = { query: parametersOf(now), fetch: { signal } };
      const use = await (now.scope === "me"
        ? call(api.data.self.summary.get(options))
        : call(api.data.summary.get(options)));
      return { rows: [use], total: 1 };
    },
  });
  const { refresh } = list;
  const isRelative = range.preset !== undefined;
  useEffect(() => {
    if (!isRelative) return undefined;
    const timer = setInterval(
      // Nobody looks at a hidden tab.
      () => void (document.hidden ? undefined : refresh()),
      Math.max(1, data.everyMinutes) * 60_000,
    );
    return () => clearInterval(timer);
  }, [isRelative, refresh, data.everyMinutes]);
  return { use: list.rows[0], phase: list.phase, failure: list.failure, refresh: list.refresh };
}

/** The log's address for what lies behind a number. */
export function logHref(
  usage: UsageQuery,
  filter: { from: number; to: number; type: 2 | 5; more?: Record<string, string> },
): string {
  const { scope } = usage;
  const own = scope === "me" ? user.peek() : undefined;
  const params = new URLSearchParams({
    type: String(filter.type),
    start_timestamp: String(filter.from),
    end_timestamp: String(filter.to - 1),
    ...(typeof scope === "object" ? { username: scope.username } : {}),
    // Users' own log needs no name; an administrator's log is everybody's.
    ...(own && own.role >= 10 ? { username: own.username } : {}),
    ...filter.more,
  });
  return `/log?${params}`;
}
