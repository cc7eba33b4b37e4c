// What goes back of an order that was credited: refunds and disputes, each event once, in whatever order they come.
// Refuses to take from a balance what it never got: events that are quicker than the payment are asked for once more.
import { and, eq, inArray } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { logQuotaText } from "../../shared/money.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { orderTakenBack } from "../logs/sentences.ts";
import { quotaDisplay } from "../options/store.ts";
import { refundOrdered } from "../plans/purchases.ts";
import type { CreditSteps } from "../plans/purse.ts";
import { otherDisputes } from "./disputes.ts";
import type { Dispute, Disputed } from "./disputes.ts";
import { disputeFlagSteps } from "./flags.ts";
import { rewardAgainSteps, rewardBackSteps } from "./rewards.ts";
import { lockedOrder, nowSeconds, PAYABLE } from "./orders.ts";
import type { OrderRow, PaymentDeps } from "./orders.ts";
import { debitFor } from "./shares.ts";

/** The verdict of a refund that the rail could not carry out. */
export const REFUND_FAILED = "refund_failed";

/** A refund that came back: its minor units, and when the rail said so, in its own seconds. */
export interface FailedRefund {
  amount: number;
  at: number;
}

/** What of an order's money is not the site's any more, in minor units, from what was known of it under the row's lock. */
type TakenBack = (known: {
  refundedMinor: number;
  moneyMinor: number;
  failed: readonly FailedRefund[];
  /** By other disputes than the one that the event tells of. */
  others: Disputed;
}) => { refundedMinor?: number } & Partial<Disputed>;

/**
 * A plan ends with the first money that went back, and what was used of it is owed once all of it did. While a dispute is
 * open the plan stays: the account is marked, and its calls are refused.
 */
function* planDebit(
  tx: Orm,
  deps: PaymentDeps,
  credit: CreditSteps,
  { order, refundedMinor, lostMinor }: { order: OrderRow; refundedMinor: number; lostMinor: number },
): Steps<number> {
  if (refundedMinor + lostMinor === 0) return 0;
  const work = { tx, deps, credit, userId: order.userId, now: nowSeconds(deps) };
  const used = yield* refundOrdered(work, order.tradeNo);
  return refundedMinor + lostMinor >= order.moneyMinor ? used : 0;
}

/** Enters the event; false: it stands there already, or `unless` does. Call under the order's lock. */
function* firstTimeSteps(
  tx: Orm,
  deps: PaymentDeps,
  order: OrderRow,
  { eventId, reason, unless, failed, dispute }: TakenEvent,
): Steps<boolean> {
  const { paymentEvents } = deps.db.t;
  const report = failed ?? dispute;
  const known = yield* q(
    tx
      .select({ id: paymentEvents.id })
      .from(paymentEvents)
      .where(
        and(eq(paymentEvents.rail, order.rail), inArray(paymentEvents.eventId, [eventId, unless ?? eventId])),
      ),
  );
  if (known.length > 0) return false;
  yield* q(
    tx
      .insert(paymentEvents)
      .values({
        rail: order.rail,
        eventId,
        tradeNo: order.tradeNo,
        at: nowSeconds(deps),
        verdict: reason.slice(0, 64),
        ...(report ? { report: JSON.stringify(report) } : {}),
      })
      .returning({ id: paymentEvents.id }),
  );
  return true;
}

/** Refunds of the order that came back. */
export function* failedRefundSteps(
  tx: Orm,
  { db }: Pick<PaymentDeps, "db">,
  { rail, tradeNo }: Pick<OrderRow, "rail" | "tradeNo">,
): Steps<FailedRefund[]> {
  const { paymentEvents } = db.t;
  const rows = yield* q(
    tx
      .select({ report: paymentEvents.report })
      .from(paymentEvents)
      .where(
        and(
          eq(paymentEvents.tradeNo, tradeNo),
          eq(paymentEvents.rail, rail),
          eq(paymentEvents.verdict, REFUND_FAILED),
        ),
      ),
  );
  return rows.map(({ report }) => {
    const { amount = 0, at = 0 } = JSON.parse(report) as Partial<FailedRefund>;
    return { amount, at };
  });
}

/** What somebody said of an order's money: the rail by an event of its own, or root. */
interface TakenEvent {
  tradeNo: string;
  /** As the rail numbers it, or whoever asked for it. */
  eventId: string;
  /** As orders, logs and reports name it. */
  reason: string;
  /** Root, where it was asked for here. */
  by?: AuditActor;
  /** Another event, which makes this one void where it was there first. */
  unless?: string;
  /** Of `REFUND_FAILED`: what came back. */
  failed?: FailedRefund;
  /** Of a dispute's beginning or end: which, and how much. */
  dispute?: Dispute;
}

/**
 * Books what was refunded or is disputed: in full, below zero where it was spent; what comes back is given back.
 * Answers the units by which the balance changed: 0 for an event that was taken in before, or that `unless` another one,
 * taken in already, has overtaken. Throws `order_missing`, and `payment_event_early` (503) before the order is credited.
 */
export async function takeBack(deps: PaymentDeps, event: TakenEvent, taken: TakenBack): Promise<number> {
  const { tradeNo, eventId, reason, by } = event;
  const { orders, users } = deps.db.t;
  // What a plan's period owes for is what was called before the money went back, also where it has only been settled.
  await deps.ledger.entered();
  let endedPlan = false;
  const change = await deps.ledger.atomic(function* (tx, credit) {
    const order = yield* lockedOrder(tx, deps, "", tradeNo);
    if (!order) throw refuse("order_missing");
    // Its credit is on its way: taken from a balance that never got it, the rest would be given twice.
    if (PAYABLE.some((each) => each === order.status))
      throw new Failure("internal", "payment_event_early", { status: 503 });
    if (!(yield* firstTimeSteps(tx, deps, order, event))) return 0;
    endedPlan = order.kind === "plan";
    const failed = yield* failedRefundSteps(tx, deps, order);
    const others = yield* otherDisputes(tx, deps, order, event);
    const now = taken({ ...order, failed, others });
    const refundedMinor = Math.min(order.moneyMinor, now.refundedMinor ?? order.refundedMinor);
    const disputedMinor = Math.min(order.moneyMinor, now.disputedMinor ?? order.disputedMinor);
    // An order in review is refunded without ever having been credited.
    const wasCredited = order.creditedAt > 0;
    const lostMinor = Math.min(disputedMinor, now.lostMinor ?? others.lostMinor);
    const debited = !wasCredited
      ? 0
      : order.kind === "plan"
        ? yield* planDebit(tx, deps, credit, { order, refundedMinor, lostMinor })
        : debitFor({ ...order, refundedMinor, disputedMinor });
    const change = order.debitedQuota - debited;
    const isWhole = refundedMinor >= order.moneyMinor;
    const status = isWhole ? "refunded" : wasCredited ? "credited" : "review";
    const set = { refundedMinor, disputedMinor, debitedQuota: debited, status, updatedAt: nowSeconds(deps) };
    yield* q(
      tx
        .update(orders)
        .set({ ...set, ...(by ? { actorId: by.id, note: reason } : {}) })
        .where(eq(orders.id, order.id))
        .returning({ id: orders.id }),
    );
    yield* disputeFlagSteps(tx, deps, order, disputedMinor);
    const [user = { username: "" }] = yield* q(
      tx.select({ username: users.username }).from(users).where(eq(users.id, order.userId)),
    );
    if (by)
      yield* auditSteps(tx, deps, {
        user: { id: order.userId, username: user.username },
        action: "order.refund",
        params: { order: tradeNo, reason },
        by,
      });
    const rewardWork = { tx, deps, credit, eventId };
    const cameBack = refundedMinor < order.refundedMinor || disputedMinor < order.disputedMinor;
    if (refundedMinor + lostMinor >= order.moneyMinor) yield* rewardBackSteps(rewardWork, order);
    else if (cameBack && refundedMinor + disputedMinor < order.moneyMinor)
      yield* rewardAgainSteps(rewardWork, order);
    if (change === 0) return 0;
    yield* credit({ userId: order.userId, amount: change, kind: "refund", ref: `${tradeNo}:${eventId}` });
    yield* deps.ledger.logSteps(tx, {
      type: LogType.topUp,
      userId: order.userId,
      username: user.username,
      content: orderTakenBack(
        logQuotaText(Math.abs(change), quotaDisplay(deps.options)),
        tradeNo,
        change > 0,
      ),
      quota: change,
      other: { trade_no: tradeNo, refund: reason },
    });
    return change;
  });
  // The plan ended with the refund, and its money is the site's again: what becomes of it a person decides.
  if (endedPlan && reason === REFUND_FAILED)
    deps.inbox.raise({ kind: "payment", subject: tradeNo, params: { order: tradeNo } });
  return change;
}
