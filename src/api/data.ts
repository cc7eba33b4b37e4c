// Controller of /api/data: the hourly series that dashboards draw, and the same use summed for the console's own.
// Refuses users other people's use and more than a month at once; only administrators ask for everybody or a name. While the
// operator has the dashboard switched off all of it is refused; the sums behind it go on.
import { Elysia, t } from "elysia";
import { MARGIN_DIMENSIONS, margins } from "../core/costs/margins.ts";
import { CACHE_DIMENSIONS, cacheRates } from "../core/logs/cache-rates.ts";
import { dashboard, DIMENSIONS, FIGURES } from "../core/logs/dashboard.ts";
import type { Dimension } from "../core/logs/dashboard.ts";
import { readUntil } from "../core/kit/read-until.ts";
import type { Deps, UserAccount } from "../core/deps.ts";
import { END_OF_TIME } from "../core/logs/filter.ts";
import { assertOwnRange, ownSeries, quotaSeries } from "../core/logs/statistics.ts";
import { firstSteps } from "../core/site/first-steps.ts";
import { ok } from "../http/envelope.ts";
import { userIdNamed } from "../http/queries/logs.ts";
import { positive, queryText } from "../http/queries/sent.ts";
import type { Sent } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";
import { isTimeZone, STEPS } from "../shared/local-time.ts";
import type { Step } from "../shared/local-time.ts";

const MONTH_SECONDS = 30 * 24 * 3600;

const rangeFields = {
  /** Unix seconds, both included. Without them: the month up to now. */
  start_timestamp: queryText(20),
  end_timestamp: queryText(20),
  /** Clients send the width of their bars; hours are answered whatever it is. */
  default_time: queryText(20),
};

const summaryFields = {
  start_timestamp: queryText(20),
  end_timestamp: queryText(20),
  /** hour, day or week; everything else: what suits the range. */
  granularity: queryText(20),
  /** What is split and ranked: quota, count or tokens. */
  figure: queryText(20),
  /** model, user, channel or key. */
  by: queryText(20),
  /** Whose days and weeks, "Asia/Shanghai"; the site's where unknown. */
  time_zone: queryText(64),
};

const marginFields = {
  start_timestamp: queryText(20),
  end_timestamp: queryText(20),
  granularity: queryText(20),
  /** channel, model, group or day. */
  by: queryText(20),
  time_zone: queryText(64),
};

const cacheFields = {
  start_timestamp: queryText(20),
  end_timestamp: queryText(20),
  /** channel, model, user or rule (of affinity). */
  by: queryText(20),
};

type SentRange = Sent<Pick<typeof rangeFields, "start_timestamp" | "end_timestamp">>;
type SentSummary = Sent<typeof summaryFields>;

function momentOf(text: string | undefined): number | undefined {
  const seconds = positive(text);
  return seconds === undefined ? undefined : Math.min(seconds, END_OF_TIME);
}

/** Throws while there is no dashboard; after the caller is known, so that strangers learn nothing of it. */
function assertDashboard({ options }: Pick<Deps, "options">): void {
  if (!options.get("DataExportEnabled")) throw new Failure("forbidden", "data_export_disabled");
}

export function data(deps: Deps, session: SessionSettings) {
  const range = (sent: SentRange) => {
    const to = momentOf(sent.end_timestamp) ?? Math.floor(deps.clock.nowMs() / 1000);
    return { from: momentOf(sent.start_timestamp) ?? Math.max(0, to - MONTH_SECONDS), to };
  };
  const zoneOf = (sent: string | undefined) =>
    sent !== undefined && isTimeZone(sent) ? sent : deps.options.get("site.time_zone");
  const summary = (
    sent: SentSummary,
    request: Request,
    dimensions: readonly Dimension[],
    userId: number | undefined,
  ) => {
    const { from, to } = range(sent);
    return dashboard(readUntil(deps, request), {
      userId,
      from,
      to: to + 1,
      step: STEPS.find((step): step is Step => step === sent.granularity),
      figure: FIGURES.find((each) => each === sent.figure) ?? "quota",
      by: dimensions.find((each) => each === sent.by) ?? "model",
      zone: zoneOf(sent.time_zone),
    });
  };
  const ownSummary = async (user: UserAccount, sent: SentSummary, request: Request) => {
    const { from, to } = range(sent);
    assertOwnRange(from, to);
    return summary(sent, request, ["model", "key"], user.id);
  };

  return (
    new Elysia({ prefix: "/api/data" })
      .use(policy(session))
      .get(
        "/",
        async ({ query, request }) => {
          assertDashboard(deps);
          const { username } = query;
          const reading = readUntil(deps, request);
          if (!username) return ok(await quotaSeries(reading, range(query)));
          const id = await userIdNamed(deps, username);
          return ok(await quotaSeries(reading, { ...range(query), user: { id, username } }));
        },
        { access: "admin", query: t.Object({ ...rangeFields, username: queryText(255) }) },
      )
      .get(
        "/self",
        async ({ actor, query }) => {
          assertDashboard(deps);
          const { from, to } = range(query);
          return ok(await ownSeries(deps, actor, from, to));
        },
        { access: "user", query: t.Object(rangeFields) },
      )
      .get(
        "/summary",
        async ({ query, request }) => {
          assertDashboard(deps);
          const userId = query.username ? await userIdNamed(deps, query.username) : undefined;
          return ok(await summary(query, request, DIMENSIONS, userId));
        },
        { access: "admin", query: t.Object({ ...summaryFields, username: queryText(255) }) },
      )
      // † What is earned: revenue, what upstreams charge, and the difference.
      .get(
        "/margin",
        async ({ query }) => {
          assertDashboard(deps);
          const { from, to } = range(query);
          return ok(
            await margins(deps, {
              from,
              to: to + 1,
              step: STEPS.find((step): step is Step => step === query.granularity),
              by: MARGIN_DIMENSIONS.find((each) => each === query.by) ?? "channel",
              zone: zoneOf(query.time_zone),
            }),
          );
        },
        { access: "admin", query: t.Object(marginFields) },
      )
      // † How much of the prompts came from caches, and what that was worth.
      .get(
        "/cache",
        async ({ query }) => {
          assertDashboard(deps);
          const { from, to } = range(query);
          const by = CACHE_DIMENSIONS.find((each) => each === query.by) ?? "channel";
          return ok(await cacheRates(deps, { from, to: to + 1, by }));
        },
        { access: "admin", query: t.Object(cacheFields) },
      )
      // † What the checklist of a fresh site ticks.
      .get(
        "/self/first_steps",
        async ({ actor }) => {
          assertDashboard(deps);
          return ok(await firstSteps(deps, actor));
        },
        { access: "user" },
      )
      .get(
        "/self/summary",
        async ({ actor, query, request }) => {
          assertDashboard(deps);
          return ok(await ownSummary(actor, query, request));
        },
        {
          access: "user",
          query: t.Object(summaryFields),
        },
      )
  );
}
