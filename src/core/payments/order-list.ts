// Orders as the wallet, receipts and the payment inbox show them.
// Refuses to show another user's order to anybody below administrators, who read them all; what rails said is root's.
import { and, desc, eq, gte, inArray, lt, or } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { countRows, startsWith } from "../../db/database.ts";
import { Role } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { minorText } from "../../shared/currencies.ts";
import { orderOf, WAITING } from "./orders.ts";
import type { OrderRow } from "./orders.ts";
import { canRefund } from "./refunds.ts";

type ListDeps = Pick<Deps, "db" | "options" | "rails">;

const MOST_EVENTS = 500;

export interface OrderQuery {
  userId?: number | undefined;
  /** As orders have it on the wire; `waiting`: nobody has paid yet, whether the provider knows of it or not. */
  status?: string | undefined;
  rail?: string | undefined;
  tradeNo?: string | undefined;
  /** The beginning of an order number, the rail's number of the payment, or a username. */
  keyword?: string | undefined;
  /** When it was made, Unix seconds; the end is not included. */
  from?: number | undefined;
  to?: number | undefined;
  page: number;
  pageSize: number;
}

/** The fields of old consoles' top-ups, and ours. */
function orderJson(deps: ListDeps, row: OrderRow) {
  const snapshot = JSON.parse(row.snapshot) as Record<string, string | number>;
  const rail = deps.rails.find(({ name }) => name === row.rail);
  const method = rail?.methods(deps.options).find(({ type }) => type === row.method);
  return {
    id: row.id,
    user_id: row.userId,
    amount: Number(snapshot["amount"] ?? 0),
    unit: String(snapshot["unit"] ?? "dollars"),
    /** Title of the plan that it buys; empty: credit. */
    plan: row.kind === "plan" ? String(snapshot["plan"] ?? "") : "",
    quota: row.quota,
    money: minorText(row.moneyMinor, row.currency),
    currency: row.currency.toUpperCase(),
    trade_no: row.tradeNo,
    rail: row.rail,
    payment_method: row.method,
    /** As buyers read it; the method's own word where it is offered no more. */
    method_name: method?.name ?? row.method,
    create_time: row.createdAt,
    complete_time: row.creditedAt,
    expires_at: row.expiresAt,
    // On the wire of old, credited is success.
    status: row.status === "credited" ? "success" : row.status,
    refunded: minorText(row.refundedMinor, row.currency),
    disputed: minorText(row.disputedMinor, row.currency),
    debited_quota: row.debitedQuota,
    can_refund: canRefund(row, rail),
  };
}

export type OrderJson = ReturnType<typeof orderJson>;

/** What those who look after payments see besides. */
async function withBackground(deps: ListDeps, rows: readonly OrderRow[]) {
  const { users } = deps.db.t;
  const ids = [...new Set(rows.flatMap(({ userId, actorId }) => [userId, actorId]))].filter((id) => id > 0);
  const found =
    ids.length === 0
      ? []
      : await deps.db.orm
          .select({ id: users.id, username: users.username })
          .from(users)
          .where(inArray(users.id, ids));
  const names = new Map(found.map(({ id, username }) => [id, username]));
  return rows.map((row) => ({
    ...orderJson(deps, row),
    username: names.get(row.userId) ?? "",
    note: row.note,
    provider_ref: row.providerRef ?? "",
    actor_id: row.actorId,
    actor_name: names.get(row.actorId) ?? "",
    /** What the rail reported as paid; empty: nothing, or another currency. */
    paid: row.paidMinor > 0 ? minorText(row.paidMinor, row.currency) : "",
    snapshot: JSON.parse(row.snapshot) as Record<string, string | number>,
  }));
}

function conditionOf({ db }: Pick<Deps, "db">, query: OrderQuery): SQL | undefined {
  const { orders, users } = db.t;
  const keyword = query.keyword?.trim() ?? "";
  return and(
    query.userId === undefined ? undefined : eq(orders.userId, query.userId),
    query.status === undefined
      ? undefined
      : query.status === "waiting"
        ? inArray(orders.status, [...WAITING])
        : eq(orders.status, query.status === "success" ? "credited" : query.status),
    query.rail === undefined ? undefined : eq(orders.rail, query.rail),
    query.tradeNo === undefined ? undefined : eq(orders.tradeNo, query.tradeNo),
    query.from === undefined ? undefined : gte(orders.createdAt, query.from),
    query.to === undefined ? undefined : lt(orders.createdAt, query.to),
    keyword === ""
      ? undefined
      : or(
          startsWith(orders.tradeNo, keyword),
          eq(orders.providerRef, keyword),
          inArray(
            orders.userId,
            db.orm.select({ id: users.id }).from(users).where(eq(users.username, keyword)),
          ),
        ),
  );
}

async function found(deps: ListDeps, query: OrderQuery): Promise<{ rows: OrderRow[]; total: number }> {
  const { orders } = deps.db.t;
  const where = conditionOf(deps, query);
  const rows = await deps.db.orm
    .select()
    .from(orders)
    .where(where)
    .orderBy(desc(orders.id))
    .limit(query.pageSize)
    .offset((query.page - 1) * query.pageSize);
  const [count] = await deps.db.orm.select({ total: countRows() }).from(orders).where(where);
  return { rows, total: count?.total ?? 0 };
}

/** One user's, newest first. */
export async function ownOrders(
  deps: ListDeps,
  query: OrderQuery & { userId: number },
): Promise<{ items: OrderJson[]; total: number }> {
  const { rows, total } = await found(deps, query);
  return { items: rows.map((row) => orderJson(deps, row)), total };
}

/** Everybody's, newest first, with the verdicts on what the rails said of them. */
export async function allOrders(deps: ListDeps, query: OrderQuery) {
  const { rows, total } = await found(deps, query);
  const items = await withBackground(deps, rows);
  const events = await eventsOf(
    deps,
    rows.map(({ tradeNo }) => tradeNo),
  );
  return {
    items,
    total,
    events: events.map(({ rail, trade_no, at, verdict }) => ({ rail, trade_no, at, verdict })),
  };
}

/** Orders that were credited between two moments (Unix seconds), oldest first. */
export async function creditedOrders(
  deps: ListDeps,
  { userId, from, to }: { userId: number; from: number; to: number },
): Promise<OrderJson[]> {
  const { orders } = deps.db.t;
  const rows = await deps.db.orm
    .select()
    .from(orders)
    .where(and(eq(orders.userId, userId), gte(orders.creditedAt, from), lt(orders.creditedAt, to)))
    .orderBy(orders.creditedAt, orders.id);
  return rows.map((row) => orderJson(deps, row));
}

/** One order as its return page and its receipt need it. Throws `order_missing`, also for another user's. */
export async function oneOrder(deps: ListDeps, actor: UserAccount, tradeNo: string) {
  const row = /^[0-9A-Za-z]{1,64}$/.test(tradeNo) ? await orderOf(deps, tradeNo) : undefined;
  const isAdmin = actor.role >= Role.admin;
  if (!row || (row.userId !== actor.id && !isAdmin)) throw refuse("order_missing");
  const { users } = deps.db.t;
  const [buyer] = await deps.db.orm
    .select({ username: users.username, display_name: users.displayName, email: users.email })
    .from(users)
    .where(eq(users.id, row.userId));
  const [background] = isAdmin ? await withBackground(deps, [row]) : [];
  return {
    ...orderJson(deps, row),
    site_name: deps.options.get("SystemName"),
    username: buyer?.username ?? "",
    display_name: buyer?.display_name ?? "",
    email: buyer?.email ?? "",
    /** Null below administrators. */
    background: background ?? null,
  };
}

/** What the rails said of these orders, newest first; their payloads carry neither signatures nor keys. */
export async function eventsOf({ db }: Pick<Deps, "db">, tradeNos: readonly string[]) {
  if (tradeNos.length === 0) return [];
  const { paymentEvents } = db.t;
  const rows = await db.orm
    .select()
    .from(paymentEvents)
    .where(inArray(paymentEvents.tradeNo, [...tradeNos]))
    .orderBy(desc(paymentEvents.id))
    .limit(MOST_EVENTS);
  return rows.map(({ rail, eventId, tradeNo, at, verdict, report }) => ({
    rail,
    event_id: eventId,
    trade_no: tradeNo,
    at,
    verdict,
    payload: JSON.parse(report) as Record<string, string | number>,
  }));
}
