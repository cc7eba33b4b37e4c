// Controller of /api/log: usage rows and their figures.
// Refuses users other people's rows; only administrators filter by user and channel and may clear.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { readUntil } from "../core/kit/read-until.ts";
import { END_OF_TIME } from "../core/logs/filter.ts";
import type { LogFilter } from "../core/logs/filter.ts";
import { logHistogram } from "../core/logs/histogram.ts";
import {
  listLogs,
  listOwnLogs,
  listTokenLogs,
  searchLogs,
  searchOwnLogs,
  USUAL_MATCHES,
} from "../core/logs/list.ts";
import type { LogPage } from "../core/logs/list.ts";
import { logStat } from "../core/logs/statistics.ts";
import { ok } from "../http/envelope.ts";
import { failureResponse } from "../http/failures.ts";
import { inLanguage } from "../http/log-texts.ts";
import { ANY_SITE, createKeyReader } from "../http/key-reader.ts";
import { asksForPage, LARGE_PAGE_SIZE, pageOf, pageQuery } from "../http/paging.ts";
import { adminLogFields, adminLogFilter, logFields, logFilterOf } from "../http/queries/logs.ts";
import { queryText } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import type { Language } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";

const MONTH_SECONDS = 30 * 24 * 3600;
const ALL_ROWS = { page_size: String(LARGE_PAGE_SIZE) };
const searchQuery = t.Object({ keyword: queryText(255), page_size: pageQuery.page_size });

/** A search has one page: the newest matches, as many as are asked for. */
function matchesWanted({ page_size: size }: { page_size?: string | undefined }): number {
  return pageOf({ page_size: size ?? String(USUAL_MATCHES) }, 1, LARGE_PAGE_SIZE).pageSize;
}

function keyOf(text: string): string {
  return (
    text
      .trim()
      .replace(/^Bearer\s+/i, "")
      .replace(/^sk-/, "")
      .split("-")[0] ?? ""
  );
}

/** A page of the list as the console reads it. */
function pageAnswer(found: LogPage, at: { page: number; pageSize: number }, language: Language) {
  return ok({
    items: inLanguage(found.items, language),
    total: found.total,
    ...(found.isMore ? { total_more: true } : {}),
    ...(found.isCut ? { cut: true } : {}),
    page: at.page,
    page_size: at.pageSize,
  });
}

/** Open ends become now and a month before it. */
function bounded({ clock }: Pick<Deps, "clock">, filter: LogFilter): LogFilter {
  const to = filter.to === END_OF_TIME ? Math.floor(clock.nowMs() / 1000) + 1 : filter.to;
  return { ...filter, to, from: filter.from === 0 ? Math.max(0, to - MONTH_SECONDS) : filter.from };
}

export function logs(deps: Deps, session: SessionSettings) {
  const tokenOfKey = createKeyReader(deps, session.limits);

  return (
    new Elysia({ prefix: "/api" })
      .use(policy(session))
      .get(
        "/log/",
        async ({ query, language, request }) => {
          const at = pageOf(query, 1, LARGE_PAGE_SIZE);
          const paging = { limit: at.pageSize, offset: at.offset };
          const found = await listLogs(readUntil(deps, request), await adminLogFilter(deps, query), paging);
          return pageAnswer(found, at, language);
        },
        { access: "admin", query: t.Object({ ...pageQuery, ...adminLogFields }) },
      )
      .get(
        "/log/self",
        async ({ actor, query, language, request }) => {
          const at = pageOf(query, 1, LARGE_PAGE_SIZE);
          const paging = { limit: at.pageSize, offset: at.offset };
          const found = await listOwnLogs(readUntil(deps, request), actor, logFilterOf(query), paging);
          return pageAnswer(found, at, language);
        },
        { access: "user", query: t.Object({ ...pageQuery, ...logFields }) },
      )
      .get(
        "/log/stat",
        async ({ query, request }) =>
          ok(await logStat(readUntil(deps, request), await adminLogFilter(deps, query))),
        {
          access: "admin",
          query: t.Object(adminLogFields),
        },
      )
      .get(
        "/log/self/stat",
        async ({ actor, query, request }) =>
          ok(await logStat(readUntil(deps, request), { ...logFilterOf(query), userId: actor.id })),
        { access: "user", query: t.Object({ ...logFields, channel: queryText(20) }) },
      )
      .get(
        "/log/histogram",
        async ({ query, request }) =>
          ok(await logHistogram(readUntil(deps, request), bounded(deps, await adminLogFilter(deps, query)))),
        {
          access: "admin",
          query: t.Object(adminLogFields),
        },
      )
      .get(
        "/log/self/histogram",
        async ({ actor, query, request }) =>
          ok(
            await logHistogram(
              readUntil(deps, request),
              bounded(deps, { ...logFilterOf(query), userId: actor.id }),
            ),
          ),
        { access: "user", query: t.Object(logFields) },
      )
      // What the binding of one session has served, on this node.
      .get(
        "/log/channel_affinity_usage_cache",
        ({ query }) => ok(deps.affinity.usage(query, deps.clock.monotonicMs())),
        {
          access: "admin",
          query: t.Object({
            rule_name: queryText(64),
            /** Taken for older clients: a fingerprint is of one group. */
            using_group: queryText(64),
            /** As log rows tell it. */
            key_fp: queryText(8),
          }),
        },
      )
      .get(
        "/log/search",
        async ({ query, request }) => {
          const limit = matchesWanted(query);
          const found = await searchLogs(readUntil(deps, request), query.keyword ?? "", limit);
          return { ...ok(found.items), page_size: limit, ...(found.isCut ? { cut: true } : {}) };
        },
        { access: "admin", query: searchQuery },
      )
      .get(
        "/log/self/search",
        async ({ actor, query }) => {
          const limit = matchesWanted(query);
          return { ...ok(await searchOwnLogs(deps, actor, query.keyword ?? "", limit)), page_size: limit };
        },
        { access: "user", query: searchQuery },
      )
      .get(
        "/log/token",
        async ({ query, set, language, address }) => {
          Object.assign(set.headers, ANY_SITE);
          const token = await tokenOfKey(keyOf(query.key ?? ""), address);
          if (!(token instanceof Failure)) {
            // Clients of old ask for no page and expect every row, of which the newest are given.
            const at = pageOf(asksForPage(query) ? query : ALL_ROWS, 1, LARGE_PAGE_SIZE);
            const paging = { limit: at.pageSize, offset: at.offset };
            return { ...ok(await listTokenLogs(deps, token, paging)), page: at.page, page_size: at.pageSize };
          }
          const answer = failureResponse(token, language);
          for (const [name, value] of Object.entries(ANY_SITE)) answer.headers.set(name, value);
          return answer;
        },
        // Only the key's hash reaches the database, so any text may be sent.
        { open: "public", query: t.Object({ ...pageQuery, key: t.Optional(t.String({ maxLength: 1024 })) }) },
      )
  );
}
