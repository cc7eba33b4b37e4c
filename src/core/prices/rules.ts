// Which entries of a model's price rules act on a call, and what its tokens cost then.
// Refuses to read a clock or a request by itself: time, size and the tier that was asked for are frozen at the reservation.
import { TOKEN_KINDS } from "../../shared/price-row.ts";
import type { PriceCondition, PriceRow, PriceRule } from "../../shared/price-row.ts";
import { isAsked, isOneOf, pricesUnder } from "../../shared/price-rules.ts";
import type { RequestFacts } from "../../shared/price-rules.ts";
import type { TokenRates } from "../../shared/cost.ts";
import { everyKind } from "../../shared/row-maps.ts";

/** A model's price with the entries that may still act on a call: those whose time it is. */
export interface FrozenRules {
  readonly name: string;
  readonly row: PriceRow;
  readonly when: readonly PriceRule[];
  /** What was asked for; of a session or a task, which ask for none of it, nothing. */
  readonly request: RequestFacts;
}

/** Prices of a call, and the conditions of the entries that made them. */
export interface RulePrices {
  /** Dollars per million tokens of every kind. */
  rates: TokenRates;
  /** Dollars of the call, where it is priced by the piece. */
  call: number | undefined;
  applied: PriceCondition[];
}

/** From this share of a threshold on its price is held: a prompt's length is an estimate until it is reported. */
const NEAR = 0.9;

function conditionOf(rule: PriceRule): PriceCondition {
  const condition = { ...rule };
  delete condition.set;
  delete condition.times;
  return condition;
}

/**
 * What the call costs: `input` tokens of every kind together decide about thresholds, and the tier that the answer names,
 * else the one that was asked for.
 */
export function settledPrices(rules: FrozenRules, input: number, servedTier: string | undefined): RulePrices {
  const { request } = rules;
  const terms = { ...request, tier: servedTier ?? request.tier, input };
  const { tokens, call, acted } = pricesUnder(rules.row, rules.when, terms);
  return { rates: everyKind(tokens, rules.name), call, applied: acted.map(conditionOf) };
}

/**
 * The dearest that the call can still come to, kind by kind. `input`: tokens of the prompt as far as they are known;
 * undefined: any number. `tiers`: those that some channel may ask its upstream for; the usual one is always possible.
 */
export function dearestPrices(
  rules: FrozenRules,
  input: number | undefined,
  tiers: readonly string[] = [],
): RulePrices {
  const { request } = rules;
  const possible = rules.when.filter(
    (each) =>
      (each.over === undefined || input === undefined || input >= each.over * NEAR) &&
      [undefined, ...tiers].some((tier) => isOneOf(each.tier, tier)) &&
      isAsked(each, request),
  );
  let dearest = settledPrices({ ...rules, when: [] }, 0, undefined);
  if (possible.length === 0) return dearest;
  const rates = { ...dearest.rates };
  let { call } = dearest;
  // Which of them will act is open: every choice of thresholds and tiers, of which the later ones build on the earlier.
  for (const inputAt of new Set([0, ...possible.map(({ over }) => (over ?? -1) + 1)])) {
    for (const tier of new Set([undefined, ...tiers])) {
      dearest = settledPrices(
        { ...rules, when: possible, request: { ...request, tier } },
        inputAt,
        undefined,
      );
      for (const kind of TOKEN_KINDS) rates[kind] = Math.max(rates[kind], dearest.rates[kind]);
      if (dearest.call !== undefined) call = Math.max(call ?? 0, dearest.call);
    }
  }
  return { rates, call, applied: [] };
}
