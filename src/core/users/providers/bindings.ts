// Which foreign accounts an account is bound to, for itself and for administrators, and how one is given up.
// Refuses to give up the last way in, and to touch accounts of the same or a higher rank.
import { and, eq } from "drizzle-orm";
import { q } from "../../../db/database.ts";
import { Role } from "../../../shared/enums.ts";
import { Failure, refuse } from "../../../shared/failures.ts";
import { auditSteps } from "../../logs/audit.ts";
import type { AuditActor } from "../../logs/audit.ts";
import type { Deps, UserAccount } from "../../deps.ts";
import { sendSoon } from "../outbox.ts";
import type { UserRow } from "../users.ts";
import { identityLetterSteps } from "./letters.ts";
import { inTurnSteps, lastOwnSteps } from "./methods.ts";
import { allProviders } from "./registry.ts";
import type { ShownProvider } from "./registry.ts";

export interface Binding {
  provider: string;
  label: string;
  icon: string;
  kind: ShownProvider["kind"];
  enabled: boolean;
  account: { label: string; created_at: number; last_used_at: number } | null;
}

/** All providers that are on, and those that are off but bound. */
export async function bindingsOf(deps: Deps, userId: number): Promise<Binding[]> {
  const { identities } = deps.db.t;
  const [providers, rows] = await Promise.all([
    allProviders(deps),
    deps.db.orm.select().from(identities).where(eq(identities.userId, userId)),
  ]);
  const bound = new Map(rows.map((row) => [row.provider, row]));
  return providers.flatMap(({ id, label, icon, kind, enabled }) => {
    const row = bound.get(id);
    if (!enabled && !row) return [];
    const account = row
      ? { label: row.label || row.subject, created_at: row.createdAt, last_used_at: row.lastUsedAt }
      : null;
    return [{ provider: id, label, icon, kind, enabled, account }];
  });
}

/** Gives up one's own. Throws `oauth_unbound`, `last_method`. */
export async function unbindOwn(deps: Deps, provider: string, by: AuditActor): Promise<void> {
  const user = await rowOf(deps, by.id);
  await unbind(deps, user, provider, by);
}

/** Of somebody else, by rank. */
export async function bindingsFor(deps: Deps, actor: UserAccount, userId: number): Promise<Binding[]> {
  outranked(actor, await rowOf(deps, userId));
  return bindingsOf(deps, userId);
}

/**
 * Of somebody else: whoever loses the last way in gets in again by a reset password, or by an administrator's. The own ones go by
 * `unbindOwn`, whose call asks for proof. Throws `user_missing`, `user_rank_update`, `oauth_unbound`.
 */
export async function unbindFor(
  deps: Deps,
  actor: UserAccount,
  userId: number,
  provider: string,
  by: AuditActor,
): Promise<void> {
  const user = await rowOf(deps, userId);
  if (actor.id === userId) throw refuse("user_rank_update");
  outranked(actor, user);
  await unbind(deps, user, provider, by);
}

function outranked(actor: UserAccount, target: UserRow): void {
  if (actor.id !== target.id && actor.role !== Role.root && target.role >= actor.role)
    throw refuse("user_rank_read");
}

async function rowOf({ db }: Pick<Deps, "db">, id: number): Promise<UserRow> {
  const { users } = db.t;
  const [row] = await db.orm.select().from(users).where(eq(users.id, id));
  if (!row) throw refuse("user_missing");
  return row;
}

async function unbind(deps: Deps, user: UserRow, provider: string, by: AuditActor): Promise<void> {
  const { identities } = deps.db.t;
  const found = (await allProviders(deps)).find(({ id }) => id === provider);
  const label = found?.label ?? provider.slice(0, 32);
  await deps.db.atomic(function* (tx) {
    yield* inTurnSteps(tx, deps, user.id);
    const [gone] = yield* q(
      tx
        .delete(identities)
        .where(and(eq(identities.userId, user.id), eq(identities.provider, provider)))
        .returning({ label: identities.label, subject: identities.subject }),
    );
    if (!gone) throw new Failure("client", "oauth_unbound", { params: { provider: label } });
    if (by.id === user.id) yield* lastOwnSteps(tx, deps, user.id);
    const account = gone.label || gone.subject;
    yield* auditSteps(tx, deps, {
      user,
      action: by.id === user.id ? "identity.unbound" : "user.unbind",
      params: { provider: label, account },
      by,
    });
    yield* identityLetterSteps(tx, deps, user, { provider: label, account, isBound: false });
  });
  sendSoon(deps);
}
