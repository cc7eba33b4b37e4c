// Kinds of options that money comes in by: the methods of a rail, the amounts that are offered, and what larger ones save.
// Refuses a discount that is no part of the price, and amounts that are no whole numbers.
import { currencyPlaces } from "../../shared/currencies.ts";
import { refuse } from "../../shared/failures.ts";
import type { OptionKind } from "./kinds.ts";

/** A way to pay that the gateway offers, as its buyers read it. */
export interface PayMethod {
  name: string;
  /** What the gateway calls it: alipay, wxpay, … */
  type: string;
  /** Least amount in dollars; 0: the site's. */
  min_topup: number;
}

const MAX_METHODS = 20;
const MAX_AMOUNTS = 20;
const TYPE = /^[a-z0-9_-]{1,32}$/i;

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw refuse("option_not_json");
  }
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);

function methodOf(entry: unknown): PayMethod | undefined {
  if (typeof entry !== "object" || entry === null) return undefined;
  const { name, type, min_topup: least = 0 } = entry as Record<string, unknown>;
  if (typeof name !== "string" || name.trim() === "" || name.length > 40) return undefined;
  if (typeof type !== "string" || !TYPE.test(type)) return undefined;
  // Other consoles write it as text.
  const minimum = typeof least === "string" ? Number(least) : least;
  return isWhole(minimum) && minimum >= 0 ? { name, type, min_topup: minimum } : undefined;
}

export const payMethods: OptionKind<PayMethod[]> = {
  parse(text) {
    const parsed = text.trim() === "" ? [] : jsonOf(text);
    if (!Array.isArray(parsed) || parsed.length > MAX_METHODS) throw refuse("option_bad_pay_methods");
    return parsed.map((entry) => {
      const method = methodOf(entry);
      if (!method) throw refuse("option_bad_pay_methods");
      return method;
    });
  },
  check(text) {
    const types = payMethods.parse(text).map(({ type }) => type);
    if (new Set(types).size !== types.length) throw refuse("option_bad_pay_methods");
  },
};

export const amountList: OptionKind<number[]> = {
  parse(text) {
    const parsed = text.trim() === "" ? [] : jsonOf(text);
    if (!Array.isArray(parsed) || parsed.length > MAX_AMOUNTS) throw refuse("option_bad_amounts");
    if (!parsed.every((entry) => isWhole(entry) && entry > 0)) throw refuse("option_bad_amounts");
    return parsed as number[];
  },
};

/** From which amount in dollars on which part of the price is asked: {"100": 0.9}. */
export const discountMap: OptionKind<Record<string, number>> = {
  parse(text) {
    const parsed = text.trim() === "" ? {} : jsonOf(text);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
      throw refuse("option_bad_discounts");
    const entries = Object.entries(parsed as Record<string, unknown>);
    const isGood = entries.every(
      ([from, part]) => /^\d{1,9}$/.test(from) && typeof part === "number" && part > 0 && part <= 1,
    );
    if (!isGood || entries.length > MAX_AMOUNTS) throw refuse("option_bad_discounts");
    return Object.fromEntries(entries) as Record<string, number>;
  },
};

/** Anybody who knows a short one could forge payments. */
const LEAST_SECRET = 24;

export const webhookSecrets: OptionKind<string> = {
  parse: (text) => text,
  check(text) {
    const secrets = text.split(/[\s,]+/).filter((secret) => secret !== "");
    if (
      secrets.some((secret) => !secret.startsWith("whsec_") || secret.length < LEAST_SECRET) ||
      secrets.length > 2
    )
      throw refuse("option_bad_webhook_secret");
  },
};

export const currencyCode: OptionKind<string> = {
  parse: (text) => text.trim().toLowerCase(),
  check(text) {
    if (currencyPlaces(text.trim()) === undefined) throw refuse("option_bad_currency");
  },
};

const MAX_SYMBOL = 8;

/** What stands before an amount: a few characters, none of them a digit, a blank or markup. */
export const currencySymbol: OptionKind<string> = {
  parse: (text) => text.trim(),
  check(text) {
    const symbol = text.trim();
    if (symbol === "" || symbol.length > MAX_SYMBOL || /[\s\d<>&"'.,+=@-]|\p{Cc}/u.test(symbol))
      throw refuse("option_bad_symbol");
  },
};
