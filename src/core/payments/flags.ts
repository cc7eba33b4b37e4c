// Accounts whose payment is disputed: their keys answer 403 until root, or a won dispute, lifts the flag.
import { eq } from "drizzle-orm";
import type { PaymentDeps } from "./orders.ts";

export async function flagAccount(
  deps: PaymentDeps,
  userId: number,
  flagged: boolean,
  tradeNo: string,
): Promise<void> {
  const { users } = deps.db.t;
  await deps.db.orm.update(users).set({ flagged }).where(eq(users.id, userId));
  await deps.accounts.userChanged(userId);
  if (flagged) deps.inbox.raise({ kind: "dispute", subject: tradeNo, params: { order: tradeNo } });
  else deps.inbox.gone("dispute", tradeNo);
}
