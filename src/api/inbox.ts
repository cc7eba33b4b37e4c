// Controller of /api/inbox: what needs a person, for administrators; closed and put off by hand.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { changeInboxItem, listInbox } from "../core/inbox/hands.ts";
import { ok } from "../http/envelope.ts";
import { pageOf, pageQuery, rowIdOf } from "../http/paging.ts";
import { inboxFilterOf, inboxListFields } from "../http/queries/inbox.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const DAY_HOURS = 24;
const MOST_HOURS = 30 * DAY_HOURS;

export function inbox(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/inbox" })
    .use(policy(session))
    .get(
      "/",
      async ({ query }) => {
        const { page, pageSize, offset } = pageOf(query, 1);
        const { items, total } = await listInbox(deps, { ...inboxFilterOf(query), offset, limit: pageSize });
        return ok({ items, total, page, page_size: pageSize });
      },
      { access: "admin", query: t.Object({ ...pageQuery, ...inboxListFields }) },
    )
    .put(
      "/:id",
      async ({ actor, params, body }) => {
        const change = { id: rowIdOf(params.id), state: body.state, hours: body.hours ?? DAY_HOURS };
        return ok(await changeInboxItem(deps, actor, change));
      },
      {
        access: "admin",
        body: t.Object({
          // No UnionEnum: it has a default, and nothing must change by what was not sent.
          state: t.Union([t.Literal("open"), t.Literal("snoozed"), t.Literal("closed")]),
          /** Of a snooze. */
          hours: t.Optional(t.Integer({ minimum: 1, maximum: MOST_HOURS })),
        }),
      },
    );
}
