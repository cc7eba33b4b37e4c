// What a price was taken from, remembered beside the write that takes it: base of the next comparison with a source.
// Refuses to remember a price as taken that is not what the source said: what somebody changed on the way is the site's own.
import { sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import { pricedNames, rowOf } from "../../shared/row-maps.ts";
import type { PriceChange, SentChange } from "./changes.ts";
import { priceMapsOf } from "./prices.ts";
import type { PriceTables } from "./prices.ts";

/** A price of the operator's own that was taken away: known, so that no source adds it again. */
export const OWN_ORIGIN = "own";
/** Rows of one statement: databases count their parameters. */
const INSERT_ROWS = 500;
/** Digits by which a row is told again: those beyond are doubles' drift. */
const DIGITS = 8;
const DIGEST_CHARS = 12;

function plain(_key: string, value: unknown): unknown {
  if (typeof value === "number") return Number(value.toPrecision(DIGITS));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function digestOf(row: PriceRow): string {
  const text = JSON.stringify(row, plain);
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, DIGEST_CHARS);
}

/** What goes with the changes that take a row: whose it is, of which version, and the row by its digest. */
export function takenMark(source: string, version: string, row: PriceRow): string {
  return `${source}@${version}#${digestOf(row)}`;
}

const MARK = /^(.+)@([^@#]+)#([0-9a-f]+)$/;

/** Whose prices models get by these changes. Changes of one model that say different things say nothing. */
export function takenOf(changes: readonly Pick<SentChange, "name" | "taken">[]): Map<string, string> {
  const marks = new Map<string, string>();
  const doubtful = new Set<string>();
  for (const { name, taken } of changes) {
    if (taken === undefined) continue;
    if ((marks.get(name) ?? taken) !== taken) doubtful.add(name);
    marks.set(name, taken);
  }
  for (const name of doubtful) marks.delete(name);
  return marks;
}

interface Place {
  db: Database;
  tx: Orm;
  takenAt: number;
}

interface Tables {
  before: PriceTables;
  after: PriceTables;
  taken: ReadonlyMap<string, string>;
}

interface Origin {
  name: string;
  price: string;
  source: string;
  version: string;
}

/** The marks that tell the truth: the model's price is then what the source said. */
function trueMarks(
  changes: readonly PriceChange[],
  { after, taken }: Tables,
): Map<string, Origin & { mark: string }> {
  const found = new Map<string, Origin & { mark: string }>();
  if (taken.size === 0) return found;
  const maps = priceMapsOf(after);
  for (const name of new Set(changes.map((each) => each.name))) {
    const mark = taken.get(name) ?? "";
    const [, source = "", version = "", digest] = MARK.exec(mark) ?? [];
    const row = source === "" ? undefined : rowOf(maps, name, after.quotaPerUnit);
    if (row && digestOf(row) === digest)
      found.set(name, { name, price: JSON.stringify(row), source, version, mark });
  }
  return found;
}

/** Models that lose their price. */
function removedBy(changes: readonly PriceChange[], { before, after }: Tables): Origin[] {
  const isGone = ({ key, after: value }: PriceChange) =>
    value === null && (key === "ModelRatio" || key === "ModelPrice");
  const names = new Set(changes.filter(isGone).map(({ name }) => name));
  if (names.size === 0) return [];
  const left = new Set(pricedNames(priceMapsOf(after)));
  const maps = priceMapsOf(before);
  return [...names].flatMap((name) => {
    const row = left.has(name) ? undefined : rowOf(maps, name, before.quotaPerUnit);
    return row ? [{ name, price: JSON.stringify(row), source: OWN_ORIGIN, version: "" }] : [];
  });
}

/**
 * Keeps whose prices the changes bring, and every name that loses its price; runs in the block that writes them. Answers the
 * changes with the marks that hold.
 */
export function* rememberTaken(
  { db, tx, takenAt }: Place,
  changes: readonly PriceChange[],
  tables: Tables,
): Steps<PriceChange[]> {
  const { priceOrigins } = db.t;
  const marks = trueMarks(changes, tables);
  const taken = [...marks.values()].map(({ name, price, source, version }) => ({
    name,
    price,
    source,
    version,
  }));
  for (let at = 0; at < taken.length; at += INSERT_ROWS) {
    const part = taken.slice(at, at + INSERT_ROWS).map((origin) => ({ ...origin, takenAt }));
    yield* q(
      tx
        .insert(priceOrigins)
        .values(part)
        .onConflictDoUpdate({
          target: priceOrigins.name,
          set: {
            price: sql`excluded.price`,
            source: sql`excluded.source`,
            version: sql`excluded.version`,
            takenAt: sql`excluded.taken_at`,
          },
        })
        .returning({ name: priceOrigins.name }),
    );
  }
  const removed = removedBy(changes, tables);
  for (let at = 0; at < removed.length; at += INSERT_ROWS) {
    const part = removed.slice(at, at + INSERT_ROWS).map((origin) => ({ ...origin, takenAt }));
    yield* q(
      tx.insert(priceOrigins).values(part).onConflictDoNothing().returning({ name: priceOrigins.name }),
    );
  }
  return changes.map((change) => {
    const mark = marks.get(change.name)?.mark;
    return mark === undefined ? change : { ...change, taken: mark };
  });
}
