// Controller of /api/mj and /api/task: drawing and creative tasks, everybody's for administrators, the own ones for users.
// Refuses users other people's rows and the channels of their own.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { listCreativeTasks, listDrawings } from "../core/tasks/lists.ts";
import type { TaskFilter } from "../core/tasks/store.ts";
import { ok } from "../http/envelope.ts";
import { pageOf, pageQuery } from "../http/paging.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const word = t.Optional(plainText(255));
const drawingQuery = {
  ...pageQuery,
  channel_id: word,
  mj_id: word,
  start_timestamp: word,
  end_timestamp: word,
};
const taskQuery = {
  ...pageQuery,
  channel_id: word,
  platform: word,
  task_id: word,
  status: word,
  action: word,
  start_timestamp: word,
  end_timestamp: word,
};

type Query = Partial<Record<keyof typeof taskQuery | keyof typeof drawingQuery, string | undefined>>;

/** A number above zero; anything else narrows nothing. */
function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) && text !== "0" ? Number(text) : undefined;
}

/** Both lists are narrowed alike; what a list's own query does not name is absent. */
function filterOf(query: Query): TaskFilter {
  return {
    channelId: numberOf(query.channel_id),
    upstreamId: query.mj_id ?? query.task_id,
    platform: query.platform,
    status: query.status,
    action: query.action,
    from: numberOf(query.start_timestamp),
    to: numberOf(query.end_timestamp),
  };
}

/** As a user asks: the own rows, whose channels are nobody's business. */
function ownFilterOf(query: Query, userId: number): TaskFilter {
  return { ...filterOf(query), channelId: undefined, userId };
}

export function tasks(deps: Deps, session: SessionSettings) {
  /** The list is a bare array; `total` beside it lets a pager know where it ends. */
  const drawings = async (filter: TaskFilter, query: Query, request: Request) => {
    const { offset, pageSize } = pageOf(query, 0);
    const paging = { offset, limit: pageSize };
    const { items, total } = await listDrawings(deps, filter, paging, new URL(request.url).origin);
    return { ...ok(items), total };
  };
  const creative = async (filter: TaskFilter, query: Query) => {
    const { offset, pageSize } = pageOf(query, 0);
    const { items, total } = await listCreativeTasks(deps, filter, { offset, limit: pageSize });
    return { ...ok(items), total };
  };
  return new Elysia({ prefix: "/api" })
    .use(policy(session))
    .get("/mj/", ({ query, request }) => drawings(filterOf(query), query, request), {
      access: "admin",
      query: t.Object(drawingQuery),
    })
    .get("/mj/self", ({ query, actor, request }) => drawings(ownFilterOf(query, actor.id), query, request), {
      access: "user",
      query: t.Object(drawingQuery),
    })
    .get("/task/", ({ query }) => creative(filterOf(query), query), {
      access: "admin",
      query: t.Object(taskQuery),
    })
    .get("/task/self", ({ query, actor }) => creative(ownFilterOf(query, actor.id), query), {
      access: "user",
      query: t.Object(taskQuery),
    });
}
