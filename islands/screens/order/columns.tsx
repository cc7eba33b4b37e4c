// Columns of the payment inbox.
import type { Translate } from "../../lib/i18n.ts";
import { moneyText } from "../../lib/order-words.ts";
import { patchUrl } from "../../lib/url-state.ts";
import type { AnyOrderRow } from "../../lib/wire.ts";
import { Moment, Money } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { OrderStatus } from "../../ui/order-status.tsx";
import { noteText } from "./row.ts";

export function orderColumns(t: Translate): Column<AnyOrderRow>[] {
  return [
    {
      id: "time",
      title: t("topup.time"),
      isIdentity: true,
      card: "title",
      cell: (row) => <Moment at={row.create_time} />,
    },
    {
      id: "user",
      title: t("order.user"),
      card: "line",
      cell: (row) => (
        <a
          className="link link-hover truncate"
          href={patchUrl("/user", { keyword: row.user_id, edit: row.user_id })}
        >
          {row.username || `#${row.user_id}`}
        </a>
      ),
    },
    {
      id: "status",
      title: t("topup.statusTitle"),
      card: "badge",
      cell: (row) => <OrderStatus t={t} row={row} />,
    },
    {
      id: "method",
      title: t("order.railMethod"),
      card: "fact",
      from: 760,
      cell: (row) => `${row.rail} · ${row.method_name}`,
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
      cell: (row) => (row.plan === "" ? <Money quota={row.quota} /> : row.plan),
    },
    {
      id: "note",
      title: t("order.note"),
      isElastic: true,
      from: 1100,
      cell: (row) => <span className="line-clamp-2 whitespace-normal">{noteText(t, row.note)}</span>,
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
  ];
}
