// First rows of the payment inbox.
import type { OrderPageData } from "../../islands/screens/order/row.ts";
import { allOrders } from "../core/payments/order-list.ts";
import { orderFilterOf, orderListFields } from "../http/queries/orders.ts";
import { sentBy } from "../http/queries/sent.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export async function loadOrders(context: LoaderContext): Promise<OrderPageData> {
  const { deps, url } = context;
  const { page, pageSize } = pagingOf(context);
  const filter = orderFilterOf(sentBy(orderListFields, url.searchParams));
  const { items, total } = await allOrders(deps, { ...filter, page, pageSize });
  return { rows: items, total, pageSize };
}
