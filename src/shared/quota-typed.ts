// What an amount that somebody typed in what the site shows is in whole units. Apart from quota-display.ts: every page shows
// amounts, few have them typed.
import { decimalOf, decimalOfNumber, roundedHalfUp, times } from "./decimal.ts";
import type { ShownCurrency } from "./quota-display.ts";

/**
 * Whole units of an amount that somebody typed in what is shown, half up (money.md 7), halves of negative amounts away from
 * zero. Undefined: no plain decimal number, or beyond the exact integers.
 */
export function quotaOfTyped(text: string, { type, rate, quotaPerUnit }: ShownCurrency): number | undefined {
  const [, sign = "", digits = ""] = /^([+-]?)(.*)$/.exec(text.trim()) ?? [];
  const typed = decimalOf(digits.replace(/^\./, "0.").replace(/\.$/, ""));
  if (!typed) return undefined;
  const shown = decimalOfNumber(rate);
  const units =
    type === "TOKENS" ? typed : times(typed, decimalOfNumber(quotaPerUnit), { n: shown.d, d: shown.n });
  const whole = Number(roundedHalfUp(units));
  if (!Number.isSafeInteger(whole)) return undefined;
  return sign === "-" && whole !== 0 ? -whole : whole;
}
