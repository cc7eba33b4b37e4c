// Taking a charge back: the reversal of one settled call, on every sum that it raised.
// Refuses to give back what was never charged, and to give it back in parts.
import { and, desc, eq, gte, sql } from "drizzle-orm";
import { q } from "../db/database.ts";
import type { Database, Orm, Steps } from "../db/database.ts";
import { LogType, TokenStatus } from "../shared/enums.ts";

/** One settled call, as its task remembers it. */
export interface SettledCall {
  requestId: string;
  userId: number;
  /** 0 = no key was charged. */
  tokenId: number;
  channelId: number;
  modelName: string;
  group: string;
  /** What it was charged, whole units above 0. */
  quota: number;
}

/**
 * Lowers user, key, channel and the hourly sum by the charge and marks the call's log row as given back, all inside the
 * caller's transaction. False when the settlement is not in these books (yet): nothing was changed then. The balance
 * needs no credit: it is what was credited less what was used. Call userChanged and tokenChanged after the commit.
 */
export function* refundSteps(db: Database, tx: Orm, call: SettledCall): Steps<boolean> {
  const { logs, rollups, users, tokens, channels } = db.t;
  const { quota } = call;
  const [row] = yield* q(
    tx
      .select({ id: logs.id, other: logs.other, quota: logs.quota })
      .from(logs)
      .where(and(eq(logs.requestId, call.requestId), eq(logs.type, LogType.consume), gte(logs.quota, quota))),
  );
  const [sum] = yield* q(
    tx
      .select({ hour: rollups.hour, loggedQuota: rollups.loggedQuota })
      .from(rollups)
      .where(
        and(
          eq(rollups.userId, call.userId),
          eq(rollups.modelName, call.modelName),
          eq(rollups.channelId, call.channelId),
          eq(rollups.tokenId, call.tokenId),
          eq(rollups.group, call.group),
          gte(rollups.quota, quota),
        ),
      )
      .orderBy(desc(rollups.hour)),
  );
  if (!sum) return false;
  const logged = row ? quota : 0;
  yield* q(
    tx
      .update(rollups)
      .set({ quota: sql`${rollups.quota} - ${quota}`, loggedQuota: sql`${rollups.loggedQuota} - ${logged}` })
      .where(
        and(
          eq(rollups.hour, sum.hour),
          eq(rollups.userId, call.userId),
          eq(rollups.modelName, call.modelName),
          eq(rollups.channelId, call.channelId),
          eq(rollups.tokenId, call.tokenId),
          eq(rollups.group, call.group),
        ),
      )
      .returning({ hour: rollups.hour }),
  );
  if (row) {
    yield* q(
      tx
        .update(logs)
        .set({ quota: row.quota - quota, other: withRefund(row.other, quota) })
        .where(eq(logs.id, row.id))
        .returning({ id: logs.id }),
    );
  }
  yield* q(
    tx
      .update(users)
      .set({ quota: sql`${users.quota} + ${quota}`, usedQuota: sql`${users.usedQuota} - ${quota}` })
      .where(eq(users.id, call.userId))
      .returning({ id: users.id }),
  );
  yield* q(
    tx
      .update(tokens)
      .set({
        remainQuota: sql`${tokens.remainQuota} + ${quota}`,
        usedQuota: sql`${tokens.usedQuota} - ${quota}`,
        // A key that this very charge used up can be used again.
        status: sql`case when ${tokens.status} = ${TokenStatus.exhausted} and ${tokens.remainQuota} + ${quota} > 0
          then ${TokenStatus.enabled} else ${tokens.status} end`,
      })
      .where(eq(tokens.id, call.tokenId))
      .returning({ id: tokens.id }),
  );
  yield* q(
    tx
      .update(channels)
      .set({ usedQuota: sql`${channels.usedQuota} - ${quota}` })
      .where(eq(channels.id, call.channelId))
      .returning({ id: channels.id }),
  );
  return true;
}

function withRefund(other: string, quota: number): string {
  try {
    const value = JSON.parse(other === "" ? "{}" : other) as Record<string, unknown>;
    return JSON.stringify({ ...value, refunded: quota });
  } catch {
    return JSON.stringify({ refunded: quota });
  }
}
