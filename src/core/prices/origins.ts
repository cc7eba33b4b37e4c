// Where prices come from: what a fresh site begins with, and what a new release may add to a site that runs.
// Refuses to change a price that is in force: a release's other prices are only offered (merge.ts).
import { and, asc, eq, inArray } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import type { Clock } from "../deps.ts";
import { definitionOf } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import type { OptionRecorder, OptionStore, OptionWrite } from "../options/store.ts";
import { withoutSilenced } from "../../shared/completion-rules.ts";
import { emptyMaps, heldRow, PRICE_MAPS, pricedNames, putRow, rowOf } from "../../shared/row-maps.ts";
import type { PriceMaps } from "../../shared/row-maps.ts";
import { shippedPrices, shippedVersion } from "./shipped.ts";

/** Beside the options: which table this site has seen. */
export const SEEN_KEY = "internal:shipped_prices";
export const SHIPPED = "shipped";
/** Rows of one statement: databases count their parameters. */
const INSERT_ROWS = 500;

interface OriginServices {
  db: Database;
  options: Pick<OptionStore, "reload">;
  clock: Pick<Clock, "nowMs">;
  /** Makes the history of prices, in the same block. */
  record?: OptionRecorder;
}

type Texts = ReadonlyMap<string, string>;

/** An option as the transaction sees it; a text that its kind refuses counts as the default, as the store has it. */
function valueOf(texts: Texts, key: OptionKey): unknown {
  const { kind, default: shipped } = definitionOf(key);
  try {
    return kind.parse(texts.get(key) ?? shipped);
  } catch {
    return kind.parse(shipped);
  }
}

function mapsIn(texts: Texts): PriceMaps {
  const maps = emptyMaps();
  for (const key of PRICE_MAPS) Object.assign(maps, { [key]: valueOf(texts, key) });
  return maps;
}

/** The maps of a site that nobody has priced anything on: the reference's rows below the table. */
function freshMaps(quotaPerUnit: number): PriceMaps {
  const maps = mapsIn(new Map());
  for (const [name, row] of shippedPrices().rows) putRow(maps, name, row, quotaPerUnit);
  return maps;
}

/** The price options as a fresh site has them; a reset goes back to these. */
export function shippedTexts(quotaPerUnit: number): Record<(typeof PRICE_MAPS)[number], string> {
  const maps = freshMaps(quotaPerUnit);
  return Object.fromEntries(PRICE_MAPS.map((key) => [key, JSON.stringify(maps[key])])) as ReturnType<
    typeof shippedTexts
  >;
}

interface Origin {
  name: string;
  price: PriceRow;
}

/** What the start writes: maps, and whose prices they are from then on. */
interface Change {
  maps: PriceMaps;
  taken: Origin[];
}

/** At the first start with this table: what is in force is written out, so that no release acts on it by itself. */
function firstChange(texts: Texts, isFresh: boolean, addsNew: boolean): Change {
  const quotaPerUnit = valueOf(texts, "QuotaPerUnit") as number;
  if (isFresh) {
    const maps = freshMaps(quotaPerUnit);
    return { maps, taken: originsOf(maps, pricedNames(maps), quotaPerUnit) };
  }
  const maps = mapsIn(texts);
  if (texts.has("CompletionRatio")) maps.CompletionRatio = withoutSilenced(maps.CompletionRatio);
  const known = pricedNames(maps);
  const taken = originsOf(maps, known, quotaPerUnit);
  return { maps, taken: addsNew ? [...taken, ...addNew(maps, new Set(known), quotaPerUnit)] : taken };
}

/** A later table: names that this site has never had; those that it had and lost were taken away by somebody. */
function laterChange(texts: Texts, before: ReadonlySet<string>, addsNew: boolean): Change {
  const maps = mapsIn(texts);
  if (!addsNew) return { maps, taken: [] };
  const quotaPerUnit = valueOf(texts, "QuotaPerUnit") as number;
  const known = new Set([...before, ...pricedNames(maps)]);
  return { maps, taken: addNew(maps, known, quotaPerUnit) };
}

function addNew(maps: PriceMaps, known: ReadonlySet<string>, quotaPerUnit: number): Origin[] {
  const added: string[] = [];
  for (const [name, row] of shippedPrices().rows) {
    if (known.has(name)) continue;
    putRow(maps, name, row, quotaPerUnit);
    added.push(name);
  }
  return originsOf(maps, added, quotaPerUnit);
}

function originsOf(maps: PriceMaps, names: readonly string[], quotaPerUnit: number): Origin[] {
  return names.flatMap((name) => {
    const price = rowOf(maps, name, quotaPerUnit);
    return price ? [{ name, price }] : [];
  });
}

/** Takes the step from one table to the next for itself; false where another node has. */
function* claim(db: Database, tx: Orm, before: string | undefined, version: string): Steps<boolean> {
  const { options } = db.t;
  const value = { key: SEEN_KEY, value: version };
  const rows =
    before === undefined
      ? yield* q(tx.insert(options).values(value).onConflictDoNothing().returning({ key: options.key }))
      : yield* q(
          tx
            .update(options)
            .set({ value: version })
            .where(and(eq(options.key, SEEN_KEY), eq(options.value, before)))
            .returning({ key: options.key }),
        );
  return rows.length > 0;
}

/** What of the maps differs from the rows that there are. */
function writesFor(texts: Texts, maps: PriceMaps): OptionWrite[] {
  return PRICE_MAPS.map((key) => ({ key, text: JSON.stringify(maps[key]) })).filter(
    ({ key, text }) => texts.get(key) !== text,
  );
}

function* writeMaps(db: Database, tx: Orm, writes: readonly OptionWrite[]): Steps<void> {
  const { options } = db.t;
  for (const { key, text: value } of writes) {
    yield* q(
      tx
        .insert(options)
        .values({ key, value })
        .onConflictDoUpdate({ target: options.key, set: { value } })
        .returning({ key: options.key }),
    );
  }
}

/**
 * Brings the site to the table of this release, once per table: a fresh site gets all of it, any other what its prices
 * are plus, with PriceAddNew, models that it has never had. Of several nodes one does it.
 */
export async function settleOrigins({ db, options: store, clock, record }: OriginServices): Promise<void> {
  const { options, priceOrigins, setups } = db.t;
  const version = shippedVersion();
  const seen = await db.orm.select().from(options).where(eq(options.key, SEEN_KEY));
  if (seen[0]?.value === version) return;
  const takenAt = Math.floor(clock.nowMs() / 1000);
  await db.atomic(function* (tx): Steps<void> {
    const [last] = yield* q(tx.select().from(options).where(eq(options.key, SEEN_KEY)));
    if (last?.value === version || !(yield* claim(db, tx, last?.value, version))) return;
    const keys: OptionKey[] = [...PRICE_MAPS, "QuotaPerUnit", "PriceAddNew"];
    const rows = yield* q(tx.select().from(options).where(inArray(options.key, keys)));
    const texts = new Map(rows.map((row) => [row.key, row.value]));
    const addsNew = valueOf(texts, "PriceAddNew") as boolean;
    let change: Change;
    if (last === undefined) {
      const [setUp] = yield* q(tx.select({ id: setups.id }).from(setups).limit(1));
      const isFresh = setUp === undefined && !PRICE_MAPS.some((key) => texts.has(key));
      change = firstChange(texts, isFresh, addsNew);
    } else {
      const before = yield* q(tx.select({ name: priceOrigins.name }).from(priceOrigins));
      change = laterChange(texts, new Set(before.map(({ name }) => name)), addsNew);
    }
    for (let at = 0; at < change.taken.length; at += INSERT_ROWS) {
      const part = change.taken.slice(at, at + INSERT_ROWS).map(({ name, price }) => ({
        name,
        price: JSON.stringify(price),
        source: SHIPPED,
        version,
        takenAt,
      }));
      yield* q(
        tx.insert(priceOrigins).values(part).onConflictDoNothing().returning({ name: priceOrigins.name }),
      );
    }
    const writes = writesFor(texts, change.maps);
    if (writes.length === 0) return;
    if (record) yield* record(tx, writes, { userId: 0, username: "", note: `${SHIPPED}@${version}` });
    yield* writeMaps(db, tx, writes);
    const written = writes.map(({ key }) => key);
    yield* db.announceSteps(tx, "options", written);
  });
  // Also where another node has written them.
  await store.reload();
}

export interface PriceOrigin {
  row: PriceRow;
  /** shipped, whose price it is, or OWN_ORIGIN. */
  source: string;
}

/** What was taken last, from whichever source: base of the merge with what a source says now. */
export async function originRows({ db }: Pick<OriginServices, "db">): Promise<Map<string, PriceOrigin>> {
  const { priceOrigins } = db.t;
  const rows = await db.orm
    .select({ name: priceOrigins.name, price: priceOrigins.price, source: priceOrigins.source })
    .from(priceOrigins)
    .orderBy(asc(priceOrigins.name));
  return new Map(
    rows.map(({ name, price, source }) => [name, { row: JSON.parse(price) as PriceRow, source }]),
  );
}

/** The shipped rows as they come back from this site's maps. */
export function shippedRows(quotaPerUnit: number): Map<string, PriceRow> {
  return new Map([...shippedPrices().rows].map(([name, row]) => [name, heldRow(name, row, quotaPerUnit)]));
}
