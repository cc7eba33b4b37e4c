// How the site shows quota: dollars, yuan, a currency of its own or plain units; what is typed stands in quota-typed.ts.
// Refuses to touch the books: an amount that was shown is never stored.
import { DEFAULT_QUOTA_PER_UNIT } from "./money.ts";

export const DISPLAY_TYPES = ["USD", "CNY", "TOKENS", "CUSTOM"] as const;
export type DisplayType = (typeof DISPLAY_TYPES)[number];

/** The fields of GET /api/status that say it. */
export interface DisplayFields {
  quota_per_unit?: number | undefined;
  display_in_currency?: boolean | undefined;
  quota_display_type?: string | undefined;
  usd_exchange_rate?: number | undefined;
  custom_currency_symbol?: string | undefined;
  custom_currency_exchange_rate?: number | undefined;
}

export interface ShownCurrency {
  type: DisplayType;
  /** Before the amount; empty for units. */
  symbol: string;
  /** Of the shown currency for a dollar; 1 for dollars, and of no meaning for units. */
  rate: number;
  quotaPerUnit: number;
}

/** Older servers and consoles know `display_in_currency` alone: dollars or units. */
export function displayOf(site: DisplayFields): ShownCurrency {
  const quotaPerUnit = site.quota_per_unit || DEFAULT_QUOTA_PER_UNIT;
  if (site.display_in_currency === false || site.quota_display_type === "TOKENS")
    return { type: "TOKENS", symbol: "", rate: 1, quotaPerUnit };
  if (site.quota_display_type === "CNY")
    return { type: "CNY", symbol: "¥", rate: site.usd_exchange_rate || 1, quotaPerUnit };
  if (site.quota_display_type === "CUSTOM")
    return {
      type: "CUSTOM",
      symbol: site.custom_currency_symbol || "¤",
      rate: site.custom_currency_exchange_rate || 1,
      quotaPerUnit,
    };
  return { type: "USD", symbol: "$", rate: 1, quotaPerUnit };
}

/** Units as an amount of what is shown. */
export function shownAmount(quota: number, { type, rate, quotaPerUnit }: ShownCurrency): number {
  return type === "TOKENS" ? quota : (quota / quotaPerUnit) * rate;
}
