// What a key or a user has spent in a period, from the sums that each settlement writes: they survive a restart, know no
// zone, and a refund lowers them where the charge stood.
import { eq, sql } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";

const HOUR = 3600;

export interface Spender {
  userId: number;
  /** 0: all that the user spends, with whatever key and without one. */
  tokenId: number;
}

/** Both figures are of one moment. */
export interface PeriodUse {
  /** Of the whole life of the key or user. */
  usedQuota: number;
  spent: number;
}

/**
 * Undefined where the key or user is gone. A zone off the full hour begins its days inside of an hour's sum: that hour is
 * read from its log rows, and what left none counts whole.
 */
export async function periodUse(
  db: Database,
  { userId, tokenId }: Spender,
  start: number,
): Promise<PeriodUse | undefined> {
  const firstWhole = Math.ceil(start / HOUR) * HOUR;
  const ofKey = tokenId === 0 ? sql`` : sql`and token_id = ${tokenId}`;
  const spent = sql`(select coalesce(sum(quota), 0) from rollups
    where user_id = ${userId} ${ofKey} and hour >= ${firstWhole})`;
  const cut = sql`(select coalesce(sum(quota - logged_quota), 0) from rollups
      where user_id = ${userId} ${ofKey} and hour = ${firstWhole - HOUR})
    + (select coalesce(sum(quota), 0) from logs
      where user_id = ${userId} ${ofKey} and type = ${LogType.consume}
        and created_at >= ${start} and created_at < ${firstWhole})`;
  const sum = sql<number>`${firstWhole === start ? spent : sql`${spent} + ${cut}`}`.mapWith(Number);
  const { users, tokens } = db.t;
  const [row] =
    tokenId === 0
      ? await db.orm
          .select({ usedQuota: users.usedQuota, spent: sum })
          .from(users)
          .where(eq(users.id, userId))
      : await db.orm
          .select({ usedQuota: tokens.usedQuota, spent: sum })
          .from(tokens)
          .where(eq(tokens.id, tokenId));
  return row;
}
