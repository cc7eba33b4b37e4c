// The lock of all who write prices: the row of the mark that counts revisions.
import { sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";

/** The mark whose value is the latest revision; whoever writes prices holds its row until the commit. */
export const PRICE_MARK = "price_revision";

/** Waits for everybody else who writes prices, and tells the latest revision. The lock ends with the block. */
export function* lockPrices(db: Database, tx: Orm): Steps<number> {
  const { marks } = db.t;
  const [row] = yield* q(
    tx
      .insert(marks)
      .values({ key: PRICE_MARK, value: 0 })
      .onConflictDoUpdate({ target: marks.key, set: { value: sql`${marks.value}` } })
      .returning({ value: marks.value }),
  );
  return row?.value ?? 0;
}
