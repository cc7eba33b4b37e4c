// Does what was asked for many accounts, some fifty in a transaction, in the background: who works on it, and what is next.
// Refuses to do anything twice: what is done and that it is done are one transaction (bulk-steps.ts), so a run that was
// killed goes on where it was; ranks count for every account, and as the one who asked has them now.
import { and, asc, eq, exists, lt, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { NOW } from "../../db/moments.ts";
import type { AuditActor } from "../logs/audit.ts";
import { leaseNow, nowSeconds, roleNow, takeLease } from "./bulk-lease.ts";
import type { BulkDeps, BulkWork } from "./bulk-lease.ts";
import { doAccounts } from "./bulk-steps.ts";
import { importWork } from "./import/run.ts";
import { BulkState } from "./bulk.ts";
import type { BulkAct } from "./bulk.ts";
import { sendSoon } from "./outbox.ts";

/** Accounts of one transaction: so many cost little more than one, and hold nobody up for long. */
const CHUNK = 50;

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
    some: (run, ids) => doAccounts(deps, run, ids),
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
    await work.some(run, waiting);
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

function isAbandoned({ db }: Pick<BulkDeps, "db">, now: SQL): SQL | undefined {
  const { userBulks } = db.t;
  return and(eq(userBulks.finishedAt, sql`0`), lt(userBulks.leaseUntil, now));
}

/** Condition: a run waits for somebody to go on with it. */
export function bulksWait(deps: Pick<BulkDeps, "db">): SQL {
  const some = deps.db.orm.select({ one: sql`1` }).from(deps.db.t.userBulks);
  return exists(some.where(isAbandoned(deps, leaseNow(deps, NOW))));
}

/** Goes on with runs whose node is gone. */
export async function resumeBulks(deps: BulkDeps): Promise<void> {
  const { userBulks } = deps.db.t;
  const open = await deps.db.orm
    .select({ id: userBulks.id })
    .from(userBulks)
    .where(isAbandoned(deps, leaseNow(deps, nowSeconds(deps))))
    .orderBy(asc(userBulks.id));
  for (const { id } of open) await runBulk(deps, id);
}
