// The reference's tables and short ways to write usage, for the tests of prices. Holds no expectation of its own.
import {
  defaultCacheRatio,
  defaultCompletionRatio,
  defaultCreateCacheRatio,
  defaultGroupRatio,
  defaultImageRatio,
  defaultModelPrice,
  defaultModelRatio,
} from "../../../src/core/options/default-prices.ts";
import { lookupPrice } from "../../../src/core/prices/prices.ts";
import type { ModelPricing, PriceTables } from "../../../src/core/prices/prices.ts";
import { emptyUsage } from "../../../src/shared/usage.ts";
import type { Usage } from "../../../src/shared/usage.ts";

export const tables: PriceTables = {
  modelRatio: defaultModelRatio,
  modelPrice: defaultModelPrice,
  completionRatio: defaultCompletionRatio,
  cacheRatio: defaultCacheRatio,
  createCacheRatio: defaultCreateCacheRatio,
  createCache1hRatio: {},
  imageRatio: defaultImageRatio,
  audioRatio: {},
  audioCompletionRatio: {},
  priceRules: {},
  toolPrices: {},
  groupRatio: defaultGroupRatio,
  groupGroupRatio: {},
  quotaPerUnit: 500_000,
};

export function price(model: string): ModelPricing {
  const found = lookupPrice(tables, model);
  if (!found) throw new Error(`no price for ${model}`);
  return found;
}

export function usage(
  input: Partial<Usage["input"]>,
  output: Partial<Usage["output"]> = {},
  calls: Partial<Usage["calls"]> = {},
): Usage {
  const empty = emptyUsage();
  return {
    input: { ...empty.input, ...input },
    output: { ...empty.output, ...output },
    calls: { ...empty.calls, ...calls },
  };
}
