// The wallet: balance, paying online, codes redeemed here, invitations, and what was paid and credited so far.
// Refuses to make anybody wait for the history: its first page stands in the page.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useState } from "react";
import { api, call } from "../lib/api.ts";
import { bootData, user } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { useList } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import type { TableQuery } from "../lib/table-query.ts";
import { Count, Money, When } from "../ui/badges.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { InvitationCard } from "../ui/invitation-card.tsx";
import type { Invitation } from "../ui/invitation-card.tsx";
import { PayPanel } from "./topup/pay-panel.tsx";
import { paymentColumns } from "./topup/payments-list.tsx";
import { PlansPanel } from "./topup/plans-panel.tsx";
import { RedeemPanel } from "./topup/redeem-panel.tsx";
import { ReturnNotice } from "./topup/return-notice.tsx";
import type { ListPage, ListState } from "../lib/list.ts";
import type { ListPageData, LogRow, OrderDetail, OrderRow, OwnPlans, PayOffers } from "../lib/wire.ts";

/** A row of the log that says what was paid in. */
type TopUpRow = Pick<LogRow, "id" | "created_at" | "content" | "text" | "quota" | "other">;

export interface WalletData extends ListPageData<TopUpRow> {
  used: number;
  requests: number;
  invitation: Invitation;
  offers: PayOffers;
  /** The first page of the own orders. */
  orders: ListPage<OrderRow>;
  /** The one that the address names, if it is the visitor's. */
  order: OrderDetail | null;
  plans: OwnPlans;
}

const TOP_UP = "1";

export default function Wallet() {
  useSignals();
  const t = useT();
  const data = bootData<WalletData>();
  const table = useTableQuery(data.pageSize);
  const [credits, setCredits] = useState(0);
  const { order } = table.query;
  const isPayments = table.query.view === "payments";
  const balance = user.value?.quota ?? 0;

  const [paid, setPaid] = useState(0);
  const credited = (quota: number) => {
    if (user.value) user.value = { ...user.value, quota: user.value.quota + quota };
    setCredits(credits + 1);
  };

  return (
    <>
      <PageHeader title={t("topup.title")} note={t("topup.purpose")} />
      {data.order && data.order.trade_no === order ? (
        <ReturnNotice
          order={data.order}
          onCredited={(quota) => {
            credited(quota);
            setPaid((count) => count + 1);
          }}
        />
      ) : null}
      <div className="mb-6 grid items-start gap-4 max-sm:mb-2 max-sm:gap-2 lg:grid-cols-2">
        <div className="grid gap-4 max-sm:gap-2">
          <Balance balance={balance} used={data.used} requests={data.requests} />
          <PayPanel offers={data.offers} />
        </div>
        <div className="grid gap-4 max-sm:gap-2">
          <RedeemPanel onCredited={credited} />
          <InvitationCard invitation={data.invitation} isFolded onMoved={credited} />
        </div>
      </div>
      <PlansPanel plans={data.plans} round={paid} onChanged={() => setCredits((count) => count + 1)} />
      <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
        <nav className="tabs tabs-border" aria-label={t("topup.histories")}>
          {[
            { href: "/topup", title: t("topup.history"), isCurrent: !isPayments },
            { href: "/topup?view=payments", title: t("topup.payments"), isCurrent: isPayments },
          ].map(({ href, title, isCurrent }) => (
            <a
              key={href}
              className={`tab ${isCurrent ? "tab-active" : ""}`}
              href={href}
              aria-current={isCurrent ? "page" : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
        <a className="link" href="/topup/statement">
          {t("topup.statements")}
        </a>
      </div>
      {isPayments ? (
        <Payments data={data} table={table} round={credits} />
      ) : (
        <Credits data={data} table={table} round={credits} />
      )}
    </>
  );
}

function Balance({ balance, used, requests }: { balance: number; used: number; requests: number }) {
  const t = useT();
  return (
    <section
      className="wallet-figures rounded-box border border-base-300 bg-base-100 px-5 py-4 max-sm:flex max-sm:justify-between"
      aria-labelledby="balance-title"
    >
      <div>
        <h2 id="balance-title">{t("topup.balance")}</h2>
        <p
          className="mt-1 text-2xl font-semibold tabular-nums max-sm:mt-0 max-sm:text-base"
          aria-live="polite"
          data-testid="balance"
        >
          <Money quota={balance} />
        </p>
      </div>
      <dl className="facts mt-3 max-sm:mt-0 max-sm:flex max-sm:gap-2">
        <div>
          <dt>{t("topup.used")}</dt>
          <dd>
            <Money quota={used} />
          </dd>
        </div>
        <div>
          <dt>{t("topup.requests")}</dt>
          <dd>
            <Count value={requests} />
          </dd>
        </div>
      </dl>
    </section>
  );
}

interface HistoryProps {
  data: WalletData;
  table: TableQuery;
  /** Grows with each credit that was made on this page: the rows are read anew. */
  round: number;
}

function useReadAnew(list: Pick<ListState<unknown>, "refresh">, round: number): void {
  useEffect(() => {
    if (round > 0) void list.refresh();
  }, [round]);
}

/** Orders, paid and unpaid, with their receipts. */
function Payments({ data, table, round }: HistoryProps) {
  const t = useT();
  const { page, pageSize } = table;
  const list = useList<OrderRow>({
    initial: data.orders,
    queryKey: JSON.stringify([page, pageSize]),
    async load() {
      const found = await call(
        api.user.topup.self.get({ query: { p: String(page), page_size: String(pageSize) } }),
      );
      return { rows: found.items, total: found.total };
    },
  });
  useReadAnew(list, round);
  return (
    <DataTable
      label={t("topup.payments")}
      columns={paymentColumns(t)}
      list={list}
      rowKey={(row) => row.id}
      rowName={(row) => row.trade_no}
      columnsKey="payments-table-columns"
      page={page}
      pageSize={pageSize}
      onPage={table.setPage}
      onPageSize={table.setPageSize}
      isFiltered={false}
      empty={{ title: t("topup.paymentsEmpty"), text: t("topup.paymentsEmptyText") }}
    />
  );
}

/** What was credited, whichever way it came. */
function Credits({ data, table, round }: HistoryProps) {
  const t = useT();
  const { page, pageSize } = table;
  const list = useList<TopUpRow>({
    initial: data,
    queryKey: JSON.stringify([page, pageSize]),
    async load() {
      const found = await call(
        api.log.self.get({ query: { p: String(page), page_size: String(pageSize), type: TOP_UP } }),
      );
      return { rows: found.items, total: found.total };
    },
  });
  useReadAnew(list, round);
  const columns: Column<TopUpRow>[] = [
    {
      id: "time",
      title: t("topup.time"),
      isIdentity: true,
      card: "title",
      cell: (row) => <When at={row.created_at} isAbsolute />,
    },
    {
      id: "content",
      title: t("topup.what"),
      isElastic: true,
      card: "line",
      cell: (row) => (
        <span className="line-clamp-2 whitespace-normal max-sm:line-clamp-1">{whatText(row, t)}</span>
      ),
    },
    {
      id: "quota",
      title: t("topup.amount"),
      align: "end",
      card: "badge",
      cell: (row) =>
        row.quota === 0 ? (
          <span className="text-muted">{t("common.none")}</span>
        ) : (
          // What went back with a refund is below zero.
          <Money quota={row.quota} />
        ),
    },
  ];
  return (
    <DataTable
      label={t("topup.history")}
      columns={columns}
      list={list}
      rowKey={(row) => row.id}
      rowName={(row) => whatText(row, t)}
      columnsKey="topups-table-columns"
      page={page}
      pageSize={pageSize}
      onPage={table.setPage}
      onPageSize={table.setPageSize}
      isFiltered={false}
      empty={{ title: t("topup.empty"), text: t("topup.emptyText") }}
    />
  );
}

/** What a row is about in the reader's language, where its data say so; else the words of the log. */
function whatText(row: TopUpRow, t: ReturnType<typeof useT>): string {
  try {
    const { redemption_id: id } = JSON.parse(row.other || "{}") as { redemption_id?: unknown };
    if (typeof id === "number") return t("topup.byCode", { id });
  } catch {
    // Not ours: the words stand.
  }
  return row.text ?? row.content;
}
