// Changes of balances that are no usage: a credit with its row, and a key's new limit, as steps of a transaction.
// Refuses sums beyond the exact integers.
import { eq, sql } from "drizzle-orm";
import { q, sumOf } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import { isQuota, MAX_QUOTA } from "../../shared/money.ts";
import type { Credit } from "../deps.ts";

const OF_PLANS: ReadonlySet<Credit["kind"]> = new Set(["plan", "plan_end"]);

/** The user's balance with the row that says why it changed. */
export function* creditSteps(
  tx: Orm,
  { credits, users }: Database["t"],
  { userId, amount, kind, ref = "" }: Credit,
  nowMs: number,
): Steps<void> {
  if (!isQuota(amount)) throw refuse("quota_out_of_range");
  yield* q(
    tx
      .insert(credits)
      .values({ userId, amount, kind, ref, createdAt: Math.floor(nowMs / 1000) })
      .returning({ id: credits.id }),
  );
  const [user] = yield* q(
    tx
      .update(users)
      .set({
        quota: sql`${users.quota} + ${amount}`,
        // What a plan gives and takes back is the plan's, everything else the wallet's.
        ...(OF_PLANS.has(kind) ? {} : { planWallet: sql`${users.planWallet} + ${amount}` }),
      })
      .where(eq(users.id, userId))
      .returning({ quota: users.quota }),
  );
  if (!user) throw refuse("user_missing");
  if (Math.abs(user.quota) > MAX_QUOTA) throw refuse("quota_out_of_range");
}

/** What a key may still spend; open reservations stay beside it. */
export function* tokenQuotaSteps(
  tx: Orm,
  { tokens, reservations }: Database["t"],
  tokenId: number,
  remainQuota: number,
): Steps<void> {
  if (!isQuota(remainQuota)) throw refuse("quota_out_of_range");
  // Locks the row first, so that no reservation slips in between the sum and the update.
  yield* q(tx.update(tokens).set({ remainQuota }).where(eq(tokens.id, tokenId)).returning({ id: tokens.id }));
  const [held] = yield* q(
    tx
      .select({ amount: sumOf(reservations.amount) })
      .from(reservations)
      .where(eq(reservations.tokenId, tokenId)),
  );
  yield* q(
    tx
      .update(tokens)
      .set({ quotaBase: sql`${tokens.usedQuota} + ${remainQuota + (held?.amount ?? 0)}` })
      .where(eq(tokens.id, tokenId))
      .returning({ id: tokens.id }),
  );
}
