// Creative tasks (music and lyrics): one row per task, moved on by what the upstream says, given back exactly once when it fails.
// Refuses to move a task that has ended, and other people's tasks.
import { and, desc, eq, gte, inArray, lte, ne } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Schema } from "../../../drizzle/schema.ts";
import { countRows, q } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { logQuotaText } from "../../shared/money.ts";
import type { Deps } from "../deps.ts";
import { DONE, NotInBooks } from "./drawing-tasks.ts";
import type { TaskPaging } from "./drawing-tasks.ts";
import { refundSteps, settledHourOf } from "../ledger/refund.ts";
import { quotaDisplay } from "../options/store.ts";
import { isStorable, storableRow } from "../kit/storable.ts";
import { byPolls, isDue, nextPoll } from "./polling.ts";
import type { PollOutcome } from "./polling.ts";

export type CreativeTaskRow = Schema["tasks"]["$inferSelect"];

/** A row as the console knows it; times are Unix seconds. */
export interface CreativeTaskJson {
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

function parsed(text: string): unknown {
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
    properties: parsed(row.properties),
    data: parsed(row.data),
  };
}

export interface CreativeTaskFilter {
  /** Only this user's rows, without their channels. */
  userId?: number;
  channelId?: number;
  platform?: string;
  taskId?: string;
  status?: string;
  action?: string;
  /** Unix seconds, both included. */
  from?: number;
  to?: number;
}

export async function listCreativeTasks(
  deps: Deps,
  filter: CreativeTaskFilter,
  paging: TaskPaging,
): Promise<{ items: CreativeTaskJson[]; total: number }> {
  const { tasks } = deps.db.t;
  const given = (value: string | undefined): value is string => value !== undefined && value !== "";
  const filters: (SQL | undefined)[] = [
    filter.userId === undefined ? undefined : eq(tasks.userId, filter.userId),
    filter.channelId === undefined ? undefined : eq(tasks.channelId, filter.channelId),
    given(filter.platform) ? eq(tasks.platform, filter.platform) : undefined,
    given(filter.taskId) ? eq(tasks.taskId, filter.taskId) : undefined,
    given(filter.status) ? eq(tasks.status, filter.status) : undefined,
    given(filter.action) ? eq(tasks.action, filter.action) : undefined,
    filter.from === undefined ? undefined : gte(tasks.submitTime, filter.from),
    filter.to === undefined ? undefined : lte(tasks.submitTime, filter.to),
  ];
  const where = and(...filters);
  const rows = await deps.db.orm
    .select()
    .from(tasks)
    .where(where)
    .orderBy(desc(tasks.id))
    .limit(paging.limit)
    .offset(paging.offset);
  const [count] = await deps.db.orm.select({ total: countRows() }).from(tasks).where(where);
  return {
    items: rows.map((row) => creativeTaskJson(row, filter.userId !== undefined)),
    total: count?.total ?? 0,
  };
}

export type NewCreativeTask = Partial<CreativeTaskRow> &
  Pick<CreativeTaskRow, "userId" | "taskId" | "action">;

export async function addCreativeTask(
  deps: Pick<Deps, "db">,
  row: NewCreativeTask,
): Promise<CreativeTaskRow> {
  const [added] = await deps.db.orm.insert(deps.db.t.tasks).values(storableRow(row)).returning();
  if (!added) throw new Error("the task was not stored");
  return added;
}

/** A task of this user; undefined for other people's. */
export async function ownCreativeTask(
  deps: Pick<Deps, "db">,
  userId: number,
  taskId: string,
): Promise<CreativeTaskRow | undefined> {
  const [row] = await ownCreativeTasks(deps, userId, [taskId]);
  return row;
}

export async function ownCreativeTasks(
  deps: Pick<Deps, "db">,
  userId: number,
  taskIds: readonly string[],
): Promise<CreativeTaskRow[]> {
  const ids = taskIds.filter(isStorable);
  if (ids.length === 0) return [];
  const { tasks } = deps.db.t;
  return deps.db.orm
    .select()
    .from(tasks)
    .where(and(eq(tasks.userId, userId), inArray(tasks.taskId, ids)))
    .orderBy(desc(tasks.id));
}

/** Open tasks whose upstream is to be asked now, those that have waited longest first. */
export async function dueCreativeTasks(
  deps: Pick<Deps, "db" | "clock">,
  limit: number,
): Promise<CreativeTaskRow[]> {
  const { tasks } = deps.db.t;
  return deps.db.orm
    .select()
    .from(tasks)
    .where(and(ne(tasks.progress, DONE), isDue(tasks.nextPollMs, deps.clock.nowMs())))
    .orderBy(tasks.nextPollMs, tasks.id)
    .limit(limit);
}

/** Writes down when tasks without news are asked for again. */
export async function postponeCreativeTasks(
  deps: Pick<Deps, "db" | "clock">,
  rows: readonly CreativeTaskRow[],
  outcome: PollOutcome,
): Promise<void> {
  const { tasks } = deps.db.t;
  for (const [polls, ids] of byPolls(rows))
    await deps.db.orm
      .update(tasks)
      .set(nextPoll(polls, outcome, deps.clock.nowMs()))
      .where(inArray(tasks.id, ids))
      .returning({ id: tasks.id });
}

/** Moves a task on; false when it had ended already. */
export async function moveCreativeTask(
  deps: Pick<Deps, "db">,
  id: number,
  changes: Partial<Omit<CreativeTaskRow, "id" | "quota" | "userId">>,
): Promise<boolean> {
  const { tasks } = deps.db.t;
  const moved = await deps.db.orm
    .update(tasks)
    .set(storableRow(changes))
    .where(and(eq(tasks.id, id), ne(tasks.progress, DONE)))
    .returning({ id: tasks.id });
  return moved.length > 0;
}

/**
 * Ends a task as failed and gives its charge back: status, sums and the sentence of the log in one transaction. Does
 * nothing when the task has ended already. False while the charge is not in the books yet: try again, and say
 * `isUncharged` when it never came.
 */
export async function failCreativeTask(
  deps: Deps,
  row: CreativeTaskRow,
  changes: Partial<CreativeTaskRow>,
  isUncharged = false,
): Promise<boolean> {
  const { tasks } = deps.db.t;
  const quota = isUncharged ? 0 : row.quota;
  await deps.ledger.flush();
  const hour = quota > 0 ? await settledHourOf(deps.db, row, row.createdAt) : undefined;
  const outcome = await deps.db
    .atomic(function* (tx) {
      const [ended] = yield* q(
        tx
          .update(tasks)
          .set({ ...storableRow(changes), status: "FAILURE", progress: DONE, quota, refunded: quota > 0 })
          .where(and(eq(tasks.id, row.id), ne(tasks.progress, DONE)))
          .returning(),
      );
      if (!ended || quota <= 0) return "ended";
      const isBack = hour !== undefined && (yield* refundSteps(deps.db, tx, row, hour));
      if (!isBack) throw new NotInBooks();
      yield* deps.ledger.logSteps(tx, {
        type: LogType.system,
        userId: row.userId,
        username: "",
        channelId: row.channelId,
        content: `异步任务执行失败 ${row.taskId}，补偿 ${logQuotaText(row.quota, quotaDisplay(deps.options))}`,
      });
      return "refunded";
    })
    .catch((error: unknown) => {
      if (error instanceof NotInBooks) return "unsettled";
      throw error;
    });
  if (outcome === "refunded") {
    await deps.accounts.userChanged(row.userId);
    if (row.tokenId > 0) await deps.accounts.tokenChanged(row.tokenId);
  }
  return outcome !== "unsettled";
}
