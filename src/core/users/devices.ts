// Browsers in which somebody has signed in to an account: strangers' wrong passwords do not lock them out.
// Refuses to keep more than a few per account; the longest unseen is forgotten first.
import { and, desc, eq, inArray, ne } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { sha256Hex } from "../kit/seal.ts";

const MAX_DEVICES = 10;

type DeviceDeps = Pick<Deps, "db" | "clock">;

/** `deviceId`: the random id of the browser's cookie; empty: it has none. */
export async function isKnownDevice(
  deps: Pick<Deps, "db">,
  userId: number,
  deviceId: string,
): Promise<boolean> {
  if (deviceId === "") return false;
  const { userDevices } = deps.db.t;
  const rows = await deps.db.orm
    .select({ hash: userDevices.hash })
    .from(userDevices)
    .where(and(eq(userDevices.userId, userId), eq(userDevices.hash, sha256Hex(deviceId))));
  return rows.length > 0;
}

/** Call after a sign-in. */
export async function rememberDevice(deps: DeviceDeps, userId: number, deviceId: string): Promise<void> {
  const { userDevices } = deps.db.t;
  const lastSeenAt = Math.floor(deps.clock.nowMs() / 1000);
  const hash = sha256Hex(deviceId);
  await deps.db.atomic(function* (tx) {
    yield* q(
      tx
        .insert(userDevices)
        .values({ userId, hash, lastSeenAt })
        .onConflictDoUpdate({ target: [userDevices.userId, userDevices.hash], set: { lastSeenAt } })
        .returning({ hash: userDevices.hash }),
    );
    const others = yield* q(
      tx
        .select({ hash: userDevices.hash })
        .from(userDevices)
        .where(and(eq(userDevices.userId, userId), ne(userDevices.hash, hash)))
        .orderBy(desc(userDevices.lastSeenAt), userDevices.hash),
    );
    const tooMany = others.slice(MAX_DEVICES - 1).map((each) => each.hash);
    if (tooMany.length === 0) return;
    yield* q(
      tx
        .delete(userDevices)
        .where(and(eq(userDevices.userId, userId), inArray(userDevices.hash, tooMany)))
        .returning({ hash: userDevices.hash }),
    );
  });
}

/** All devices of the account but, where it is named, the one at hand. */
export async function forgetDevices(deps: Pick<Deps, "db">, userId: number, kept = ""): Promise<void> {
  const { userDevices } = deps.db.t;
  const other = kept === "" ? undefined : ne(userDevices.hash, sha256Hex(kept));
  await deps.db.orm.delete(userDevices).where(and(eq(userDevices.userId, userId), other));
}
