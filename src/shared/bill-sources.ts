// Whose bills are read, and in which form: each is a reader of core/costs/formats.ts.
export const BILL_SOURCES = [
  "openai-costs",
  "openai-usage",
  "anthropic-cost",
  "anthropic-usage",
  "openrouter",
  "instance",
  "csv",
] as const;
export type BillSource = (typeof BILL_SOURCES)[number];
