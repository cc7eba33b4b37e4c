// The one row that says whose days the coarse sums have and from which hour on they are there.
import { eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { END_OF_TIME } from "./filter.ts";
import { DAYS_ROW } from "./coarse-sums.ts";
import type { CoarseState } from "./coarse-sums.ts";

/** Makes the row: a database without sums has all its coarse ones, any other has them filled (core/ledger/coarse-build.ts). */
export async function openCoarse(db: Database, zone: string): Promise<void> {
  const { rollupDays, rollups } = db.t;
  if (await coarseState(db)) return;
  const [sum] = await db.orm.select({ hour: rollups.hour }).from(rollups).limit(1);
  await db.orm
    .insert(rollupDays)
    .values({ id: DAYS_ROW, zone, fromHour: sum ? END_OF_TIME : 0 })
    .onConflictDoNothing();
}

export async function coarseState(db: Database): Promise<CoarseState | undefined> {
  const { rollupDays } = db.t;
  const [state] = await db.orm
    .select({ zone: rollupDays.zone, fromHour: rollupDays.fromHour })
    .from(rollupDays)
    .where(eq(rollupDays.id, DAYS_ROW));
  return state;
}

/**
 * The row inside a transaction. On PostgreSQL it is held until the commit: shared by who adds to sums, alone by who fills
 * them.
 */
export function* heldState(db: Database, tx: Orm, hold: "share" | "update"): Steps<CoarseState | undefined> {
  const { rollupDays } = db.t;
  const query = tx
    .select({ zone: rollupDays.zone, fromHour: rollupDays.fromHour })
    .from(rollupDays)
    .where(eq(rollupDays.id, DAYS_ROW));
  const [state] = yield* q(db.kind === "postgres" ? query.for(hold) : query);
  return state;
}
