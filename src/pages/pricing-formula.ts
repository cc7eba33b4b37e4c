// The specification's formula of a price in words, in dollars or in what the site shows in their place.
import { formatNumber, siteDisplay } from "../../islands/lib/format.ts";
import type { Translate } from "../../views/document.tsx";

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
