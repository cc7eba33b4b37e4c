// Quota arithmetic and its display, shared by server and console. Quota is a whole number of units;
// one US dollar is QuotaPerUnit units (500,000 unless the operator changed it).

/** Every balance and charge stays within the integers that a double holds exactly. */
export const MAX_QUOTA = Number.MAX_SAFE_INTEGER;

export const DEFAULT_QUOTA_PER_UNIT = 500_000;

/** True for a whole number that may stand in a balance column (negative balances occur after settlement). */
export function isQuota(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value);
}

/** Rounds half away from zero, as the settlement formula of the billing reference asks. */
export function roundHalfAway(value: number): number {
  return value < 0 ? -Math.round(-value) : Math.round(value);
}

/** How the site shows quota; both values come from options. */
export interface QuotaDisplay {
  inCurrency: boolean;
  quotaPerUnit: number;
}

/** Quota as the wire texts of logs write it: `＄0.020000 额度` or `10000 点额度` (full-width dollar sign). */
export function logQuotaText(quota: number, display: QuotaDisplay): string {
  return display.inCurrency ? `${shortQuotaText(quota, display)} 额度` : `${quota} 点额度`;
}

/** Quota as relay error texts write it: without the word for quota. */
export function shortQuotaText(quota: number, display: QuotaDisplay): string {
  return display.inCurrency ? `＄${(quota / display.quotaPerUnit).toFixed(6)}` : String(quota);
}
