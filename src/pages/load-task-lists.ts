// First rows of the drawing log and of the task log, for the filters and the time range that stand in the address.
// Refuses users other people's rows; administrators see everybody's.
import { listCreativeTasks, listDrawings } from "../core/tasks/lists.ts";
import { sentBy } from "../http/queries/sent.ts";
import { drawingFields, taskFields, taskFilterOf } from "../http/queries/tasks.ts";
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
function scopeOf({ user }: LoaderContext) {
  return (user?.role ?? Role.guest) >= Role.admin
    ? { isAdmin: true, sent: {}, filter: {} }
    : { isAdmin: false, sent: { channel_id: undefined }, filter: { userId: user?.id ?? NOBODY } };
}

export async function loadDrawings(context: LoaderContext) {
  const { deps, url } = context;
  const { offset, pageSize } = pagingOf(context);
  const { isAdmin, sent, filter } = scopeOf(context);
  const address = {
    ...sentBy(drawingFields, url.searchParams),
    ...sentRange(context, DRAWING_RANGE),
    ...sent,
  };
  const { items, total } = await listDrawings(
    deps,
    { ...taskFilterOf(address), ...filter },
    { limit: pageSize, offset },
    url.origin,
  );
  return { rows: items, total, pageSize, isAdmin };
}

export async function loadTasks(context: LoaderContext) {
  const { deps, url } = context;
  const { offset, pageSize } = pagingOf(context);
  const { isAdmin, sent, filter } = scopeOf(context);
  const address = { ...sentBy(taskFields, url.searchParams), ...sentRange(context, TASK_RANGE), ...sent };
  const { items, total } = await listCreativeTasks(
    deps,
    { ...taskFilterOf(address), ...filter },
    { limit: pageSize, offset },
  );
  return { rows: items, total, pageSize, isAdmin };
}
