// The own orders: what was paid and what it brought, what of it went back, and the receipt of each.
import type { Translate } from "../../lib/i18n.ts";
import { hasReceipt, isWaiting, moneyText } from "../../lib/order-words.ts";
import type { OrderRow } from "../../lib/wire.ts";
import { Moment, Money } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { OrderStatus } from "../../ui/order-status.tsx";
import type { Column } from "../../ui/table-columns.ts";

/** The receipt of a paid order, the way back to one that still waits. */
function OrderLink({ t, row }: { t: Translate; row: OrderRow }) {
  if (hasReceipt(row.status))
    return (
      <a className="link" href={`/topup/receipt/${row.trade_no}`}>
        {t("topup.receipt")}
      </a>
    );
  if (isWaiting(row.status))
    return (
      <a className="link" href={`/topup?order=${row.trade_no}`}>
        {t("topup.state")}
      </a>
    );
  return null;
}

export function paymentColumns(t: Translate): Column<OrderRow>[] {
  return [
    {
      id: "time",
      title: t("topup.time"),
      isIdentity: true,
      card: "title",
      cell: (row) => <Moment at={row.create_time} />,
    },
    {
      id: "status",
      title: t("topup.statusTitle"),
      card: "badge",
      cell: (row) => <OrderStatus t={t} row={row} />,
    },
    {
      id: "method",
      title: t("topup.payMethod"),
      card: "fact",
      cell: (row) => row.method_name,
    },
    {
      id: "money",
      title: t("topup.paid"),
      align: "end",
      card: "fact",
      cell: (row) => (
        <span className="whitespace-nowrap tabular-nums">{moneyText(row.money, row.currency)}</span>
      ),
    },
    {
      id: "quota",
      title: t("topup.credit"),
      align: "end",
      card: "fact",
      cell: (row) =>
        row.plan === "" ? <Money quota={row.quota} /> : <span className="wrap-anywhere">{row.plan}</span>,
    },
    {
      id: "order",
      title: t("topup.number"),
      from: 1100,
      cell: (row) => (
        <span className="inline-flex items-center gap-1 mono">
          …{row.trade_no.slice(-8)}
          <CopyButton text={row.trade_no} label={t("topup.copyNumber")} />
        </span>
      ),
    },
    { id: "receipt", title: t("topup.receipt"), card: "line", cell: (row) => <OrderLink t={t} row={row} /> },
  ];
}
