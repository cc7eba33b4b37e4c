// What upstreams charge, in memory: the cost rows of channels as prices that the one cost formula takes.
// Refuses to guess: a model without a row, or without a price on the list that its row names, has no known cost.
import { asc } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import type { Logger, UpstreamCost } from "../deps.ts";
import { costOf, withTier } from "../prices/prices.ts";
import type { CallFacts, CallPrice } from "../prices/prices.ts";
import { shippedPrices } from "../prices/shipped.ts";
import { ratioOfDollars } from "../../shared/cost.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { priceName } from "../../shared/price-name.ts";
import { readPriceRow } from "../../shared/price-row.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import { rulesAt } from "../../shared/price-rules.ts";
import type { RequestFacts } from "../../shared/price-rules.ts";
import { everyKind } from "../../shared/row-maps.ts";
import type { Usage } from "../../shared/usage.ts";

/** Costs are whole billionths of a dollar: far below a unit of quota, so that sums of small calls stay true. */
export const NANOS_PER_DOLLAR = 1e9;
/** The model of a row that holds for all that have none of their own. */
export const ANY_MODEL = "*";

export type CostRow = Schema["channelCosts"]["$inferSelect"];

/** What of a call decides about its cost. */
interface CostedCall {
  channelId: number;
  /** As it was sent. */
  upstreamModel: string;
  /** As it was requested: found where the upstream's name is not. */
  model: string;
  /** Service tier that the upstream was asked for. */
  tier?: string | undefined;
  request?: RequestFacts | undefined;
  usage: Usage;
  /** Of the charge; a fixed cost may be for one of something else. */
  facts: CallFacts | ((price: CallPrice) => CallFacts);
  /** Unix milliseconds. */
  atMs: number;
}

export interface CostBook {
  /** Whether anything is known of the channel: all that a call of another one pays for. */
  has(channelId: number): boolean;
  /** What the upstream charges for one unit of everything; `quotaPerUnit` of it is NANOS_PER_DOLLAR. */
  price(
    channelId: number,
    names: { upstreamModel: string; model: string },
    atMs: number,
  ): CallPrice | undefined;
  /** Whole nanos, at least 0; undefined: unknown. */
  nanos(call: CostedCall): number | undefined;
  /** The row in force of the model, its own or that of all. */
  row(channelId: number, upstreamModel: string, atMs: number): CostRow | undefined;
  /** Raised whenever rows were read anew. */
  readonly version: number;
  channelIds(): readonly number[];
  /** Call after each committed write of cost rows: re-reads them and tells other nodes. */
  refresh(channelIds: readonly number[]): Promise<void>;
}

/** The dollars of a row: its own, else the list's; undefined where the list has no such model. */
function dollarsOf(row: Pick<CostRow, "price">, names: readonly string[]): PriceRow | undefined {
  if (row.price !== "") return readPriceRow(jsonObject(row.price)).row;
  const { rows } = shippedPrices();
  for (const name of names) {
    const found = rows.get(name) ?? rows.get(priceName(name));
    if (found) return found;
  }
  return undefined;
}

/** A row in dollars as a frozen price whose unit is a nano; `factor` is list factor times group ratio. */
function costPrice(name: string, row: PriceRow, factor: number): CallPrice {
  const rates = row.call === undefined ? everyKind(row, name) : undefined;
  const input = rates?.in ?? 0;
  return {
    ratios: {
      callPrice: row.call,
      callUnit: row.unit,
      modelRatio: ratioOfDollars(input, NANOS_PER_DOLLAR),
      completionRatio: 1,
      cacheRatio: 1,
      cacheWriteRatio: 1,
      cacheWrite1hRatio: 1,
      imageRatio: 1,
      audioRatio: 1,
      audioCompletionRatio: 1,
      rates,
    },
    groupRatio: factor,
    userGroupRatio: undefined,
    userGroup: undefined,
    quotaPerUnit: NANOS_PER_DOLLAR,
    tools: toolsOf(row),
    revision: "",
    rules: row.when && row.when.length > 0 ? { name, row, when: row.when, request: {} } : undefined,
  };
}

/** Hosted tools cost what the row says; what it does not say costs nothing. */
function toolsOf({ tools = {} }: PriceRow): CallPrice["tools"] {
  const search = tools["web_search"] ?? 0;
  return {
    webSearch: { low: search, medium: search, high: search },
    fileSearch: tools["file_search"] ?? 0,
  };
}

/** The price at the moment, for what was asked for. */
function atMoment(
  price: CallPrice,
  { atMs, request, tier }: Pick<CostedCall, "atMs" | "request" | "tier">,
): CallPrice {
  const { rules } = price;
  if (!rules) return price;
  const when = rulesAt(rules.when, atMs);
  if (when.length === 0) return { ...price, rules: undefined };
  return withTier({ ...price, rules: { ...rules, when, request: request ?? {} } }, tier);
}

/** What usage costs at a price of this book: whole nanos. */
export function nanosOf(
  price: CallPrice,
  { usage, facts, ...call }: Pick<CostedCall, "usage" | "facts" | "tier" | "request" | "atMs">,
): number {
  const own = typeof facts === "function" ? facts(price) : facts;
  return costOf(atMoment(price, call), usage, {
    ...own,
    rounding: "half-away",
    quotaCap: undefined,
  }).quota;
}

/** As a settlement takes it: `quota` is what was charged, `groupRatio` what the group pays. */
export function bornCost(nanos: number, quota: number, groupRatio: number): UpstreamCost {
  return { nanos, isLost: nanos > 0 && quota === 0 && groupRatio > 0 };
}

/** Rows of one channel by model, newest first. */
type ChannelRows = Map<string, CostRow[]>;

export async function createCostBook({ db, logger }: { db: Database; logger: Logger }): Promise<CostBook> {
  let byChannel = new Map<number, ChannelRows>();
  let version = 0;
  /** Prices of rows that have met their model. */
  let prices = new Map<CostRow, Map<string, CallPrice | undefined>>();

  /** One read at a time: rows that were read before a change never replace those that were read after it. */
  let last: Promise<void> = Promise.resolve();
  function load(): Promise<void> {
    const next = last.then(read);
    last = next.catch(() => undefined);
    return next;
  }

  async function read(): Promise<void> {
    const { channelCosts } = db.t;
    const rows = await db.orm.select().from(channelCosts).orderBy(asc(channelCosts.validFrom));
    const next = new Map<number, ChannelRows>();
    for (const row of rows) {
      let channel = next.get(row.channelId);
      if (!channel) next.set(row.channelId, (channel = new Map<string, CostRow[]>()));
      const list = channel.get(row.model);
      if (list) list.unshift(row);
      else channel.set(row.model, [row]);
    }
    byChannel = next;
    version += 1;
    prices = new Map();
  }

  function row(channelId: number, upstreamModel: string, atMs: number): CostRow | undefined {
    const channel = byChannel.get(channelId);
    if (!channel) return undefined;
    const now = Math.floor(atMs / 1000);
    const inForce = (list: CostRow[] | undefined) => list?.find(({ validFrom }) => validFrom <= now);
    return inForce(channel.get(upstreamModel)) ?? inForce(channel.get(ANY_MODEL));
  }

  const price: CostBook["price"] = (channelId, { upstreamModel, model }, atMs) => {
    const found = row(channelId, upstreamModel, atMs);
    if (!found) return undefined;
    let known = prices.get(found);
    if (!known) prices.set(found, (known = new Map<string, CallPrice | undefined>()));
    const key = `${upstreamModel}\0${model}`;
    if (known.has(key)) return known.get(key);
    const dollars = dollarsOf(found, [upstreamModel, model]);
    const made = dollars && costPrice(upstreamModel, dollars, found.factor * found.groupRatio);
    if (known.size >= MAX_CACHED) known.clear();
    known.set(key, made);
    return made;
  };

  const reread = () =>
    load().catch((error: unknown) => {
      logger.warn("costs of channels could not be read", { error: String(error) });
      throw error;
    });
  await db.onChange("costs", { changed: reread, lost: reread });
  await load();
  return {
    has: (channelId) => byChannel.has(channelId),
    price,
    nanos(call) {
      const found = price(call.channelId, call, call.atMs);
      return found && nanosOf(found, call);
    },
    row,
    get version() {
      return version;
    },
    channelIds: () => [...byChannel.keys()],
    async refresh(channelIds) {
      await load();
      await db.announce("costs", channelIds);
    },
  };
}

/** Names of models come from clients where a row is for all of them. */
const MAX_CACHED = 2000;
