// The payment inbox: every order with its verdicts, those that need a person first.
// Refuses to show what rails sent to anybody but root, who alone completes and refunds.
import { api, call } from "../lib/api.ts";
import { bootData } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useListScreen } from "../lib/list-screen.ts";
import type { PageRequest } from "../lib/list-screen.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { setQuery } from "../lib/url-state.ts";
import type { AnyOrderRow } from "../lib/wire.ts";
import { curlItem } from "../ui/list-menu.ts";
import { ListScreen } from "../ui/list-screen.tsx";
import { ListViews } from "../ui/list-views.tsx";
import { orderColumns } from "./order/columns.tsx";
import type { OrderPageData } from "./order/row.ts";

const OrderDrawer = lazyPart(() => import("./order/drawer.tsx"));

const COLUMNS_KEY = "orders-table-columns";
const VIEW_FIELDS = ["keyword", "status", "rail"] as const;
type OrderFilters = Record<(typeof VIEW_FIELDS)[number] | "user_id", string>;

async function fetchOrders(filters: OrderFilters, { page, pageSize }: PageRequest) {
  const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ""));
  const { items, total } = await call(
    api.user.topup.get({ query: { ...given, p: String(page), page_size: String(pageSize) } }),
  );
  return { rows: items, total };
}

export default function OrderScreen() {
  const t = useT();
  const data = bootData<OrderPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const filters = {
    keyword: query.keyword ?? "",
    status: query.status ?? "",
    rail: query.rail ?? "",
    user_id: query.user_id ?? "",
  };
  const fetchPage = (request: PageRequest) => fetchOrders(filters, request);
  const screen = useListScreen<AnyOrderRow>({ data, table, filters, fetchPage });
  const request = () => ({ path: "/api/user/topup", query: { ...filters, p: page, page_size: pageSize } });
  const view = (status: string) => ({ id: status, label: t(`topup.status.${status}`), query: { status } });
  return (
    <ListScreen
      screen={screen}
      columnsKey={COLUMNS_KEY}
      header={{ title: t("shell.nav.orders"), note: t("order.purpose"), overflow: [[curlItem(t, request)]] }}
      views={
        <ListViews
          list={screen}
          screen="order"
          builtIn={[
            { id: "all", label: t("common.all"), query: {} },
            view("review"),
            { id: "waiting", label: t("topup.status.pending"), query: { status: "waiting" } },
            view("success"),
            view("refunded"),
          ]}
          fields={VIEW_FIELDS}
          columnsKey={COLUMNS_KEY}
        />
      }
      filters={{
        searchName: "keyword",
        searchLabel: t("order.search"),
        fields: [
          { name: "rail", label: t("order.rail") },
          { name: "user_id", label: t("order.userId") },
        ],
      }}
      table={{
        columns: orderColumns(t),
        rowKey: (row) => row.trade_no,
        rowName: (row) => row.trade_no,
        openQuery: (row) => ({ order: row.trade_no }),
        isMuted: (row) => row.status === "expired" || row.status === "failed",
        empty: { title: t("order.empty"), text: t("order.emptyText") },
      }}
    >
      {query.order === undefined || query.order === "" ? null : (
        <OrderDrawer
          key={query.order}
          tradeNo={query.order}
          onClose={() => setQuery({ order: undefined })}
          onChanged={() => void screen.list.refresh()}
        />
      )}
    </ListScreen>
  );
}
