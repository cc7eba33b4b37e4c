// Orders: one table and one machine of states for every rail. Paid and credited is one transaction; each step is one
// conditional update whose row count decides, so any number of callbacks on any number of nodes credit once.
// Refuses to credit what does not match the order to the coin: that goes to review, where a person decides.
import { randomInt } from "node:crypto";
import { and, eq, gt, inArray, lt, ne, sql } from "drizzle-orm";
import { countRows, q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { isUniqueViolation } from "../../db/sql-state.ts";
import { LogType } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { logQuotaText, MAX_QUOTA } from "../../shared/money.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import type { Credit, Deps, UserAccount } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { orderCompleted, orderPaid } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";
import type { Offer } from "./amounts.ts";
import { minorText } from "../../shared/currencies.ts";
import { beginOrdered, planMisfit } from "../plans/purchases.ts";
import type { PlanTerms } from "../plans/purchases.ts";
import { inviteRewardSteps } from "./rewards.ts";
import { debitFor, proRataOf } from "./shares.ts";

export type OrderRow = Schema["orders"]["$inferSelect"];
type OrderStatus = "created" | "pending" | "credited" | "review" | "expired" | "failed" | "refunded";

/** A genuine payment may still credit these. */
export const PAYABLE: readonly OrderStatus[] = ["created", "pending", "expired", "failed"];
export const WAITING: readonly OrderStatus[] = ["created", "pending"];
const BY_HAND: readonly OrderStatus[] = ["created", "pending", "expired", "failed", "review"];

const MOST_OPEN = 20;
const MOST_NEW = 10;
const NEW_SECONDS = 600;
const TRADE_NO_LENGTH = 32;
const LEAST_RANDOM = 16;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

export type PaymentDeps = Pick<Deps, "db" | "clock" | "ledger" | "options" | "accounts" | "inbox" | "logger">;

export const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

/** `USR<id>NO` and base62 up to 32 characters, never fewer than 16 random ones. */
function newTradeNo(userId: number): string {
  const head = `USR${userId}NO`;
  const length = Math.max(LEAST_RANDOM, TRADE_NO_LENGTH - head.length);
  return head + Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join("");
}

export interface NewOrder {
  rail: string;
  method: string;
  offer: Offer;
  /** For how long the rail waits. */
  seconds: number;
  /** What is bought; absent: credit. */
  planId?: number;
}

/** The terms of the plan that an order buys, as they were when it was made; undefined: it buys credit. */
function orderedPlan({ kind, snapshot }: Pick<OrderRow, "kind" | "snapshot">): PlanTerms | undefined {
  if (kind !== "plan") return undefined;
  return JSON.parse((JSON.parse(snapshot) as { terms: string }).terms) as PlanTerms;
}

/** The row that stands before any provider hears of it. Throws `too_many_attempts`, `quota_out_of_range`. */
export async function createOrder(
  deps: PaymentDeps,
  user: UserAccount,
  { rail, method, offer, seconds, planId = 0 }: NewOrder,
): Promise<OrderRow> {
  const { orders, users } = deps.db.t;
  const now = nowSeconds(deps);
  return deps.db.atomic(function* (tx) {
    // Locks the row: simultaneous orders of one user count one after another.
    const [owner] = yield* q(
      tx
        .update(users)
        .set({ id: sql`${users.id}` })
        .where(eq(users.id, user.id))
        .returning({ quota: users.quota }),
    );
    if (!owner) throw refuse("user_missing");
    if (owner.quota + offer.quota > MAX_QUOTA) throw refuse("quota_out_of_range");
    const isOwn = eq(orders.userId, user.id);
    const [open] = yield* q(
      tx
        .select({ count: countRows() })
        .from(orders)
        .where(and(isOwn, inArray(orders.status, [...WAITING]), gt(orders.expiresAt, now))),
    );
    const [fresh] = yield* q(
      tx
        .select({ count: countRows() })
        .from(orders)
        .where(and(isOwn, gt(orders.createdAt, now - NEW_SECONDS))),
    );
    if ((open?.count ?? 0) >= MOST_OPEN || (fresh?.count ?? 0) >= MOST_NEW)
      throw new Failure("limit", "orders_too_many", { retryAfterSeconds: NEW_SECONDS });
    const [row] = yield* q(
      tx
        .insert(orders)
        .values({
          tradeNo: newTradeNo(user.id),
          kind: planId === 0 ? "topup" : "plan",
          planId,
          userId: user.id,
          rail,
          method,
          quota: offer.quota,
          moneyMinor: offer.moneyMinor,
          currency: offer.currency,
          snapshot: JSON.stringify(offer.snapshot),
          createdAt: now,
          updatedAt: now,
          expiresAt: now + seconds,
        })
        .returning(),
    );
    if (!row) throw refuse("internal_error");
    return row;
  });
}

/** One step: true where the order was in one of these states and is now in the other. */
async function step(
  deps: PaymentDeps,
  tradeNo: string,
  from: readonly OrderStatus[],
  set: Partial<OrderRow> & { status: OrderStatus },
): Promise<boolean> {
  const { orders } = deps.db.t;
  const rows = await deps.db.orm
    .update(orders)
    .set({ updatedAt: nowSeconds(deps), ...set })
    .where(and(eq(orders.tradeNo, tradeNo), inArray(orders.status, [...from])))
    .returning({ id: orders.id });
  return rows.length > 0;
}

/** The provider knows of it. */
export function markPending(
  deps: PaymentDeps,
  tradeNo: string,
  at: { sessionId?: string; expiresAt?: number } = {},
): Promise<boolean> {
  return step(deps, tradeNo, ["created"], { status: "pending", ...at });
}

/** The provider says no. A genuine payment that comes after all is still credited. */
export function markFailed(deps: PaymentDeps, tradeNo: string, note: string): Promise<boolean> {
  return step(deps, tradeNo, WAITING, { status: "failed", note });
}

export function markExpired(deps: PaymentDeps, tradeNo: string): Promise<boolean> {
  return step(deps, tradeNo, WAITING, { status: "expired" });
}

/** Ends what nobody paid in time; answers how many. */
export async function expireOrders(deps: PaymentDeps): Promise<number> {
  const { orders } = deps.db.t;
  const now = nowSeconds(deps);
  const rows = await deps.db.orm
    .update(orders)
    .set({ status: "expired", updatedAt: now })
    .where(and(inArray(orders.status, [...WAITING]), lt(orders.expiresAt, now)))
    .returning({ id: orders.id });
  return rows.length;
}

/** A payment as its rail reported it; only what was proven genuine comes here. */
export interface Payment {
  rail: string;
  /** The rail's number of the report. */
  eventId: string;
  tradeNo: string;
  /** The rail's number of the payment. */
  providerRef: string;
  /** Undefined: the report names no sum of this currency. */
  moneyMinor: number | undefined;
  /** Undefined: the rail has one currency only. */
  currency: string | undefined;
  /** Further checks of the rail that failed; empty: none. */
  doubt: string;
  /** For the callback inspector; without secrets. */
  payload: Record<string, string>;
}

type Verdict = "credited" | "repeated" | "review" | "paid_twice" | "unknown_order";

export type CreditSteps = (entry: Credit) => Steps<void>;

/** What of the report does not fit the order; undefined: all of it does. */
function* misfit(
  tx: Orm,
  deps: PaymentDeps,
  order: OrderRow,
  { moneyMinor, currency, providerRef, doubt }: Payment,
): Steps<string | undefined> {
  const { users } = deps.db.t;
  if (doubt !== "") return doubt;
  if (moneyMinor !== order.moneyMinor) return "money";
  if (currency !== undefined && currency.toLowerCase() !== order.currency.toLowerCase()) return "currency";
  if (providerRef === "") return "no_reference";
  if (yield* isUsed(tx, deps, order, providerRef)) return "reference_used";
  const [user] = yield* q(
    tx
      .select({ deletedAt: users.deletedAt, quota: users.quota })
      .from(users)
      .where(eq(users.id, order.userId)),
  );
  if (!user || user.deletedAt !== null) return "user_deleted";
  if (user.quota + order.quota > MAX_QUOTA) return "balance";
  const terms = orderedPlan(order);
  return terms && (yield* planMisfit({ tx, deps, userId: order.userId }, terms));
}

function* eventSteps(tx: Orm, deps: PaymentDeps, payment: Payment, verdict: string): Steps<void> {
  const { paymentEvents } = deps.db.t;
  yield* q(
    tx
      .insert(paymentEvents)
      .values({
        rail: payment.rail,
        eventId: payment.eventId,
        tradeNo: payment.tradeNo.slice(0, 64),
        at: nowSeconds(deps),
        verdict,
        report: JSON.stringify(payment.payload),
      })
      .onConflictDoNothing()
      .returning({ id: paymentEvents.id }),
  );
}

/** Credit and its row of the log, for an order whose state has just become `credited`. */
function* creditOrderSteps(
  tx: Orm,
  deps: PaymentDeps,
  credit: CreditSteps,
  order: OrderRow,
  isByHand = false,
): Steps<void> {
  const { users } = deps.db.t;
  const { userId } = order;
  const terms = orderedPlan(order);
  if (terms) {
    const work = { tx, deps, credit, userId, now: nowSeconds(deps) };
    yield* beginOrdered(work, deps.options, terms, { tradeNo: order.tradeNo, isByHand });
    yield* inviteRewardSteps(tx, deps, order);
    return;
  }
  yield* credit({ userId, amount: order.quota, kind: "payment", ref: order.tradeNo });
  yield* inviteRewardSteps(tx, deps, order);
  const [user] = yield* q(
    tx.select({ username: users.username }).from(users).where(eq(users.id, order.userId)),
  );
  const money = minorText(order.moneyMinor, order.currency);
  yield* deps.ledger.logSteps(tx, {
    type: LogType.topUp,
    userId: order.userId,
    username: user?.username ?? "",
    content: orderPaid(logQuotaText(order.quota, quotaDisplay(deps.options)), money),
    quota: order.quota,
    other: { trade_no: order.tradeNo, money, currency: order.currency, rail: order.rail },
  });
}

/** Locks the order and reads it; undefined: this rail has no such order. */
export function* lockedOrder(
  tx: Orm,
  deps: PaymentDeps,
  rail: string,
  tradeNo: string,
): Steps<OrderRow | undefined> {
  const { orders } = deps.db.t;
  const [row] = yield* q(
    tx
      .update(orders)
      .set({ id: sql`${orders.id}` })
      .where(and(eq(orders.tradeNo, tradeNo), rail === "" ? undefined : eq(orders.rail, rail)))
      .returning(),
  );
  return row;
}

/** Whether another order was paid by this payment. */
function* isUsed(tx: Orm, deps: PaymentDeps, order: OrderRow, providerRef: string): Steps<boolean> {
  const { orders } = deps.db.t;
  const [other] = yield* q(
    tx
      .select({ id: orders.id })
      .from(orders)
      .where(and(eq(orders.rail, order.rail), eq(orders.providerRef, providerRef), ne(orders.id, order.id))),
  );
  return other !== undefined;
}

/** An order that was completed by hand learns which payment it was: refunds and disputes name that one. */
function* nameSteps(tx: Orm, deps: PaymentDeps, order: OrderRow, { providerRef }: Payment): Steps<void> {
  const { orders } = deps.db.t;
  if (yield* isUsed(tx, deps, order, providerRef)) return;
  yield* q(
    tx.update(orders).set({ providerRef }).where(eq(orders.id, order.id)).returning({ id: orders.id }),
  );
}

function* receiveSteps(tx: Orm, deps: PaymentDeps, credit: CreditSteps, payment: Payment): Steps<Verdict> {
  const { orders } = deps.db.t;
  const order = yield* lockedOrder(tx, deps, payment.rail, payment.tradeNo);
  if (!order) return "unknown_order";
  if (order.status === "credited" || order.status === "refunded") {
    if (order.providerRef === null && payment.providerRef !== "") yield* nameSteps(tx, deps, order, payment);
    return order.providerRef === null || order.providerRef === payment.providerRef
      ? "repeated"
      : "paid_twice";
  }
  if (order.status === "review") return "review";
  const miss = yield* misfit(tx, deps, order, payment);
  const updatedAt = nowSeconds(deps);
  const isOpen = and(eq(orders.id, order.id), inArray(orders.status, [...PAYABLE]));
  const isSameCurrency =
    payment.currency === undefined || payment.currency.toLowerCase() === order.currency.toLowerCase();
  const paidMinor = isSameCurrency ? (payment.moneyMinor ?? 0) : 0;
  if (miss !== undefined) {
    // Whoever decides wants to know what came, and by which payment: a refund names it.
    const isFree = payment.providerRef !== "" && !(yield* isUsed(tx, deps, order, payment.providerRef));
    yield* q(
      tx
        .update(orders)
        .set({
          status: "review",
          note: miss,
          updatedAt,
          paidMinor,
          ...(isFree ? { providerRef: payment.providerRef } : {}),
        })
        .where(isOpen)
        .returning({ id: orders.id }),
    );
    return "review";
  }
  const changed = yield* q(
    tx
      .update(orders)
      .set({
        status: "credited",
        providerRef: payment.providerRef,
        paidMinor,
        creditedAt: updatedAt,
        updatedAt,
      })
      .where(isOpen)
      .returning({ id: orders.id }),
  );
  if (changed.length === 0) return "repeated";
  yield* creditOrderSteps(tx, deps, credit, order);
  return "credited";
}

/**
 * Takes in a genuine report of a payment: credits the order, or leaves it to a person. Resolves when the verdict is
 * durable; rejects when the database cannot write, and then nothing has happened.
 */
export async function receivePayment(deps: PaymentDeps, payment: Payment): Promise<Verdict> {
  // A plan that begins shares out what was called before it.
  await deps.ledger.entered();
  const attempt = (given: Payment) =>
    deps.ledger.atomic(function* (tx, credit) {
      const verdict = yield* receiveSteps(tx, deps, credit, given);
      yield* eventSteps(tx, deps, given, verdict);
      return verdict;
    });
  let verdict: Verdict;
  try {
    verdict = await attempt(payment);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    // Two orders with one number of a payment at the same moment: the second one sees the first now.
    verdict = await attempt(payment);
  }
  if (verdict === "review" || verdict === "paid_twice")
    deps.inbox.raise({ kind: "payment", subject: payment.tradeNo, params: { order: payment.tradeNo } });
  return verdict;
}

/** Keeps a report that changes nothing: what a rail said, for whoever looks why. */
export async function noteEvent(deps: PaymentDeps, payment: Payment, verdict: string): Promise<void> {
  await deps.db.atomic(function* (tx) {
    yield* eventSteps(tx, deps, payment, verdict);
  });
}

export interface ByHand {
  tradeNo: string;
  reason: string;
  /** Credits the part that was paid of an order in review. */
  isProRata: boolean;
}

/**
 * By hand, with a reason: for money that came another way. Throws `order_missing`, `order_not_open`, `order_no_pro_rata`,
 * `user_missing`, `quota_out_of_range`.
 */
export async function completeOrder(
  deps: PaymentDeps,
  by: AuditActor,
  { tradeNo, reason, isProRata }: ByHand,
): Promise<void> {
  const { orders, users } = deps.db.t;
  await deps.ledger.entered();
  await deps.ledger.atomic(function* (tx, credit) {
    const found = yield* lockedOrder(tx, deps, "", tradeNo);
    if (!found) throw refuse("order_missing");
    const order = isProRata ? proRataOf(found) : found;
    const [user] = yield* q(
      tx
        .select({ username: users.username, deletedAt: users.deletedAt, quota: users.quota })
        .from(users)
        .where(eq(users.id, order.userId)),
    );
    if (!user || user.deletedAt !== null) throw refuse("user_missing");
    if (user.quota + order.quota > MAX_QUOTA) throw refuse("quota_out_of_range");
    const now = nowSeconds(deps);
    // Of an order in review part of the money may have gone back already: that part is not given.
    const debitedQuota = order.kind === "plan" ? 0 : debitFor(order);
    const changed = yield* q(
      tx
        .update(orders)
        .set({
          status: "credited",
          debitedQuota,
          actorId: by.id,
          note: reason,
          quota: order.quota,
          moneyMinor: order.moneyMinor,
          creditedAt: now,
          updatedAt: now,
        })
        .where(and(eq(orders.id, order.id), inArray(orders.status, [...BY_HAND])))
        .returning({ id: orders.id }),
    );
    if (changed.length === 0) throw refuse("order_not_open");
    yield* creditOrderSteps(tx, deps, credit, order, true);
    if (debitedQuota > 0)
      yield* credit({
        userId: order.userId,
        amount: -debitedQuota,
        kind: "refund",
        ref: `${tradeNo}:before_credit`,
      });
    yield* auditSteps(tx, deps, {
      user: { id: order.userId, username: user.username },
      action: "order.complete",
      params: { order: tradeNo, reason },
      by,
      content: orderCompleted(tradeNo, reason),
      more: {
        admin_info: { admin_id: by.id, admin_username: by.username },
        trade_no: tradeNo,
        reason,
      },
    });
  });
  deps.inbox.gone("payment", tradeNo);
}

/** The order of this number. */
export async function orderOf(deps: Pick<Deps, "db">, tradeNo: string): Promise<OrderRow | undefined> {
  const { orders } = deps.db.t;
  const [row] = await deps.db.orm.select().from(orders).where(eq(orders.tradeNo, tradeNo));
  return row;
}

/** Open orders of a rail that are old enough to be asked for. */
export async function openOrders(
  deps: Pick<Deps, "db" | "clock">,
  rail: string,
  olderThanSeconds: number,
): Promise<OrderRow[]> {
  const { orders } = deps.db.t;
  return (
    deps.db.orm
      .select()
      .from(orders)
      .where(
        and(
          eq(orders.rail, rail),
          inArray(orders.status, [...WAITING]),
          lt(orders.createdAt, nowSeconds(deps) - olderThanSeconds),
        ),
      )
      // Not the same hundred each time: most of them were never paid.
      .orderBy(sql`random()`)
      .limit(100)
  );
}
