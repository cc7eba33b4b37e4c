// What one's own profile shows at once of second factors, passkeys and bound accounts. Refuses to give a secret along.
import { and, asc, count, eq, isNull } from "drizzle-orm";
import type { Deps } from "../deps.ts";

/** One of the site's providers, as the status names them. */
interface ProviderName {
  id: string;
  label: string;
  icon: string;
  kind: string;
}

/** Providers that are on, in their order, then what is bound at others. */
function bindingsOf<Row extends { provider: string; label: string; createdAt: number; lastUsedAt: number }>(
  providers: readonly ProviderName[],
  rows: readonly Row[],
) {
  const accountOf = (id: string) => {
    const row = rows.find(({ provider }) => provider === id);
    return row ? { label: row.label, created_at: row.createdAt, last_used_at: row.lastUsedAt } : null;
  };
  const offered = providers.map(({ id, label, icon, kind }) => ({
    provider: id,
    label,
    icon,
    kind,
    account: accountOf(id),
    enabled: true,
  }));
  const others = rows
    .filter((row) => !providers.some(({ id }) => id === row.provider))
    .map(({ provider }) => ({
      provider,
      label: provider,
      icon: "",
      kind: "",
      account: accountOf(provider),
      enabled: false,
    }));
  return [...offered, ...others];
}

/** Times in Unix seconds, names as on the wire. */
export async function ownSecurity(deps: Deps, userId: number, providers: readonly ProviderName[]) {
  const { backupCodes, identities, passkeys, totps } = deps.db.t;
  const { orm } = deps.db;
  const [[totp], [codes], keys, bound] = await Promise.all([
    orm.select().from(totps).where(eq(totps.userId, userId)),
    orm
      .select({ left: count() })
      .from(backupCodes)
      .where(and(eq(backupCodes.userId, userId), isNull(backupCodes.usedAt))),
    orm.select().from(passkeys).where(eq(passkeys.userId, userId)).orderBy(asc(passkeys.id)),
    orm.select().from(identities).where(eq(identities.userId, userId)).orderBy(asc(identities.id)),
  ]);
  return {
    factor: {
      enabled: totp !== undefined,
      locked_until: totp?.lockedUntil ?? 0,
      backup_codes_left: codes?.left ?? 0,
      created_at: totp?.createdAt ?? 0,
    },
    passkeys: keys.map((row) => ({
      id: row.id,
      name: row.name,
      created_at: row.createdAt,
      last_used_at: row.lastUsedAt,
      device_type: row.deviceType,
      backed_up: row.backedUp,
    })),
    bindings: bindingsOf(providers, bound),
  };
}
