// Forgets a person and keeps the books: name, address and texts go, sums and numbers stay.
// Refuses to leave anything half done: the account is emptied in the transaction of its deletion, its many rows a few at a
// time afterwards, and a mark keeps the work alive over restarts, also for rows that are written late.
import { and, asc, eq, exists, gt, inArray, like, ne, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { jsonObject } from "../../shared/json-object.ts";
import type { Deps } from "../deps.ts";

type EraseDeps = Pick<Deps, "db" | "clock" | "accounts" | "logger" | "inbox">;

const MARK = "erase:";
/** Of one statement: nobody waits long for the table. */
const ROWS_AT_ONCE = 500;
/** Calls that were under way are settled by then. */
const LATE_SECONDS = 3600;

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

/** Rows of the log lose names and texts; what was charged, for which model and when, stays. False: none was left. */
async function eraseLogs({ db }: EraseDeps, userId: number): Promise<boolean> {
  const { logs } = db.t;
  const isNamed = or(ne(logs.username, ""), ne(logs.tokenName, ""), ne(logs.other, ""));
  const found = await db.orm
    .select({ id: logs.id, type: logs.type })
    .from(logs)
    .where(and(eq(logs.userId, userId), isNamed))
    .limit(ROWS_AT_ONCE);
  if (found.length === 0) return false;
  const ids = found.map(({ id }) => id);
  const gone = { username: "", tokenName: "", other: "" };
  await db.orm.update(logs).set(gone).where(inArray(logs.id, ids));
  // What a charge was reckoned with says nothing of a person; every other sentence may.
  const told = found.flatMap(({ id, type }) => (type === LogType.consume ? [] : [id]));
  if (told.length > 0) await db.orm.update(logs).set({ content: "" }).where(inArray(logs.id, told));
  return found.length === ROWS_AT_ONCE;
}

/** Drawings and songs lose what was asked for and what came of it. */
async function eraseTasks({ db }: EraseDeps, userId: number): Promise<void> {
  const { drawings, tasks } = db.t;
  const texts = { prompt: "", promptEn: "", description: "", state: "", imageUrl: "", failReason: "" };
  await db.orm
    .update(drawings)
    .set({ ...texts, buttons: "", properties: "" })
    .where(eq(drawings.userId, userId));
  await db.orm
    .update(tasks)
    .set({ failReason: "", properties: "", data: "" })
    .where(eq(tasks.userId, userId));
}

/** Items of changed balances name whom they concern and who did it, those of budgets whose it is; their subjects are the ids. */
async function eraseInbox({ db, inbox }: EraseDeps, userId: number): Promise<void> {
  const { inboxItems } = db.t;
  const found = await db.orm
    .select({ id: inboxItems.id, subject: inboxItems.subject, params: inboxItems.params })
    .from(inboxItems)
    .where(
      or(
        and(eq(inboxItems.kind, "budget"), eq(inboxItems.subject, String(userId))),
        and(
          eq(inboxItems.kind, "balance"),
          or(like(inboxItems.subject, `${userId}:%`), like(inboxItems.subject, `%:${userId}`)),
        ),
      ),
    );
  const changed: number[] = [];
  for (const { id, subject, params } of found) {
    const ids = subject.split(":").map(Number);
    // A budget's subject is its owner alone.
    const [admin, user] = ids.length > 1 ? ids : [0, ...ids];
    const erased = {
      ...jsonObject(params),
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

async function eraseRows(deps: EraseDeps, userId: number): Promise<void> {
  const { tokens } = deps.db.t;
  await eraseTasks(deps, userId);
  await eraseInbox(deps, userId);
  await eraseRuns(deps, userId);
  while (await eraseLogs(deps, userId)) await new Promise((resolve) => setImmediate(resolve));
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

/** Goes on with every erasure that is not over; one is over when no call of the person can still be written. */
export async function resumeErasures(deps: EraseDeps): Promise<void> {
  const { marks } = deps.db.t;
  const open = await deps.db.orm
    .select()
    .from(marks)
    .where(like(marks.key, `${MARK}%`));
  for (const { key, value } of open) {
    await eraseRows(deps, Number(key.slice(MARK.length)));
    if (deps.clock.nowMs() / 1000 > value + LATE_SECONDS)
      await deps.db.orm.delete(marks).where(eq(marks.key, key));
  }
}

/** For whoever has just asked: in the background. Never throws; what fails goes on with the next look. */
export function eraseSoon(deps: EraseDeps, userId: number): void {
  eraseRows(deps, userId).catch((error: unknown) =>
    deps.logger.warn("an erasure stopped", { user: userId, error: String(error) }),
  );
}
