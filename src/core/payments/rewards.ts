// What whoever invited a buyer gets, where the site waits for the invited account's first paid order.
// Refuses to give it twice: the promise stands in the buyer's row, and the step that takes it out of there gives it. Goes back
// once with the money of the order that earned it: who buys, is rewarded and is refunded has gained nothing. Comes again where
// that refund fails after all.
import { and, eq, gt, isNull, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LogType, UserStatus } from "../../shared/enums.ts";
import { logQuotaText } from "../../shared/money.ts";
import { inviterGift, inviterGiftAgain, inviterGiftBack } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";
import type { CreditSteps, OrderRow, PaymentDeps } from "./orders.ts";

/** Call in the transaction that credits the order, after the credit: that has locked the buyer's row. */
export function* inviteRewardSteps(
  tx: Orm,
  deps: PaymentDeps,
  { id: orderId, userId: buyerId }: Pick<OrderRow, "id" | "userId">,
): Steps<void> {
  const { orders, users } = deps.db.t;
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
  yield* q(
    tx
      .update(orders)
      .set({ rewardQuota: reward, rewardUserId: inviter.id })
      .where(eq(orders.id, orderId))
      .returning({ id: orders.id }),
  );
  yield* deps.ledger.logSteps(tx, {
    type: LogType.system,
    userId: inviter.id,
    username: inviter.username,
    content: inviterGift(logQuotaText(reward, quotaDisplay(deps.options))),
  });
}

interface RewardWork {
  tx: Orm;
  deps: PaymentDeps;
  credit: CreditSteps;
  /** What brought it about: credits are entered once each. */
  eventId: string;
}

/**
 * Takes the order's reward back from whoever got it: first of what waits to be transferred, the rest of the balance, below
 * zero where it was spent. Call under the order's lock, in the transaction that makes the whole of its money go back.
 */
export function* rewardBackSteps(
  { tx, deps, credit, eventId }: RewardWork,
  { id, tradeNo, rewardQuota: reward, rewardUserId }: OrderRow,
): Steps<void> {
  if (reward <= 0) return;
  const { orders, users } = deps.db.t;
  // Locks the row: what waits cannot be transferred meanwhile.
  const [inviter] = yield* q(
    tx
      .update(users)
      .set({
        affCount: sql`${users.affCount} - 1`,
        affHistoryQuota: sql`${users.affHistoryQuota} - ${reward}`,
      })
      .where(and(eq(users.id, rewardUserId), isNull(users.deletedAt)))
      .returning({ waiting: users.affQuota, username: users.username }),
  );
  const fromWaiting = inviter ? Math.min(reward, Math.max(0, inviter.waiting)) : 0;
  // Who is gone has taken it along: an erased account has no balance.
  const rest = inviter ? reward - fromWaiting : 0;
  yield* q(
    tx
      .update(orders)
      .set({ rewardQuota: 0, rewardBackQuota: inviter ? reward : 0, rewardBackDebited: rest })
      .where(eq(orders.id, id))
      .returning({ id: orders.id }),
  );
  if (!inviter) return;
  if (fromWaiting > 0)
    yield* q(
      tx
        .update(users)
        .set({ affQuota: sql`${users.affQuota} - ${fromWaiting}` })
        .where(eq(users.id, rewardUserId))
        .returning({ id: users.id }),
    );
  if (rest > 0)
    yield* credit({
      userId: rewardUserId,
      amount: -rest,
      kind: "invite",
      ref: `${tradeNo}:reward:${eventId}`,
    });
  yield* deps.ledger.logSteps(tx, {
    type: LogType.system,
    userId: rewardUserId,
    username: inviter.username,
    content: inviterGiftBack(logQuotaText(reward, quotaDisplay(deps.options))),
  });
}

/** Gives back what `rewardBackSteps` took, to where it was taken from. Call as that, where the money did not go back after all. */
export function* rewardAgainSteps(
  { tx, deps, credit, eventId }: RewardWork,
  { id, tradeNo, rewardUserId, rewardBackQuota: reward, rewardBackDebited: debited }: OrderRow,
): Steps<void> {
  if (reward <= 0) return;
  const { orders, users } = deps.db.t;
  const [inviter] = yield* q(
    tx
      .update(users)
      .set({
        affCount: sql`${users.affCount} + 1`,
        affQuota: sql`${users.affQuota} + ${reward - debited}`,
        affHistoryQuota: sql`${users.affHistoryQuota} + ${reward}`,
      })
      .where(and(eq(users.id, rewardUserId), isNull(users.deletedAt)))
      .returning({ username: users.username }),
  );
  yield* q(
    tx
      .update(orders)
      .set({ rewardQuota: inviter ? reward : 0, rewardBackQuota: 0, rewardBackDebited: 0 })
      .where(eq(orders.id, id))
      .returning({ id: orders.id }),
  );
  if (!inviter) return;
  if (debited > 0)
    yield* credit({
      userId: rewardUserId,
      amount: debited,
      kind: "invite",
      ref: `${tradeNo}:reward:${eventId}`,
    });
  yield* deps.ledger.logSteps(tx, {
    type: LogType.system,
    userId: rewardUserId,
    username: inviter.username,
    content: inviterGiftAgain(logQuotaText(reward, quotaDisplay(deps.options))),
  });
}
