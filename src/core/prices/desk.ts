// What the price desk begins with: prices as the database has them, and which of them are in use, refused or named.
import { and, isNull, ne, notInArray, sql } from "drizzle-orm";
import { countRows } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { AUTO_GROUP } from "../../shared/auto-group.ts";
import type { DeskGroup, DeskPrices } from "../../shared/price-desk.ts";
import type { Deps } from "../deps.ts";
import { rareWhere } from "../logs/filter.ts";
import { PRICE_OPTIONS, textOf } from "./changes.ts";
import { listedGroups } from "./group-use.ts";
import { priceState } from "./revisions.ts";

const DAY = 86_400;
/** Error rows of a day that are looked at: a site in distress writes many. */
const MOST_REFUSALS = 20_000;
const FAR = Number.MAX_SAFE_INTEGER;

type DeskDeps = Pick<Deps, "db" | "clock" | "catalogue">;

/** Prices, groups and their uses, all read now. */
export async function deskPrices({ db, clock, catalogue }: DeskDeps): Promise<DeskPrices> {
  const since = Math.floor(clock.nowMs() / 1000) - DAY;
  const [{ revision, texts }, refused, groups] = await Promise.all([
    priceState(db),
    refusals(db, since),
    namedGroups(db),
  ]);
  return {
    revision,
    texts: Object.fromEntries(PRICE_OPTIONS.map((key) => [key, textOf(texts, key)])),
    served: catalogue.models().map(({ name, vendor }) => ({ name, vendor })),
    refused,
    groups,
  };
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
    db.reader.selectDistinct({ group: abilities.group, channelId: abilities.channelId }).from(abilities),
  ]);
  const found = new Map<string, DeskGroup>();
  const groupOf = (name: string): DeskGroup => {
    const group = found.get(name) ?? { name, users: 0, keys: 0, channels: 0 };
    found.set(name, group);
    return group;
  };
  for (const { group, count } of ofUsers) groupOf(group).users = count;
  for (const { group, count } of ofKeys) groupOf(group).keys = count;
  for (const [group, count] of ofLists) groupOf(group).keys += count;
  for (const { group } of ofChannels) groupOf(group).channels += 1;
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
