// Orders in words: what became of one, what was paid for it, what of it went back. The wallet, the receipt and the payment inbox
// say the same.

/** As the dot of a status is toned. */
type OrderTone = "ok" | "off" | "attention" | "broken" | "running";

/** As orders travel; `success` is credited. */
export const ORDER_STATUS: Readonly<Record<string, readonly [OrderTone, string]>> = {
  created: ["running", "topup.status.created"],
  pending: ["running", "topup.status.pending"],
  success: ["ok", "topup.status.success"],
  review: ["attention", "topup.status.review"],
  expired: ["off", "topup.status.expired"],
  failed: ["broken", "topup.status.failed"],
  refunded: ["off", "topup.status.refunded"],
};

/** Still waiting for its payment. */
export const isWaiting = (status: string): boolean => status === "created" || status === "pending";

/** Paid for, at some time: there is a receipt. */
export const hasReceipt = (status: string): boolean => status === "success" || status === "refunded";

/** A sum that was or will be paid, in the currency of the payment and never in the one that the site shows: `73.00 CNY`. */
export const moneyText = (money: string, currency: string): string => `${money} ${currency.toUpperCase()}`;

/** Whether a sum, as text in major units, is more than nothing. */
export const isSum = (money: string): boolean => Number(money) > 0;
