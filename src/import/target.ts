// Where an import writes: batches that commit with their number, so that a run which was killed goes on behind the last one.
// Refuses to write anything in a dry run; the same steps run, and their rows are thrown away.
import { gt, sql } from "drizzle-orm";
import { sumOf } from "../db/database.ts";
import type { Database, Orm, Steps } from "../db/database.ts";
import { insertRows } from "./insert.ts";
import type { RowsFor, TableName } from "./insert.ts";
import { moveMark, readMark } from "./state.ts";

/** What the imported sums say of one user, key or channel. */
export interface Sum {
  quota: number;
  count: number;
  /** Unix seconds of the first row, of users alone. */
  first: number;
}

export interface Sums {
  user: ReadonlyMap<number, Sum>;
  token: ReadonlyMap<number, Sum>;
  channel: ReadonlyMap<number, Sum>;
}

export interface Target {
  /** Undefined: a dry run. */
  readonly db: Database | undefined;
  /**
   * A step begins: its batches are counted anew. They must be the same each time it runs on the same source; those that the
   * database has are left out.
   */
  begin(step: string): Promise<Step>;
  /** A number for a row whose source has none: counted up by table, the same each time. */
  nextId(table: TableName): number;
}

interface Step {
  /** All of it or nothing. */
  write(parts: readonly RowsFor[], more?: (db: Database, tx: Orm) => Steps<void>): Promise<void>;
}

export function createTarget(db: Database | undefined): Target {
  const ids = new Map<TableName, number>();
  return {
    db,
    nextId(table) {
      const id = (ids.get(table) ?? 0) + 1;
      ids.set(table, id);
      return id;
    },
    async begin(name) {
      const done = db ? await readMark(db, name) : 0;
      let batch = 0;
      return {
        async write(parts, more) {
          batch++;
          if (!db || batch <= done) return;
          const number = batch;
          await db.atomic(function* (tx) {
            yield* moveMark(db, tx, name, { from: number - 1, to: number });
            for (const part of parts) yield* insertRows(db, tx, part);
            if (more) yield* more(db, tx);
          });
        },
      };
    },
  };
}

/** What the sums and rows that were imported say, by what they belong to. */
export async function readSums(db: Database): Promise<Sums> {
  const { logs, rollups } = db.t;
  const of = async (id: "userId" | "tokenId" | "channelId"): Promise<Map<number, Sum>> => {
    const rows = await db.orm
      .select({
        id: rollups[id],
        quota: sumOf(rollups.quota),
        count: sumOf(rollups.count),
        first: sql<number>`min(${rollups.hour})`.mapWith(Number),
      })
      .from(rollups)
      .where(gt(rollups.count, 0))
      .groupBy(rollups[id]);
    return new Map(rows.map(({ id: key, ...sum }) => [key, sum]));
  };
  const user = await of("userId");
  const firsts = await db.orm
    .select({ id: logs.userId, first: sql<number>`min(${logs.createdAt})`.mapWith(Number) })
    .from(logs)
    .groupBy(logs.userId);
  for (const { id, first } of firsts) {
    const known = user.get(id);
    if (!known) user.set(id, { quota: 0, count: 0, first });
    else known.first = known.count === 0 || first - known.first < 3600 ? first : Math.min(known.first, first);
  }
  return { user, token: await of("tokenId"), channel: await of("channelId") };
}
