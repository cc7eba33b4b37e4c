// What part of an order counts: of one that was paid in part, and of one whose money went back in part.
import { refuse } from "../../shared/failures.ts";
import type { OrderRow } from "./orders.ts";

/** What an order in review is worth by what was paid: never more than was ordered. Throws `order_no_pro_rata`. */
export function proRataOf(order: OrderRow): OrderRow {
  const { paidMinor, moneyMinor } = order;
  // A plan has no parts.
  if (order.kind === "plan" || order.status !== "review" || paidMinor <= 0 || paidMinor >= moneyMinor)
    throw refuse("order_no_pro_rata");
  const quota = Number((BigInt(order.quota) * BigInt(paidMinor)) / BigInt(moneyMinor));
  // From now on this is the order: a refund takes back its share of what was credited. The snapshot keeps what was asked.
  return { ...order, quota, moneyMinor: paidMinor };
}

/** Units that the buyer loses: the share of the money that went back, never more than the credit. */
export function debitFor({
  quota,
  moneyMinor,
  refundedMinor,
  disputedMinor,
}: Pick<OrderRow, "quota" | "moneyMinor" | "refundedMinor" | "disputedMinor">): number {
  const gone = BigInt(Math.min(moneyMinor, refundedMinor + disputedMinor));
  return Number((BigInt(quota) * gone) / BigInt(moneyMinor));
}
