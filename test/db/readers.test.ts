// Reads for somebody who leaves: what waits is dropped, PostgreSQL stops what runs, and nobody else waits for either.
import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { connect } from "../../src/db/connect.ts";
import { q, rawQuery } from "../../src/db/database.ts";
import type { Orm } from "../../src/db/database.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";

/** Counts for some seconds on SQLite, whose thread nobody can stop, and for hours on PostgreSQL. */
const LONG = { sqlite: 5_000_000, postgres: 100_000_000_000 };
const endless = (reader: Orm, kind: keyof typeof LONG) =>
  reader.select({ total: sql`total` }).from(sql`(with recursive series(i) as (
    select 1 union all select i + 1 from series where i < ${sql.raw(String(LONG[kind]))}
  ) select count(*) as total from series) as found`);
const one = (reader: Orm) => reader.select({ one: sql<number>`1` }).from(sql`(select 1) as x`);

test.each(DATABASE_KINDS)(
  "on %s a reader that leaves ends its query, and others go on",
  async (kind) => {
    const database = await createTestDatabase(kind);
    const db = await connect({ dataDir: database.dataDir, databaseUrl: database.databaseUrl ?? "" });
    const leaving = new AbortController();
    const reader = db.readerUntil(leaving.signal, true);
    const [running, waiting] = [endless(reader, kind), endless(reader, kind)].map((query) =>
      query.then(
        () => "answered",
        () => "ended",
      ),
    );
    // Lists have readers of their own: they are answered while an export is at it.
    expect(await one(db.reader)).toEqual([{ one: 1 }]);
    leaving.abort(new Error("left"));
    expect([await running, await waiting]).toEqual(["ended", "ended"]);
    expect(await one(db.bulkReader)).toEqual([{ one: 1 }]);
    expect(
      await one(reader).then(
        () => "answered",
        () => "ended",
      ),
    ).toBe("ended");
    if (kind === "postgres") {
      const busy = await db.atomic(function* (tx) {
        return yield* q(
          rawQuery(
            tx,
            sql`select count(*) as total from pg_stat_activity where datname = current_database()
            and state = 'active' and query like '%100000000000%' and pid <> pg_backend_pid()`,
          ),
        );
      });
      expect([...busy].map(({ total }) => Number(total))).toEqual([0]);
    }
    await db.close();
    await database.drop();
  },
  30_000,
);
