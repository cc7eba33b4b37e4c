// Models as people may see them: which of them a user's groups serve, and what they cost.
import type { Deps, UserAccount } from "../deps.ts";
import { GUEST_GROUP, OWN_GROUP_DESCRIPTION, usableGroups } from "../users/groups.ts";
import { hostedToolPrices, MISSING_MODEL_RATIO, priceRulesOf } from "../prices/prices.ts";
import type { ModelPricing, PriceTables, SearchSize } from "../prices/prices.ts";
import { completionRatio } from "../../shared/completion-rules.ts";
import { priceLines } from "../../shared/cost.ts";
import type { PriceLine } from "../../shared/cost.ts";
import type { PriceRule } from "../../shared/price-row.ts";
import type { CatalogueModel } from "./catalogue.ts";

/** The creation time that clients of model lists have always been shown. */
const MODEL_CREATED = 1_626_777_600;

/** Every model that an enabled channel serves for one of the user's usable groups; or for only that one of them. */
export function modelsForUser(
  deps: Pick<Deps, "options" | "routing">,
  user: UserAccount,
  only?: string,
): string[] {
  const names = new Set<string>();
  for (const group of Object.keys(usableGroups(deps, user))) {
    if (only !== undefined && group !== only) continue;
    for (const model of deps.routing.modelsOf(group)) names.add(model);
  }
  return [...names].sort();
}

/** Short on the wire: ratios are products, and products of decimals have long tails. */
const brief = (value: number): number => Number(value.toPrecision(6));

/**
 * What a model costs where the group's ratio is 1: units per prompt token and per completion token; or dollars per call
 * alone; or nothing where no price is set.
 */
export function briefPrice({ prices }: Pick<Deps, "prices">, model: string): number[] {
  const pricing = prices.pricing(model);
  if (!pricing) return [];
  if (pricing.callPrice !== undefined) return [brief(pricing.callPrice)];
  return [brief(pricing.modelRatio), brief(pricing.modelRatio * pricing.completionRatio)];
}

/** The models of one usable group of the user, or of all, in the order of their names, each with its price. */
export function pricedModelsForUser(
  deps: Pick<Deps, "options" | "routing" | "prices">,
  user: UserAccount,
  group?: string,
): [model: string, price: number[]][] {
  return modelsForUser(deps, user, group).map((model) => [model, briefPrice(deps, model)]);
}

export function enabledModelNames(deps: Pick<Deps, "routing">): string[] {
  return deps.routing.enabledModels();
}

export interface ModelObject {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
}

/** The models that ship with the product, as OpenAI's list calls describe a model. */
export function presetModelObjects(deps: Pick<Deps, "presets">): ModelObject[] {
  return (deps.presets?.all ?? []).map(({ id, owner }) => ({
    id,
    object: "model",
    created: MODEL_CREATED,
    owned_by: owner,
  }));
}

/** Preset models by channel type. */
export function presetModelsByType(
  deps: Pick<Deps, "presets">,
): Readonly<Record<string, readonly string[] | null>> {
  return deps.presets?.byType ?? {};
}

/** A unit price where the group's ratio is 1. */
interface PricingLine {
  kind: PriceLine["kind"];
  /** What the price is for: a million tokens, a call, a thousand calls. */
  per: PriceLine["per"];
  /** Dollars. */
  unit_price: number;
}

/** Ratios over the price of an input token; null where the model is charged per call. */
interface PricingRatios {
  cache_ratio: number | null;
  create_cache_ratio: number | null;
  create_cache_1h_ratio: number | null;
  image_ratio: number | null;
  audio_ratio: number | null;
  /** Over the price of an audio input token. */
  audio_completion_ratio: number | null;
}

interface PricingEntry extends PricingRatios {
  model_name: string;
  /** 0: by tokens, 1: per call. */
  quota_type: 0 | 1;
  model_ratio: number;
  /** Dollars per call. */
  model_price: number;
  owner_by: "";
  completion_ratio: number;
  enable_groups?: readonly string[];
  /** False: nobody has set a price, and `model_ratio` is what old clients have always been shown then. */
  is_priced: boolean;
  /** Every kind of quantity that a call may be charged for; empty without a price. */
  lines: PricingLine[];
  /** Dollars per thousand calls of hosted tools. */
  tools: { web_search: Record<SearchSize, number>; file_search: number };
  /** Prices under conditions, in the order in which they act. */
  rules: readonly PriceRule[];
}

/** Products of decimals have long tails: ten digits are more than any price has. */
const exactly = (value: number): number => Number(value.toPrecision(10));

function ratiosOf(pricing: ModelPricing | undefined): PricingRatios {
  const ratio = (value: number | undefined) =>
    pricing?.callPrice === undefined && value !== undefined ? exactly(value) : null;
  return {
    cache_ratio: ratio(pricing?.cacheRatio),
    create_cache_ratio: ratio(pricing?.cacheWriteRatio),
    create_cache_1h_ratio: ratio(pricing?.cacheWrite1hRatio),
    image_ratio: ratio(pricing?.imageRatio),
    audio_ratio: ratio(pricing?.audioRatio),
    audio_completion_ratio: ratio(pricing?.audioCompletionRatio),
  };
}

/** A change of prices or channels makes new models, so that an entry is right for as long as its model is. */
const entries = new WeakMap<CatalogueModel, PricingEntry>();

function pricingEntry(tables: PriceTables, model: CatalogueModel): PricingEntry {
  const known = entries.get(model);
  if (known) return known;
  const made = makeEntry(tables, model);
  entries.set(model, made);
  return made;
}

function makeEntry(tables: PriceTables, { name, groups, pricing }: CatalogueModel): PricingEntry {
  const isPerCall = pricing?.callPrice !== undefined;
  return {
    model_name: name,
    quota_type: isPerCall ? 1 : 0,
    model_ratio: isPerCall ? 0 : (pricing?.modelRatio ?? MISSING_MODEL_RATIO),
    model_price: pricing?.callPrice ?? 0,
    owner_by: "",
    completion_ratio: isPerCall
      ? 0
      : (pricing?.completionRatio ?? completionRatio(name, tables.completionRatio)),
    ...(groups.length > 0 ? { enable_groups: groups } : {}),
    is_priced: pricing !== undefined,
    ...ratiosOf(pricing),
    lines: pricing
      ? priceLines(pricing, 1, tables.quotaPerUnit).map(({ kind, per, unitPrice }) => ({
          kind,
          per,
          unit_price: exactly(unitPrice),
        }))
      : [],
    tools: toolPrices(tables, name),
    rules: priceRulesOf(tables, name),
  };
}

function toolPrices(tables: PriceTables, model: string): PricingEntry["tools"] {
  const { webSearch, fileSearch } = hostedToolPrices(tables, model);
  return { web_search: { ...webSearch }, file_search: fileSearch };
}

export interface PricingList {
  data: PricingEntry[];
  group_ratio: Record<string, number>;
  usable_group: Record<string, string>;
}

/** What each served model costs, and the ratios of the groups that the visitor may use. */
export function pricingFor(
  deps: Pick<Deps, "options" | "catalogue" | "prices">,
  visitor: UserAccount | undefined,
): PricingList {
  const tables = deps.prices.tables();
  const usable = usableGroups(deps, visitor);
  if (!visitor && !Object.hasOwn(usable, GUEST_GROUP)) usable[GUEST_GROUP] = OWN_GROUP_DESCRIPTION;
  const userGroup = visitor?.group ?? GUEST_GROUP;
  const ratios = Object.keys(deps.options.get("GroupRatio"))
    .filter((group) => Object.hasOwn(usable, group))
    .map((group) => [group, deps.prices.groupRatio(group, userGroup)] as const);
  return {
    data: deps.catalogue.models().map((model) => pricingEntry(tables, model)),
    group_ratio: Object.fromEntries(ratios),
    usable_group: usable,
  };
}
