// Forgets a person and keeps the books: name, address and texts go, sums and numbers stay.
// Refuses to leave anything half done: the account is emptied in the transaction of its deletion, its many rows a few at a
// time afterwards, and a mark keeps the work alive over restarts, also for rows that are written late.
import { and, asc, eq, exists, getTableColumns, gt, gte, inArray, like, ne, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import type { InboxKind } from "../../shared/inbox.ts";
import { jsonObject } from "../../shared/json-object.ts";
import type { Deps } from "../deps.ts";

type EraseDeps = Pick<Deps, "db" | "clock" | "accounts" | "logger" | "inbox">;

const MARK = "erase:";
/** Of one statement: nobody waits long for the table. */
const ROWS_AT_ONCE = 500;
/** Calls that were under way are settled by then. */
const LATE_SECONDS = 3600;
/** The time in a row of the log is that of its call: so long at most a journal has waited for its database. */
const DAY_SECONDS = 86_400;

/** What stands in the place of the name; `@` is in no name that anybody can have. */
const erasedName = (id: number): string => `erased@${id}`;

/** Empties the account itself; a step of the transaction that deletes it. */
export function* eraseSteps(tx: Orm, { db, clock }: Pick<Deps, "db" | "clock">, userId: number): Steps<void> {
  const { authFlows, identities, marks, outbox, sessions, tokens, userDevices, users } = db.t;
  const nowSeconds = Math.floor(clock.nowMs() / 1000);
  yield* q(
    tx
      .update(users)
      .set({
        username: erasedName(userId),
        usernameKey: "",
        displayName: "",
        passwordHash: "",
        email: "",
        emailKey: "",
        passkeyHandle: "",
        affCode: null,
        setting: "",
        remark: "",
        flagged: false,
        erasedAt: nowSeconds,
      })
      .where(eq(users.id, userId))
      .returning({ id: users.id }),
  );
  yield* q(tx.delete(identities).where(eq(identities.userId, userId)).returning({ id: identities.id }));
  yield* q(tx.delete(sessions).where(eq(sessions.userId, userId)).returning({ id: sessions.userId }));
  yield* q(
    tx.delete(userDevices).where(eq(userDevices.userId, userId)).returning({ id: userDevices.userId }),
  );
  yield* q(tx.delete(authFlows).where(eq(authFlows.userId, userId)).returning({ id: authFlows.id }));
  yield* q(tx.delete(outbox).where(eq(outbox.userId, userId)).returning({ id: outbox.id }));
  yield* q(
    tx
      .update(tokens)
      .set({
        name: "",
        keySealed: "",
        // No key has such a hash; each stays different.
        keyHash: sql`'erased:' || ${tokens.id}`,
        previousKeyHash: null,
        keyHead: "",
        keyTail: "",
        allowIps: "",
        modelLimits: "",
      })
      .where(eq(tokens.userId, userId))
      .returning({ id: tokens.id }),
  );
  yield* q(
    tx
      .insert(marks)
      .values({ key: `${MARK}${userId}`, value: nowSeconds })
      .onConflictDoUpdate({ target: marks.key, set: { value: nowSeconds } })
      .returning({ key: marks.key }),
  );
}

/** A table with texts of people, as its index by owner and time walks it. */
interface Texts {
  table: PgTable;
  id: PgColumn;
  userId: PgColumn;
  at: PgColumn;
  /** Whether a row still has texts. */
  isNamed: SQL | undefined;
  /** Of the time column. */
  since?: number;
}

/** Empties all rows of the person that still have texts, a few at a time, others' turns between. */
async function eraseTexts(
  { db }: EraseDeps,
  person: number,
  { table, id, userId, at, isNamed, since }: Texts,
  empty: (ids: number[]) => Promise<unknown>,
): Promise<void> {
  let last: { id: number; at: number } | undefined;
  for (;;) {
    // The first half is what the index is entered by: the second alone would walk all that is behind us again.
    const behind = last && and(gte(at, last.at), or(gt(at, last.at), gt(id, last.id)));
    const found = await db.orm
      .select({
        id: sql<number>`${id}`.mapWith(Number),
        at: sql<number>`${at}`.mapWith(Number),
        isNamed: sql<number>`case when ${isNamed} then 1 else 0 end`.mapWith(Number),
      })
      .from(table)
      .where(and(eq(userId, person), since === undefined ? undefined : gte(at, since), behind))
      .orderBy(asc(at), asc(id))
      .limit(ROWS_AT_ONCE);
    const ids = found.flatMap((row) => (row.isNamed === 1 ? [row.id] : []));
    if (ids.length > 0) await empty(ids);
    if (found.length < ROWS_AT_ONCE) return;
    last = found.at(-1);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Rows of the log lose names and texts; what was charged, for which model and when, stays. */
async function eraseLogs(deps: EraseDeps, userId: number, since: number | undefined): Promise<void> {
  const { db } = deps;
  const { logs } = db.t;
  const isNamed = or(ne(logs.username, ""), ne(logs.tokenName, ""), ne(logs.other, ""));
  const texts = { table: logs, id: logs.id, userId: logs.userId, at: logs.createdAt, isNamed };
  await eraseTexts(deps, userId, since === undefined ? texts : { ...texts, since }, async (ids) => {
    const gone = { username: "", tokenName: "", other: "" };
    await db.orm.update(logs).set(gone).where(inArray(logs.id, ids));
    // What a charge was reckoned with says nothing of a person; every other sentence may.
    const told = and(inArray(logs.id, ids), ne(logs.type, LogType.consume));
    await db.orm.update(logs).set({ content: "" }).where(told);
  });
}

/** Drawings and songs lose what was asked for and what came of it. */
async function eraseTasks(deps: EraseDeps, person: number): Promise<void> {
  const { db } = deps;
  const { drawings, tasks } = db.t;
  const ofDrawing = {
    prompt: "",
    promptEn: "",
    description: "",
    state: "",
    imageUrl: "",
    failReason: "",
    buttons: "",
    properties: "",
  };
  const ofTask = { failReason: "", properties: "", data: "" };
  const any = (table: PgTable, gone: object) => {
    const columns = Object.entries(getTableColumns(table));
    return or(...columns.flatMap(([name, column]) => (name in gone ? [ne(column, "")] : [])));
  };
  await eraseTexts(
    deps,
    person,
    {
      table: drawings,
      id: drawings.id,
      userId: drawings.userId,
      at: drawings.submitTimeMs,
      isNamed: any(drawings, ofDrawing),
    },
    (ids) => db.orm.update(drawings).set(ofDrawing).where(inArray(drawings.id, ids)),
  );
  await eraseTexts(
    deps,
    person,
    { table: tasks, id: tasks.id, userId: tasks.userId, at: tasks.submitTime, isNamed: any(tasks, ofTask) },
    (ids) => db.orm.update(tasks).set(ofTask).where(inArray(tasks.id, ids)),
  );
}

/** Whether a provider may still be asked what became of something: its answer is written into the row. */
async function hasOpenTasks({ db }: EraseDeps, userId: number): Promise<boolean> {
  for (const table of [db.t.drawings, db.t.tasks]) {
    // As their partial indexes have it.
    const isOpen = sql`${table.progress} <> '100%'`;
    const open = db.orm.select({ id: table.id }).from(table);
    if ((await open.where(and(isOpen, eq(table.userId, userId))).limit(1)).length > 0) return true;
  }
  return false;
}

/** Kinds whose items name an administrator, and whom it was done to where that was one person; both ids stand beside the names. */
const NAMING_KINDS: InboxKind[] = ["balance", "balance_run", "plan_by_hand", "codes"];
/** Of these earlier builds wrote no ids: their subjects begin with the administrator's, behind which the other person's stands. */
const IDS_IN_SUBJECT: InboxKind[] = ["balance", "plan_by_hand", "codes"];

/** Whom an item names by their ids. */
function namedIn(kind: InboxKind, subject: string, told: Readonly<Record<string, unknown>>) {
  if (kind === "budget") return { admin: undefined, user: Number(subject) };
  if (told["admin_id"] !== undefined || !IDS_IN_SUBJECT.includes(kind))
    return { admin: told["admin_id"], user: told["user_id"] };
  const [admin, user] = subject.split(":").map(Number);
  return { admin, user: kind === "codes" ? undefined : user };
}

/** Those items, and those of a budget, whose subject is its owner. */
async function eraseInbox({ db, inbox }: EraseDeps, userId: number): Promise<void> {
  const { inboxItems } = db.t;
  const found = await db.orm
    .select({
      id: inboxItems.id,
      kind: inboxItems.kind,
      subject: inboxItems.subject,
      params: inboxItems.params,
    })
    .from(inboxItems)
    .where(
      or(
        and(eq(inboxItems.kind, "budget"), eq(inboxItems.subject, String(userId))),
        and(inArray(inboxItems.kind, NAMING_KINDS), like(inboxItems.params, `%_id":${userId}%`)),
        and(
          inArray(inboxItems.kind, IDS_IN_SUBJECT),
          or(like(inboxItems.subject, `${userId}:%`), like(inboxItems.subject, `%:${userId}%`)),
        ),
      ),
    );
  const changed: number[] = [];
  for (const { id, kind, subject, params } of found) {
    const told = jsonObject(params) ?? {};
    const { admin, user } = namedIn(kind as InboxKind, subject, told);
    const erased = {
      ...told,
      ...(admin === userId ? { admin: erasedName(userId) } : {}),
      ...(user === userId ? { user: erasedName(userId) } : {}),
    };
    const text = JSON.stringify(erased);
    if (text === params) continue;
    await db.orm.update(inboxItems).set({ params: text }).where(eq(inboxItems.id, id));
    changed.push(id);
  }
  if (changed.length > 0) await inbox.changed(changed);
}

/** Runs over many accounts: lines of files name the account that they made or changed, and each run who began it. */
async function eraseRuns({ db }: EraseDeps, userId: number): Promise<void> {
  const { userBulks, userImportRows } = db.t;
  await db.orm.update(userImportRows).set({ username: "" }).where(eq(userImportRows.userId, userId));
  const begun = await db.orm
    .select({ id: userBulks.id, actor: userBulks.actor })
    .from(userBulks)
    .where(eq(userBulks.actorId, userId));
  for (const { id, actor } of begun) {
    const erased = { ...jsonObject(actor), username: erasedName(userId), address: "", userAgent: "" };
    await db.orm
      .update(userBulks)
      .set({ actor: JSON.stringify(erased) })
      .where(eq(userBulks.id, id));
  }
}

/** Whose rows this process has been through: only what is written late is left to look for. */
const through = new WeakMap<object, Set<number>>();

/** `sinceSeconds`: rows of the log that are older need no second look. */
async function eraseRows(deps: EraseDeps, userId: number, sinceSeconds?: number): Promise<void> {
  const { tokens } = deps.db.t;
  await eraseTasks(deps, userId);
  await eraseInbox(deps, userId);
  await eraseRuns(deps, userId);
  await eraseLogs(deps, userId, sinceSeconds);
  let last = 0;
  for (;;) {
    const owned = await deps.db.orm
      .select({ id: tokens.id })
      .from(tokens)
      .where(and(eq(tokens.userId, userId), gt(tokens.id, last)))
      .orderBy(asc(tokens.id))
      .limit(ROWS_AT_ONCE);
    for (const { id } of owned) await deps.accounts.tokenChanged(id);
    if (owned.length < ROWS_AT_ONCE) return;
    last = owned.at(-1)?.id ?? last;
  }
}

/** Condition: an erasure is not through. */
export function erasuresWait({ db }: Pick<Deps, "db">): SQL {
  const { marks } = db.t;
  const some = db.orm.select({ one: sql`1` }).from(marks);
  return exists(some.where(like(marks.key, `${MARK}%`)));
}

/**
 * Goes on with every erasure that is not over; one is over when no call of the person can still be written, and no task of theirs
 * waits for its provider.
 */
export async function resumeErasures(deps: EraseDeps): Promise<void> {
  const { marks } = deps.db.t;
  const open = await deps.db.orm
    .select()
    .from(marks)
    .where(like(marks.key, `${MARK}%`));
  const done = through.get(deps.db) ?? new Set();
  through.set(deps.db, done);
  for (const { key, value } of open) {
    const userId = Number(key.slice(MARK.length));
    // Asked before the last look: whatever ends meanwhile is written before that look.
    const isOver = deps.clock.nowMs() / 1000 > value + LATE_SECONDS && !(await hasOpenTasks(deps, userId));
    await eraseRows(deps, userId, done.has(userId) ? value - DAY_SECONDS : undefined);
    done.add(userId);
    if (!isOver) continue;
    await deps.db.orm.delete(marks).where(eq(marks.key, key));
    done.delete(userId);
  }
}

/** For whoever has just asked: in the background. Never throws; what fails goes on with the next look. */
export function eraseSoon(deps: EraseDeps, userId: number): void {
  eraseRows(deps, userId).catch((error: unknown) =>
    deps.logger.warn("an erasure stopped", { user: userId, error: String(error) }),
  );
}
