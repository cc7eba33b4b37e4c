// The store of tasks, one for every family: rows are added, read by their owner, moved on as the upstream says, and given
// back exactly once when they fail. Refuses to move a task that has ended, and other people's tasks.
import { and, desc, eq, exists, gte, inArray, lte, ne, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { countRows, q } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { logQuotaText } from "../../shared/money.ts";
import type { Deps } from "../deps.ts";
import { NOW_MS } from "../../db/moments.ts";
import type { Moment } from "../../db/moments.ts";
import { isStorable, storableRow } from "../kit/storable.ts";
import { refundSteps, settledHourOf } from "../ledger/refund.ts";
import { refunded } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";
import { CREATIVE_TASKS, DONE, DRAWINGS, FAILURE } from "./families.ts";
import type { TaskFamily, TaskRow } from "./families.ts";
import { byPolls, isDue, nextPoll } from "./polling.ts";
import type { PollOutcome } from "./polling.ts";

type NewTask<Row extends TaskRow> = Partial<Row> & Pick<TaskRow, "userId" | "action">;
/** Columns that change; who pays for a task and how much is not among them. */
export type TaskChanges<Row extends TaskRow> =
  Partial<Omit<Row, "id" | "quota" | "userId">> | Partial<Omit<TaskRow, "id" | "quota" | "userId">>;

/**
 * The one place where a row gets the type of its family: queries over `TaskColumns` know the shared columns only, and
 * what they give back are full rows of the family's own table.
 */
function rowsOf<Row extends TaskRow>(_family: TaskFamily<Row>, rows: readonly object[]): Row[] {
  return rows as Row[];
}

export async function addTask<Row extends TaskRow>(
  { db }: Pick<Deps, "db">,
  family: TaskFamily<Row>,
  row: NewTask<Row>,
): Promise<Row> {
  const { table } = family.columns(db.t);
  const [added] = rowsOf(family, await db.orm.insert(table).values(storableRow(row)).returning());
  if (!added) throw new Error(`the ${family.name} task was not stored`);
  return added;
}

export interface TaskFilter {
  /** Only this user's rows. */
  userId?: number | undefined;
  channelId?: number | undefined;
  /** These four: exactly this text; "" = any. */
  upstreamId?: string | undefined;
  platform?: string | undefined;
  status?: string | undefined;
  action?: string | undefined;
  /** In the unit of the family's submission time, both included. */
  from?: number | undefined;
  to?: number | undefined;
}

export interface TaskPaging {
  limit: number;
  offset: number;
}

/** One page of a family's tasks, the newest first, and how many there are in all. */
export async function listTasks<Row extends TaskRow>(
  { db }: Pick<Deps, "db">,
  family: TaskFamily<Row>,
  filter: TaskFilter,
  { limit, offset }: TaskPaging,
): Promise<{ rows: Row[]; total: number }> {
  const { table, upstreamId, submitTime, platform } = family.columns(db.t);
  const isText = (column: PgColumn | undefined, text: string | undefined) =>
    column && text !== undefined && text !== "" ? eq(column, text) : undefined;
  const where = and(
    filter.userId === undefined ? undefined : eq(table.userId, filter.userId),
    filter.channelId === undefined ? undefined : eq(table.channelId, filter.channelId),
    isText(upstreamId, filter.upstreamId),
    isText(platform, filter.platform),
    isText(table.status, filter.status),
    isText(table.action, filter.action),
    filter.from === undefined ? undefined : gte(submitTime, filter.from),
    filter.to === undefined ? undefined : lte(submitTime, filter.to),
  );
  const rows = await db.orm
    .select()
    .from(table)
    .where(where)
    .orderBy(desc(table.id))
    .limit(limit)
    .offset(offset);
  const [count] = await db.orm.select({ total: countRows() }).from(table).where(where);
  return { rows: rowsOf(family, rows), total: count?.total ?? 0 };
}

/** The tasks of this user by the upstream's ids, the newest first; other people's are left out. */
export async function ownTasks<Row extends TaskRow>(
  { db }: Pick<Deps, "db">,
  family: TaskFamily<Row>,
  userId: number,
  upstreamIds: readonly string[],
): Promise<Row[]> {
  const ids = upstreamIds.filter(isStorable);
  if (ids.length === 0) return [];
  const { table, upstreamId } = family.columns(db.t);
  const rows = await db.orm
    .select()
    .from(table)
    .where(and(eq(table.userId, userId), inArray(upstreamId, ids)))
    .orderBy(desc(table.id));
  return rowsOf(family, rows);
}

/** A task of this user; undefined for other people's. */
export async function ownTask<Row extends TaskRow>(
  deps: Pick<Deps, "db">,
  family: TaskFamily<Row>,
  userId: number,
  upstreamId: string,
): Promise<Row | undefined> {
  const [row] = await ownTasks(deps, family, userId, [upstreamId]);
  return row;
}

/** Whoever's it is: for pictures, whose ids are their secret, and the upstream's own pushes. */
export async function anyTask<Row extends TaskRow>(
  { db }: Pick<Deps, "db">,
  family: TaskFamily<Row>,
  id: string,
): Promise<Row | undefined> {
  if (!isStorable(id)) return undefined;
  const { table, upstreamId } = family.columns(db.t);
  const rows = await db.orm.select().from(table).where(eq(upstreamId, id)).orderBy(desc(table.id)).limit(1);
  return rowsOf(family, rows)[0];
}

/** The state stands in the text: a partial index is used where the statement itself says that it suffices. */
function isOpenAndDue(
  table: ReturnType<TaskFamily<TaskRow>["columns"]>["table"],
  nowMs: Moment,
): SQL | undefined {
  return and(ne(table.progress, sql.raw(`'${DONE}'`)), isDue(table.nextPollMs, nowMs));
}

/** Condition: `dueTasks` would find some, of whatever family. */
export function tasksWait({ db }: Pick<Deps, "db">): SQL | undefined {
  const tables = [DRAWINGS.columns(db.t).table, CREATIVE_TASKS.columns(db.t).table];
  return or(
    ...tables.map((table) =>
      exists(
        db.orm
          .select({ one: sql`1` })
          .from(table)
          .where(isOpenAndDue(table, NOW_MS)),
      ),
    ),
  );
}

/** Open tasks whose upstream is to be polled now, those that have waited longest first. */
export async function dueTasks<Row extends TaskRow>(
  { db, clock }: Pick<Deps, "db" | "clock">,
  family: TaskFamily<Row>,
  limit: number,
): Promise<Row[]> {
  const { table } = family.columns(db.t);
  const rows = await db.orm
    .select()
    .from(table)
    .where(isOpenAndDue(table, clock.nowMs()))
    .orderBy(table.nextPollMs, table.id)
    .limit(limit);
  return rowsOf(family, rows);
}

/** Writes down when tasks without news are polled again. */
export async function postponeTasks<Row extends TaskRow>(
  { db, clock }: Pick<Deps, "db" | "clock">,
  family: TaskFamily<Row>,
  rows: readonly Row[],
  outcome: PollOutcome,
): Promise<void> {
  const { table } = family.columns(db.t);
  for (const [polls, ids] of byPolls(rows))
    await db.orm
      .update(table)
      .set(nextPoll(polls, outcome, clock.nowMs()))
      .where(inArray(table.id, ids))
      .returning({ id: table.id });
}

/** Moves a task on; false when it had ended already, or is no longer as it was `seen`. */
export async function moveTask<Row extends TaskRow>(
  { db }: Pick<Deps, "db">,
  family: TaskFamily<Row>,
  id: number,
  changes: TaskChanges<Row>,
  seen?: Pick<TaskRow, "status" | "progress">,
): Promise<boolean> {
  const { table } = family.columns(db.t);
  const isSeen = seen && and(eq(table.status, seen.status), eq(table.progress, seen.progress));
  const moved = await db.orm
    .update(table)
    .set(storableRow(changes))
    .where(and(eq(table.id, id), ne(table.progress, DONE), isSeen))
    .returning({ id: table.id });
  return moved.length > 0;
}

/** The settlement of the task's call is not in the tables: the transaction is undone. */
class Unsettled extends Error {}

/**
 * Ends a task as failed and gives its charge back: status, sums and the sentence of the log in one transaction. Does
 * nothing when the task has ended already. False while the charge is not in the tables yet: try again, and set
 * `isUncharged` when it never came.
 */
export async function failTask<Row extends TaskRow>(
  deps: Deps,
  family: TaskFamily<Row>,
  row: Row,
  changes: TaskChanges<Row>,
  isUncharged = false,
): Promise<boolean> {
  const { table } = family.columns(deps.db.t);
  const quota = isUncharged ? 0 : row.quota;
  await deps.ledger.flush();
  const submittedAt = Math.floor(family.submittedMs(row) / 1000);
  const isImported = row.requestId === "";
  const hour = quota > 0 && !isImported ? await settledHourOf(deps.db, row, submittedAt) : undefined;
  const outcome = await deps.ledger
    .atomic(function* (tx, credit) {
      const [ended] = yield* q(
        tx
          .update(table)
          .set({ ...storableRow(changes), status: FAILURE, progress: DONE, quota, refunded: quota > 0 })
          .where(and(eq(table.id, row.id), ne(table.progress, DONE)))
          .returning({ id: table.id }),
      );
      if (!ended || quota <= 0) return "ended";
      // Its charge came in with the account's figures: no sum of ours has it, and the balance alone is given back.
      if (isImported)
        yield* credit({
          userId: row.userId,
          amount: quota,
          kind: "refund",
          ref: `import-${family.name === "drawing" ? "drawing" : "task"}-${row.id}`,
        });
      else if (hour === undefined || !(yield* refundSteps(deps.db, tx, row, hour))) throw new Unsettled();
      const amount = logQuotaText(row.quota, quotaDisplay(deps.options));
      yield* deps.ledger.logSteps(tx, {
        type: LogType.system,
        userId: row.userId,
        username: "",
        channelId: row.channelId,
        content: refunded(family.failedSentence(family.upstreamIdOf(row)), amount),
      });
      return "refunded";
    })
    .catch((error: unknown) => {
      if (error instanceof Unsettled) return "unsettled";
      throw error;
    });
  if (outcome === "refunded") {
    await deps.accounts.usersCharged([row.userId]);
    if (row.tokenId > 0) await deps.accounts.tokenCharged(row.tokenId);
  }
  return outcome !== "unsettled";
}
