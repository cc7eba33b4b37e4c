// Every question that the console asks the log, by name: what the bench times and a test explains.
import { margins } from "../src/core/costs/margins.ts";
import type { MARGIN_DIMENSIONS } from "../src/core/costs/margins.ts";
import { cacheRates } from "../src/core/logs/cache-rates.ts";
import { dashboard } from "../src/core/logs/dashboard.ts";
import type { Dimension } from "../src/core/logs/dashboard.ts";
import { END_OF_TIME, HOUR_SECONDS } from "../src/core/logs/filter.ts";
import type { LogFilter } from "../src/core/logs/filter.ts";
import { logHistogram } from "../src/core/logs/histogram.ts";
import { listLogs, searchLogs } from "../src/core/logs/list.ts";
import { logStat, quotaSeries } from "../src/core/logs/statistics.ts";
import { statementOf } from "../src/core/payments/statement.ts";
import type { Deps } from "../src/core/deps.ts";
import { DAYS } from "./log-rows.ts";

const DAY = 86_400;

export interface LogQuestion {
  name: string;
  ask: () => Promise<unknown>;
}

export function questions(deps: Deps, rows: number): LogQuestion[] {
  const now = Math.floor(deps.clock.nowMs() / 1000);
  const all = { from: 0, to: END_OF_TIME };
  // From an hour after midnight on, whatever time it is: nearly the whole first day is read by its hours, the worst that a range can be.
  const last = (days: number) => {
    const from = now - days * DAY;
    return { from: from - (from % DAY) + HOUR_SECONDS, to: now + 60 };
  };
  const list = (name: string, filter: Partial<LogFilter>, offset = 0): LogQuestion => ({
    name: `list ${name}`,
    ask: () => listLogs(deps, { type: 0, ...all, ...filter }, { limit: 20, offset }),
  });
  const stat = (name: string, filter: Partial<LogFilter>): LogQuestion => ({
    name: `figures ${name}`,
    ask: () => logStat(deps, { type: 0, ...last(DAYS), ...filter }),
  });
  const strip = (name: string, days: number, filter: Partial<LogFilter> = {}): LogQuestion => ({
    name: `histogram ${name}, ${days} days`,
    ask: () => logHistogram(deps, { type: 0, ...last(days), ...filter }),
  });
  const chart = (by: Dimension, days: number, userId?: number): LogQuestion => ({
    name: `dashboard by ${by}${userId === undefined ? "" : " of a user"}, ${days} days`,
    ask: () =>
      dashboard(deps, {
        userId,
        ...last(days),
        figure: "quota",
        by,
        zone: deps.options.get("site.time_zone"),
      }),
  });
  const zone = deps.options.get("site.time_zone");
  const margin = (by: (typeof MARGIN_DIMENSIONS)[number]): LogQuestion => ({
    name: `margin by ${by}, ${DAYS} days`,
    ask: () => margins(deps, { ...last(DAYS), by, zone }),
  });
  const cache = (by: "channel" | "model" | "user"): LogQuestion => ({
    name: `caches by ${by}, ${DAYS} days`,
    ask: () => cacheRates(deps, { ...last(DAYS), by }),
  });
  return [
    list("newest", {}),
    list("page 100", {}, 1980),
    list("the middle", {}, rows >> 1),
    list("of the busiest user", { userId: 1 }),
    list("of the busiest user, deep", { userId: 1 }, 5000),
    list("of a user", { userId: 700 }),
    list("of a model", { modelName: "model-3" }),
    list("of a model, deep", { modelName: "model-3" }, 20_000),
    list("of a rare model", { modelName: "model-59" }),
    list("of a channel", { channelId: 7 }),
    list("of a channel, deep", { channelId: 7 }, 20_000),
    list("of a group", { group: "vip" }),
    list("of a key's name", { tokenName: "a key of user 700" }),
    list("of a request id", { requestId: `bench-${String(rows >> 1).padStart(12, "0")}` }),
    list("of errors", { type: 5 }),
    list("of errors, the middle", { type: 5 }, rows / 80),
    list("of errors of a group", { type: 5, group: "vip" }),
    list("of errors of a model", { type: 5, modelName: "model-59" }),
    list("of top-ups of a user", { type: 1, userId: 700 }),
    list("no model matches", { modelName: "none" }),
    list("no channel matches", { channelId: 9999 }),
    list("no user matches", { userId: 999_999 }),
    list("no key's name matches", { tokenName: "nobody's" }),
    list("no row of the playground's matches", { tokenName: "playground-none" }),
    { name: "search for a text", ask: () => searchLogs(deps, "no such text", 100) },
    stat("of all", {}),
    stat("of a user", { userId: 1 }),
    stat("of a model", { modelName: "model-3" }),
    stat("of a channel", { channelId: 7 }),
    strip("of all", 7),
    strip("of all", DAYS),
    strip("of a channel", DAYS, { channelId: 7 }),
    strip("of a user", DAYS, { userId: 1 }),
    strip("of errors", DAYS, { type: 5 }),
    ...[7, 30, DAYS].map((days) => chart("model", days)),
    ...(["user", "channel", "key"] as const).flatMap((by) => [chart(by, 7), chart(by, DAYS)]),
    chart("model", DAYS, 700),
    chart("model", DAYS, 1),
    chart("key", DAYS, 1),
    ...(["channel", "model", "group"] as const).map((by) => margin(by)),
    ...(["channel", "model", "user"] as const).map((by) => cache(by)),
    {
      name: "statement of the busiest user, the last whole month",
      ask: () => {
        const day = new Date(now * 1000);
        const month = new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() - 1))
          .toISOString()
          .slice(0, 7);
        return statementOf(deps, { userId: 1, month });
      },
    },
    {
      name: "series by hour and model, 30 days",
      ask: () => quotaSeries(deps, { from: now - 30 * DAY, to: now }),
    },
    {
      name: "series by hour and model of a user, 30 days",
      ask: () => quotaSeries(deps, { user: { id: 1, username: "user-1" }, from: now - 30 * DAY, to: now }),
    },
  ];
}
