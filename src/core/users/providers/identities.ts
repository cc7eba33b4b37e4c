// The rows that say which foreign account is whose: found, written and given up inside the transaction of what they are for.
// Refuses to take a name for a number: a row that was imported by a login counts once, and only for who had it then.
import { and, eq } from "drizzle-orm";
import { q } from "../../../db/database.ts";
import type { Orm, Steps } from "../../../db/database.ts";
import { auditSteps } from "../../logs/audit.ts";
import type { AuditActor } from "../../logs/audit.ts";
import type { Deps } from "../../deps.ts";
import type { IdentityProvider, Profile } from "./types.ts";

type UserRow = Deps["db"]["t"]["users"]["$inferSelect"];
type IdentityDeps = Pick<Deps, "db" | "clock" | "options" | "ledger">;

/** Who comes, and from where; the account's own name is filled in. */
export type Origin = Pick<AuditActor, "address" | "userAgent">;

/** What people know the foreign account by. */
export function labelOf({ login, name, email, subject }: Profile): string {
  return (login ?? name ?? email ?? subject).slice(0, 255);
}

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

/** Somebody's own act, for the log. */
export function ownActor(
  user: Pick<UserRow, "id" | "username" | "role">,
  { address, userAgent }: Origin,
): AuditActor {
  return { id: user.id, username: user.username, role: user.role, address, userAgent, authMethod: "session" };
}

/** Writes the row; throws a unique violation where subject or account has one already. */
export function* insertIdentitySteps(
  tx: Orm,
  deps: Pick<Deps, "db" | "clock">,
  { userId, provider, profile }: { userId: number; provider: string; profile: Profile },
): Steps<void> {
  const { identities } = deps.db.t;
  const now = nowSeconds(deps);
  const { subject } = profile;
  const values = { userId, provider, subject, label: labelOf(profile), createdAt: now, lastUsedAt: now };
  yield* q(tx.insert(identities).values(values).returning({ id: identities.id }));
}

/** Whose account the subject is bound to, deleted and banned ones included; notes the use. */
export async function ownerOf(
  deps: IdentityDeps,
  provider: IdentityProvider,
  profile: Profile,
  origin: Origin,
): Promise<UserRow | undefined> {
  return deps.db.atomic(function* (tx) {
    const { identities, users } = deps.db.t;
    const now = nowSeconds(deps);
    const [known] = yield* q(
      tx
        .update(identities)
        .set({ lastUsedAt: now, label: labelOf(profile) })
        .where(
          and(
            eq(identities.provider, provider.id),
            eq(identities.subject, profile.subject),
            eq(identities.legacy, false),
          ),
        )
        .returning({ userId: identities.userId }),
    );
    const userId = known?.userId ?? (yield* claimSteps(tx, deps, provider, profile, origin));
    if (userId === undefined) return undefined;
    const [user] = yield* q(tx.select().from(users).where(eq(users.id, userId)));
    return user;
  });
}

/** An imported login becomes the number behind it, once: where that account existed before ours did. */
function* claimSteps(
  tx: Orm,
  deps: IdentityDeps,
  provider: IdentityProvider,
  profile: Profile,
  origin: Origin,
): Steps<number | undefined> {
  const { identities, users } = deps.db.t;
  const { login, createdAt, subject } = profile;
  if (provider.id !== "github" || !deps.options.get("GitHubLegacyNames")) return undefined;
  if (login === undefined || createdAt === undefined) return undefined;
  const isLegacy = and(
    eq(identities.provider, provider.id),
    eq(identities.subject, login.toLowerCase()),
    eq(identities.legacy, true),
  );
  const [found] = yield* q(
    tx
      .select({ id: identities.id, user: users })
      .from(identities)
      .innerJoin(users, eq(users.id, identities.userId))
      .where(isLegacy),
  );
  // Whoever made theirs later took a name that had become free.
  if (!found || createdAt > found.user.createdAt) return undefined;
  const [claimed] = yield* q(
    tx
      .update(identities)
      .set({ subject, legacy: false, label: labelOf(profile), lastUsedAt: nowSeconds(deps) })
      .where(and(eq(identities.id, found.id), isLegacy))
      .returning({ userId: identities.userId }),
  );
  if (!claimed) return undefined;
  yield* auditSteps(tx, deps, {
    user: found.user,
    action: "identity.claimed",
    params: { provider: provider.label, account: labelOf(profile) },
    by: ownActor(found.user, origin),
  });
  return claimed.userId;
}
