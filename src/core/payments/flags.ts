// Accounts whose payment is disputed: their keys answer 403 until root, or a won dispute, lifts the flag.
// Refuses to lift it while another order of the account is disputed.
import { and, eq, gt } from "drizzle-orm";
import type { OrderRow, PaymentDeps } from "./orders.ts";

/** Flags the order's account, or lifts the flag, by what its orders say now. */
export async function flagDisputed(deps: PaymentDeps, { userId, tradeNo }: OrderRow): Promise<void> {
  const { orders, users } = deps.db.t;
  const disputed = await deps.db.orm
    .select({ tradeNo: orders.tradeNo })
    .from(orders)
    .where(and(eq(orders.userId, userId), gt(orders.disputedMinor, 0)));
  const flagged = disputed.length > 0;
  await deps.db.orm.update(users).set({ flagged }).where(eq(users.id, userId));
  await deps.accounts.userChanged(userId);
  if (disputed.some((order) => order.tradeNo === tradeNo))
    deps.inbox.raise({ kind: "dispute", subject: tradeNo, params: { order: tradeNo } });
  else deps.inbox.gone("dispute", tradeNo);
}
