// First rows of the drawing log and of the task log, for the filters and the time range that stand in the address.
// Refuses users other people's rows; administrators see everybody's.
import { listCreativeTasks, listDrawings } from "../core/tasks/lists.ts";
import { rangeOf } from "../../islands/lib/time-range.ts";
import type { Preset, TimeRange } from "../../islands/lib/time-range.ts";
import { Role } from "../shared/enums.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

/** The specification's ranges: 30 days back to one hour ahead for drawings, today without an end for tasks. */
const DRAWING_RANGE: Preset = "30d";
const TASK_RANGE: Preset = "today";
const DRAWING_AHEAD_SECONDS = 3600;

function wholeOf(text: string | null): number | undefined {
  return text !== null && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** What both lists are narrowed by, and the range of time in Unix seconds. */
function scopeOf({ deps, url, user, timeZone }: LoaderContext, fallback: Preset) {
  const isAdmin = (user?.role ?? 0) >= Role.admin;
  const channelId = isAdmin ? wholeOf(url.searchParams.get("channel_id")) : undefined;
  const filter = {
    ...(isAdmin ? {} : { userId: user?.id ?? -1 }),
    ...(channelId === undefined ? {} : { channelId }),
  };
  const range: TimeRange = rangeOf(
    Object.fromEntries(url.searchParams),
    deps.clock.nowMs(),
    timeZone,
    fallback,
  );
  return { isAdmin, filter, range };
}

/** Times of drawings are milliseconds; the address counts in seconds like every other. */
export async function loadDrawings(context: LoaderContext) {
  const { page, pageSize } = pagingOf(context);
  const { isAdmin, filter, range } = scopeOf(context, DRAWING_RANGE);
  const to = range.to + (range.preset ? DRAWING_AHEAD_SECONDS : 0);
  const { items, total } = await listDrawings(
    context.deps,
    {
      ...filter,
      upstreamId: context.url.searchParams.get("mj_id") ?? "",
      from: range.from * 1000,
      to: to * 1000,
    },
    { limit: pageSize, offset: (page - 1) * pageSize },
    context.url.origin,
  );
  return { rows: items, total, pageSize, isAdmin };
}

/** Times of creative tasks are seconds; a relative range has no end. */
export async function loadTasks(context: LoaderContext) {
  const { page, pageSize } = pagingOf(context);
  const { isAdmin, filter, range } = scopeOf(context, TASK_RANGE);
  const of = (name: string): string => context.url.searchParams.get(name) ?? "";
  const { items, total } = await listCreativeTasks(
    context.deps,
    {
      ...filter,
      upstreamId: of("task_id"),
      platform: of("platform"),
      status: of("status"),
      action: of("action"),
      from: range.from,
      ...(range.preset ? {} : { to: range.to }),
    },
    { limit: pageSize, offset: (page - 1) * pageSize },
  );
  return { rows: items, total, pageSize, isAdmin };
}
