// Accounts whose payment is disputed: their keys answer 403 until root, or a won dispute, lifts the flag.
// Refuses to lift it while another order of the account is disputed, and to set it again for a dispute that is known already.
import { and, eq, gt, isNull } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import type { OrderRow, PaymentDeps } from "./orders.ts";

/**
 * A dispute that begins flags the account, also beside another; the end of the last one lifts the flag. What changes neither
 * touches nothing, so that a flag which root lifted by hand stays lifted. Call in the ledger's transaction that changes the order, after it has changed.
 */
export function* disputeFlagSteps(
  tx: Orm,
  deps: PaymentDeps,
  { userId, disputedMinor: before }: OrderRow,
  disputedMinor: number,
): Steps<void> {
  const isMore = disputedMinor > before;
  if (!isMore && !(disputedMinor === 0 && before > 0)) return;
  const { orders, users } = deps.db.t;
  const [other] = yield* q(
    tx
      .select({ id: orders.id })
      .from(orders)
      .where(and(eq(orders.userId, userId), gt(orders.disputedMinor, 0)))
      .limit(1),
  );
  if (!isMore && other) return;
  yield* q(
    tx
      .update(users)
      .set({ flagged: isMore })
      .where(and(eq(users.id, userId), isNull(users.deletedAt)))
      .returning({ id: users.id }),
  );
  deps.ledger.changed(tx, userId);
}

/** Tells every node, and root, how the order stands now. */
export async function tellDispute(deps: PaymentDeps, { id, userId, tradeNo }: OrderRow): Promise<void> {
  const { orders } = deps.db.t;
  // First: what fails behind it is asked again by the provider, the account is used meanwhile.
  await deps.accounts.userChanged(userId);
  const [row] = await deps.db.orm
    .select({ disputedMinor: orders.disputedMinor })
    .from(orders)
    .where(eq(orders.id, id));
  if (row && row.disputedMinor > 0)
    deps.inbox.raise({ kind: "dispute", subject: tradeNo, params: { order: tradeNo } });
  else deps.inbox.gone("dispute", tradeNo);
}
