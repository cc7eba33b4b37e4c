// What an amount of credit costs: the buyer's amount, the option texts, the group's ratio and the discount, exactly.
// Refuses amounts that are not whole, outside of the site's bounds, or cost less than the smallest coin.
import { displayType, isInCurrency } from "../options/display.ts";
import { refuse } from "../../shared/failures.ts";
import { isQuota, MAX_QUOTA } from "../../shared/money.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { currencyPlaces, currencyStep } from "../../shared/currencies.ts";
import { decimalOf, decimalOfNumber, over, roundedHalfUp, times } from "../../shared/decimal.ts";
import type { Fraction } from "../../shared/decimal.ts";

/** The figures of one order, frozen with it. */
export interface Offer {
  /** As the buyer typed it. */
  amount: number;
  unit: "dollars" | "quota";
  /** Units to be credited. */
  quota: number;
  moneyMinor: number;
  currency: string;
  /** What made the money, for whoever asks later. */
  snapshot: Record<string, string | number>;
}

export interface PriceTag {
  /** Option text: units of the currency for a dollar of credit. */
  price: string;
  currency: string;
  /** Least amount, in dollars. */
  minimum: number;
}

/** What somebody wants to buy, one of the two; as it was sent. */
export interface Asked {
  /** In what the API counts in: whole dollars, or units where the site shows those. */
  amount?: unknown;
  /** Whole units, where the site shows a currency of its own: an amount of it is seldom a whole one of dollars. */
  quota?: unknown;
}

/** The amount and its unit. Throws `topup_amount_invalid`. */
function askedOf(
  options: Pick<Deps["options"], "get">,
  { amount, quota }: Asked,
): { asked: number; isDollars: boolean } {
  const type = displayType(options);
  const isOwn = type === "CNY" || type === "CUSTOM";
  if (quota !== undefined && (!isOwn || amount !== undefined)) throw refuse("topup_amount_invalid");
  const asked = quota ?? amount;
  if (!isQuota(asked) || asked <= 0) throw refuse("topup_amount_invalid");
  return { asked, isDollars: quota === undefined && isInCurrency(options) };
}

function factorOf(text: string): Fraction {
  const found = decimalOf(text.trim());
  if (!found) throw refuse("payment_price_invalid");
  return found;
}

/** The discount of the largest step that the amount reaches; steps are dollars. */
function discountFor(steps: Readonly<Record<string, number>>, amount: Fraction): number {
  const reached = Object.entries(steps)
    .map(([from, discount]) => ({ from: decimalOf(from), discount }))
    .filter((step) => step.from !== undefined && step.from.n * amount.d <= amount.n * step.from.d)
    .toSorted((a, b) =>
      Number((b.from?.n ?? 0n) * (a.from?.d ?? 1n) - (a.from?.n ?? 0n) * (b.from?.d ?? 1n)),
    );
  return reached[0]?.discount ?? 1;
}

/**
 * money = dollars × price × group ratio (0 → 1) × discount, half up in what the currency is paid in; quota = dollars ×
 * QuotaPerUnit, or the units exactly where units were asked for. Throws Failures `topup_amount_invalid`,
 * `topup_amount_low`, `topup_amount_high`, `topup_money_low`, `quota_out_of_range`.
 */
export function offerFor(
  { options }: Pick<Deps, "options">,
  user: UserAccount,
  asked: Asked,
  tag: PriceTag,
): Offer {
  const { asked: amount, isDollars } = askedOf(options, asked);
  const perUnit = options.get("QuotaPerUnit");
  const perUnitExact = decimalOfNumber(perUnit);
  const minimum = isDollars ? tag.minimum : Math.ceil(tag.minimum * perUnit);
  const maximum = isDollars ? options.get("MaxTopUp") : Math.floor(options.get("MaxTopUp") * perUnit);
  if (amount < minimum) throw refuse("topup_amount_low", { minimum });
  if (amount > maximum) throw refuse("topup_amount_high", { maximum });
  const typed: Fraction = { n: BigInt(amount), d: 1n };
  const dollars = isDollars ? typed : { n: typed.n * perUnitExact.d, d: perUnitExact.n };
  const ratioText = options.get("TopupGroupRatio")[user.group];
  const ratio = ratioText === undefined || ratioText === 0 ? 1 : ratioText;
  const discount = discountFor(options.get("payment_setting.amount_discount"), dollars);
  const places = currencyPlaces(tag.currency);
  if (places === undefined) throw refuse("payment_price_invalid");
  const money = times(dollars, factorOf(tag.price), decimalOfNumber(ratio), decimalOfNumber(discount));
  const step = BigInt(currencyStep(tag.currency));
  const minor = roundedHalfUp(times(over(money, 1n), { n: 10n ** BigInt(places), d: step })) * step;
  if (minor < 1n) throw refuse("topup_money_low");
  const quota = isDollars ? roundedHalfUp(times(typed, perUnitExact)) : BigInt(amount);
  if (quota > BigInt(MAX_QUOTA) || minor > BigInt(MAX_QUOTA)) throw refuse("quota_out_of_range");
  return {
    amount,
    unit: isDollars ? "dollars" : "quota",
    quota: Number(quota),
    moneyMinor: Number(minor),
    currency: tag.currency,
    snapshot: {
      amount,
      unit: isDollars ? "dollars" : "quota",
      price: tag.price,
      ratio,
      discount,
      quota_per_unit: perUnit,
      group: user.group,
    },
  };
}
