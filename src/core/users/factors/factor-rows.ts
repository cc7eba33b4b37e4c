// Which factors an account has, and what changes with them: the mark in the account's row, its other sessions, a letter.
import { and, eq, isNull, sql } from "drizzle-orm";
import { countRows, q } from "../../../db/database.ts";
import type { Orm, Steps } from "../../../db/database.ts";
import type { AuditParams } from "../../../shared/audit-actions.ts";
import type { Deps } from "../../deps.ts";

export interface Factors {
  hasTotp: boolean;
  passkeys: number;
  backupCodesLeft: number;
}

/** Reads what the account has. */
export async function factorsOf({ db }: Pick<Deps, "db">, userId: number): Promise<Factors> {
  const { totps, passkeys, backupCodes } = db.t;
  const [totp] = await db.orm.select({ id: totps.userId }).from(totps).where(eq(totps.userId, userId));
  const [keys] = await db.orm
    .select({ count: countRows() })
    .from(passkeys)
    .where(eq(passkeys.userId, userId));
  const [codes] = await db.orm
    .select({ count: countRows() })
    .from(backupCodes)
    .where(and(eq(backupCodes.userId, userId), isNull(backupCodes.usedAt)));
  return {
    hasTotp: totp !== undefined,
    passkeys: keys?.count ?? 0,
    backupCodesLeft: totp === undefined ? 0 : (codes?.count ?? 0),
  };
}

/** What tells of a change of factors: run last in the change's own transaction. */
export type FactorTold = (tx: Orm, params?: AuditParams) => Steps<void>;

/** Writes down whether there is any factor: sessions are judged by it without a query. */
export function* markFactorSteps(tx: Orm, { db }: Pick<Deps, "db">, userId: number): Steps<void> {
  const { users, totps, passkeys } = db.t;
  const [totp] = yield* q(tx.select({ count: countRows() }).from(totps).where(eq(totps.userId, userId)));
  const [keys] = yield* q(
    tx.select({ count: countRows() }).from(passkeys).where(eq(passkeys.userId, userId)),
  );
  const secondFactor = (totp?.count ?? 0) + (keys?.count ?? 0) > 0;
  yield* q(tx.update(users).set({ secondFactor }).where(eq(users.id, userId)).returning({ id: users.id }));
}

/** Locks the account's row: changes of its factors come one after another. */
export function* lockUserSteps(tx: Orm, { db }: Pick<Deps, "db">, userId: number): Steps<void> {
  const { users } = db.t;
  yield* q(
    tx
      .update(users)
      .set({ id: sql`${users.id}` })
      .where(eq(users.id, userId))
      .returning({ id: users.id }),
  );
}

/** All factors of an account that goes, or whose factors are reset: `what` names which. */
export function* removeFactorSteps(
  tx: Orm,
  deps: Pick<Deps, "db">,
  userId: number,
  what: { totp: boolean; passkeys: boolean },
): Steps<number> {
  const { totps, passkeys, backupCodes } = deps.db.t;
  let removed = 0;
  if (what.totp) {
    const rows = yield* q(tx.delete(totps).where(eq(totps.userId, userId)).returning({ id: totps.userId }));
    yield* q(tx.delete(backupCodes).where(eq(backupCodes.userId, userId)).returning({ id: backupCodes.id }));
    removed += rows.length;
  }
  if (what.passkeys) {
    const rows = yield* q(
      tx.delete(passkeys).where(eq(passkeys.userId, userId)).returning({ id: passkeys.id }),
    );
    removed += rows.length;
  }
  yield* markFactorSteps(tx, deps, userId);
  return removed;
}
