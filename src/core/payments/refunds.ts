// Refunds that root asks for: the rail sends the money back, and the credit goes with it.
// Refuses what the rail cannot send back, and to send back more than came.
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import type { AuditActor } from "../logs/audit.ts";
import type { OrderRow } from "./orders.ts";
import type { PaymentRail, RailDeps } from "./rail.ts";
import { railOf } from "./rails.ts";
import { takeBack } from "./taken-back.ts";

/** Money that came in by a rail which sends it back, and of which something is left. */
export function canRefund(order: OrderRow, rail: Pick<PaymentRail, "refund"> | undefined): boolean {
  return (
    rail?.refund !== undefined &&
    order.providerRef !== null &&
    (order.status === "credited" || order.status === "review") &&
    order.refundedMinor < order.moneyMinor
  );
}

/**
 * Asks for what is left of the money to go back, and books it. Of an order in review, whose sum was not the one that was
 * asked for, all goes back that came. Throws `order_missing`, `order_not_refundable`, `refund_failed`.
 */
export async function refundOrder(
  deps: RailDeps & Pick<Deps, "rails">,
  by: AuditActor,
  tradeNo: string,
  reason: string,
): Promise<void> {
  const { order, rail } = await railOf(deps, tradeNo);
  if (!rail?.refund || !canRefund(order, rail)) throw refuse("order_not_refundable");
  const minor = order.status === "review" ? undefined : order.moneyMinor - order.refundedMinor;
  let eventId: string;
  try {
    ({ eventId } = await rail.refund(deps, order, minor));
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("client", "refund_failed", { internal: String(error).slice(0, 300) });
  }
  await takeBack(deps, { tradeNo, eventId, reason, by }, () => ({ refundedMinor: order.moneyMinor }));
  deps.inbox.gone("payment", tradeNo);
}
