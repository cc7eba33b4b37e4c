// What a list of orders is narrowed by: the query strings of /api/user/topup and of /api/user/topup/self, and the address of the inbox.
import type { OrderQuery } from "../../core/payments/order-list.ts";
import { positive, queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

export const ownOrderFields = {
  status: queryText(16),
  trade_no: queryText(64),
  /** When it was made, Unix seconds, both included. */
  start_timestamp: queryText(20),
  end_timestamp: queryText(20),
};

export const orderListFields = {
  ...ownOrderFields,
  rail: queryText(32),
  user_id: queryText(20),
  keyword: queryText(255),
};

const endOf = (last: number | undefined): number | undefined => (last === undefined ? undefined : last + 1);

type OrderFilter = Omit<OrderQuery, "page" | "pageSize">;

export function orderFilterOf(sent: Partial<Sent<typeof orderListFields>>): OrderFilter {
  return {
    status: sent.status || undefined,
    tradeNo: sent.trade_no || undefined,
    rail: sent.rail || undefined,
    userId: positive(sent.user_id),
    keyword: sent.keyword || undefined,
    from: positive(sent.start_timestamp),
    to: endOf(positive(sent.end_timestamp)),
  };
}
