// What a plan of prices warns of, by code; the words stand in the locales, and a test holds that none is without.
export const PRICE_WARNINGS = [
  "price_doubled",
  "price_halved",
  "price_free",
  "price_no_longer_free",
  "price_unit_changed",
  "price_looks_unset",
  "price_removed",
  "group_in_use",
  "changed_since_draft",
] as const;
export type PriceWarningCode = (typeof PRICE_WARNINGS)[number];

export interface PriceWarning {
  code: PriceWarningCode;
  /** Option of the change; empty where it is about a model's price in all of them. */
  key: string;
  /** Model or group; empty for an option that is one value. */
  name: string;
  params: Readonly<Record<string, string | number>>;
}
