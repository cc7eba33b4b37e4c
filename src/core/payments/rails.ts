// The rails by which money comes in, a line each, and what all of them have in common: which are open, what they offer.
// Refuses to take money on a rail that anybody could forge a payment on.
import type { Deps, UserAccount } from "../deps.ts";
import { Role } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import { currencyPlaces } from "../../shared/currencies.ts";
import { addOptions } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import { isInCurrency } from "../options/display.ts";
import { offerFor } from "./amounts.ts";
import type { Asked, Offer } from "./amounts.ts";
import { epay } from "./epay.ts";
import { createOrder, openOrders, orderOf } from "./orders.ts";
import type { PaymentRail, PaymentStart, RailDeps, RailMethod } from "./rail.ts";
import { stripe } from "./stripe.ts";

/** All that are shipped; a process's own list is `deps.rails`. */
export const RAILS: readonly PaymentRail[] = [epay, stripe];

/** Makes the options of rails known; answers what takes those away that were not known before. */
export function addRailOptions(rails: readonly PaymentRail[]): () => void {
  const undo = rails.map(({ settings = {} }) => addOptions("payment", settings));
  return () => {
    for (const each of undo) each();
  };
}

addRailOptions(RAILS);

const ASK_AFTER_SECONDS = 600;

type RailsOf = Pick<Deps, "options" | "rails">;

/** Where the site sells nothing, no rail is open. */
function isSelling(options: Pick<Deps["options"], "get">): boolean {
  return !options.get("SelfUseModeEnabled") && !options.get("DemoSiteEnabled");
}

export function openRails({ options, rails }: RailsOf): PaymentRail[] {
  return isSelling(options) ? rails.filter((rail) => rail.isGuarded(options)) : [];
}

/** What GET /api/status tells old consoles, which show their pay buttons by it. */
export function isOnlineTopUpOpen(deps: RailsOf): boolean {
  return openRails(deps).length > 0;
}

/** The rail whose callbacks are taken, also where the site has stopped selling meanwhile: late money is money. */
export function guardedRail({ options, rails }: RailsOf, name: string): PaymentRail | undefined {
  return rails.find((rail) => rail.name === name && rail.isGuarded(options));
}

export interface Wish extends Asked {
  rail: string;
  /** Undefined: the rail's only one. */
  method: string | undefined;
}

interface Chosen {
  rail: PaymentRail;
  method: RailMethod;
  offer: Offer;
}

/** The open rail and its method. Throws `payment_unset`, `payment_method_missing`. */
export function methodOf(deps: RailsOf, wish: Pick<Wish, "rail" | "method">): Omit<Chosen, "offer"> {
  const rail = openRails(deps).find(({ name }) => name === wish.rail);
  if (!rail) throw refuse("payment_unset");
  const methods = rail.methods(deps.options);
  const asked = wish.method === undefined ? undefined : (rail.methodOf?.(wish.method) ?? wish.method);
  const method = asked === undefined ? methods[0] : methods.find(({ type }) => type === asked);
  if (!method) throw refuse("payment_method_missing");
  return { rail, method };
}

/**
 * What the wish costs now. Throws `payment_unset`, `payment_method_missing` and what `offerFor` throws; a rail with one
 * method needs none to be named.
 */
export function offerOf(deps: RailsOf, actor: UserAccount, wish: Wish): Chosen {
  const { options } = deps;
  const { rail, method } = methodOf(deps, wish);
  const offer = offerFor(deps, actor, wish, {
    price: rail.price(options),
    currency: rail.currency(options),
    minimum: Math.max(method.minimum, rail.minimum(options)),
  });
  return { rail, method, offer };
}

/** Makes the order and tells the rail of it. Throws what `offerOf`, `createOrder` and the rail throw. */
export async function pay(
  deps: RailDeps & RailsOf,
  actor: UserAccount,
  wish: Wish,
): Promise<PaymentStart & { tradeNo: string }> {
  const { rail, method, offer } = offerOf(deps, actor, wish);
  const { name, seconds } = rail;
  const order = await createOrder(deps, actor, { rail: name, method: method.type, offer, seconds });
  return { tradeNo: order.tradeNo, ...(await rail.start(deps, order)) };
}

/** Every rail as the settings show it: whether it is open, and the options that it waits for. */
function railStates({ options, rails }: RailsOf) {
  const selling = isSelling(options);
  const textOf = (key: string): string => options.text(key as OptionKey);
  return rails.map(({ name, title, callback, settings = {}, isGuarded }) => ({
    name,
    title,
    callback: callback ?? `/api/payment/${name}`,
    open: selling && isGuarded(options),
    missing: [
      ...Object.keys(settings).filter((key) => settings[key]?.isRequired === true && textOf(key) === ""),
      ...(options.get("ServerAddress") === "" ? ["ServerAddress"] : []),
    ],
  }));
}

/** What the wallet offers: amounts in the unit that amounts are sent in. */
export function topUpOffers(deps: RailsOf, actor: Pick<UserAccount, "role">) {
  const { options } = deps;
  const isDollars = isInCurrency(options);
  const inUnit = (dollars: number): number =>
    isDollars ? dollars : Math.ceil(dollars * options.get("QuotaPerUnit"));
  const open = openRails(deps).filter((rail) => currencyPlaces(rail.currency(options)) !== undefined);
  const discounts = Object.entries(options.get("payment_setting.amount_discount"));
  return {
    open: open.length > 0,
    unit: isDollars ? ("dollars" as const) : ("quota" as const),
    min_topup: inUnit(
      Math.min(...(open.length > 0 ? open : [undefined]).map((rail) => rail?.minimum(options) ?? 0)),
    ),
    max_topup: isDollars
      ? options.get("MaxTopUp")
      : Math.floor(options.get("MaxTopUp") * options.get("QuotaPerUnit")),
    amounts: options.get("payment_setting.amount_options").map(inUnit),
    discounts: discounts
      .map(([from, part]) => ({ from: Number(from), part }))
      .toSorted((a, b) => a.from - b.from),
    methods: open.flatMap((rail) =>
      rail.methods(options).map(({ type, name, minimum }) => ({
        rail: rail.name,
        type,
        name,
        currency: rail.currency(options).toUpperCase(),
        min_topup: inUnit(Math.max(minimum, rail.minimum(options))),
      })),
    ),
    /** Closed ones too, for whoever sets them up; null below root. */
    rails: actor.role >= Role.root ? railStates(deps) : null,
  };
}

/** Asks for orders that have waited long: a callback may be lost. */
export async function askForOpenOrders(deps: RailDeps & RailsOf): Promise<void> {
  for (const rail of deps.rails) {
    if (!rail.ask || !rail.isGuarded(deps.options) || rail.mayAsk?.(deps.options) === false) continue;
    for (const order of await openOrders(deps, rail.name, ASK_AFTER_SECONDS)) {
      try {
        await rail.ask(deps, order);
      } catch (error) {
        deps.logger.warn("an open order could not be asked for", {
          order: order.tradeNo,
          error: String(error),
        });
      }
    }
  }
}

/** The rail of an order, and the order. Throws `order_missing`. */
export async function railOf(deps: RailDeps & RailsOf, tradeNo: string) {
  const order = await orderOf(deps, tradeNo);
  if (!order) throw refuse("order_missing");
  return { order, rail: deps.rails.find(({ name }) => name === order.rail) };
}
