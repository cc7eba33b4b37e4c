// What is disputed of an order: the parts of its payment, each by the number of its own dispute, as the rail's events tell them.
// Refuses to let one dispute stand for another: a payment may be disputed in parts, and each part ends by itself.
import { and, eq, inArray } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import type { OrderRow, PaymentDeps } from "./orders.ts";

/** Verdicts of the events of disputes: one that is open, and how it ended. */
export const DISPUTE_OPEN = "dispute";
export const DISPUTE_LOST = "dispute_lost";
export const DISPUTE_WON = "dispute_won";

const EVENT_OF = /^(.+):(?:created|closed)$/;

/** A dispute as its event tells it; its beginning is `<id>:created`, its end `<id>:closed`. */
export interface Dispute {
  id: string;
  amount: number;
}

/** Minor units that are disputed, and those of them that do not come back. */
export interface Disputed {
  disputedMinor: number;
  lostMinor: number;
}

interface Known {
  verdict: string;
  /** Undefined: told when only the order kept how much. */
  amount: number | undefined;
}

const isStanding = ({ verdict }: Known): boolean => verdict !== DISPUTE_WON;

function sumOf(disputes: Iterable<Known>, verdict?: string): number {
  let sum = 0;
  for (const each of disputes)
    if (isStanding(each) && (verdict === undefined || each.verdict === verdict)) sum += each.amount ?? 0;
  return sum;
}

/**
 * What other disputes than `own` hold of the order; without `own`: what all of them do. Call under the order's lock, with the
 * order as it was before the event `eventId`.
 */
export function* otherDisputes(
  tx: Orm,
  { db }: Pick<PaymentDeps, "db">,
  order: Pick<OrderRow, "rail" | "tradeNo" | "disputedMinor">,
  { eventId, dispute: own }: { eventId: string; dispute?: Dispute },
): Steps<Disputed> {
  const { paymentEvents } = db.t;
  const rows = yield* q(
    tx
      .select({
        eventId: paymentEvents.eventId,
        verdict: paymentEvents.verdict,
        report: paymentEvents.report,
      })
      .from(paymentEvents)
      .where(
        and(
          eq(paymentEvents.tradeNo, order.tradeNo),
          eq(paymentEvents.rail, order.rail),
          inArray(paymentEvents.verdict, [DISPUTE_OPEN, DISPUTE_LOST, DISPUTE_WON]),
        ),
      ),
  );
  const known = new Map<string, Known>();
  for (const row of rows) {
    if (row.eventId === eventId) continue;
    // Root may have given a refund a reason of that name.
    const id = EVENT_OF.exec(row.eventId)?.[1];
    if (id === undefined) continue;
    // Its end says what became of it, whatever came first.
    if (row.verdict === DISPUTE_OPEN && known.has(id)) continue;
    const { amount } = JSON.parse(row.report) as Partial<Dispute>;
    known.set(id, { verdict: row.verdict, amount });
  }
  const told = sumOf(known.values());
  const mine = own && known.get(own.id);
  if (own) known.delete(own.id);
  const others = [...known.values()];
  const unsaid = others.filter((each) => isStanding(each) && each.amount === undefined);
  const isMineUnsaid = mine !== undefined && isStanding(mine) && mine.amount === undefined;
  const left = order.disputedMinor - told - (isMineUnsaid ? (own?.amount ?? 0) : 0);
  const rest = unsaid.length === 0 ? 0 : Math.max(0, left);
  const isRestLost = unsaid.some(({ verdict }) => verdict === DISPUTE_LOST);
  return {
    disputedMinor: sumOf(others) + rest,
    lostMinor: sumOf(others, DISPUTE_LOST) + (isRestLost ? rest : 0),
  };
}
