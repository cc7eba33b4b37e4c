// One round of asking upstreams how open tasks are doing, and what their answers do to the rows.
// Refuses to end a task twice: a failure gives its charge back together with its new status.
import type { Channel } from "../core/channel-rows.ts";
import { failCreativeTask, moveCreativeTask, openCreativeTasks } from "../core/creative-tasks.ts";
import type { CreativeTaskRow } from "../core/creative-tasks.ts";
import type { Deps } from "../core/deps.ts";
import { DONE, failDrawing, moveDrawing, openDrawings } from "../core/drawing-tasks.ts";
import type { DrawingRow } from "../core/drawing-tasks.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../protocol/json.ts";
import { askUpstream } from "./attempt.ts";
import { proxyOf, taskBase } from "./task-pipeline.ts";

type Json = Record<string, unknown>;

const TIMEOUT_MS = 15_000;
const MAX_ROWS = 500;
const HOUR_MS = 3_600_000;
const LOST_DRAWING = "上游任务超时（超过1小时）";

const gone = (id: number): string => `获取渠道信息失败，请联系管理员，渠道ID：${id}`;

function byChannel<Row extends { channelId: number }>(rows: readonly Row[]): Map<number, Row[]> {
  const groups = new Map<number, Row[]>();
  for (const row of rows) {
    const list = groups.get(row.channelId);
    if (list) list.push(row);
    else groups.set(row.channelId, [row]);
  }
  return groups;
}

/** The list of tasks in the upstream's answer; undefined = ask again next round. */
async function askFor(
  deps: Deps,
  channel: Channel,
  path: string,
  headers: Record<string, string>,
  ids: string[],
): Promise<unknown> {
  try {
    const answer = await askUpstream({
      url: taskBase(channel) + path,
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ ids }),
      proxy: proxyOf(channel),
      way: (address) => deps.reach.way(address, channel),
      timeoutMs: TIMEOUT_MS,
    });
    return answer.status === 200 ? parseJson(answer.text) : undefined;
  } catch {
    return undefined;
  }
}

async function drawingRound(deps: Deps): Promise<void> {
  for (const [channelId, rows] of byChannel(await openDrawings(deps, MAX_ROWS))) {
    for (const row of rows) if (row.mjId === "") await failDrawing(deps, row, { failReason: "no task id" });
    const waiting = rows.filter((row) => row.mjId !== "");
    if (waiting.length === 0) continue;
    const channel = deps.routing.channel(channelId);
    if (!channel) {
      for (const row of waiting) await failDrawing(deps, row, { failReason: gone(channelId) });
      continue;
    }
    const secret = { "mj-api-secret": channel.keys[0] ?? "" };
    const wire = await askFor(
      deps,
      channel,
      "/mj/task/list-by-condition",
      secret,
      waiting.map((row) => row.mjId),
    );
    const told = new Map(
      asList(wire).map((item) => [asString(asObject(item)?.["id"]) ?? "", asObject(item)]),
    );
    for (const row of waiting) await judgeDrawing(deps, row, told.get(row.mjId));
  }
}

async function judgeDrawing(deps: Deps, row: DrawingRow, told: Json | undefined): Promise<void> {
  const nowMs = deps.clock.nowMs();
  const progress = asString(told?.["progress"]) || row.progress;
  const status = asString(told?.["status"]) ?? row.status;
  const failReason = asString(told?.["failReason"]) ?? "";
  const changes: Partial<DrawingRow> = told
    ? {
        code: 1,
        promptEn: asString(told["promptEn"]) ?? row.promptEn,
        state: asString(told["state"]) ?? row.state,
        startTimeMs: asNumber(told["startTime"]) ?? row.startTimeMs,
        finishTimeMs: asNumber(told["finishTime"]) ?? row.finishTimeMs,
        imageUrl: asString(told["imageUrl"]) ?? row.imageUrl,
        status,
        failReason,
        properties: told["properties"] ? JSON.stringify(told["properties"]) : row.properties,
        buttons: told["buttons"] ? JSON.stringify(told["buttons"]) : row.buttons,
      }
    : {};
  const hasFailed = told !== undefined && ((progress !== DONE && failReason !== "") || status === "FAILURE");
  if (hasFailed) {
    await failDrawing(deps, row, { ...changes, finishTimeMs: changes.finishTimeMs || nowMs });
    return;
  }
  if (progress !== DONE && nowMs - row.submitTimeMs > HOUR_MS) {
    await failDrawing(deps, row, { ...changes, failReason: LOST_DRAWING, finishTimeMs: nowMs });
    return;
  }
  if (told) await moveDrawing(deps, row.id, { ...changes, progress });
}

async function creativeRound(deps: Deps): Promise<void> {
  for (const [channelId, rows] of byChannel(await openCreativeTasks(deps, MAX_ROWS))) {
    for (const row of rows)
      if (row.taskId === "") await failCreativeTask(deps, row, { failReason: "no task id" });
    const waiting = rows.filter((row) => row.taskId !== "");
    if (waiting.length === 0) continue;
    const channel = deps.routing.channel(channelId);
    if (!channel) {
      for (const row of waiting) await failCreativeTask(deps, row, { failReason: gone(channelId) });
      continue;
    }
    const key = { authorization: `Bearer ${channel.keys[0] ?? ""}` };
    const wire = asObject(
      await askFor(
        deps,
        channel,
        "/suno/fetch",
        key,
        waiting.map((row) => row.taskId),
      ),
    );
    if (wire?.["code"] !== "success") continue;
    const told = new Map(
      asList(wire["data"]).map((item) => [asString(asObject(item)?.["task_id"]) ?? "", asObject(item)]),
    );
    for (const row of waiting) {
      const found = told.get(row.taskId);
      if (found) await judgeCreative(deps, row, found);
    }
  }
}

async function judgeCreative(deps: Deps, row: CreativeTaskRow, told: Json): Promise<void> {
  const status = asString(told["status"]) || row.status;
  const failReason = asString(told["fail_reason"]) || row.failReason;
  const changes: Partial<CreativeTaskRow> = {
    status,
    failReason,
    updatedAt: Math.floor(deps.clock.nowMs() / 1000),
    submitTime: asNumber(told["submit_time"]) || row.submitTime,
    startTime: asNumber(told["start_time"]) || row.startTime,
    finishTime: asNumber(told["finish_time"]) || row.finishTime,
    data: told["data"] === undefined || told["data"] === null ? row.data : JSON.stringify(told["data"]),
  };
  if (failReason !== "" || status === "FAILURE") {
    await failCreativeTask(deps, row, changes);
    return;
  }
  await moveCreativeTask(deps, row.id, { ...changes, progress: status === "SUCCESS" ? DONE : row.progress });
}

/** Both families, one after the other; what throws is logged and tried again in the next round. */
export async function pollTasks(deps: Deps): Promise<void> {
  for (const round of [drawingRound, creativeRound]) {
    try {
      await round(deps);
    } catch (error) {
      deps.logger.warn("tasks could not be polled", { error: String(error) });
    }
  }
}
