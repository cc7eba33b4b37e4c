// Automatic keys: in which of their groups a call may be served, what it costs in each, and what changes with the group that
// is asked. Every group's price is frozen with the reservation, which is the dearest one's; the one that answers is charged.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import { unserved } from "./admission.ts";
import type { Caller } from "./admission.ts";
import type { Call } from "./call.ts";
import type { CallHold } from "./hold.ts";

/** What a call costs in one of the groups that may serve it. */
export interface GroupPrice {
  readonly group: string;
  readonly price: CallPrice;
}

/** The same, with what the amount that is held pays there. */
export interface GroupTerms extends GroupPrice {
  readonly hold: CallHold;
}

/** The groups whose channels may serve the caller, in their order. */
export function groupsOf({ auto, group }: Pick<Caller, "auto" | "group">): readonly string[] {
  return auto ?? [group];
}

/** The caller as one of the group; the same object where there is nothing to choose. */
export function callerIn(caller: Caller, group: string): Caller {
  return caller.auto ? { ...caller, group, auto: [group] } : caller;
}

/**
 * The caller with the groups that have an enabled channel for the model, the first of them deciding; `channel`: the only one
 * that can serve. Throws as for any key where there is none.
 */
export function callerFor(
  { routing }: Pick<Deps, "routing">,
  caller: Caller,
  model: string,
  channel?: Channel,
): Caller {
  const { auto } = caller;
  if (!auto) return caller;
  if (channel) {
    const group = auto.find((each) => channel.groups.includes(each)) ?? auto[0];
    return group === undefined ? caller : callerIn(caller, group);
  }
  const serving = auto.filter((group) => routing.tiers(group, model).length > 0);
  const [first] = serving;
  if (first === undefined) throw unserved({ routing }, caller, model);
  return { ...caller, group: first, auto: serving };
}

/** The price in each group of an automatic key; undefined for all other keys, which have one. */
export function pricesIn(
  caller: Caller,
  priceOf: (group: string) => CallPrice,
): readonly GroupPrice[] | undefined {
  return caller.auto?.map((group) => ({ group, price: priceOf(group) }));
}

/** Groups differ by their ratio alone. */
export function dearestIn(prices: readonly GroupPrice[]): CallPrice | undefined {
  return prices.reduce<CallPrice | undefined>(
    (most, { price }) => (most && most.groupRatio >= price.groupRatio ? most : price),
    undefined,
  );
}

/** Puts the call to a group: whatever is held, charged and logged from here on is the group's. */
export function serveIn(call: Call, group: string): void {
  if (call.group === group) return;
  const terms = call.groups?.find((each) => each.group === group);
  if (!terms) return;
  call.group = group;
  call.price = terms.price;
  call.hold = terms.hold;
}
