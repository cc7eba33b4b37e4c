// The price tables in force, as one snapshot built from the options and rebuilt when one of them changes.
// The options were checked when they were set.
import type { OptionKey } from "../options/definitions.ts";
import type { OptionStore } from "../options/store.ts";
import { priceName } from "../../shared/price-name.ts";
import { freezePrice, groupRatioOf, lookupPrice, missingPrice } from "./prices.ts";
import type { CallPrice, ModelPricing, PriceTables } from "./prices.ts";
import { rulesAt } from "../../shared/price-rules.ts";
import { shippedPrices } from "./shipped.ts";

export interface PriceBook {
  tables(): PriceTables;
  /** Undefined when neither price nor ratio is set for the model. */
  pricing(model: string): ModelPricing | undefined;
  /** What users of one group pay in another; 1 for groups without a ratio. */
  groupRatio(group: string, userGroup: string): number;
  /**
   * The frozen price of calls to the model in the group by users of another one; undefined when neither price nor ratio is set
   * for it.
   */
  callPrice(model: string, group: string, userGroup: string): CallPrice | undefined;
  /** The same at the ratio of models without a price. */
  missingCallPrice(model: string, group: string, userGroup: string): CallPrice;
  /** The most tokens that the model can answer with; undefined as long as no table knows. */
  maxOutput(model: string): number | undefined;
}

const PRICE_OPTIONS: ReadonlySet<OptionKey> = new Set<OptionKey>([
  "ModelRatio",
  "ModelPrice",
  "CompletionRatio",
  "CacheRatio",
  "CreateCacheRatio",
  "CreateCache1hRatio",
  "ImageRatio",
  "AudioRatio",
  "AudioCompletionRatio",
  "PriceRules",
  "ToolPrices",
  "GroupRatio",
  "GroupGroupRatio",
  "QuotaPerUnit",
]);

/** Model names come from clients: the cache must not grow with their imagination. */
const MAX_CACHED = 5000;

const REVISION_CHARS = 12;

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The tables as the options say them, in force or not yet. */
export function priceTablesFrom(options: Pick<OptionStore, "get">): PriceTables {
  return {
    modelRatio: options.get("ModelRatio"),
    modelPrice: options.get("ModelPrice"),
    completionRatio: options.get("CompletionRatio"),
    cacheRatio: options.get("CacheRatio"),
    createCacheRatio: options.get("CreateCacheRatio"),
    createCache1hRatio: options.get("CreateCache1hRatio"),
    imageRatio: options.get("ImageRatio"),
    audioRatio: options.get("AudioRatio"),
    audioCompletionRatio: options.get("AudioCompletionRatio"),
    priceRules: options.get("PriceRules"),
    toolPrices: options.get("ToolPrices"),
    groupRatio: options.get("GroupRatio"),
    groupGroupRatio: options.get("GroupGroupRatio"),
    quotaPerUnit: options.get("QuotaPerUnit"),
  };
}

/** Names tables by their text in the order of its names, so that nodes that hold the same prices agree. */
export function fingerprintOf(tables: PriceTables): string {
  return new Bun.CryptoHasher("sha256")
    .update(JSON.stringify(tables, sorted))
    .digest("hex")
    .slice(0, REVISION_CHARS);
}

/** `nowMs`: the time of day, which prices by the hour depend on. */
export function createPriceBook(
  options: Pick<OptionStore, "get" | "onChange">,
  nowMs: () => number = Date.now,
): PriceBook {
  let tables: PriceTables | undefined;
  let revision: string | undefined;
  const cache = new Map<string, ModelPricing | undefined>();
  /** Group of users -> group that they use -> model. */
  const frozen = new Map<string, Map<string, Map<string, CallPrice>>>();
  let frozenCount = 0;
  options.onChange((key) => {
    if (!PRICE_OPTIONS.has(key)) return;
    tables = undefined;
    revision = undefined;
    cache.clear();
    frozen.clear();
    frozenCount = 0;
  });

  function current(): PriceTables {
    return (tables ??= priceTablesFrom(options));
  }

  function pricing(model: string): ModelPricing | undefined {
    if (cache.has(model)) return cache.get(model);
    const found = lookupPrice(current(), model);
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(model, found);
    return found;
  }

  function revisionOf(): string {
    return (revision ??= fingerprintOf(current()));
  }

  function freeze(model: string, ratios: ModelPricing, group: string, userGroup: string): CallPrice {
    return freezePrice(model, ratios, groupRatioOf(current(), group, userGroup), {
      tables: current(),
      revision: revisionOf(),
    });
  }

  /** The price of this moment: entries whose hour it is not are no part of it. */
  function now(price: CallPrice): CallPrice {
    const { rules } = price;
    if (!rules) return price;
    const when = rulesAt(rules.when, nowMs());
    if (when === rules.when) return price;
    return { ...price, rules: when.length > 0 ? { ...rules, when } : undefined };
  }

  return {
    tables: current,
    pricing,
    groupRatio: (group, userGroup) => groupRatioOf(current(), group, userGroup).groupRatio,
    callPrice(model, group, userGroup) {
      const known = frozen.get(userGroup)?.get(group)?.get(model);
      if (known) return now(known);
      const ratios = pricing(model);
      if (!ratios) return undefined;
      if (frozenCount >= MAX_CACHED) {
        frozen.clear();
        frozenCount = 0;
      }
      const made = freeze(model, ratios, group, userGroup);
      let ofUsers = frozen.get(userGroup);
      if (!ofUsers) frozen.set(userGroup, (ofUsers = new Map<string, Map<string, CallPrice>>()));
      let ofGroup = ofUsers.get(group);
      if (!ofGroup) ofUsers.set(group, (ofGroup = new Map<string, CallPrice>()));
      ofGroup.set(model, made);
      frozenCount += 1;
      return now(made);
    },
    missingCallPrice: (model, group, userGroup) =>
      freeze(model, missingPrice(current(), model), group, userGroup),
    maxOutput: (model) => shippedPrices().limits.get(priceName(model))?.maxOutput,
  };
}
