// Controller of /api/mj and /api/task: drawing and creative tasks, everybody's for administrators, the own ones for users.
// Refuses users other people's rows and the channels of their own.
import { Elysia, t } from "elysia";
import { listCreativeTasks } from "../core/tasks/creative-tasks.ts";
import type { CreativeTaskFilter } from "../core/tasks/creative-tasks.ts";
import type { Deps } from "../core/deps.ts";
import { listDrawings } from "../core/tasks/drawing-tasks.ts";
import type { DrawingFilter } from "../core/tasks/drawing-tasks.ts";
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

type Sent = Partial<Record<keyof typeof taskQuery | keyof typeof drawingQuery, string | undefined>>;

function wholeOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) && text !== "0" ? Number(text) : undefined;
}

/** Fields that were given, so that absent ones stay absent. */
function given<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

function drawingFilter(query: Sent): DrawingFilter {
  return given<DrawingFilter>({
    channelId: wholeOf(query.channel_id),
    mjId: query.mj_id,
    from: wholeOf(query.start_timestamp),
    to: wholeOf(query.end_timestamp),
  } as DrawingFilter);
}

function taskFilter(query: Sent): CreativeTaskFilter {
  return given<CreativeTaskFilter>({
    channelId: wholeOf(query.channel_id),
    platform: query.platform,
    taskId: query.task_id,
    status: query.status,
    action: query.action,
    from: wholeOf(query.start_timestamp),
    to: wholeOf(query.end_timestamp),
  } as CreativeTaskFilter);
}

export function tasks(deps: Deps, session: SessionSettings) {
  /** The list is a bare array; `total` beside it lets a pager know where it ends. */
  const drawings = async (filter: DrawingFilter, query: Sent, request: Request) => {
    const { offset, pageSize } = pageOf(query, 0);
    const paging = { offset, limit: pageSize };
    const { items, total } = await listDrawings(deps, filter, paging, new URL(request.url).origin);
    return { ...ok(items), total };
  };
  const creative = async (filter: CreativeTaskFilter, query: Sent) => {
    const { offset, pageSize } = pageOf(query, 0);
    const { items, total } = await listCreativeTasks(deps, filter, { offset, limit: pageSize });
    return { ...ok(items), total };
  };
  return new Elysia({ prefix: "/api" })
    .use(policy(session))
    .get("/mj/", ({ query, request }) => drawings(drawingFilter(query), query, request), {
      access: "admin",
      query: t.Object(drawingQuery),
    })
    .get(
      "/mj/self",
      ({ query, actor, request }) => {
        const { channelId: _, ...filter } = drawingFilter(query);
        return drawings({ ...filter, userId: actor.id }, query, request);
      },
      { access: "user", query: t.Object(drawingQuery) },
    )
    .get("/task/", ({ query }) => creative(taskFilter(query), query), {
      access: "admin",
      query: t.Object(taskQuery),
    })
    .get(
      "/task/self",
      ({ query, actor }) => {
        const { channelId: _, ...filter } = taskFilter(query);
        return creative({ ...filter, userId: actor.id }, query);
      },
      { access: "user", query: t.Object(taskQuery) },
    );
}
