// What each model costs the visitor's own group, as a line of text: fetched when somebody looks.
import { dollarsPerMTok } from "../../../src/shared/cost.ts";
import { DEFAULT_QUOTA_PER_UNIT } from "../../../src/shared/money.ts";
import { api, callForBody } from "../../lib/api.ts";
import { loadAllTexts } from "../../lib/all-texts.ts";
import { status, user } from "../../lib/boot.ts";
import { formatMoney } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";

/** By model: the price of a call, or of a million tokens in and out. Rejects when they cannot be had. */
export async function fetchPrices(): Promise<ReadonlyMap<string, string>> {
  const [{ data, group_ratio: ratios }] = await Promise.all([callForBody(api.pricing.get()), loadAllTexts()]);
  const ratio = ratios[user.peek()?.group ?? ""] ?? 1;
  const perUnit = status.peek().quota_per_unit || DEFAULT_QUOTA_PER_UNIT;
  const perMillion = (modelRatio: number) => formatMoney(dollarsPerMTok(modelRatio * ratio, perUnit));
  return new Map(
    data.map((entry) => [
      entry.model_name,
      entry.quota_type === 1
        ? t("personal.pricePerCall", { price: formatMoney(entry.model_price * ratio) })
        : t("personal.pricePerMillion", {
            input: perMillion(entry.model_ratio),
            output: perMillion(entry.model_ratio * entry.completion_ratio),
          }),
    ]),
  );
}
