// Controller of /api/data: the hourly series that dashboards draw, and the same use summed for the console's own.
// Refuses users other people's use and more than a month at once; only administrators ask for everybody or a name.
import { Elysia, t } from "elysia";
import { dashboard, DIMENSIONS, FIGURES } from "../core/logs/dashboard.ts";
import type { Dimension } from "../core/logs/dashboard.ts";
import type { Deps, UserAccount } from "../core/deps.ts";
import { END_OF_TIME } from "../core/logs/filter.ts";
import { userIdOf } from "../core/logs/list.ts";
import { assertOwnRange, ownSeries, quotaSeries } from "../core/logs/statistics.ts";
import { ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { isTimeZone, STEPS } from "../shared/local-time.ts";
import type { Step } from "../shared/local-time.ts";

const MONTH_SECONDS = 30 * 24 * 3600;
/** No user has it: the filter for a name that nobody bears. */
const NOBODY = -1;

const moment = t.Optional(plainText(20));

const rangeQuery = {
  /** Unix seconds, both included. Without them: the month up to now. */
  start_timestamp: moment,
  end_timestamp: moment,
  /** Clients send the width of their bars; hours are answered whatever it is. */
  default_time: t.Optional(plainText(20)),
};

const summaryQuery = {
  start_timestamp: moment,
  end_timestamp: moment,
  /** hour, day or week; everything else: what suits the range. */
  granularity: t.Optional(plainText(20)),
  /** What is split and ranked: quota, count or tokens. */
  figure: t.Optional(plainText(20)),
  /** model, user, channel or key. */
  by: t.Optional(plainText(20)),
  /** Whose days and weeks, "Asia/Shanghai"; UTC where unknown. */
  time_zone: t.Optional(plainText(64)),
};

interface SentRange {
  start_timestamp?: string | undefined;
  end_timestamp?: string | undefined;
}

interface SentSummary extends SentRange {
  granularity?: string | undefined;
  figure?: string | undefined;
  by?: string | undefined;
  time_zone?: string | undefined;
}

/** A whole number from 1 up; everything else counts as not given. */
function positive(text: string | undefined): number | undefined {
  const value = /^\d{1,15}$/.test(text ?? "") ? Number(text) : 0;
  return value > 0 ? Math.min(value, END_OF_TIME) : undefined;
}

export function data(deps: Deps, session: SessionSettings) {
  const range = (sent: SentRange) => {
    const to = positive(sent.end_timestamp) ?? Math.floor(deps.clock.nowMs() / 1000);
    return { from: positive(sent.start_timestamp) ?? Math.max(0, to - MONTH_SECONDS), to };
  };
  const summary = (sent: SentSummary, dimensions: readonly Dimension[], userId: number | undefined) => {
    const { from, to } = range(sent);
    return dashboard(deps, {
      userId,
      from,
      to: to + 1,
      step: STEPS.find((step): step is Step => step === sent.granularity),
      figure: FIGURES.find((each) => each === sent.figure) ?? "quota",
      by: dimensions.find((each) => each === sent.by) ?? "model",
      zone: isTimeZone(sent.time_zone ?? "") ? (sent.time_zone ?? "UTC") : "UTC",
    });
  };
  const ownSummary = async (user: UserAccount, sent: SentSummary) => {
    const { from, to } = range(sent);
    assertOwnRange(from, to);
    return summary(sent, ["model", "key"], user.id);
  };

  return new Elysia({ prefix: "/api/data" })
    .use(policy(session))
    .get(
      "/",
      async ({ query }) => {
        const { username } = query;
        if (!username) return ok(await quotaSeries(deps, range(query)));
        const id = (await userIdOf(deps, username)) ?? NOBODY;
        return ok(await quotaSeries(deps, { ...range(query), user: { id, username } }));
      },
      { access: "admin", query: t.Object({ ...rangeQuery, username: t.Optional(plainText(255)) }) },
    )
    .get(
      "/self",
      async ({ actor, query }) => {
        const { from, to } = range(query);
        return ok(await ownSeries(deps, actor, from, to));
      },
      { access: "user", query: t.Object(rangeQuery) },
    )
    .get(
      "/summary",
      async ({ query }) => {
        const userId = query.username ? ((await userIdOf(deps, query.username)) ?? NOBODY) : undefined;
        return ok(await summary(query, DIMENSIONS, userId));
      },
      { access: "admin", query: t.Object({ ...summaryQuery, username: t.Optional(plainText(255)) }) },
    )
    .get("/self/summary", async ({ actor, query }) => ok(await ownSummary(actor, query)), {
      access: "user",
      query: t.Object(summaryQuery),
    });
}
