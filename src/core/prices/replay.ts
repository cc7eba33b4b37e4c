// What a logged call would cost at other prices: the stored counts of its row through the one formula, nothing estimated that
// the row knows. Refuses to guess for rows without figures: those are sums, and the caller scales them.
import { COST_FIELD, explainCost, storedInputs } from "../../shared/cost.ts";
import type { CostInputs, RowCounts } from "../../shared/cost.ts";
import { freezePrice, groupRatioOf, lookupPrice, missingPrice, settledRatios, TASK_PRICE } from "./prices.ts";
import type { CallerRatio, CallPrice, PriceTables, SearchSize } from "./prices.ts";
import { isNearEdge, rulesAt } from "../../shared/price-rules.ts";
import type { RequestFacts } from "../../shared/price-rules.ts";

/** What a replay reads of a consume row. */
export interface LoggedCall extends RowCounts {
  model: string;
  group: string;
  quota: number;
  /** When it began, give or take a second: prices may depend on the hour. */
  startMs: number;
  other: Record<string, unknown>;
}

/** exact: to the unit. approximate: by documented fields, or under a cap. unknown: the row has no figures. */
type Trust = "exact" | "approximate" | "unknown";

export interface Replayed {
  trust: Trust;
  /** At the prices in force, and at those that are planned; 0 for both where the trust is unknown. */
  old: number;
  new: number;
  /** The model has a price now and would have none: its calls would be refused. */
  isLost: boolean;
  /** It began within a second of a moment at which its price changes: which side of it, the row does not say. */
  isUncertain: boolean;
}

/** Both sides of a comparison, with what they say of a model in a group kept: rows repeat themselves. */
export interface Comparison {
  /** `userGroup`: whose user the caller was. */
  pricesOf(names: readonly string[], group: string, userGroup: string): PricePair;
}

interface Side {
  price: CallPrice;
  isPriced: boolean;
}

interface PricePair {
  old: Side;
  new: Side;
  /** Both sides are charged alike. */
  isSame: boolean;
}

function sideOf(tables: PriceTables, names: readonly string[], ratio: CallerRatio): Side {
  const name = names.find((each) => lookupPrice(tables, each) !== undefined);
  const model = name ?? names.at(-1) ?? "";
  const pricing = lookupPrice(tables, model) ?? missingPrice(tables, model);
  const price = freezePrice(model, pricing, ratio, { tables, revision: "" });
  return { price, isPriced: name !== undefined };
}

/** Names come from logs of a month: the memory of a comparison must not grow with them. */
const MOST_PAIRS = 50_000;

export function comparePrices(before: PriceTables, after: PriceTables): Comparison {
  const known = new Map<string, PricePair>();
  return {
    pricesOf(names, group, userGroup) {
      const key = JSON.stringify([names, group, userGroup]);
      const found = known.get(key);
      if (found) return found;
      const old = sideOf(before, names, groupRatioOf(before, group, userGroup));
      const fresh = sideOf(after, names, groupRatioOf(after, group, userGroup));
      const pair = { old, new: fresh, isSame: Bun.deepEquals(old, fresh) };
      if (known.size >= MOST_PAIRS) known.clear();
      known.set(key, pair);
      return pair;
    },
  };
}

const isFlag = (value: unknown): boolean => value === true;

/** A realtime session is priced by the name that its channel calls, where that has a price; all others as requested. */
function namesOf({ model, other }: LoggedCall): string[] {
  const upstream = other["upstream_model_name"];
  return isFlag(other["ws"]) && typeof upstream === "string" ? [upstream, model] : [model];
}

/** Facts of the call that its row keeps beside the counts. */
interface StoredFacts {
  tier?: string;
  asked?: RequestFacts;
  /** The caller's own group, where it is not the one that was used. */
  user_group?: string;
  search_size?: SearchSize;
}

const factsOf = ({ other }: LoggedCall): StoredFacts => (other[COST_FIELD] ?? {}) as StoredFacts;

/** The price as the call would have frozen it: entries of its hour, and what it asked for. */
function frozenFor({ price }: Side, call: LoggedCall, taskPrice: number | undefined): CallPrice {
  const { rules } = price;
  const ratios =
    taskPrice === undefined
      ? price.ratios
      : { ...price.ratios, callPrice: price.ratios.callPrice ?? taskPrice };
  if (!rules) return { ...price, ratios };
  const when = rulesAt(rules.when, call.startMs);
  return { ...price, ratios, rules: { ...rules, when, request: factsOf(call).asked ?? {} } };
}

/** `taskPrice`: what the call costs where its model has no price by the call; undefined for what is no task. */
function charged(
  inputs: Partial<CostInputs>,
  call: LoggedCall,
  side: Side,
  taskPrice: number | undefined,
): number {
  const { tier, search_size: size = "medium" } = factsOf(call);
  const price = frozenFor(side, call, taskPrice);
  const { ratios } = settledRatios(price, call.prompt_tokens, tier);
  const isSession = isFlag(call.other["ws"]);
  const rounding = isSession
    ? price.ratios.callPrice === undefined
      ? "half-away"
      : "floor"
    : inputs.rounding;
  return explainCost({
    ...inputs,
    callPrice: ratios.callPrice,
    modelRatio: ratios.modelRatio,
    completionRatio: ratios.completionRatio,
    cacheRatio: ratios.cacheRatio,
    cacheWriteRatio: ratios.cacheWriteRatio,
    cacheWrite1hRatio: ratios.cacheWrite1hRatio,
    imageRatio: ratios.imageRatio,
    audioRatio: ratios.audioRatio,
    audioCompletionRatio: ratios.audioCompletionRatio,
    rates: ratios.rates,
    webSearchPrice: price.tools.webSearch[size],
    fileSearchPrice: price.tools.fileSearch,
    groupRatio: price.groupRatio,
    quotaPerUnit: price.quotaPerUnit,
    ...(rounding === undefined ? {} : { rounding }),
  }).quota;
}

/**
 * A cap that bit was what was held back: it grows and shrinks with the price. Cap 0 means that nothing is charged. A cap of the
 * caller's own is a sum of money, whatever the price.
 */
function underCap(inputs: Partial<CostInputs>, call: LoggedCall, side: Side): number {
  const { quotaCap, ...uncapped } = inputs;
  const full = charged(uncapped, call, side, undefined);
  if (typeof call.other["max_quota"] === "number") return Math.min(full, Number(quotaCap));
  const then = explainCost(uncapped).quota;
  return then > 0 ? Math.round((Number(quotaCap) * full) / then) : 0;
}

/** The row without a marker of a task, from before they had one: no counts, a price by the call. */
function isOldTask(
  inputs: Partial<CostInputs>,
  { prompt_tokens: input, completion_tokens: output }: RowCounts,
): boolean {
  return inputs.callPrice !== undefined && input + output === 0 && inputs.callCount === undefined;
}

/** What the call costs at both prices of the comparison. */
export function replay(call: LoggedCall, prices: Comparison): Replayed {
  const { other } = call;
  const pair = prices.pricesOf(namesOf(call), call.group, factsOf(call).user_group ?? call.group);
  const isLost = pair.old.isPriced && !pair.new.isPriced;
  if (typeof other["refunded"] === "number")
    return { trust: "exact", old: 0, new: 0, isLost: false, isUncertain: false };
  const inputs = storedInputs(other, call);
  if (!inputs) return { trust: "unknown", old: 0, new: 0, isLost, isUncertain: false };
  const stored = other[COST_FIELD];
  const isStored = typeof stored === "object" && stored !== null;
  const isMarked = isStored && isFlag((stored as Record<string, unknown>)["task"]);
  const isGuessed =
    isStored && !isMarked && pair.old.price.ratios.callPrice === undefined && isOldTask(inputs, call);
  const isTask = isMarked || isGuessed;
  const isCapped = inputs.quotaCap !== undefined && inputs.quotaCap > 0;
  const taskPrice = isMarked ? TASK_PRICE : isGuessed ? inputs.callPrice : undefined;
  const at = (side: Side): number =>
    isCapped ? underCap(inputs, call, side) : charged(inputs, call, side, taskPrice);
  const old = at(pair.old);
  const fresh = pair.isSame ? old : isLost && !isTask ? 0 : at(pair.new);
  const trust = isStored && !isCapped && !isGuessed ? "exact" : "approximate";
  const isUncertain = [pair.old, pair.new].some(
    ({ price }) => price.rules !== undefined && isNearEdge(price.rules.when, call.startMs),
  );
  return { trust, old, new: fresh, isLost: isLost && !isTask, isUncertain };
}
