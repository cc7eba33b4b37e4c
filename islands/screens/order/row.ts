// What the payment inbox knows of an order: the list's page, and what was noted of a report in words.
import type { Translate } from "../../lib/i18n.ts";
import type { AnyOrderRow, ListPageData } from "../../lib/wire.ts";

export type OrderPageData = ListPageData<AnyOrderRow>;

/** Reasons for a review, and verdicts, that have words; others stand as they are. */
const NOTES = [
  "money",
  "currency",
  "no_reference",
  "reference_used",
  "user_deleted",
  "balance",
  "credited",
  "repeated",
  "review",
  "paid_twice",
  "unknown_order",
];

export function noteText(t: Translate, note: string): string {
  return NOTES.includes(note) ? t(`order.verdict.${note}`) : note;
}
