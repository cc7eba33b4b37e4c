// The state of an order: dot and word, and what of its money went back.
import type { Translate } from "../lib/i18n.ts";
import { isSum, moneyText, ORDER_STATUS } from "../lib/order-words.ts";
import type { OrderRow } from "../lib/wire.ts";
import { StatusDot } from "./badges.tsx";

/** Status, and below it the sum that went back. */
export function OrderStatus({
  t,
  row,
}: {
  t: Translate;
  row: Pick<OrderRow, "status" | "refunded" | "currency">;
}) {
  const [tone, key] = ORDER_STATUS[row.status] ?? ["off", "common.unknown"];
  const isReturned = isSum(row.refunded);
  return (
    <StatusDot
      tone={tone}
      reason={
        isReturned ? t("topup.refundedSum", { money: moneyText(row.refunded, row.currency) }) : undefined
      }
    >
      {t(key)}
    </StatusDot>
  );
}
