// Plans in words: what one costs, lasts, gives and does beyond that. Wallet and administration say the same.
import { formatQuota } from "./format.ts";
import type { Translate } from "./i18n.ts";
import { moneyText } from "./order-words.ts";
import type { SoldPlan } from "./wire.ts";

type Terms = Pick<
  SoldPlan,
  "duration_unit" | "duration_count" | "reset" | "quota" | "group" | "overflow" | "max_per_user" | "stack"
>;

export const durationText = (t: Translate, { duration_unit: unit, duration_count: count }: Terms): string =>
  t(`plans.duration.${unit}`, { count });

/** `$20.00 each month`, or the whole of it. */
export const quotaText = (t: Translate, { quota, reset }: Pick<Terms, "quota" | "reset">): string =>
  t(`plans.gives.${reset}`, { amount: formatQuota(quota) });

/** The prices that it has, in money and from the balance. */
export function pricesOf(
  t: Translate,
  { price, currency, wallet_price: units }: Pick<SoldPlan, "price" | "currency" | "wallet_price">,
): string[] {
  return [
    ...(price === "" ? [] : [moneyText(price, currency)]),
    ...(units > 0 ? [t("plans.fromBalance", { amount: formatQuota(units) })] : []),
  ];
}

/** What else the buyer has to know, a sentence each. */
export function termsOf(t: Translate, plan: Terms): string[] {
  return [
    t(plan.overflow ? "plans.overflowOn" : plan.reset === "none" ? "plans.overflowEnd" : "plans.overflowOff"),
    ...(plan.group === "" ? [] : [t("plans.inGroup", { group: plan.group })]),
    ...(plan.max_per_user > 0 ? [t("plans.atMost", { count: plan.max_per_user })] : []),
    ...(plan.max_per_user === 1
      ? []
      : [t(plan.stack === "extend" ? "plans.stackExtend" : "plans.stackParallel")]),
  ];
}
