// Begins what a file of accounts asks for, after somebody has looked at what it would do.
// Refuses a file with one wrong line, another outcome than the one that was looked at, and money without a reason.
import { and, desc, eq } from "drizzle-orm";
import { contains, q } from "../../../db/database.ts";
import { Failure, refuse } from "../../../shared/failures.ts";
import type { Deps } from "../../deps.ts";
import type { AuditActor } from "../../logs/audit.ts";
import { planImport } from "./plan.ts";
import type { ImportPlan } from "./plan.ts";

type StartDeps = Pick<Deps, "db" | "clock" | "options" | "seal">;

/** Of one statement. */
const ROWS_AT_ONCE = 250;

export interface ImportReport extends ImportPlan {
  /** The run that brought the same file in before: begun again it gives its credits again. */
  earlier: { id: number; created_at: number } | null;
}

/** What the file would do; nothing is written. */
export async function lookAtImport(deps: StartDeps, by: AuditActor, text: string): Promise<ImportReport> {
  const { userBulks } = deps.db.t;
  const { report, file } = await planImport(deps, by, text);
  const [earlier] = await deps.db.orm
    .select({ id: userBulks.id, created_at: userBulks.createdAt })
    .from(userBulks)
    .where(and(eq(userBulks.action, "import"), contains(userBulks.params, file)))
    .orderBy(desc(userBulks.id))
    .limit(1);
  return { ...report, earlier: earlier ?? null };
}

/** Writes the lines down as a run and answers its id; nothing is done yet (bulk-run.ts). */
export async function startImport(
  deps: StartDeps,
  by: AuditActor,
  { text, plan, reason }: { text: string; plan: string; reason: string },
): Promise<number> {
  const { rows, report, file } = await planImport(deps, by, text);
  if (report.problem_count > 0) throw refuse("import_problems", { count: report.problem_count });
  if (report.plan !== plan) throw refuse("import_changed");
  if (rows.length === 0) throw refuse("import_nothing");
  if (report.added + report.taken > 0 && reason === "")
    throw new Failure("client", "quota_reason_missing", { param: "reason" });
  const { userBulks, userImportRows } = deps.db.t;
  return deps.db.atomic(function* (tx) {
    const [bulk] = yield* q(
      tx
        .insert(userBulks)
        .values({
          action: "import",
          params: JSON.stringify({ action: "import", file }),
          reason,
          actor: JSON.stringify(by),
          actorId: by.id,
          total: rows.length,
          createdAt: Math.floor(deps.clock.nowMs() / 1000),
        })
        .returning({ id: userBulks.id }),
    );
    if (!bulk) throw refuse("internal_error");
    for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
      const some = rows.slice(at, at + ROWS_AT_ONCE).map((row) => ({
        bulkId: bulk.id,
        line: row.line,
        userId: row.userId,
        username: row.username.slice(0, 64),
        rowSealed: deps.seal.seal("user", JSON.stringify(row)),
      }));
      yield* q(tx.insert(userImportRows).values(some).returning({ id: userImportRows.id }));
    }
    return bulk.id;
  });
}
