// Does what a file of accounts asks for, line by line in the background: each in a transaction of its own.
// Refuses to do a line twice: it is marked in the transaction of what it does, so a run that was killed goes on where it was.
import { and, asc, eq } from "drizzle-orm";
import { q } from "../../../db/database.ts";
import type { Orm, Steps } from "../../../db/database.ts";
import { Role } from "../../../shared/enums.ts";
import { Failure, refuse } from "../../../shared/failures.ts";
import type { Credit } from "../../deps.ts";
import { auditSteps } from "../../logs/audit.ts";
import { checkedDisplayName } from "../account-rules.ts";
import { balanceSteps, tellRoot } from "../balance-changes.ts";
import type { BulkDeps, BulkRun, BulkWork } from "../bulk-lease.ts";
import { BulkState, refusalOf } from "../bulk.ts";
import { hashPassword } from "../credentials.ts";
import { mailFor } from "../mail-rules.ts";
import { addUser } from "../new-user.ts";
import type { UserRow } from "../users.ts";
import type { PlannedRow } from "./plan.ts";

interface Line {
  run: BulkRun;
  line: number;
  row: PlannedRow;
}

/** Another node has done it: nothing is undone, nothing is refused. */
class TakenElsewhere extends Error {}

/** The line is this transaction's. Throws TakenElsewhere. */
function* claimSteps(tx: Orm, { db }: Pick<BulkDeps, "db">, bulkId: number, line: number): Steps<void> {
  const { userImportRows } = db.t;
  const [mine] = yield* q(
    tx
      .update(userImportRows)
      .set({ state: BulkState.done, rowSealed: "" })
      .where(
        and(
          eq(userImportRows.bulkId, bulkId),
          eq(userImportRows.line, line),
          eq(userImportRows.state, BulkState.waiting),
        ),
      )
      .returning({ id: userImportRows.id }),
  );
  if (!mine) throw new TakenElsewhere();
}

interface Applied {
  deps: BulkDeps;
  credit: (entry: Credit) => Steps<void>;
  line: Line;
}

/** Group, remark and credit of a line, each with its row of the trail where it changes something. */
function* applySteps(tx: Orm, { deps, credit, line }: Applied, user: UserRow): Steps<void> {
  const { run, row } = line;
  const { users } = deps.db.t;
  const { by } = run;
  const set: Partial<UserRow> = {
    ...(row.group !== "" && row.group !== user.group ? { group: row.group } : {}),
    ...(row.remark !== "" && row.remark !== user.remark ? { remark: row.remark } : {}),
  };
  if (Object.keys(set).length > 0)
    yield* q(tx.update(users).set(set).where(eq(users.id, user.id)).returning({ id: users.id }));
  if (set.group !== undefined) deps.ledger.changed(tx, user.id);
  if (set.group !== undefined) {
    const params = { before: user.group, group: set.group };
    yield* auditSteps(tx, deps, { user, action: "user.group", params, by });
  }
  if (set.remark !== undefined)
    yield* auditSteps(tx, deps, { user, action: "user.update", params: { fields: "notes" }, by });
  if (row.credit === 0) return;
  const ref = `import:${run.id}:${row.line}`;
  const change = { quota_change: row.credit, quota_reason: run.reason };
  yield* balanceSteps(tx, { deps, credit, by, ref }, user, change);
}

async function changeAccount(deps: BulkDeps, line: Line): Promise<void> {
  const { users } = deps.db.t;
  const { run, row } = line;
  const before = await deps.ledger.atomic(function* (tx, credit) {
    yield* claimSteps(tx, deps, run.id, line.line);
    const [user] = yield* q(tx.select().from(users).where(eq(users.id, row.userId)));
    if (!user || user.deletedAt !== null) throw refuse("user_missing");
    if (run.by.role < Role.root && user.role >= run.by.role) throw refuse("user_rank_update");
    yield* applySteps(tx, { deps, credit, line }, user);
    return user;
  });
  if (row.credit === 0) return;
  tellRoot(deps, run.by, before, { before: before.quota, after: before.quota + row.credit });
}

async function makeAccount(deps: BulkDeps, line: Line): Promise<void> {
  const { users } = deps.db.t;
  const { run, row } = line;
  if (run.by.role < Role.admin) throw refuse("user_rank_create");
  const passwordHash = row.password === "" ? undefined : await hashPassword(row.password);
  let made: UserRow | undefined;
  await addUser(deps, {
    username: row.username,
    displayName: checkedDisplayName(row.display_name) || row.username,
    passwordHash,
    mail: row.email === "" ? undefined : mailFor(deps, row.email),
    by: run.by,
    *before(tx) {
      yield* claimSteps(tx, deps, run.id, line.line);
    },
    *after(tx, userId, credit) {
      [made] = yield* q(tx.select().from(users).where(eq(users.id, userId)));
      if (made) yield* applySteps(tx, { deps, credit, line }, made);
    },
  });
  if (made && row.credit !== 0)
    tellRoot(deps, run.by, made, { before: made.quota, after: made.quota + row.credit });
}

async function refuseLine(
  deps: BulkDeps,
  { run, line }: Pick<Line, "run" | "line">,
  error: unknown,
): Promise<void> {
  const { userImportRows } = deps.db.t;
  await deps.db.orm
    .update(userImportRows)
    .set({ state: BulkState.refused, ...refusalOf(error), rowSealed: "" })
    .where(
      and(
        eq(userImportRows.bulkId, run.id),
        eq(userImportRows.line, line),
        eq(userImportRows.state, BulkState.waiting),
      ),
    );
}

async function doLine(deps: BulkDeps, run: BulkRun, line: number): Promise<void> {
  const { userImportRows } = deps.db.t;
  try {
    const [kept] = await deps.db.orm
      .select({ sealed: userImportRows.rowSealed })
      .from(userImportRows)
      .where(and(eq(userImportRows.bulkId, run.id), eq(userImportRows.line, line)));
    if (!kept || kept.sealed === "") return;
    const row = JSON.parse(deps.seal.open("user", kept.sealed)) as PlannedRow;
    await (row.userId === 0 ? makeAccount : changeAccount)(deps, { run, line, row });
  } catch (error) {
    if (error instanceof TakenElsewhere) return;
    if (error instanceof Failure) return refuseLine(deps, { run, line }, error);
    // A database that is away is no refusal: the run goes on later.
    if (!(await deps.db.ping())) throw error;
    deps.logger.error("a line of an import failed", { bulk: run.id, line, error: String(error) });
    await refuseLine(deps, { run, line }, error);
  }
}

/** Lines of a file, in their order. */
export function importWork(deps: BulkDeps, id: number): BulkWork {
  const { userImportRows } = deps.db.t;
  return {
    async waiting(count) {
      const rows = await deps.db.orm
        .select({ line: userImportRows.line })
        .from(userImportRows)
        .where(and(eq(userImportRows.bulkId, id), eq(userImportRows.state, BulkState.waiting)))
        .orderBy(asc(userImportRows.line))
        .limit(count);
      return rows.map(({ line }) => line);
    },
    async some(run, lines) {
      for (const line of lines) await doLine(deps, run, line);
    },
  };
}
