// What the price list shows: the buyer's groups, the models that were searched for, or one model's details.
// Refuses groups that the visitor may not use: an address that names one shows the prices of the visitor's own.
import { buyerOf, isAvailableFor, isVisibleTo, searchCatalogue } from "../core/channels/catalogue.ts";
import type { Buyer, CatalogueAnswer, CatalogueModel } from "../core/channels/catalogue.ts";
import { hostedToolPrices, missingPrice, priceRowOf, settledRatios } from "../core/prices/prices.ts";
import type { CallPrice } from "../core/prices/prices.ts";
import { noticesInForce } from "../core/site/model-notices.ts";
import type { NoticeInForce } from "../core/site/model-notices.ts";
import { pricingFields, pricingQueryOf } from "../http/queries/pricing.ts";
import type { PricingQuery } from "../http/queries/pricing.ts";
import { sentBy } from "../http/queries/sent.ts";
import type { PriceRatios } from "../shared/cost.ts";
import type { PriceCondition, PriceRow } from "../shared/price-row.ts";
import { firstGroups } from "./choices.ts";
import type { Announced } from "../core/prices/announced.ts";
import { announcedFor } from "./announced-prices.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export interface PricedModel {
  model: CatalogueModel;
  isAvailable: boolean;
  /** What a call is charged by: its price, or the stand-in where the buyer accepts that there is none. */
  ratios: PriceRatios | undefined;
  /** The same for a call of so many input tokens that begins now, with the conditions that decided. */
  settled: (input: number) => { ratios: PriceRatios; applied: readonly PriceCondition[] } | undefined;
}

export interface PricingData {
  query: PricingQuery;
  isGuest: boolean;
  buyer: Buyer;
  /** The chosen group: one of the buyer's. */
  group: string;
  groupRatio: number;
  quotaPerUnit: number;
  /** Groups to choose from, as many as a page carries. */
  groups: Readonly<Record<string, { ratio: number; desc: string }>>;
  areGroupsCut: boolean;
  notices: NoticeInForce[];
  /** Prices to come of what the buyer may call. */
  announced: Announced;
  rows: PricedModel[];
  total: number;
  vendors: CatalogueAnswer["vendors"];
  page: number;
  pageSize: number;
  /** Of the model that the address names; "missing": nobody sells one of that name to the visitor. */
  detail: (PricedModel & { tools: CallPrice["tools"]; row: PriceRow | undefined }) | "missing" | undefined;
  nowMs: number;
  vendorTitle: (id: string) => string;
}

export async function loadPricing(context: LoaderContext): Promise<PricingData> {
  const { deps, user, url, language } = context;
  const query = pricingQueryOf(sentBy(pricingFields, url.searchParams));
  const buyer = buyerOf(deps, user);
  const group = Object.hasOwn(buyer.groups, query.group) ? query.group : buyer.ownGroup;
  const { first, isCut } = firstGroups(buyer.groups, group);
  const tables = deps.prices.tables();
  const priced = (model: CatalogueModel, isAvailable: boolean): PricedModel => {
    const ratios = model.pricing ?? (buyer.acceptsUnpriced ? missingPrice(tables, model.name) : undefined);
    return {
      model,
      isAvailable,
      ratios,
      settled(input) {
        const price = deps.prices.callPrice(model.name, group, buyer.ownGroup);
        return price ? settledRatios(price, input, undefined) : ratios && { ratios, applied: [] };
      },
    };
  };
  const asked = pagingOf(context);
  const find = (offset: number) =>
    searchCatalogue(deps.catalogue, buyer, { ...query, group, offset, limit: asked.pageSize });
  const model = query.model === "" ? undefined : deps.catalogue.model(query.model);
  const isDetail = model !== undefined && isVisibleTo(model, buyer);
  let page = asked.page;
  let answer = isDetail ? { hits: [], total: 0, vendors: [] } : find(asked.offset);
  const lastPage = Math.max(1, Math.ceil(answer.total / asked.pageSize));
  // A page beyond the end of a list that has grown shorter, or of a search: its last one.
  if (page > lastPage) {
    page = lastPage;
    answer = find((page - 1) * asked.pageSize);
  }
  return {
    query,
    isGuest: user === undefined,
    buyer,
    group,
    groupRatio: deps.prices.groupRatio(group, buyer.ownGroup),
    quotaPerUnit: tables.quotaPerUnit,
    groups: first,
    areGroupsCut: isCut,
    notices: noticesInForce(deps, Object.keys(buyer.groups)),
    announced: await announcedFor(deps, buyer),
    rows: answer.hits.map((hit) => priced(hit.model, hit.isAvailable)),
    total: answer.total,
    vendors: answer.vendors,
    page,
    pageSize: asked.pageSize,
    detail: isDetail
      ? {
          ...priced(model, isAvailableFor(model, group, buyer)),
          tools: hostedToolPrices(tables, model.name),
          row: priceRowOf(tables, model.name),
        }
      : query.model === ""
        ? undefined
        : "missing",
    nowMs: deps.clock.nowMs(),
    vendorTitle: (id) => deps.vendors.title(id, language),
  };
}
