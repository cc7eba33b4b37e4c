// The rails by which money comes in, a row each: adding one is a file and a row here.
// Refuses to take money on a rail that anybody could forge a payment on.
import type { Deps } from "../deps.ts";
import { isStripeReady, STRIPE, STRIPE_SECONDS } from "./stripe.ts";
import { EPAY, EPAY_CURRENCY, EPAY_SECONDS, isEpayReady } from "./epay.ts";

export interface PaymentRail {
  /** As its orders name it. */
  name: string;
  /** Everything stands that keeps others from forging a payment. */
  isGuarded: (options: Pick<Deps["options"], "get">) => boolean;
  currency: (options: Pick<Deps["options"], "get">) => string;
  /** Units of its currency for a dollar of credit, as the option has it. */
  price: (options: Pick<Deps["options"], "get" | "text">) => string;
  /** Least amount in dollars. */
  minimum: (options: Pick<Deps["options"], "get">) => number;
  /** For how long an order waits. */
  seconds: number;
}

const RAILS: readonly PaymentRail[] = [
  {
    name: EPAY,
    isGuarded: isEpayReady,
    currency: () => EPAY_CURRENCY,
    price: (options) => options.text("Price"),
    minimum: (options) => options.get("MinTopUp"),
    seconds: EPAY_SECONDS,
  },
  {
    name: STRIPE,
    isGuarded: isStripeReady,
    currency: (options) => options.get("StripeCurrency"),
    price: (options) => options.text("StripeUnitPrice"),
    minimum: (options) => options.get("StripeMinTopUp"),
    seconds: STRIPE_SECONDS,
  },
];

/** Where the site sells nothing, no rail is open. */
function isSelling(options: Pick<Deps["options"], "get">): boolean {
  return !options.get("SelfUseModeEnabled") && !options.get("DemoSiteEnabled");
}

export function openRail(options: Pick<Deps["options"], "get">, name: string): PaymentRail | undefined {
  return isSelling(options) ? RAILS.find((rail) => rail.name === name && rail.isGuarded(options)) : undefined;
}

/** What GET /api/status tells old consoles, which show their pay buttons by it. */
export function isOnlineTopUpOpen(options: Pick<Deps["options"], "get">): boolean {
  return RAILS.some(({ name }) => openRail(options, name) !== undefined);
}
