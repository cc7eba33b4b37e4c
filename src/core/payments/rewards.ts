// What whoever invited a buyer gets, where the site waits for the invited account's first paid order.
// Refuses to give it twice: the promise stands in the buyer's row, and the step that takes it out of there gives it.
import { and, eq, gt, isNull, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LogType, UserStatus } from "../../shared/enums.ts";
import { logQuotaText } from "../../shared/money.ts";
import { inviterGift } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";
import type { PaymentDeps } from "./orders.ts";

/** Call in the transaction that credits the order, after the credit: that has locked the buyer's row. */
export function* inviteRewardSteps(tx: Orm, deps: PaymentDeps, buyerId: number): Steps<void> {
  const { users } = deps.db.t;
  const [buyer] = yield* q(
    tx
      .select({ reward: users.inviteReward, inviterId: users.inviterId })
      .from(users)
      .where(eq(users.id, buyerId)),
  );
  if (!buyer || buyer.reward <= 0) return;
  const { reward, inviterId } = buyer;
  const taken = yield* q(
    tx
      .update(users)
      .set({ inviteReward: 0 })
      .where(and(eq(users.id, buyerId), gt(users.inviteReward, 0)))
      .returning({ id: users.id }),
  );
  if (taken.length === 0) return;
  // Who is gone or banned gets nothing, as at a registration.
  const [inviter] = yield* q(
    tx
      .update(users)
      .set({
        affCount: sql`${users.affCount} + 1`,
        affQuota: sql`${users.affQuota} + ${reward}`,
        affHistoryQuota: sql`${users.affHistoryQuota} + ${reward}`,
      })
      .where(and(eq(users.id, inviterId), isNull(users.deletedAt), eq(users.status, UserStatus.enabled)))
      .returning({ id: users.id, username: users.username }),
  );
  if (!inviter) return;
  yield* deps.ledger.logSteps(tx, {
    type: LogType.system,
    userId: inviter.id,
    username: inviter.username,
    content: inviterGift(logQuotaText(reward, quotaDisplay(deps.options))),
  });
}
