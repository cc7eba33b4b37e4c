// What the price desk begins with: prices as the database has them, and which of them are in use, refused or named.
import { and, isNull, ne, notInArray, sql } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { AUTO_GROUP } from "../../shared/auto-group.ts";
import type { Language } from "../../shared/enums.ts";
import type { DeskGroup, DeskMaker, DeskPrices } from "../../shared/price-desk.ts";
import { priceName } from "../../shared/price-name.ts";
import type { Deps } from "../deps.ts";
import { rareWhere } from "../logs/filter.ts";
import { PRICE_KEYS, textOf } from "./changes.ts";
import { listedGroups } from "./group-use.ts";
import { priceState } from "./revisions.ts";

const DAY = 86_400;
/** Error rows of a day that are looked at: a site in distress writes many. */
const MOST_REFUSALS = 20_000;
const FAR = Number.MAX_SAFE_INTEGER;

type DeskDeps = Pick<Deps, "db" | "clock" | "catalogue" | "options" | "prices" | "vendors">;

/** Prices, groups and their uses, all read now. */
export async function deskPrices(deps: DeskDeps): Promise<DeskPrices> {
  const { db, clock, catalogue, options } = deps;
  const since = Math.floor(clock.nowMs() / 1000) - DAY;
  const [{ revision, texts }, refused, groups] = await Promise.all([
    priceState(db),
    refusals(db, since),
    namedGroups(db),
  ]);
  return {
    revision,
    texts: Object.fromEntries(PRICE_KEYS.map((key) => [key, textOf(texts, key)])),
    served: catalogue.models().map(({ name, vendor }) => ({ name, vendor })),
    refused,
    groups,
    isAutoDefault: options.get("DefaultUseAutoGroup"),
    makers: makersOf(deps),
  };
}

/** Who makes a model; "" where its name does not say it: the beginning of a name alone is no maker. */
export function makerTitle({ vendors }: Pick<Deps, "vendors">, name: string, language: Language): string {
  const id = vendors.of(name);
  const title = vendors.title(id, language);
  return title === id ? "" : title;
}

/** Makers that are known, of every model that has a price or is served. */
function makersOf({
  catalogue,
  prices,
  vendors,
}: Pick<Deps, "catalogue" | "prices" | "vendors">): DeskMaker[] {
  const { modelRatio, modelPrice } = prices.tables();
  const names = new Set([...Object.keys(modelRatio), ...Object.keys(modelPrice)]);
  for (const { name } of catalogue.models()) names.add(priceName(name));
  const byMaker = new Map<string, string[]>();
  for (const name of names) {
    const id = vendors.of(name);
    if (makerTitle({ vendors }, name, "en") === "") continue;
    const models = byMaker.get(id);
    if (models) models.push(name);
    else byMaker.set(id, [name]);
  }
  return [...byMaker].map(([id, models]) => ({
    zh: vendors.title(id, "zh"),
    en: vendors.title(id, "en"),
    models,
  }));
}

/** Calls that were refused because their model had no price, by model; the latest ones where there are many. */
async function refusals(db: Database, since: number): Promise<Record<string, number>> {
  const { logs } = db.t;
  const latest = db.reader
    .select({ model: logs.modelName })
    .from(logs)
    .where(
      and(
        rareWhere(db, { type: LogType.error, from: since, to: FAR }, since, FAR),
        sql`${logs.other} like '%"error_code":"model_not_priced"%'`,
      ),
    )
    .limit(MOST_REFUSALS)
    .as("latest");
  const rows = await db.reader
    .select({ model: latest.model, count: countRows() })
    .from(latest)
    .where(ne(latest.model, ""))
    .groupBy(latest.model);
  return Object.fromEntries(rows.map(({ model, count }) => [model, count]));
}

/** Every group that a user, a key or a channel names, with how many do. */
async function namedGroups(db: Database): Promise<DeskGroup[]> {
  const { users, tokens, abilities } = db.t;
  const [ofUsers, ofKeys, ofLists, ofChannels] = await Promise.all([
    db.reader
      .select({ group: users.group, count: countRows() })
      .from(users)
      .where(isNull(users.deletedAt))
      .groupBy(users.group),
    db.reader
      .select({ group: tokens.group, count: countRows() })
      .from(tokens)
      .where(and(isNull(tokens.deletedAt), notInArray(tokens.group, ["", AUTO_GROUP])))
      .groupBy(tokens.group),
    listedGroups(db),
    db.reader
      .selectDistinct({
        group: abilities.group,
        channelId: abilities.channelId,
        isEnabled: abilities.enabled,
      })
      .from(abilities),
  ]);
  const found = new Map<string, DeskGroup>();
  const groupOf = (name: string): DeskGroup => {
    const group = found.get(name) ?? { name, users: 0, keys: 0, channels: 0, enabledChannels: 0 };
    found.set(name, group);
    return group;
  };
  for (const { group, count } of ofUsers) groupOf(group).users = count;
  for (const { group, count } of ofKeys) groupOf(group).keys = count;
  for (const [group, count] of ofLists) groupOf(group).keys += count;
  for (const [group, rows] of Map.groupBy(ofChannels, (each) => each.group)) {
    const idsOf = (of: typeof rows) => new Set(of.map(({ channelId }) => channelId)).size;
    groupOf(group).channels = idsOf(rows);
    groupOf(group).enabledChannels = idsOf(rows.filter(({ isEnabled }) => isEnabled));
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
