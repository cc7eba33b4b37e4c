// Words of the price list: the specification's formula, in dollars or in what the site shows in their place, and how a ratio is toned.
import { formatNumber, siteDisplay } from "../../islands/lib/format.ts";
import type { Translate } from "../../views/document.tsx";
import type { PricingGroup } from "../../views/pricing.tsx";

/** By how many quota units a sum is divided for what the site shows it in; "1" where it shows units. */
export function divisorText(quotaPerUnit: number): string {
  const { isUnits, rate } = siteDisplay();
  if (isUnits) return "1";
  return rate === 1 ? formatNumber(quotaPerUnit) : `${formatNumber(quotaPerUnit)} × ${formatNumber(rate)}`;
}

/** The specification's formula, in what the site shows. */
export function formulaText(t: Translate, quotaPerUnit: number): string {
  const { isUnits, symbol } = siteDisplay();
  if (!isUnits && symbol === "$") return t("pricing.formula", { units: formatNumber(quotaPerUnit) });
  return t("pricing.formulaIn", {
    units: divisorText(quotaPerUnit),
    unit: isUnits ? t("pricing.unitQuota") : symbol,
  });
}

/** The specification's thresholds. */
export function ratioTone(ratio: number): PricingGroup["tone"] {
  if (ratio > 5) return "error";
  if (ratio > 3) return "warning";
  return ratio > 1 ? "info" : undefined;
}
