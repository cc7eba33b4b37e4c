// Models as people may see them: which of them a user's groups serve, and what they cost.
import type { Deps, UserAccount } from "../deps.ts";
import { OWN_GROUP_DESCRIPTION, usableGroups } from "../users/groups.ts";
import { MISSING_MODEL_RATIO } from "../prices/prices.ts";
import { completionRatio } from "../prices/completion-rules.ts";

/** The creation time that clients of model lists have always been shown. */
const MODEL_CREATED = 1_626_777_600;
const DEFAULT_GROUP = "default";

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

interface PricingEntry {
  model_name: string;
  /** 0: by tokens, 1: per call. */
  quota_type: 0 | 1;
  model_ratio: number;
  /** Dollars per call. */
  model_price: number;
  owner_by: "";
  completion_ratio: number;
  enable_groups?: string[];
}

function pricingEntry(deps: Pick<Deps, "prices">, model: string, groups: string[]): PricingEntry {
  const pricing = deps.prices.pricing(model);
  const isPerCall = pricing?.callPrice !== undefined;
  return {
    model_name: model,
    quota_type: isPerCall ? 1 : 0,
    model_ratio: isPerCall ? 0 : (pricing?.modelRatio ?? MISSING_MODEL_RATIO),
    model_price: pricing?.callPrice ?? 0,
    owner_by: "",
    completion_ratio: isPerCall
      ? 0
      : (pricing?.completionRatio ?? completionRatio(model, deps.prices.tables().completionRatio)),
    ...(groups.length > 0 ? { enable_groups: groups } : {}),
  };
}

export interface PricingList {
  data: PricingEntry[];
  group_ratio: Record<string, number>;
  usable_group: Record<string, string>;
}

/** What each served model costs, and the ratios of the groups that the visitor may use. */
export function pricingFor(
  deps: Pick<Deps, "options" | "routing" | "prices">,
  visitor: UserAccount | undefined,
): PricingList {
  const groupsOf = new Map<string, string[]>();
  for (const group of deps.routing.groups()) {
    for (const model of deps.routing.modelsOf(group)) {
      const groups = groupsOf.get(model);
      if (groups) groups.push(group);
      else groupsOf.set(model, [group]);
    }
  }
  const usable = usableGroups(deps, visitor);
  if (!visitor && !Object.hasOwn(usable, DEFAULT_GROUP)) usable[DEFAULT_GROUP] = OWN_GROUP_DESCRIPTION;
  const ratios = Object.entries(deps.options.get("GroupRatio")).filter(([group]) =>
    Object.hasOwn(usable, group),
  );
  return {
    data: [...groupsOf].map(([model, groups]) => pricingEntry(deps, model, groups)),
    group_ratio: Object.fromEntries(ratios),
    usable_group: usable,
  };
}
