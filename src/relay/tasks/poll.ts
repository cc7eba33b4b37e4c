// One round of asking upstreams how open tasks are doing, and what their answers do to the rows.
// Refuses to end a task twice: a failure gives its charge back together with its new status.
import type { Channel } from "../../core/channels/rows.ts";
import {
  dueCreativeTasks,
  failCreativeTask,
  moveCreativeTask,
  postponeCreativeTasks,
} from "../../core/tasks/creative-tasks.ts";
import type { CreativeTaskRow } from "../../core/tasks/creative-tasks.ts";
import type { Deps } from "../../core/deps.ts";
import { taskAgeMs } from "../../core/tasks/ages.ts";
import {
  DONE,
  dueDrawings,
  failDrawing,
  moveDrawing,
  postponeDrawings,
} from "../../core/tasks/drawing-tasks.ts";
import type { DrawingRow } from "../../core/tasks/drawing-tasks.ts";
import { nextPoll } from "../../core/tasks/polling.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { askUpstream } from "../call/attempt.ts";
import { proxyOf, taskBase } from "./submit.ts";

type Json = Record<string, unknown>;

const TIMEOUT_MS = 15_000;
const MAX_ROWS = 500;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Channels that are asked at the same time. */
const AT_ONCE = 8;
/** Settlements are in the books within seconds; an outage of the database ends the rounds, too. */
const UNCHARGED_MS = 2 * HOUR_MS;
/** Suno's own API has no such end: without one an upstream's memory loss would keep a user's money for ever. */
const LOST_SONG = "上游任务超时（超过24小时）";
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
      reach: (address) => deps.reach.target(address, channel),
      timeoutMs: TIMEOUT_MS,
    });
    return answer.status === 200 ? parseJson(answer.text) : undefined;
  } catch {
    return undefined;
  }
}

/** What a round found out about one row; "ended" needs no further question. */
type Judgement = "news" | "quiet" | "ended";

/** Several channels at once: one that does not answer holds up its own tasks only. */
async function overChannels<Row extends { channelId: number }>(
  deps: Deps,
  rows: readonly Row[],
  round: (channelId: number, rows: Row[]) => Promise<void>,
): Promise<void> {
  const queue = [...byChannel(rows)];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [channelId, own] = next;
      try {
        await round(channelId, own);
      } catch (error) {
        deps.logger.warn("tasks of a channel could not be polled", { channelId, error: String(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, worker));
}

/** The rows that wait on; one that cannot be judged holds up no other. */
async function judgedRows<Row extends { id: number }>(
  deps: Deps,
  rows: readonly Row[],
  judge: (row: Row) => Promise<Judgement>,
): Promise<Row[]> {
  const quiet: Row[] = [];
  for (const row of rows) {
    try {
      if ((await judge(row)) === "quiet") quiet.push(row);
    } catch (error) {
      deps.logger.warn("a task could not be judged", { task: row.id, error: String(error) });
      quiet.push(row);
    }
  }
  return quiet;
}

/**
 * Ends a task as failed. The charge of a call whose gateway was killed between the two never comes: such a task ends
 * without a refund once there is no hope, and the log says so.
 */
async function failed(
  deps: Deps,
  row: { id: number; requestId: string },
  waitedMs: number,
  fail: (isUncharged: boolean) => Promise<boolean>,
): Promise<Judgement> {
  if (await fail(false)) return "ended";
  if (waitedMs < UNCHARGED_MS) return "quiet";
  deps.logger.warn("a failed task was never charged: nothing to give back", {
    task: row.id,
    requestId: row.requestId,
  });
  await fail(true);
  return "ended";
}

const drawingAgeMs = (deps: Deps, row: DrawingRow): number =>
  taskAgeMs(deps.clock, "drawing", row.id, row.submitTimeMs);
const creativeAgeMs = (deps: Deps, row: CreativeTaskRow): number =>
  taskAgeMs(deps.clock, "creative", row.id, row.createdAt * 1000);

async function drawingRound(deps: Deps): Promise<void> {
  await overChannels(deps, await dueDrawings(deps, MAX_ROWS), async (channelId, rows) => {
    const fail = (row: DrawingRow, changes: Partial<DrawingRow>) =>
      failed(deps, row, drawingAgeMs(deps, row), (isUncharged) =>
        failDrawing(deps, row, changes, isUncharged),
      );
    const nameless = rows.filter((row) => row.mjId === "");
    const waiting = rows.filter((row) => row.mjId !== "");
    const channel = deps.routing.channel(channelId);
    const lost = await judgedRows(deps, nameless, (row) => fail(row, { failReason: "no task id" }));
    await postponeDrawings(deps, lost, "quiet");
    if (waiting.length === 0) return;
    if (!channel) {
      const left = await judgedRows(deps, waiting, (row) => fail(row, { failReason: gone(channelId) }));
      return postponeDrawings(deps, left, "quiet");
    }
    const secret = { "mj-api-secret": channel.keys[0] ?? "" };
    const ids = waiting.map((row) => row.mjId);
    const wire = await askFor(deps, channel, "/mj/task/list-by-condition", secret, ids);
    const told = new Map(
      asList(wire).map((item) => [asString(asObject(item)?.["id"]) ?? "", asObject(item)]),
    );
    const quiet = await judgedRows(deps, waiting, (row) => judgeDrawing(deps, row, told.get(row.mjId), fail));
    await postponeDrawings(deps, quiet, Array.isArray(wire) ? "quiet" : "unreachable");
  });
}

/** Whether any of the values differs from the row's own. */
function differs<Row extends object>(row: Row, changes: Partial<Row>): boolean {
  return (Object.keys(changes) as (keyof Row)[]).some((key) => row[key] !== changes[key]);
}

async function judgeDrawing(
  deps: Deps,
  row: DrawingRow,
  told: Json | undefined,
  fail: (row: DrawingRow, changes: Partial<DrawingRow>) => Promise<Judgement>,
): Promise<Judgement> {
  const nowMs = deps.clock.nowMs();
  const progress = asString(told?.["progress"]) || row.progress;
  const status = asString(told?.["status"]) ?? row.status;
  const failReason = asString(told?.["failReason"]) ?? "";
  const imageUrl = asString(told?.["imageUrl"]) ?? "";
  const changes: Partial<DrawingRow> = told
    ? {
        code: 1,
        promptEn: asString(told["promptEn"]) ?? row.promptEn,
        state: asString(told["state"]) ?? row.state,
        startTimeMs: asNumber(told["startTime"]) ?? row.startTimeMs,
        finishTimeMs: asNumber(told["finishTime"]) ?? row.finishTimeMs,
        ...(imageUrl === "" ? {} : { imageUrl, imagePushed: false }),
        status,
        failReason,
        properties: told["properties"] ? JSON.stringify(told["properties"]) : row.properties,
        buttons: told["buttons"] ? JSON.stringify(told["buttons"]) : row.buttons,
      }
    : {};
  const hasFailed = told !== undefined && ((progress !== DONE && failReason !== "") || status === "FAILURE");
  if (hasFailed) return fail(row, { ...changes, finishTimeMs: changes.finishTimeMs || nowMs });
  if (progress !== DONE && drawingAgeMs(deps, row) > HOUR_MS)
    return fail(row, { ...changes, failReason: LOST_DRAWING, finishTimeMs: nowMs });
  if (!told || !differs(row, { ...changes, progress })) return "quiet";
  await moveDrawing(deps, row.id, { ...changes, progress, ...nextPoll(row.polls, "news", nowMs) });
  return progress === DONE ? "ended" : "news";
}

async function creativeRound(deps: Deps): Promise<void> {
  await overChannels(deps, await dueCreativeTasks(deps, MAX_ROWS), async (channelId, rows) => {
    const fail = (row: CreativeTaskRow, changes: Partial<CreativeTaskRow>) =>
      failed(deps, row, creativeAgeMs(deps, row), (isUncharged) =>
        failCreativeTask(deps, row, changes, isUncharged),
      );
    const nameless = rows.filter((row) => row.taskId === "");
    const waiting = rows.filter((row) => row.taskId !== "");
    const channel = deps.routing.channel(channelId);
    const lost = await judgedRows(deps, nameless, (row) => fail(row, { failReason: "no task id" }));
    await postponeCreativeTasks(deps, lost, "quiet");
    if (waiting.length === 0) return;
    if (!channel) {
      const left = await judgedRows(deps, waiting, (row) => fail(row, { failReason: gone(channelId) }));
      return postponeCreativeTasks(deps, left, "quiet");
    }
    const key = { authorization: `Bearer ${channel.keys[0] ?? ""}` };
    const ids = waiting.map((row) => row.taskId);
    const wire = asObject(await askFor(deps, channel, "/suno/fetch", key, ids));
    const isAnswer = wire?.["code"] === "success";
    const told = new Map(
      asList(isAnswer ? wire["data"] : undefined).map((item) => [
        asString(asObject(item)?.["task_id"]) ?? "",
        asObject(item),
      ]),
    );
    const quiet = await judgedRows(deps, waiting, (row) =>
      judgeCreative(deps, row, told.get(row.taskId), fail),
    );
    await postponeCreativeTasks(deps, quiet, isAnswer ? "quiet" : "unreachable");
  });
}

async function judgeCreative(
  deps: Deps,
  row: CreativeTaskRow,
  told: Json | undefined,
  fail: (row: CreativeTaskRow, changes: Partial<CreativeTaskRow>) => Promise<Judgement>,
): Promise<Judgement> {
  const nowMs = deps.clock.nowMs();
  const now = Math.floor(nowMs / 1000);
  const status = asString(told?.["status"]) || row.status;
  const failReason = asString(told?.["fail_reason"]) || row.failReason;
  const data = told?.["data"];
  const changes: Partial<CreativeTaskRow> = told
    ? {
        status,
        failReason,
        submitTime: asNumber(told["submit_time"]) || row.submitTime,
        startTime: asNumber(told["start_time"]) || row.startTime,
        finishTime: asNumber(told["finish_time"]) || row.finishTime,
        data: data === undefined || data === null ? row.data : JSON.stringify(data),
        progress: status === "SUCCESS" ? DONE : row.progress,
      }
    : {};
  if (told && (failReason !== "" || status === "FAILURE"))
    return fail(row, { ...changes, finishTime: changes.finishTime || now, updatedAt: now });
  if (status !== "SUCCESS" && creativeAgeMs(deps, row) > DAY_MS)
    return fail(row, { ...changes, failReason: LOST_SONG, finishTime: now, updatedAt: now });
  if (!told || !differs(row, changes)) return "quiet";
  await moveCreativeTask(deps, row.id, { ...changes, updatedAt: now, ...nextPoll(row.polls, "news", nowMs) });
  return status === "SUCCESS" ? "ended" : "news";
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
