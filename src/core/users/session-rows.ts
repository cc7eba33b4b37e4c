// The rows of sessions as steps of a transaction, each answering the ids that it changed; and what is written of them
// later, together.
import { and, desc, eq, inArray, isNull, lt, ne, or, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";

export const SESSION_SECONDS = 30 * 24 * 3600;
/** Ended rows stay so long for the account's own list and for whoever looks into a break-in. */
const KEPT_SECONDS = 30 * 24 * 3600;
/** A sign-in, or proving oneself again, counts as fresh so long (identity.md 5.4). */
export const PROOF_SECONDS = 600;
const MAX_LIVE = 50;
const MAX_AGENT_CHARS = 256;

export type SignInMethod = "password" | "passkey" | "provider" | "rescue";

export interface NewSession {
  userId: number;
  sessionVersion: number;
  method: SignInMethod;
  /** Id of the sign-in provider, where one did it. */
  provider?: string;
  ip: string;
  userAgent: string;
}

/** What a session was last used for. */
export interface LastUse {
  readonly id: string;
  lastSeenAt: number;
  lastIp: string;
}

/** Writes the row; the user's oldest sessions above the limit end and are the ones that are answered. */
export function* openSteps(
  tx: Orm,
  db: Database,
  id: string,
  { userId, sessionVersion, method, provider = "", ip, userAgent }: NewSession,
  now: number,
): Steps<string[]> {
  const { sessions, users } = db.t;
  // Sign-ins of one user over several nodes count one after another.
  if (db.kind === "postgres")
    yield* q(tx.select({ id: users.id }).from(users).where(eq(users.id, userId)).for("no key update"));
  const live = yield* q(
    tx
      .select({ id: sessions.id })
      .from(sessions)
      .where(
        and(
          eq(sessions.userId, userId),
          isNull(sessions.revokedAt),
          sql`${sessions.expiresAt} > ${now}`,
          eq(sessions.sessionVersion, sessionVersion),
        ),
      )
      .orderBy(desc(sessions.lastSeenAt), desc(sessions.createdAt), sessions.id),
  );
  yield* q(
    tx
      .insert(sessions)
      .values({
        id,
        userId,
        sessionVersion,
        method,
        provider,
        ip,
        lastIp: ip,
        userAgent: userAgent.slice(0, MAX_AGENT_CHARS),
        createdAt: now,
        lastSeenAt: now,
        expiresAt: now + SESSION_SECONDS,
        sudoUntil: now + PROOF_SECONDS,
      })
      .returning({ id: sessions.id }),
  );
  yield* q(tx.update(users).set({ lastSeenAt: now }).where(eq(users.id, userId)).returning({ id: users.id }));
  const tooMany = live.slice(MAX_LIVE - 1).map((each) => each.id);
  if (tooMany.length > 0)
    yield* q(
      tx
        .update(sessions)
        .set({ revokedAt: now, reason: "too_many" })
        .where(inArray(sessions.id, tooMany))
        .returning({ id: sessions.id }),
    );
  return tooMany;
}

/** Freshly proven until then. */
export function* proveSteps(
  tx: Orm,
  { sessions }: Database["t"],
  id: string,
  sudoUntil: number,
): Steps<string[]> {
  const rows = yield* q(
    tx
      .update(sessions)
      .set({ sudoUntil })
      .where(and(eq(sessions.id, id), isNull(sessions.revokedAt)))
      .returning({ id: sessions.id }),
  );
  return rows.map((row) => row.id);
}

export function* endSteps(
  tx: Orm,
  { sessions }: Database["t"],
  id: string,
  { reason, now }: { reason: string; now: number },
): Steps<string[]> {
  const rows = yield* q(
    tx
      .update(sessions)
      .set({ revokedAt: now, reason })
      .where(and(eq(sessions.id, id), isNull(sessions.revokedAt)))
      .returning({ id: sessions.id }),
  );
  return rows.map((row) => row.id);
}

/** All of a user's but the kept one, which goes on under the given version. */
export function* endAllSteps(
  tx: Orm,
  { sessions }: Database["t"],
  userId: number,
  { reason, now, kept }: { reason: string; now: number; kept?: { id: string; sessionVersion: number } },
): Steps<string[]> {
  const others = yield* q(
    tx
      .update(sessions)
      .set({ revokedAt: now, reason })
      .where(
        and(
          eq(sessions.userId, userId),
          isNull(sessions.revokedAt),
          kept ? ne(sessions.id, kept.id) : undefined,
        ),
      )
      .returning({ id: sessions.id }),
  );
  if (!kept) return others.map((row) => row.id);
  const own = yield* q(
    tx
      .update(sessions)
      .set({ sessionVersion: kept.sessionVersion })
      .where(and(eq(sessions.id, kept.id), eq(sessions.userId, userId)))
      .returning({ id: sessions.id }),
  );
  return [...others, ...own].map((row) => row.id);
}

export function* removeSteps(tx: Orm, { sessions }: Database["t"], userId: number): Steps<string[]> {
  const rows = yield* q(
    tx.delete(sessions).where(eq(sessions.userId, userId)).returning({ id: sessions.id }),
  );
  return rows.map((row) => row.id);
}

/** Deletes rows whose session ended long ago. */
export async function purgeRows({ orm, t: { sessions } }: Database, now: number): Promise<void> {
  const before = now - KEPT_SECONDS;
  await orm.delete(sessions).where(or(lt(sessions.expiresAt, before), lt(sessions.revokedAt, before)));
}

/** Two statements, however many there are: the sessions, and the accounts that they belong to. */
export async function writeLastUse(db: Database, uses: readonly LastUse[]): Promise<void> {
  const { sessions, users } = db.t;
  const list = JSON.stringify(uses.map(({ id, lastSeenAt, lastIp }) => [id, lastSeenAt, lastIp]));
  const seen =
    db.kind === "postgres"
      ? sql`json_array_elements(${list}::json) as seen(value)`
      : sql`json_each(${list}) as seen`;
  await db.orm
    .update(sessions)
    .set({
      lastSeenAt: sql`cast(value->>1 as bigint)`,
      lastIp: sql`value->>2`,
    })
    .from(seen)
    .where(eq(sessions.id, sql`value->>0`));
  const ids = JSON.stringify(uses.map(({ id }) => id));
  const used =
    db.kind === "postgres"
      ? sql`(select value from json_array_elements_text(${ids}::json))`
      : sql`(select value from json_each(${ids}))`;
  const latest = sql`(select max(${sessions.lastSeenAt}) from ${sessions} where ${sessions.userId} = ${users.id})`;
  await db.orm
    .update(users)
    .set({ lastSeenAt: latest })
    .where(
      sql`${users.id} in (select ${sessions.userId} from ${sessions} where ${sessions.id} in ${used}) and ${users.lastSeenAt} < ${latest}`,
    );
}
