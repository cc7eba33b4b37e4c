// What providers keep for users (stored responses): found by owner and id alone, so that a foreign id is an unknown one.
// Refuses to write: a row comes to the tables with the charge of the call that made it (core/ledger).
import { and, eq, lte } from "drizzle-orm";
import type { Deps, RemoteObject } from "../deps.ts";
import { readOrRefuse } from "../kit/database-failure.ts";
import type { Channel } from "./rows.ts";

/** OpenAI keeps a stored response for 30 days (its API reference, "Responses", `store`). */
export const KEPT_SECONDS = 30 * 24 * 3600;
/** The longest wait for a PostgreSQL that is away; the same as for an account. */
const DATABASE_WAIT_MS = 10_000;

/** SHA-256 (hex) of each key of the channel, in their order. */
export function keyHashes({ keyRows }: Pick<Channel, "keyRows">): readonly string[] {
  return keyRows.map(({ hash }) => hash);
}

/** The row, whether or not its time is over; undefined for unknown and foreign ids. Throws 503 while PostgreSQL is away. */
export async function findRemoteObject(
  { db }: Pick<Deps, "db">,
  userId: number,
  kind: string,
  upstreamId: string,
): Promise<RemoteObject | undefined> {
  const { remoteObjects: t } = db.t;
  const [row] = await readOrRefuse(db, DATABASE_WAIT_MS, () =>
    db.orm
      .select()
      .from(t)
      .where(and(eq(t.userId, userId), eq(t.kind, kind), eq(t.upstreamId, upstreamId))),
  );
  return row;
}

/** Removes what its provider keeps no longer. */
export async function purgeRemoteObjects({ db, clock }: Pick<Deps, "db" | "clock">): Promise<void> {
  const { remoteObjects: t } = db.t;
  await db.orm.delete(t).where(lte(t.expiresAt, Math.floor(clock.nowMs() / 1000)));
}
