// What was paid, or was to be: top-ups and orders of plans, as orders of ours. No balance comes of them, it has them already.
// Refuses two orders of one number: the first keeps it, later ones carry their own number behind it.
import type { PlanTerms } from "../../core/plans/purchases.ts";
import { currencyPlaces } from "../../shared/currencies.ts";
import { MAX_QUOTA } from "../../shared/money.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import { textOf, wholeOf } from "../values.ts";

export interface OrderFacts {
  notes: Notes;
  now: number;
  quotaPerUnit: number;
  /** Numbers so far. */
  tradeNos: Set<string>;
  hasUser: (id: number) => boolean;
  /** Terms that a late payment of a plan would still be kept by; undefined: the plan is gone. */
  termsOf: (planId: number) => PlanTerms | undefined;
}

const DAY = 86_400;
/** Rails that write themselves as the method. */
const OWN_METHODS: ReadonlySet<string> = new Set(["stripe", "creem", "waffo", "waffo_pancake", "balance"]);

/** A decimal text as whole units of so many places, half up; what is none is 0. Floats of the source are read as written. */
function scaled(amount: string, places: number): number {
  const value = Number(amount);
  if (!Number.isFinite(value) || value <= 0) return 0;
  const plain = /e/i.test(amount) ? value.toFixed(places + 2) : amount;
  const [, whole = "0", part = ""] = /^\+?(\d*)(?:\.(\d*))?$/.exec(plain) ?? [];
  const digits = part.padEnd(places + 1, "0");
  const minor = BigInt(`${whole}${digits.slice(0, places)}` || "0") + (Number(digits[places]) >= 5 ? 1n : 0n);
  return minor > BigInt(MAX_QUOTA) ? MAX_QUOTA : Number(minor);
}

export function minorOfAmount(amount: string, currency: string): number {
  return scaled(amount, currencyPlaces(currency) ?? 2);
}

/** Dollars as units of the wallet. */
export function quotaOfAmount(amount: string, quotaPerUnit: number): number {
  const quota = Math.round(Number(amount) * quotaPerUnit);
  return Number.isFinite(quota) ? Math.max(0, Math.min(MAX_QUOTA, quota)) : 0;
}

function railOf(row: SourceRow): { rail: string; method: string } {
  const method = textOf(row, "payment_method").trim();
  const provider = textOf(row, "payment_provider").trim();
  if (provider !== "") return { rail: provider, method };
  const isOwn = OWN_METHODS.has(method) || method.startsWith("waffo");
  return { rail: isOwn ? method : "epay", method };
}

/** A payment that is open for longer than a day has no page to be paid on any more; it is still credited when it comes. */
function statusOf(row: SourceRow, createdAt: number, now: number): string {
  const found = textOf(row, "status").toLowerCase();
  if (found === "success") return "credited";
  if (found === "failed") return "failed";
  if (found === "pending") return createdAt < now - DAY ? "expired" : "pending";
  return "expired";
}

function tradeNoOf(row: SourceRow, id: number, table: string, { tradeNos, notes }: OrderFacts): string {
  const found = textOf(row, "trade_no").trim();
  const tradeNo = found === "" || tradeNos.has(found) ? `${found}#${id}` : found;
  const own = tradeNos.has(tradeNo) ? `${tradeNo}#${table}` : tradeNo;
  tradeNos.add(own);
  if (own !== found) notes.add(table, "order_trade_no", `${id} (${own})`);
  return own;
}

/** What both tables have in common; undefined: nobody's order. */
function orderOf(row: SourceRow, table: string, orderId: number, facts: OrderFacts) {
  const { notes, now, hasUser } = facts;
  const id = wholeOf(row, "id");
  const userId = wholeOf(row, "user_id");
  if (!hasUser(userId)) {
    notes.rejected(table, "user_gone", id);
    return undefined;
  }
  const { rail, method } = railOf(row);
  const currency = rail === "epay" ? "CNY" : "USD";
  const createdAt = Math.max(0, wholeOf(row, "create_time"));
  const completedAt = Math.max(createdAt, wholeOf(row, "complete_time"));
  const status = statusOf(row, createdAt, now);
  if (status === "expired" && textOf(row, "status") === "pending") notes.add(table, "order_expired", id);
  if (rail !== "epay" && rail !== "stripe" && rail !== "balance")
    notes.add(table, "order_rail", `${id} (${rail})`);
  const moneyMinor = minorOfAmount(textOf(row, "money"), currency);
  notes.carried(table);
  return {
    id: orderId,
    tradeNo: tradeNoOf(row, id, table, facts),
    userId,
    rail,
    method,
    moneyMinor,
    currency,
    status,
    // Of the other rails nobody knows what arrived.
    paidMinor: status === "credited" && rail === "epay" ? moneyMinor : 0,
    createdAt,
    updatedAt: completedAt,
    expiresAt: createdAt + DAY,
    creditedAt: status === "credited" ? completedAt : 0,
  } satisfies Partial<NewRow<"orders">>;
}

/** A row of `top_ups`; `mirrored`: numbers of orders of plans, which the old product wrote here as well. */
export function mapTopUp(
  row: SourceRow,
  facts: OrderFacts,
  mirrored: ReadonlySet<string>,
): NewRow<"orders"> | undefined {
  const { notes, quotaPerUnit } = facts;
  const id = wholeOf(row, "id");
  notes.read("top_ups");
  const tradeNo = textOf(row, "trade_no").trim();
  if (tradeNo !== "" && mirrored.has(tradeNo)) {
    notes.add("top_ups", "order_mirror", id);
    return undefined;
  }
  const order = orderOf(row, "top_ups", id, facts);
  if (!order) return undefined;
  const amount = textOf(row, "amount");
  const money = textOf(row, "money");
  const quota =
    order.rail === "stripe"
      ? quotaOfAmount(money, quotaPerUnit)
      : order.rail === "creem"
        ? Math.max(0, wholeOf(row, "amount"))
        : quotaOfAmount(amount, quotaPerUnit);
  const snapshot = {
    imported: "top_ups",
    amount,
    unit: order.rail === "creem" ? "quota" : "usd",
    QuotaPerUnit: quotaPerUnit,
    // Stripe's column has the dollars that were credited, not what was paid.
    ...(order.rail === "stripe" ? { money_is: "credited" } : {}),
  };
  return { ...order, kind: "topup", quota, snapshot: JSON.stringify(snapshot) };
}

/** A row of `subscription_orders`; `orderId`: behind the numbers of all top-ups, whose table it shares here. */
export function mapPlanOrder(
  row: SourceRow,
  facts: OrderFacts,
  orderId: number,
): NewRow<"orders"> | undefined {
  facts.notes.read("subscription_orders");
  const order = orderOf(row, "subscription_orders", orderId, facts);
  if (!order) return undefined;
  const planId = wholeOf(row, "plan_id");
  const terms = facts.termsOf(planId);
  // Without its terms nobody could keep it: it can only be looked at.
  const status = terms || order.status === "credited" ? order.status : "failed";
  const snapshot = { imported: "subscription_orders", ...(terms ? { terms: JSON.stringify(terms) } : {}) };
  return { ...order, kind: "plan", planId, quota: 0, status, snapshot: JSON.stringify(snapshot) };
}
