// Once, at the first start with operators' completion ratios in force: entries that a lock had silenced are dropped.
// Refuses to let a price move by itself: what such an entry says was never charged.
import { eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { silencedByLock } from "./completion-rules.ts";
import type { Logger } from "../deps.ts";

const MARK = "internal:completion_ratios_unlocked";
const OPTION = "CompletionRatio";

/** Call before the options are read. Names that were dropped; empty also at every later start. */
export async function dropSilencedRatios(db: Database, logger: Pick<Logger, "warn">): Promise<string[]> {
  const { options } = db.t;
  let dropped: string[] = [];
  await db.atomic(function* (tx) {
    dropped = [];
    // Whoever writes the mark does the work: nodes that start together do it once.
    const [mark] = yield* q(
      tx
        .insert(options)
        .values({ key: MARK, value: "true" })
        .onConflictDoNothing()
        .returning({ key: options.key }),
    );
    if (!mark) return;
    const [row] = yield* q(tx.select().from(options).where(eq(options.key, OPTION)));
    const table = jsonObject(row?.value ?? "");
    if (!table) return;
    dropped = Object.keys(table).filter((name) => silencedByLock(name, table[name]));
    if (dropped.length === 0) return;
    const kept = Object.fromEntries(Object.entries(table).filter(([name]) => !dropped.includes(name)));
    yield* q(
      tx
        .update(options)
        .set({ value: JSON.stringify(kept) })
        .where(eq(options.key, OPTION))
        .returning({ key: options.key }),
    );
  });
  if (dropped.length > 0)
    logger.warn("completion ratios that were never in force have been dropped, so that no price moves", {
      models: dropped.join(", "),
    });
  return dropped;
}
