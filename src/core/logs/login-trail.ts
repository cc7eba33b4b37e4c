// Sign-ins in the audit trail: the right ones with their session, the wrong ones of an account together.
// Refuses rows for names that nobody has: people type passwords there. Refuses a row for each try: one in ten minutes counts.
import { and, desc, eq, gte, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";
import { auditRow, auditSteps } from "./audit.ts";
import type { AuditActor } from "./audit.ts";
import { auditSentence } from "./sentences.ts";

const WINDOW_SECONDS = 600;

type Failed = "login.failed" | "login.locked";

/** Counts on in the account's row of the last ten minutes, or begins one. `by` is the account and the stranger's origin. */
export async function noteFailedLogin(
  deps: Pick<Deps, "db" | "clock" | "ledger">,
  action: Failed,
  by: AuditActor,
  device: string,
): Promise<void> {
  const { logs, users } = deps.db.t;
  const since = Math.floor(deps.clock.nowMs() / 1000) - WINDOW_SECONDS;
  await deps.db.atomic(function* (tx) {
    // Tries over several nodes count one after another.
    if (deps.db.kind === "postgres")
      yield* q(tx.select({ id: users.id }).from(users).where(eq(users.id, by.id)).for("no key update"));
    const recent = yield* q(
      tx
        .select({ id: logs.id, other: logs.other })
        .from(logs)
        .where(
          and(
            // Word for word: the partial index of rare types, of which ten minutes have few.
            sql`${logs.type} <> 2`,
            eq(logs.type, LogType.login),
            gte(logs.createdAt, since),
            sql`(${logs.userId} + 0) = ${by.id}`,
          ),
        )
        .orderBy(desc(logs.createdAt)),
    );
    const before = recent
      .map(({ id, other }) => ({ id, count: countIn(other, action) }))
      .find(({ count }) => count > 0);
    const params = { count: (before?.count ?? 0) + 1, device };
    const entry = { user: by, action, params, by };
    if (!before) return yield* auditSteps(tx, deps, entry);
    const { other } = auditRow(entry);
    yield* q(
      tx
        .update(logs)
        .set({ content: auditSentence(action, params), other: JSON.stringify(other) })
        .where(eq(logs.id, before.id))
        .returning({ id: logs.id }),
    );
  });
}

/** How many tries a row stands for; 0: it is no row of the action. */
function countIn(other: string, action: Failed): number {
  try {
    const { op } = JSON.parse(other) as { op?: { action?: string; params?: { count?: number } } };
    return op?.action === action ? (op.params?.count ?? 0) : 0;
  } catch {
    return 0;
  }
}
