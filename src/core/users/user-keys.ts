// The API keys of a user as administrators may see them: what each is called, may spend and has spent.
// Refuses to show the keys themselves, masked or not, and to look at a same or higher rank.
import { and, desc, eq, isNull } from "drizzle-orm";
import type { Deps, UserAccount } from "../deps.ts";
import { getUserFor } from "./users.ts";

/** A key without anything that could be used. */
export interface UserKeyJson {
  id: number;
  name: string;
  status: number;
  /** Unix seconds; null until it is used. */
  accessed_time: number | null;
  /** Unix seconds, -1: never. */
  expired_time: number;
  unlimited_quota: boolean;
  remain_quota: number;
  used_quota: number;
}

const MOST_KEYS = 100;

/** The newest hundred keys of the user; refuses as getUserFor does. */
export async function keysOfUser(deps: Deps, actor: UserAccount, userId: number): Promise<UserKeyJson[]> {
  await getUserFor(deps, actor, userId);
  const { tokens } = deps.db.t;
  const rows = await deps.db.orm
    .select({
      id: tokens.id,
      name: tokens.name,
      status: tokens.status,
      accessed_time: tokens.accessedTime,
      expired_time: tokens.expiredTime,
      unlimited_quota: tokens.unlimitedQuota,
      remain_quota: tokens.remainQuota,
      used_quota: tokens.usedQuota,
    })
    .from(tokens)
    .where(and(eq(tokens.userId, userId), isNull(tokens.deletedAt)))
    .orderBy(desc(tokens.id))
    .limit(MOST_KEYS);
  return rows.map((row) => ({ ...row, accessed_time: row.accessed_time > 0 ? row.accessed_time : null }));
}
