// The warnings of a price plan in words, with the names and numbers that they are about.
import type { PriceCondition } from "../../src/shared/price-row.ts";
import type { PriceWarning } from "../../src/shared/price-warnings.ts";
import { formatNumber } from "./format.ts";
import type { Translate } from "./i18n.ts";
import { conditionText, priceText, toolName } from "./rule-words.ts";

/** Options whose values are no dollars. */
const PLACES = ["GroupRatio", "GroupGroupRatio", "TopupGroupRatio", "Price", "QuotaPerUnit"];

/** What changes: a kind of price of a model, or the ratio of a group, or a value that stands alone. */
function subjectOf(t: Translate, { key, name, params }: PriceWarning): string {
  if (PLACES.includes(key)) {
    const place = t(`rule.place.${key}`);
    return name === "" ? place : t("rule.place", { name, place });
  }
  const { kind, when, tool } = params;
  if (key === "ToolPrices") return toolName(t, name);
  if (tool !== undefined) return t("rule.place", { name, place: toolName(t, String(tool)) });
  if (when === undefined) return t("rule.place", { name, place: t(`log.line.${kind}`) });
  return t("rule.placeWhen", {
    name,
    place: kind === "call" ? t("log.line.per_call") : t(`rule.kind.${kind}`),
    when: conditionText(t, JSON.parse(String(when)) as PriceCondition),
  });
}

/** A number of the warning as it is meant: dollars of a model's price, else plain. */
function valueText({ key }: PriceWarning, value: string | number | undefined): string {
  if (typeof value !== "number") return value ?? "";
  return PLACES.includes(key) ? formatNumber(value) : priceText(value);
}

/** One sentence about what a plan would do. */
export function warningText(t: Translate, warning: PriceWarning): string {
  const { code, key, name, params } = warning;
  const [before, after] = [valueText(warning, params["before"]), valueText(warning, params["after"])];
  const number = (field: string): number => Number(params[field] ?? 0);
  switch (code) {
    case "price_doubled":
    case "price_halved":
    case "price_free":
    case "price_no_longer_free":
      return t(`rule.warning.${code}`, { subject: subjectOf(t, warning), before, after });
    case "price_unit_changed":
      return t("rule.warning.price_unit_changed", { name });
    case "price_looks_unset":
      return t("rule.warning.price_looks_unset", { name, ratio: formatNumber(number("ratio")) });
    case "price_removed":
      return t("rule.warning.price_removed", {
        name,
        count: number("calls"),
        calls: formatNumber(number("calls")),
      });
    case "group_in_use": {
      const used = {
        name,
        users: formatNumber(number("users")),
        keys: formatNumber(number("keys")),
        channels: formatNumber(number("channels")),
      };
      const options = String(params["options"] ?? "");
      const text = t("rule.warning.group_in_use", used);
      return options === "" ? text : text + t("rule.warning.group_in_use.options", { options });
    }
    case "changed_since_draft":
      return t("rule.warning.changed_since_draft", { name: name === "" ? key : name, before, after });
  }
}
