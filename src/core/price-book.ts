// The price tables in force, as one snapshot built from the options and rebuilt when one of them changes.
// Refuses nothing: the options were checked when they were set.
import type { OptionKey } from "./option-definitions.ts";
import type { OptionStore } from "./options.ts";
import { groupRatioOf, lookupPrice } from "./prices.ts";
import type { ModelPricing, PriceTables } from "./prices.ts";

export interface PriceBook {
  tables(): PriceTables;
  /** Undefined when neither price nor ratio is set for the model. */
  pricing(model: string): ModelPricing | undefined;
  /** 1 for groups without a ratio of their own. */
  groupRatio(group: string): number;
}

const PRICE_OPTIONS: ReadonlySet<OptionKey> = new Set<OptionKey>([
  "ModelRatio",
  "ModelPrice",
  "CompletionRatio",
  "CacheRatio",
  "CreateCacheRatio",
  "ImageRatio",
  "GroupRatio",
  "QuotaPerUnit",
]);

/** Model names come from clients: the cache must not grow with their imagination. */
const MAX_CACHED = 5000;

export function createPriceBook(options: Pick<OptionStore, "get" | "onChange">): PriceBook {
  let tables: PriceTables | undefined;
  const cache = new Map<string, ModelPricing | undefined>();
  options.onChange((key) => {
    if (!PRICE_OPTIONS.has(key)) return;
    tables = undefined;
    cache.clear();
  });

  function current(): PriceTables {
    return (tables ??= {
      modelRatio: options.get("ModelRatio"),
      modelPrice: options.get("ModelPrice"),
      completionRatio: options.get("CompletionRatio"),
      cacheRatio: options.get("CacheRatio"),
      createCacheRatio: options.get("CreateCacheRatio"),
      imageRatio: options.get("ImageRatio"),
      groupRatio: options.get("GroupRatio"),
      quotaPerUnit: options.get("QuotaPerUnit"),
    });
  }

  return {
    tables: current,
    pricing(model) {
      if (cache.has(model)) return cache.get(model);
      const pricing = lookupPrice(current(), model);
      if (cache.size >= MAX_CACHED) cache.clear();
      cache.set(model, pricing);
      return pricing;
    },
    groupRatio: (group) => groupRatioOf(current(), group),
  };
}
