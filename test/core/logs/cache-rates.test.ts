// How often caches of prompts hit, read while calls are charged.
// Refuses chance: what is charged comes between the two reads.
import { expect, test } from "bun:test";
import { cacheRates } from "../../../src/core/logs/cache-rates.ts";
import type { Database } from "../../../src/db/database.ts";
import { startBooks } from "../ledger/support.ts";

const HOUR = 1_800_000_000;

/** The database with a pause between the reading of the totals and that of the rows. */
function pausing(db: Database, meanwhile: () => Promise<unknown>): Database {
  const totals: PromiseLike<unknown>[] = [];
  const select = (fields: Record<string, never>) => {
    const begun = db.reader.select(fields);
    if ("size" in fields)
      return {
        async from(rows: never) {
          await Promise.all(totals);
          await meanwhile();
          return begun.from(rows);
        },
      };
    if (!("calls" in fields) || "id" in fields) return begun;
    const from = (table: never) => ({
      where(condition: never) {
        const read = Promise.resolve(begun.from(table).where(condition));
        totals.push(read);
        return read;
      },
    });
    return { from };
  };
  return { ...db, reader: { select } as unknown as Database["reader"] };
}

test("the total has at least what its rows have, also where they were read after it", async () => {
  const books = await startBooks("sqlite");
  const { db } = books;
  const { rollups, rollupsByModel } = db.t;
  /** As a settlement adds it to the sums of all fields, and to those by model. */
  const use = async (userId: number) => {
    const calls = { hour: HOUR, modelName: "m", count: 1, cacheInput: 100, cacheRead: 40 };
    await db.orm.insert(rollups).values({ ...calls, userId, channelId: 3, tokenId: 1, group: "default" });
    const sums = { count: 2, cacheInput: 200, cacheRead: 80 };
    await db.orm
      .insert(rollupsByModel)
      .values(calls)
      .onConflictDoUpdate({ target: [rollupsByModel.hour, rollupsByModel.modelName], set: sums });
  };
  await use(1);
  const range = { from: HOUR, to: HOUR + 3600, by: "user" } as const;
  const expected = { calls: 2, input: 200, read: 80 };
  const { total, rows } = await cacheRates({ db: pausing(db, () => use(2)) }, range);
  expect(rows).toHaveLength(2);
  expect(total).toMatchObject(expected);
  expect((await cacheRates({ db }, range)).total).toMatchObject(expected);
  await books.close();
});
