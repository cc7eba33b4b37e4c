// First rows of the drawing log and of the task log.
// Refuses users other people's rows; administrators see everybody's.
import { listCreativeTasks } from "../core/creative-tasks.ts";
import { listDrawings } from "../core/drawing-tasks.ts";
import { Role } from "../shared/enums.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

function wholeOf(text: string | null): number | undefined {
  return text !== null && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** What both lists are narrowed by; absent parts stay absent. */
function scopeOf({ url, user }: LoaderContext) {
  const isAdmin = (user?.role ?? 0) >= Role.admin;
  const channelId = isAdmin ? wholeOf(url.searchParams.get("channel_id")) : undefined;
  const from = wholeOf(url.searchParams.get("start_timestamp"));
  const to = wholeOf(url.searchParams.get("end_timestamp"));
  const filter = {
    ...(isAdmin ? {} : { userId: user?.id ?? -1 }),
    ...(channelId === undefined ? {} : { channelId }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
  return { isAdmin, filter };
}

export async function loadDrawings(context: LoaderContext) {
  const { page, pageSize } = pagingOf(context);
  const { isAdmin, filter } = scopeOf(context);
  const mjId = context.url.searchParams.get("mj_id") ?? "";
  const paging = { limit: pageSize, offset: (page - 1) * pageSize };
  const { items, total } = await listDrawings(context.deps, { ...filter, mjId }, paging, context.url.origin);
  return { rows: items, total, pageSize, isAdmin };
}

export async function loadTasks(context: LoaderContext) {
  const { page, pageSize } = pagingOf(context);
  const { isAdmin, filter } = scopeOf(context);
  const of = (name: string): string => context.url.searchParams.get(name) ?? "";
  const paging = { limit: pageSize, offset: (page - 1) * pageSize };
  const { items, total } = await listCreativeTasks(
    context.deps,
    {
      ...filter,
      taskId: of("task_id"),
      platform: of("platform"),
      status: of("status"),
      action: of("action"),
    },
    paging,
  );
  return { rows: items, total, pageSize, isAdmin };
}
