// Does what was asked for many accounts: each in a transaction of its own with its row of the trail, in the background.
// Refuses to do anything twice: an account is marked in the transaction of what is done to it, so a run that was killed
// goes on where it was; ranks count for every account, and as the one who asked has them now.
import { and, asc, eq, lt, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LANGUAGES, Role, UserStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Credit } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { balanceSteps } from "./balance-changes.ts";
import { nowSeconds, roleNow, takeLease } from "./bulk-lease.ts";
import type { BulkDeps, BulkRun, BulkWork } from "./bulk-lease.ts";
import { importWork } from "./import/run.ts";
import { BulkState } from "./bulk.ts";
import type { BulkAct } from "./bulk.ts";
import { forgetDevices } from "./devices.ts";
import { letterLanguage, letterOf } from "./letter-form.ts";
import { postSteps, sendSoon } from "./outbox.ts";
import type { UserRow } from "./users.ts";

const CHUNK = 50;

const ACTIONS = {
  group: "user.group",
  disable: "user.disable",
  enable: "user.enable",
  flag: "user.flag",
  letter: "user.letter",
} as const;

function* trailSteps(tx: Orm, deps: BulkDeps, { act, reason, by }: BulkRun, row: UserRow): Steps<void> {
  // A credit has its row from whoever books it, a line of a file from import/run.ts.
  if (act.action === "credit" || act.action === "import") return;
  const what: Record<string, string | boolean> = reason === "" ? {} : { reason };
  if (act.action === "group") Object.assign(what, { before: row.group, group: act.group });
  if (act.action === "flag") what.flagged = act.flagged;
  yield* auditSteps(tx, deps, { user: row, action: ACTIONS[act.action], params: what, by });
}

function* letterSteps(
  tx: Orm,
  deps: BulkDeps,
  row: UserRow,
  letters: Extract<BulkAct, { action: "letter" }>["letters"],
): Steps<void> {
  if (row.email === "") throw refuse("bulk_no_mail");
  const language = letterLanguage(deps, row.setting);
  const other = LANGUAGES.find((each) => letters[each] !== undefined) ?? language;
  const words = letters[language] ?? letters[other];
  if (!words) throw refuse("bulk_letter_empty");
  const lines = words.text.split(/\n{2,}|\r\n\r\n/).filter((line) => line.trim() !== "");
  const letter = letterOf(deps, row.email, language, {
    subject: words.subject.replaceAll(/\p{C}/gu, " "),
    lines,
  });
  yield* postSteps(tx, deps, { userId: row.id, kind: "operator", letter });
}

/** What is done to one account, in its own transaction. False: another node has done it. */
function* accountSteps(
  tx: Orm,
  credit: (entry: Credit) => Steps<void>,
  deps: BulkDeps,
  { run, userId }: { run: BulkRun; userId: number },
): Steps<boolean> {
  const { users, userBulkItems } = deps.db.t;
  const [mine] = yield* q(
    tx
      .update(userBulkItems)
      .set({ state: BulkState.done })
      .where(
        and(
          eq(userBulkItems.bulkId, run.id),
          eq(userBulkItems.userId, userId),
          eq(userBulkItems.state, BulkState.waiting),
        ),
      )
      .returning({ userId: userBulkItems.userId }),
  );
  if (!mine) return false;
  const [row] = yield* q(tx.select().from(users).where(eq(users.id, userId)));
  if (!row || row.deletedAt !== null) throw refuse("user_missing");
  if (run.by.role < Role.root && row.role >= run.by.role) throw refuse("user_rank_update");
  const { act } = run;
  const set = (values: Record<string, unknown>) =>
    q(tx.update(users).set(values).where(eq(users.id, userId)).returning({ id: users.id }));
  if (act.action === "credit") {
    const ref = `bulk:${run.id}:${userId}`;
    const change = { quota_change: act.amount, quota_reason: run.reason };
    yield* balanceSteps(tx, { deps, credit, by: run.by, ref }, row, change);
    return true;
  }
  if (act.action === "letter") yield* letterSteps(tx, deps, row, act.letters);
  else if (act.action === "group") yield* set({ group: act.group });
  else if (act.action === "flag") {
    if (run.by.role < Role.root && row.flagged && !act.flagged) throw refuse("user_flag_root");
    yield* set({ flagged: act.flagged });
  } else if (act.action !== "import") {
    if (act.action === "disable" && row.role >= Role.root) throw refuse("user_root_undisableable");
    const status = act.action === "disable" ? UserStatus.disabled : UserStatus.enabled;
    if (row.status === status) return true;
    // A locked account is nobody's to enable.
    if (act.action === "enable" && row.status !== UserStatus.disabled) throw refuse("user_rank_update");
    yield* set({ status, sessionVersion: sql`${users.sessionVersion} + 1` });
  }
  yield* trailSteps(tx, deps, run, row);
  return true;
}

/** What follows the commit, on this node and the others. */
async function after(deps: BulkDeps, { act }: BulkRun, userId: number): Promise<void> {
  if (act.action === "letter") return;
  await deps.accounts.userChanged(userId);
  if (act.action === "disable") {
    await deps.sessions.endAll(userId, "banned");
    await forgetDevices(deps, userId);
  } else if (act.action === "enable") await deps.sessions.endAll(userId, "enabled");
}

async function doOne(deps: BulkDeps, run: BulkRun, userId: number): Promise<void> {
  const { userBulkItems } = deps.db.t;
  try {
    const isDone = await deps.ledger.atomic((tx, credit) => accountSteps(tx, credit, deps, { run, userId }));
    if (isDone) await after(deps, run, userId);
  } catch (error) {
    if (!(error instanceof Failure)) {
      // A database that is away is no refusal: the run goes on later.
      if (!(await deps.db.ping())) throw error;
      deps.logger.error("a bulk action failed", { bulk: run.id, user: userId, error: String(error) });
    }
    await deps.db.orm
      .update(userBulkItems)
      .set({ state: BulkState.refused, code: error instanceof Failure ? error.code : "internal_error" })
      .where(
        and(
          eq(userBulkItems.bulkId, run.id),
          eq(userBulkItems.userId, userId),
          eq(userBulkItems.state, BulkState.waiting),
        ),
      );
  }
}

/** Accounts of a run, by their ids. */
function accountWork(deps: BulkDeps, id: number): BulkWork {
  const { userBulkItems } = deps.db.t;
  return {
    async waiting(count) {
      const rows = await deps.db.orm
        .select({ userId: userBulkItems.userId })
        .from(userBulkItems)
        .where(and(eq(userBulkItems.bulkId, id), eq(userBulkItems.state, BulkState.waiting)))
        .orderBy(asc(userBulkItems.userId))
        .limit(count);
      return rows.map(({ userId }) => userId);
    },
    one: (run, userId) => doOne(deps, run, userId),
  };
}

/** Works on one run until it is through; does nothing where another node does. */
async function runBulk(deps: BulkDeps, id: number): Promise<void> {
  const { userBulks } = deps.db.t;
  if (!(await takeLease(deps, id, false))) return;
  const [row] = await deps.db.orm.select().from(userBulks).where(eq(userBulks.id, id));
  if (!row) return;
  const by = JSON.parse(row.actor) as AuditActor;
  const act = JSON.parse(row.params) as BulkAct;
  const work = act.action === "import" ? importWork(deps, id) : accountWork(deps, id);
  for (;;) {
    const run = { id, act, reason: row.reason, by: { ...by, role: await roleNow(deps, by) } };
    const waiting = await work.waiting(CHUNK);
    if (waiting.length === 0) break;
    for (const each of waiting) await work.one(run, each);
    // Calls of others come in between.
    await new Promise((resolve) => setImmediate(resolve));
    if (!(await takeLease(deps, id, true))) return;
  }
  await deps.db.orm
    .update(userBulks)
    .set({ finishedAt: nowSeconds(deps) })
    .where(and(eq(userBulks.id, id), eq(userBulks.finishedAt, 0)));
  if (act.action === "letter") sendSoon(deps);
}

/** For whoever has just asked: in the background. Never throws; what fails goes on with the next look. */
export function runSoon(deps: BulkDeps, id: number): void {
  runBulk(deps, id).catch((error: unknown) =>
    deps.logger.warn("a bulk run stopped", { bulk: id, error: String(error) }),
  );
}

/** Goes on with runs whose node is gone. */
export async function resumeBulks(deps: BulkDeps): Promise<void> {
  const { userBulks } = deps.db.t;
  const open = await deps.db.orm
    .select({ id: userBulks.id })
    .from(userBulks)
    .where(and(eq(userBulks.finishedAt, 0), lt(userBulks.leaseUntil, nowSeconds(deps))))
    .orderBy(asc(userBulks.id));
  for (const { id } of open) await runBulk(deps, id);
}
