// First rows of the drawing log and of the task log, for the filters and the time range that stand in the address.
// Refuses users other people's rows; administrators see everybody's.
import type { DrawingPageData } from "../../islands/screens/midjourney/row.ts";
import type { TaskPageData } from "../../islands/screens/task/row.ts";
import { listCreativeTasks, listDrawings } from "../core/tasks/lists.ts";
import type { TaskFilter } from "../core/tasks/store.ts";
import { sentBy } from "../http/queries/sent.ts";
import { drawingFields, ownTasks, taskFields, taskFilterOf } from "../http/queries/tasks.ts";
import { Role } from "../shared/enums.ts";
import { sentRange } from "./address-range.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

/** The specification's ranges: 30 days back to one hour ahead for drawings, today without an end for tasks. */
const DRAWING_RANGE = { fallback: "30d", aheadSeconds: 3600, unit: "milliseconds" } as const;
const TASK_RANGE = { fallback: "today", aheadSeconds: "open" } as const;

/** No user has it: whoever is not signed in owns no rows. */
const NOBODY = -1;

/** Administrators read everybody's rows, also of one channel; users read their own. */
function scoped({ user }: LoaderContext, filter: TaskFilter): { isAdmin: boolean; filter: TaskFilter } {
  const isAdmin = (user?.role ?? Role.guest) >= Role.admin;
  return { isAdmin, filter: isAdmin ? filter : ownTasks(filter, user?.id ?? NOBODY) };
}

export async function loadDrawings(context: LoaderContext): Promise<DrawingPageData> {
  const { deps, url } = context;
  const { offset, pageSize } = pagingOf(context);
  const sent = { ...sentBy(drawingFields, url.searchParams), ...sentRange(context, DRAWING_RANGE) };
  const { isAdmin, filter } = scoped(context, taskFilterOf(sent));
  const { items, total } = await listDrawings(deps, filter, { limit: pageSize, offset }, url.origin);
  return { rows: items, total, pageSize, isAdmin };
}

export async function loadTasks(context: LoaderContext): Promise<TaskPageData> {
  const { deps, url } = context;
  const { offset, pageSize } = pagingOf(context);
  const sent = { ...sentBy(taskFields, url.searchParams), ...sentRange(context, TASK_RANGE) };
  const { isAdmin, filter } = scoped(context, taskFilterOf(sent));
  const { items, total } = await listCreativeTasks(deps, filter, { limit: pageSize, offset });
  return { rows: items, total, pageSize, isAdmin };
}
