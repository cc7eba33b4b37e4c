// Which names of keys rows of the log may bear: those of the table of keys, where deleted ones stay, and what left it.
// Refuses to keep the names that left: it keeps until when rows with such names may have been written.
import { eq, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { CHANNEL_PROBE, CHANNEL_TEST } from "./sentences.ts";

const MARK = "logs:keyNamesGone";
/** Calls that were under way are written with the name that they came with. */
const LATE_SECONDS = 86_400;

/** Whether rows bear the name without a key: the playground's, and what the site asks its channels. */
export function isKeyless(name: string): boolean {
  return name === CHANNEL_TEST || name === CHANNEL_PROBE || /^playground(-|$)/.test(name);
}

/** In the transaction by which names leave the table of keys: a new name, an account that goes with its keys, foreign rows. */
export function* namesGoneSteps(db: Database, tx: Orm, nowSeconds: number): Steps<void> {
  const { marks } = db.t;
  const value = nowSeconds + LATE_SECONDS;
  yield* q(
    tx
      .insert(marks)
      .values({ key: MARK, value })
      .onConflictDoUpdate({
        target: marks.key,
        set: { value: sql`case when ${marks.value} > ${value} then ${marks.value} else ${value} end` },
      })
      .returning({ key: marks.key }),
  );
}

/** Unix seconds: no later row bears a name that is not in the table of keys. 0: none does. */
export async function namesGoneUntil(db: Pick<Database, "orm" | "t">): Promise<number> {
  const { marks } = db.t;
  const [mark] = await db.orm.select({ value: marks.value }).from(marks).where(eq(marks.key, MARK));
  return mark?.value ?? 0;
}
