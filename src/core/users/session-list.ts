// The devices in which an account is signed in: what its owner sees of them, and signing them out.
// Refuses to show or take a session's own id, and to tell a foreign session from none.
import { and, desc, eq, gt, isNull } from "drizzle-orm";
import { Role } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { deviceName } from "./device-name.ts";
import { forgetDevices } from "./devices.ts";

/** A session as the wire knows it. */
export interface SessionJson {
  /** A keyed hash; good for nothing but signing it out. */
  id: string;
  current: boolean;
  /** Browser and system; empty: unknown. */
  device: string;
  /** Where it was last seen. */
  ip: string;
  method: string;
  provider: string;
  created_at: number;
  last_seen_at: number;
  expires_at: number;
}

const HASH_CHARS = 32;

const shownId = ({ seal }: Pick<Deps, "seal">, id: string): string =>
  seal.mac(`session|${id}`).toString("hex").slice(0, HASH_CHARS);

function liveRows(deps: Deps, user: Pick<UserAccount, "id" | "sessionVersion">) {
  const { sessions } = deps.db.t;
  const now = Math.floor(deps.clock.nowMs() / 1000);
  return deps.db.orm
    .select()
    .from(sessions)
    .where(
      and(
        eq(sessions.userId, user.id),
        eq(sessions.sessionVersion, user.sessionVersion),
        isNull(sessions.revokedAt),
        gt(sessions.expiresAt, now),
      ),
    )
    .orderBy(desc(sessions.lastSeenAt), desc(sessions.createdAt), sessions.id);
}

/** The live sessions of the account, the one at hand first, then the one that was seen last. */
export async function listSessions(
  deps: Deps,
  user: UserAccount,
  currentId: string | undefined,
): Promise<SessionJson[]> {
  // What is in memory only would be told a minute late.
  await deps.sessions.write();
  const rows = await liveRows(deps, user);
  const shown = await Promise.all(
    rows.map(async (row): Promise<SessionJson> => ({
      id: shownId(deps, row.id),
      current: row.id === currentId,
      device: await deviceName(row.userAgent),
      ip: row.lastIp,
      method: row.method,
      provider: row.provider,
      created_at: row.createdAt,
      last_seen_at: row.lastSeenAt,
      expires_at: row.expiresAt,
    })),
  );
  return [...shown.filter(({ current }) => current), ...shown.filter(({ current }) => !current)];
}

/** Signs one device out, on every node. Throws `session_missing`, for those of other accounts too. */
export async function revokeSession(
  deps: Deps,
  user: UserAccount,
  by: AuditActor,
  shown: string,
): Promise<void> {
  const row = (await liveRows(deps, user)).find(({ id }) => shownId(deps, id) === shown);
  if (!row) throw refuse("session_missing");
  const device = await deviceName(row.userAgent);
  await deps.sessions.end(row.id, "revoked", (tx) =>
    auditSteps(tx, deps, { user, action: "session.revoked", params: { device }, by }),
  );
}

/** Signs out all devices but the one at hand, and forgets the browsers that strangers' tries do not lock out. */
export async function revokeOthers(
  deps: Deps,
  user: UserAccount,
  by: AuditActor,
  here: { sessionId: string; deviceId: string },
): Promise<void> {
  const { sessionId: id, deviceId } = here;
  const { sessionVersion } = user;
  await deps.sessions.endAll(user.id, "revoked", { id, sessionVersion }, (tx) =>
    auditSteps(tx, deps, { user, action: "session.revoked_others", by }),
  );
  await forgetDevices(deps, user.id, deviceId);
}

/** An administrator signs a lower rank out everywhere. Throws `user_missing`, `user_rank_update`. */
export async function revokeAllOf(deps: Deps, by: AuditActor, userId: number): Promise<void> {
  const user = await deps.accounts.user(userId);
  if (!user) throw refuse("user_missing");
  if (by.role < Role.root && user.role >= by.role) throw refuse("user_rank_update");
  await deps.sessions.endAll(userId, "admin", undefined, (tx) =>
    auditSteps(tx, deps, { user, action: "user.sessions_revoke", by }),
  );
  await forgetDevices(deps, userId);
}
