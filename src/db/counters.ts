// The counters that ids are given out by, for rows that brought their numbers along.
// Refuses to look for them: who fills tables knows how far their numbers go.
import { sql } from "drizzle-orm";
import { q, rawQuery } from "./database.ts";
import type { Database } from "./database.ts";

/** The next row of each table gets the number behind `last`. Tables by their names in SQL; `last` is 1 or more. */
export async function setCounters(
  db: Database,
  counters: readonly { name: string; last: number }[],
): Promise<void> {
  if (db.client) {
    const set = db.client.prepare("update sqlite_sequence set seq = ? where name = ?");
    const add = db.client.prepare("insert into sqlite_sequence (name, seq) values (?, ?)");
    for (const { name, last } of counters) if (set.run(last, name).changes === 0) add.run(name, last);
    return;
  }
  await db.atomic(function* (tx) {
    for (const { name, last } of counters)
      yield* q(
        rawQuery(
          tx,
          sql`select setval(pg_get_serial_sequence(${`"${name}"`}, 'id'), cast(${last} as bigint))`,
        ),
      );
  });
}
