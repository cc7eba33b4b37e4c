// Controller of /api/mj and /api/task: drawing and creative tasks, everybody's for administrators, the own ones for users.
// Refuses users other people's rows and the channels of their own.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { listCreativeTasks, listDrawings } from "../core/tasks/lists.ts";
import type { TaskFilter } from "../core/tasks/store.ts";
import { ok } from "../http/envelope.ts";
import { pageOf, pageQuery } from "../http/paging.ts";
import { drawingFields, ownTasks, taskFields, taskFilterOf } from "../http/queries/tasks.ts";
import type { Sent } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

const drawingQuery = { ...pageQuery, ...drawingFields };
const taskQuery = { ...pageQuery, ...taskFields };

export function tasks(deps: Deps, session: SessionSettings) {
  /** The list is a bare array; beside it stand the page that it is and `total`, so that a pager knows where it ends. */
  const drawings = async (filter: TaskFilter, query: Sent<typeof pageQuery>, request: Request) => {
    const { page, offset, pageSize } = pageOf(query, 0);
    const paging = { offset, limit: pageSize };
    const { items, total } = await listDrawings(deps, filter, paging, new URL(request.url).origin);
    return { ...ok(items), total, page, page_size: pageSize };
  };
  const creative = async (filter: TaskFilter, query: Sent<typeof pageQuery>) => {
    const { page, offset, pageSize } = pageOf(query, 0);
    const { items, total } = await listCreativeTasks(deps, filter, { offset, limit: pageSize });
    return { ...ok(items), total, page, page_size: pageSize };
  };
  return new Elysia({ prefix: "/api" })
    .use(policy(session))
    .get("/mj/", ({ query, request }) => drawings(taskFilterOf(query), query, request), {
      access: "admin",
      query: t.Object(drawingQuery),
    })
    .get(
      "/mj/self",
      ({ query, actor, request }) => drawings(ownTasks(taskFilterOf(query), actor.id), query, request),
      {
        access: "user",
        query: t.Object(drawingQuery),
      },
    )
    .get("/task/", ({ query }) => creative(taskFilterOf(query), query), {
      access: "admin",
      query: t.Object(taskQuery),
    })
    .get("/task/self", ({ query, actor }) => creative(ownTasks(taskFilterOf(query), actor.id), query), {
      access: "user",
      query: t.Object(taskQuery),
    });
}
