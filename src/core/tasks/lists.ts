// Tasks as the console lists them: the rows of each family under the names that its clients know.
import type { Deps } from "../deps.ts";
import { CREATIVE_TASKS, DRAWINGS } from "./families.ts";
import type { CreativeTaskRow, DrawingRow } from "./families.ts";
import { listTasks } from "./store.ts";
import type { TaskFilter, TaskPaging } from "./store.ts";

/** A row as the console knows it; times are Unix milliseconds. */
interface DrawingJson {
  id: number;
  code: number;
  user_id: number;
  action: string;
  mj_id: string;
  prompt: string;
  prompt_en: string;
  description: string;
  state: string;
  submit_time: number;
  start_time: number;
  finish_time: number;
  image_url: string;
  status: string;
  progress: string;
  fail_reason: string;
  channel_id: number;
  quota: number;
  buttons: string;
  properties: string;
}

/** A row as the console knows it; times are Unix seconds. */
interface CreativeTaskJson {
  id: number;
  created_at: number;
  updated_at: number;
  task_id: string;
  platform: string;
  user_id: number;
  channel_id: number;
  quota: number;
  action: string;
  status: string;
  fail_reason: string;
  submit_time: number;
  start_time: number;
  finish_time: number;
  progress: string;
  properties: unknown;
  data: unknown;
}

/**
 * Where the picture is shown: through this server where the operator wants it so. `origin` stands in for the server
 * address until there is one.
 */
export function shownImage(
  { options }: Pick<Deps, "options">,
  row: Pick<DrawingRow, "imageUrl" | "mjId">,
  origin: string,
): string {
  if (row.imageUrl === "" || !options.get("MjForwardUrlEnabled")) return row.imageUrl;
  return `${options.get("ServerAddress") || origin}/mj/image/${encodeURIComponent(row.mjId)}`;
}

/** `isOwn`: as its owner sees it, without the channel. */
function drawingJson(
  deps: Pick<Deps, "options">,
  row: DrawingRow,
  { isOwn, origin }: { isOwn: boolean; origin: string },
): DrawingJson {
  return {
    id: row.id,
    code: row.code,
    user_id: row.userId,
    action: row.action,
    mj_id: row.mjId,
    prompt: row.prompt,
    prompt_en: row.promptEn,
    description: row.description,
    state: row.state,
    submit_time: row.submitTimeMs,
    start_time: row.startTimeMs,
    finish_time: row.finishTimeMs,
    image_url: shownImage(deps, row, origin),
    status: row.status,
    progress: row.progress,
    fail_reason: row.failReason,
    channel_id: isOwn ? 0 : row.channelId,
    quota: row.quota,
    buttons: row.buttons,
    properties: row.properties,
  };
}

function parsedOrNull(text: string): unknown {
  try {
    return text === "" ? null : (JSON.parse(text) as unknown);
  } catch {
    return null;
  }
}

/** `isOwn`: as its owner sees it, without the channel. */
export function creativeTaskJson(row: CreativeTaskRow, isOwn: boolean): CreativeTaskJson {
  return {
    id: row.id,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    task_id: row.taskId,
    platform: row.platform,
    user_id: row.userId,
    channel_id: isOwn ? 0 : row.channelId,
    quota: row.quota,
    action: row.action,
    status: row.status,
    fail_reason: row.failReason,
    submit_time: row.submitTime,
    start_time: row.startTime,
    finish_time: row.finishTime,
    progress: row.progress,
    properties: parsedOrNull(row.properties),
    data: parsedOrNull(row.data),
  };
}

export async function listDrawings(
  deps: Pick<Deps, "db" | "options">,
  filter: TaskFilter,
  paging: TaskPaging,
  origin: string,
): Promise<{ items: DrawingJson[]; total: number }> {
  const { rows, total } = await listTasks(deps, DRAWINGS, filter, paging);
  const isOwn = filter.userId !== undefined;
  return { items: rows.map((row) => drawingJson(deps, row, { isOwn, origin })), total };
}

export async function listCreativeTasks(
  deps: Pick<Deps, "db">,
  filter: TaskFilter,
  paging: TaskPaging,
): Promise<{ items: CreativeTaskJson[]; total: number }> {
  const { rows, total } = await listTasks(deps, CREATIVE_TASKS, filter, paging);
  return { items: rows.map((row) => creativeTaskJson(row, filter.userId !== undefined)), total };
}
