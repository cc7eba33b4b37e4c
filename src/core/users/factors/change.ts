// What follows a change of factors: the account's other sessions end, and its owner hears of it by letter.
import { and, eq, sql } from "drizzle-orm";
import { q } from "../../../db/database.ts";
import type { Orm, Steps } from "../../../db/database.ts";
import { refuse } from "../../../shared/failures.ts";
import type { AuditAction, AuditParams } from "../../../shared/audit-actions.ts";
import type { Deps, UserAccount } from "../../deps.ts";
import { auditSteps } from "../../logs/audit.ts";
import type { AuditActor } from "../../logs/audit.ts";
import { forgetDevices } from "../devices.ts";
import { letterLanguage, letterOf, siteLink } from "../letter-form.ts";
import { factorWords } from "../letter-texts.ts";
import { postSteps, sendSoon } from "../outbox.ts";
import { assertOutranks } from "../rank.ts";
import { lastOwnSteps } from "../providers/methods.ts";
import { lockUserSteps, markFactorSteps, removeFactorSteps } from "./factor-rows.ts";
import type { FactorTold } from "./factor-rows.ts";
import type { PasskeyDeps } from "./passkeys.ts";

export type FactorChange =
  "totp_added" | "totp_removed" | "passkey_added" | "passkey_removed" | "backup_renewed" | "factors_reset";

const ACTIONS: Readonly<Record<FactorChange, AuditAction>> = {
  totp_added: "totp.enabled",
  totp_removed: "totp.disabled",
  passkey_added: "passkey.added",
  passkey_removed: "passkey.removed",
  backup_renewed: "backup.renewed",
  factors_reset: "user.factor_reset",
};

type ChangeDeps = PasskeyDeps & Pick<Deps, "ledger" | "sessions" | "inbox">;

/** The row of the log and the letter, in the transaction of the change. */
function* tellSteps(
  tx: Orm,
  deps: ChangeDeps,
  userId: number,
  change: FactorChange,
  by: AuditActor,
  params: AuditParams = {},
): Steps<void> {
  const { users } = deps.db.t;
  const [row] = yield* q(tx.select().from(users).where(eq(users.id, userId)));
  if (!row) return;
  yield* auditSteps(tx, deps, {
    user: { id: row.id, username: row.username },
    action: ACTIONS[change],
    params,
    by,
  });
  if (row.email === "") return;
  const language = letterLanguage(deps, row.setting);
  const words = factorWords(language, deps.options.get("SystemName"), change, siteLink(deps, "/personal"));
  const letter = letterOf(deps, row.email, language, words);
  yield* postSteps(tx, deps, { userId, kind: change, letter });
}

/**
 * Makes a change of an own factor, told in its own transaction; then every other session of the account ends. Throws what
 * `make` throws.
 */
export async function changeOwnFactor<T>(
  deps: ChangeDeps,
  actor: UserAccount,
  { change, by, sessionId }: { change: FactorChange; by: AuditActor; sessionId: string },
  make: (told: FactorTold) => Promise<T>,
): Promise<T> {
  const made = await make((tx, params) => tellSteps(tx, deps, actor.id, change, by, params));
  if (change !== "backup_renewed")
    await deps.sessions.endAll(actor.id, "factor", { id: sessionId, sessionVersion: actor.sessionVersion });
  sendSoon(deps);
  return made;
}

/** Removes the own one-time codes. Throws `totp_off` where there are none. */
export async function removeOwnTotp(deps: ChangeDeps, actor: UserAccount, told: FactorTold): Promise<void> {
  await deps.db.atomic(function* (tx) {
    const removed = yield* removeFactorSteps(tx, deps, actor.id, { totp: true, passkeys: false });
    if (removed === 0) throw refuse("totp_off");
    yield* told(tx);
  });
  await deps.accounts.userChanged(actor.id);
}

/** Removes a passkey of one's own. Throws `record_missing`, and `last_method` where it is the last way in. */
export async function removeOwnPasskey(
  deps: ChangeDeps & Parameters<typeof lastOwnSteps>[1],
  actor: UserAccount,
  id: number,
  told: FactorTold,
): Promise<void> {
  const { passkeys } = deps.db.t;
  await deps.db.atomic(function* (tx) {
    yield* lockUserSteps(tx, deps, actor.id);
    const [row] = yield* q(
      tx
        .delete(passkeys)
        .where(and(eq(passkeys.id, id), eq(passkeys.userId, actor.id)))
        .returning({ name: passkeys.name }),
    );
    if (!row) throw refuse("record_missing");
    yield* lastOwnSteps(tx, deps, actor.id);
    yield* markFactorSteps(tx, deps, actor.id);
    yield* told(tx, { name: row.name });
  });
  await deps.accounts.userChanged(actor.id);
}

/**
 * By a higher rank: factors go, every session ends, the owner is told. Root's own go by the own account's calls, which keep the
 * last way in and ask for proof. Throws `user_missing`, `user_rank_update`.
 */
export async function resetFactors(
  deps: ChangeDeps,
  actor: UserAccount,
  userId: number,
  what: { totp: boolean; passkeys: boolean },
  by: AuditActor,
): Promise<void> {
  const { users } = deps.db.t;
  const [row] = await deps.db.orm.select().from(users).where(eq(users.id, userId));
  if (!row) throw refuse("user_missing");
  if (actor.id === userId) throw refuse("user_rank_update");
  assertOutranks(actor, row, "user_rank_update");
  await deps.db.atomic(function* (tx) {
    yield* removeFactorSteps(tx, deps, userId, what);
    yield* q(
      tx
        .update(users)
        .set({ sessionVersion: sql`${users.sessionVersion} + 1`, accessTokenHash: null })
        .where(eq(users.id, userId))
        .returning({ id: users.id }),
    );
    yield* tellSteps(tx, deps, userId, "factors_reset", by, { factor: what.totp ? "totp" : "passkey" });
  });
  await deps.accounts.userChanged(userId);
  await deps.sessions.endAll(userId, "factor_reset");
  await forgetDevices(deps, userId);
  sendSoon(deps);
}
