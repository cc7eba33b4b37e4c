// What is on sale: every model that an enabled channel serves, with its groups, its maker and its price, kept in memory;
// and what of it a visitor who searches gets to see. Refuses to name what none of the visitor's groups may call.
import { lookupPrice } from "../prices/prices.ts";
import type { ModelPricing, PriceTables } from "../prices/prices.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { groupChoices, GUEST_GROUP, OWN_GROUP_DESCRIPTION } from "../users/groups.ts";
import { ChannelStatus } from "../../shared/enums.ts";

export interface CatalogueModel {
  readonly name: string;
  /** Id of its maker; "" where the name says nothing. */
  readonly vendor: string;
  /** Groups that an enabled channel serves it for, sorted. */
  readonly groups: readonly string[];
  /** Undefined: nobody has set one. */
  readonly pricing: ModelPricing | undefined;
}

export interface Catalogue {
  /** Names that begin with "gpt" first, then by name. */
  models(): readonly CatalogueModel[];
  model(name: string): CatalogueModel | undefined;
}

/** The specification's order of model lists. */
const FIRST_PREFIX = "gpt";

function compareModels(a: string, b: string): number {
  const byFirst = Number(b.startsWith(FIRST_PREFIX)) - Number(a.startsWith(FIRST_PREFIX));
  return byFirst || (a < b ? -1 : 1);
}

type Sources = Pick<Deps, "routing" | "prices" | "vendors">;

/** Each list of groups once: most models come from channels that serve the same ones. */
function groupsByModel(routing: Sources["routing"]): Map<string, readonly string[]> {
  const channelsOf = new Map<string, number[]>();
  const groupsOf = new Map<number, readonly string[]>();
  for (const channel of routing.channels()) {
    if (channel.status !== ChannelStatus.enabled || channel.groups.length === 0) continue;
    groupsOf.set(channel.id, channel.groups);
    for (const model of new Set(channel.models)) {
      const ids = channelsOf.get(model);
      if (ids) ids.push(channel.id);
      else channelsOf.set(model, [channel.id]);
    }
  }
  const merged = new Map<string, readonly string[]>();
  const found = new Map<string, readonly string[]>();
  for (const [model, ids] of channelsOf) {
    const key = ids.join();
    let groups = merged.get(key);
    if (!groups) {
      groups = [...new Set(ids.flatMap((id) => groupsOf.get(id) ?? []))].sort();
      merged.set(key, groups);
    }
    found.set(model, groups);
  }
  return found;
}

/** Built when it is asked for after a change of channels or prices: both are rare beside visits. */
export function createCatalogue({ routing, prices, vendors }: Sources): Catalogue {
  let byName: ReadonlyMap<string, CatalogueModel> = new Map();
  let list: readonly CatalogueModel[] = [];
  let isStale = true;
  let tables: PriceTables | undefined;
  routing.onChange(() => {
    isStale = true;
  });

  function refresh(): void {
    const inForce = prices.tables();
    if (!isStale && inForce === tables) return;
    isStale = false;
    tables = inForce;
    list = [...groupsByModel(routing)]
      .map(([name, groups]): CatalogueModel => ({
        name,
        vendor: vendors.of(name),
        groups,
        pricing: lookupPrice(inForce, name),
      }))
      .sort((a, b) => compareModels(a.name, b.name));
    byName = new Map(list.map((model) => [model.name, model]));
  }

  return {
    models() {
      refresh();
      return list;
    },
    model(name) {
      refresh();
      return byName.get(name);
    },
  };
}

export interface Buyer {
  /** Whose prices are shown unless another group is chosen: the user's own one, "default" for guests. */
  ownGroup: string;
  /** Every group that the visitor may choose, with its ratio and description; the own one first. */
  groups: Readonly<Record<string, { ratio: number; desc: string }>>;
  /** Whether models without a price may be called: on sites in self-use mode, and by users who accepted it. */
  acceptsUnpriced: boolean;
}

/** What a visitor may buy: a user by their groups, a guest as a user of "default" would. */
export function buyerOf(deps: Pick<Deps, "options" | "prices">, user: UserAccount | undefined): Buyer {
  const ownGroup = user?.group ?? GUEST_GROUP;
  const { [ownGroup]: own, ...others } = groupChoices(deps, user);
  return {
    ownGroup,
    groups: {
      [ownGroup]: own ?? { ratio: deps.prices.groupRatio(ownGroup, ownGroup), desc: OWN_GROUP_DESCRIPTION },
      ...others,
    },
    acceptsUnpriced:
      deps.options.get("SelfUseModeEnabled") || user?.setting.accept_unset_model_ratio_model === true,
  };
}

export interface CatalogueSearch {
  /** Whose models are available, and at whose ratio they are sold: one of the buyer's. */
  group: string;
  /** A part of the name, in any case; "" for all. */
  keyword: string;
  /** "" for all. */
  vendor: string;
  /** By tokens or per call; models without a price are of neither kind. */
  kind: "tokens" | "call" | undefined;
  onlyAvailable: boolean;
  offset: number;
  limit: number;
}

interface CatalogueHit {
  model: CatalogueModel;
  /** Whether a call to it in the group would be let through. */
  isAvailable: boolean;
}

export interface CatalogueAnswer {
  /** What is available first, else in the catalogue's order. */
  hits: CatalogueHit[];
  total: number;
  /** How many models of each maker the other filters leave, the largest first. */
  vendors: [vendor: string, count: number][];
}

/** A call in the group would find a channel, and a price or somebody who accepts that there is none. */
export function isAvailableFor(model: CatalogueModel, group: string, { acceptsUnpriced }: Buyer): boolean {
  return (model.pricing !== undefined || acceptsUnpriced) && model.groups.includes(group);
}

/** Whether one of the buyer's groups serves it at all. */
export function isVisibleTo(model: CatalogueModel, { groups }: Buyer): boolean {
  return model.groups.some((group) => Object.hasOwn(groups, group));
}

/** The page of the catalogue that a visitor asked for. */
export function searchCatalogue(
  catalogue: Catalogue,
  buyer: Buyer,
  search: CatalogueSearch,
): CatalogueAnswer {
  const keyword = search.keyword.trim().toLowerCase();
  const counts = new Map<string, number>();
  const available: CatalogueHit[] = [];
  const others: CatalogueHit[] = [];
  for (const model of catalogue.models()) {
    if (keyword !== "" && !model.name.toLowerCase().includes(keyword)) continue;
    if (search.kind !== undefined && kindOf(model) !== search.kind) continue;
    if (!isVisibleTo(model, buyer)) continue;
    const isAvailable = isAvailableFor(model, search.group, buyer);
    if (search.onlyAvailable && !isAvailable) continue;
    counts.set(model.vendor, (counts.get(model.vendor) ?? 0) + 1);
    if (search.vendor !== "" && model.vendor !== search.vendor) continue;
    (isAvailable ? available : others).push({ model, isAvailable });
  }
  const found = [...available, ...others];
  return {
    hits: found.slice(search.offset, search.offset + search.limit),
    total: found.length,
    vendors: [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)),
  };
}

/** How a model is charged; undefined where it has no price. */
export function kindOf({ pricing }: CatalogueModel): "tokens" | "call" | undefined {
  if (!pricing) return undefined;
  return pricing.callPrice === undefined ? "tokens" : "call";
}
