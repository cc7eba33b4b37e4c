// What goes with an account that is removed: its ways in, its keys, its devices, what providers keep of its calls.
// Refuses log rows and credits: they stay as the record of what happened.
import { eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { namesGoneSteps } from "../logs/key-names.ts";

/** Inside the transaction that removes the account's row. */
export function* removeOwnSteps(tx: Orm, { db, clock }: Pick<Deps, "db" | "clock">, id: number): Steps<void> {
  const { identities, remoteObjects, tokens, userDevices } = db.t;
  yield* q(tx.delete(identities).where(eq(identities.userId, id)).returning({ id: identities.id }));
  const keys = yield* q(tx.delete(tokens).where(eq(tokens.userId, id)).returning({ id: tokens.id }));
  if (keys.length > 0) yield* namesGoneSteps(db, tx, Math.floor(clock.nowMs() / 1000));
  yield* q(tx.delete(userDevices).where(eq(userDevices.userId, id)).returning({ id: userDevices.userId }));
  yield* q(
    tx.delete(remoteObjects).where(eq(remoteObjects.userId, id)).returning({ id: remoteObjects.userId }),
  );
}
