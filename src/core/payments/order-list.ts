// Orders as the wallet and the payment inbox list them.
// Refuses to show another user's order to anybody below administrators, who read them all.
import { and, desc, eq, inArray } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { minorText } from "../../shared/currencies.ts";
import type { OrderRow } from "./orders.ts";

export interface OrderQuery {
  userId?: number | undefined;
  status?: string | undefined;
  tradeNo?: string | undefined;
  page: number;
  pageSize: number;
}

/** The fields of old consoles' top-ups, and ours. */
function orderJson(row: OrderRow, isOwner: boolean) {
  const money = minorText(row.moneyMinor, row.currency);
  const snapshot = JSON.parse(row.snapshot) as Record<string, string | number>;
  return {
    id: row.id,
    user_id: row.userId,
    amount: Number(snapshot["amount"] ?? 0),
    unit: String(snapshot["unit"] ?? "dollars"),
    quota: row.quota,
    money,
    currency: row.currency,
    trade_no: row.tradeNo,
    rail: row.rail,
    payment_method: row.method,
    create_time: row.createdAt,
    complete_time: row.creditedAt,
    expires_at: row.expiresAt,
    // On the wire of old, credited is success.
    status: row.status === "credited" ? "success" : row.status,
    refunded: minorText(row.refundedMinor, row.currency),
    debited_quota: row.debitedQuota,
    ...(isOwner
      ? {}
      : { note: row.note, provider_ref: row.providerRef ?? "", actor_id: row.actorId, snapshot }),
  };
}

export type OrderJson = ReturnType<typeof orderJson>;

export async function listOrders(
  { db }: Pick<Deps, "db">,
  { userId, status, tradeNo, page, pageSize }: OrderQuery,
): Promise<{ items: OrderJson[]; total: number }> {
  const { orders } = db.t;
  const where = and(
    userId === undefined ? undefined : eq(orders.userId, userId),
    status === undefined ? undefined : eq(orders.status, status === "success" ? "credited" : status),
    tradeNo === undefined ? undefined : eq(orders.tradeNo, tradeNo),
  );
  const rows = await db.orm
    .select()
    .from(orders)
    .where(where)
    .orderBy(desc(orders.id))
    .limit(pageSize)
    .offset((page - 1) * pageSize);
  const [count] = await db.orm.select({ total: countRows() }).from(orders).where(where);
  return { items: rows.map((row) => orderJson(row, userId !== undefined)), total: count?.total ?? 0 };
}

/** What the rails said of these orders, newest first. */
export async function eventsOf({ db }: Pick<Deps, "db">, tradeNos: readonly string[]) {
  const { paymentEvents } = db.t;
  const rows = await db.orm
    .select()
    .from(paymentEvents)
    .where(inArray(paymentEvents.tradeNo, [...tradeNos]))
    .orderBy(desc(paymentEvents.id))
    .limit(200);
  return rows.map(({ rail, tradeNo, at, verdict, report }) => ({
    rail,
    trade_no: tradeNo,
    at,
    verdict,
    payload: JSON.parse(report) as Record<string, string>,
  }));
}
