// What a model costs in a group, as people read it: per million tokens, or per call.
import { DEFAULT_QUOTA_PER_UNIT } from "../../../src/shared/money.ts";
import { status } from "../../lib/boot.ts";
import { formatQuota } from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { BriefPrice } from "./use-stored.ts";

const TOKENS = 1_000_000;

/** In money, or in units where the site shows no currency. Undefined while the price is not known. */
export function priceText(
  t: Translate,
  price: BriefPrice | undefined,
  groupRatio: number,
): string | undefined {
  if (!price) return undefined;
  const [first, second] = price;
  if (first === undefined) return t("playground.noPrice");
  if (second === undefined) {
    const perUnit = status.peek().quota_per_unit || DEFAULT_QUOTA_PER_UNIT;
    return t("playground.pricePerCall", { price: formatQuota(first * perUnit * groupRatio) });
  }
  return t("playground.pricePerMillion", {
    input: formatQuota(first * TOKENS * groupRatio),
    output: formatQuota(second * TOKENS * groupRatio),
  });
}
