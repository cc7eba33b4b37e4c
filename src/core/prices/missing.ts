// Models without a price, and what the shipped table has for them: set together as one change of prices.
// Refuses to change a price that is in force, and to set what deserves a second look: that is told, not taken.
import { sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import type { SyncGuard } from "../../shared/price-sync.ts";
import { priceName } from "../../shared/price-name.ts";
import type { Deps } from "../deps.ts";
import type { OptionAuthor } from "../options/store.ts";
import { changesAgainst, PRICE_OPTIONS, tablesIn, textsWith, writesOf } from "./changes.ts";
import type { PriceTexts, SentChange } from "./changes.ts";
import { mergePrices } from "./merge.ts";
import { lookupPrice, priceMapsOf } from "./prices.ts";
import { lockPrices } from "./price-lock.ts";
import { priceState, textsInside } from "./revisions.ts";
import { PRICE_MAPS, putRow, rowOf } from "../../shared/row-maps.ts";
import { shippedPrices, shippedVersion } from "./shipped.ts";

/** A model without a price, and what the table says. */
interface MissingPrice {
  /** As it is priced. */
  name: string;
  /** Null: the table has none. */
  row: PriceRow | null;
  /** Why nobody but a person sets it. */
  guards: SyncGuard[];
}

export interface MissingPrices {
  table: { source: string; version: string; date: string };
  items: MissingPrice[];
}

export interface SetPrices {
  /** The latest one, made by this where it set anything. */
  revision: number;
  /** They have a price now. */
  set: string[];
  /** The table has no price for them. */
  unknown: string[];
  /** The table's price deserves a second look. */
  guarded: string[];
  /** They have had a price already. */
  kept: string[];
}

/** Rows of one statement: databases count their parameters. */
const INSERT_ROWS = 500;

const namesOf = (models: readonly string[]): string[] => [...new Set(models.map(priceName))].sort();

/** What the table has for a name that has no price here. */
function missingPrice(name: string): MissingPrice {
  const row = shippedPrices().rows.get(name);
  if (!row) return { name, row: null, guards: [] };
  const none = new Map<string, PriceRow>();
  const [line] = mergePrices({
    base: none,
    ours: none,
    theirs: new Map([[name, row]]),
    isServed: () => true,
  });
  return { name, row, guards: line?.guards ?? [] };
}

/** Which of the models have no price, from the database: another node's change counts from its commit on. */
export async function missingPrices(
  { db }: Pick<Deps, "db">,
  models: readonly string[],
): Promise<MissingPrices> {
  const { source, date } = shippedPrices();
  const tables = tablesIn((await priceState(db)).texts);
  const items = namesOf(models)
    .filter((name) => !lookupPrice(tables, name))
    .map(missingPrice);
  return { table: { source, version: shippedVersion(), date }, items };
}

/** The rows as changes of the maps; what stood there under a name without a price goes. */
function changesFor(texts: PriceTexts, rows: readonly (readonly [string, PriceRow])[]): SentChange[] {
  const tables = tablesIn(texts);
  const maps = structuredClone(priceMapsOf(tables));
  for (const [name, row] of rows) putRow(maps, name, row, tables.quotaPerUnit);
  return rows.flatMap(([name]) =>
    PRICE_MAPS.map((key) => ({
      key,
      name,
      after: Object.hasOwn(maps[key], name) ? maps[key][name] : null,
    })),
  );
}

interface Taken {
  name: string;
  price: string;
  takenAt: number;
}

/** Whose prices they are from now on: a later table is compared with these. */
function* keepOrigins(db: Database, tx: Orm, taken: readonly Taken[]): Steps<void> {
  const { priceOrigins } = db.t;
  const from = { source: "shipped", version: shippedVersion() };
  for (let at = 0; at < taken.length; at += INSERT_ROWS)
    yield* q(
      tx
        .insert(priceOrigins)
        .values(taken.slice(at, at + INSERT_ROWS).map((each) => ({ ...each, ...from })))
        .onConflictDoUpdate({
          target: priceOrigins.name,
          set: { price: sql`excluded.price`, takenAt: sql`excluded.taken_at`, ...from },
        })
        .returning({ name: priceOrigins.name }),
    );
}

/**
 * Gives the models that have no price the table's, as one revision. Whatever was priced since somebody looked stays as it is.
 */
export async function setMissingPrices(
  deps: Pick<Deps, "db" | "options" | "clock">,
  { models, note }: { models: readonly string[]; note: string },
  author: Pick<OptionAuthor, "userId" | "username" | "origin">,
): Promise<SetPrices> {
  const { db, options, clock } = deps;
  const { date } = shippedPrices();
  return options.write(
    function* (tx) {
      const revision = yield* lockPrices(db, tx);
      const texts = yield* textsInside(db, tx, PRICE_OPTIONS);
      const tables = tablesIn(texts);
      const names = namesOf(models);
      const missing = names.filter((name) => !lookupPrice(tables, name)).map(missingPrice);
      const rows = missing.flatMap(({ name, row, guards }) =>
        row && guards.length === 0 ? [[name, row] as const] : [],
      );
      const value: SetPrices = {
        revision,
        set: rows.map(([name]) => name),
        unknown: missing.flatMap(({ name, row }) => (row ? [] : [name])),
        guarded: missing.flatMap(({ name, guards }) => (guards.length > 0 ? [name] : [])),
        kept: names.filter((name) => lookupPrice(tables, name)),
      };
      if (rows.length === 0) return { writes: [], value };
      const writes = writesOf(texts, changesAgainst(texts, changesFor(texts, rows)));
      const after = priceMapsOf(tablesIn(textsWith(texts, writes)));
      const taken = rows.map(([name, row]) => ({
        name,
        price: JSON.stringify(rowOf(after, name, tables.quotaPerUnit) ?? row),
        takenAt: Math.floor(clock.nowMs() / 1000),
      }));
      yield* keepOrigins(db, tx, taken);
      return { writes, value: { ...value, revision: revision + 1 } };
    },
    { ...author, kind: "apply", note: note === "" ? `shipped@${shippedVersion()} (${date})` : note },
  );
}
