// Drawing tasks: one row per task, moved on by what the upstream says, given back exactly once when it fails.
// Refuses to move a task that has ended, and other people's tasks.
import { and, desc, eq, gte, inArray, lte, ne } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Schema } from "../../../drizzle/schema.ts";
import { countRows, q } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { logQuotaText } from "../../shared/money.ts";
import type { Deps } from "../deps.ts";
import { refundSteps, settledHourOf } from "../ledger/refund.ts";
import { quotaDisplay } from "../options/store.ts";
import { isStorable, storableRow } from "../kit/storable.ts";
import { byPolls, isDue, nextPoll } from "./polling.ts";
import type { PollOutcome } from "./polling.ts";

export type DrawingRow = Schema["drawings"]["$inferSelect"];

/** A row as the console knows it; times are Unix milliseconds. */
export interface DrawingJson {
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

export const DONE = "100%";

/**
 * Where the picture is shown: through this server where the operator wants it so. `origin` stands in for the server
 * address until there is one.
 */
export function shownImage(
  deps: Pick<Deps, "options">,
  row: Pick<DrawingRow, "imageUrl" | "mjId">,
  origin: string,
): string {
  if (row.imageUrl === "" || !deps.options.get("MjForwardUrlEnabled")) return row.imageUrl;
  return `${deps.options.get("ServerAddress") || origin}/mj/image/${encodeURIComponent(row.mjId)}`;
}

function drawingJson(deps: Deps, row: DrawingRow, isOwn: boolean, origin: string): DrawingJson {
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

export interface DrawingFilter {
  /** Only this user's rows, without their channels. */
  userId?: number;
  channelId?: number;
  mjId?: string;
  /** Unix milliseconds, both included. */
  from?: number;
  to?: number;
}

export interface TaskPaging {
  limit: number;
  offset: number;
}

export async function listDrawings(
  deps: Deps,
  filter: DrawingFilter,
  paging: TaskPaging,
  origin: string,
): Promise<{ items: DrawingJson[]; total: number }> {
  const { drawings } = deps.db.t;
  const filters: (SQL | undefined)[] = [
    filter.userId === undefined ? undefined : eq(drawings.userId, filter.userId),
    filter.channelId === undefined ? undefined : eq(drawings.channelId, filter.channelId),
    filter.mjId === undefined || filter.mjId === "" ? undefined : eq(drawings.mjId, filter.mjId),
    filter.from === undefined ? undefined : gte(drawings.submitTimeMs, filter.from),
    filter.to === undefined ? undefined : lte(drawings.submitTimeMs, filter.to),
  ];
  const where = and(...filters);
  const rows = await deps.db.orm
    .select()
    .from(drawings)
    .where(where)
    .orderBy(desc(drawings.id))
    .limit(paging.limit)
    .offset(paging.offset);
  const [count] = await deps.db.orm.select({ total: countRows() }).from(drawings).where(where);
  return {
    items: rows.map((row) => drawingJson(deps, row, filter.userId !== undefined, origin)),
    total: count?.total ?? 0,
  };
}

export type NewDrawing = Partial<DrawingRow> & Pick<DrawingRow, "userId" | "mjId" | "action">;

export async function addDrawing(deps: Pick<Deps, "db">, row: NewDrawing): Promise<DrawingRow> {
  const [added] = await deps.db.orm.insert(deps.db.t.drawings).values(storableRow(row)).returning();
  if (!added) throw new Error("the drawing was not stored");
  return added;
}

/** A task of this user; undefined for other people's. */
export async function ownDrawing(
  deps: Pick<Deps, "db">,
  userId: number,
  mjId: string,
): Promise<DrawingRow | undefined> {
  const [row] = await ownDrawings(deps, userId, [mjId]);
  return row;
}

export async function ownDrawings(
  deps: Pick<Deps, "db">,
  userId: number,
  mjIds: readonly string[],
): Promise<DrawingRow[]> {
  const ids = mjIds.filter(isStorable);
  if (ids.length === 0) return [];
  const { drawings } = deps.db.t;
  return deps.db.orm
    .select()
    .from(drawings)
    .where(and(eq(drawings.userId, userId), inArray(drawings.mjId, ids)))
    .orderBy(desc(drawings.id));
}

/** Whoever's it is: for pictures, whose ids are their secret, and the upstream's own pushes. */
export async function anyDrawing(deps: Pick<Deps, "db">, mjId: string): Promise<DrawingRow | undefined> {
  if (!isStorable(mjId)) return undefined;
  const { drawings } = deps.db.t;
  const [row] = await deps.db.orm
    .select()
    .from(drawings)
    .where(eq(drawings.mjId, mjId))
    .orderBy(desc(drawings.id))
    .limit(1);
  return row;
}

/** Open tasks whose upstream is to be asked now, those that have waited longest first. */
export async function dueDrawings(deps: Pick<Deps, "db" | "clock">, limit: number): Promise<DrawingRow[]> {
  const { drawings } = deps.db.t;
  return deps.db.orm
    .select()
    .from(drawings)
    .where(and(ne(drawings.progress, DONE), isDue(drawings.nextPollMs, deps.clock.nowMs())))
    .orderBy(drawings.nextPollMs, drawings.id)
    .limit(limit);
}

/** Writes down when tasks without news are asked for again. */
export async function postponeDrawings(
  deps: Pick<Deps, "db" | "clock">,
  rows: readonly DrawingRow[],
  outcome: PollOutcome,
): Promise<void> {
  const { drawings } = deps.db.t;
  for (const [polls, ids] of byPolls(rows))
    await deps.db.orm
      .update(drawings)
      .set(nextPoll(polls, outcome, deps.clock.nowMs()))
      .where(inArray(drawings.id, ids))
      .returning({ id: drawings.id });
}

/** Moves a task on; false when it had ended already, or is no longer as it was `seen`. */
export async function moveDrawing(
  deps: Pick<Deps, "db">,
  id: number,
  changes: Partial<Omit<DrawingRow, "id" | "quota" | "userId">>,
  seen?: Pick<DrawingRow, "status" | "progress">,
): Promise<boolean> {
  const { drawings } = deps.db.t;
  const isSeen = seen && and(eq(drawings.status, seen.status), eq(drawings.progress, seen.progress));
  const moved = await deps.db.orm
    .update(drawings)
    .set(storableRow(changes))
    .where(and(eq(drawings.id, id), ne(drawings.progress, DONE), isSeen))
    .returning({ id: drawings.id });
  return moved.length > 0;
}

/**
 * Ends a task as failed and gives its charge back: status, sums and the sentence of the log in one transaction. Does
 * nothing when the task has ended already. False while the charge is not in the books yet: try again, and say
 * `isUncharged` when it never came.
 */
export async function failDrawing(
  deps: Deps,
  row: DrawingRow,
  changes: Partial<DrawingRow>,
  isUncharged = false,
): Promise<boolean> {
  const { drawings } = deps.db.t;
  const quota = isUncharged ? 0 : row.quota;
  await deps.ledger.flush();
  const hour = quota > 0 ? await settledHourOf(deps.db, row, Math.floor(row.submitTimeMs / 1000)) : undefined;
  const outcome = await deps.db
    .atomic(function* (tx) {
      const [ended] = yield* q(
        tx
          .update(drawings)
          .set({ ...storableRow(changes), status: "FAILURE", progress: DONE, quota, refunded: quota > 0 })
          .where(and(eq(drawings.id, row.id), ne(drawings.progress, DONE)))
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
        content: `构图失败 ${row.mjId}，补偿 ${logQuotaText(row.quota, quotaDisplay(deps.options))}`,
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

/** The settlement of the task's call is not there: the transaction is undone. */
export class NotInBooks extends Error {}
