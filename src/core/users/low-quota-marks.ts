// What all nodes know of a user's warning: when the last one went out, and whether the balance has been above the
// threshold since. Two rows of `marks`, so that a restart forgets neither.
import { and, eq, inArray, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";

/** At most one warning in this time, however often the balance goes up and down. */
export const QUIET_SECONDS = 2 * 3600;

/** Its value: Unix seconds of the last warning. */
export function warningMark(userId: number): string {
  return `low-quota:${userId}`;
}

/** It stands there once the balance has been above the threshold after the last warning; its value says nothing. */
function armedMark(userId: number): string {
  return `low-quota-armed:${userId}`;
}

/** The last warning of a user, and whether the next fall is worth another. */
export interface WarningState {
  warnedAt: number;
  isArmed: boolean;
}

/** Undefined where the user was never warned. */
export async function findWarning({ orm, t }: Database, userId: number): Promise<WarningState | undefined> {
  const { marks } = t;
  const rows = await orm
    .select()
    .from(marks)
    .where(inArray(marks.key, [warningMark(userId), armedMark(userId)]));
  const warning = rows.find(({ key }) => key === warningMark(userId));
  if (!warning) return undefined;
  return { warnedAt: warning.value, isArmed: rows.some(({ key }) => key === armedMark(userId)) };
}

/** True for the one who may warn: of any number of nodes and falls exactly one gets it. `now` in Unix seconds. */
export async function claimWarning(db: Database, userId: number, now: number): Promise<boolean> {
  const { marks } = db.t;
  return db.atomic(function* (tx) {
    const first = yield* q(
      tx
        .insert(marks)
        .values({ key: warningMark(userId), value: now })
        .onConflictDoNothing()
        .returning({ key: marks.key }),
    );
    if (first.length > 0) return true;
    // Whoever takes the row away has the claim: the others wait for that, and find it gone.
    const disarmed = yield* q(
      tx
        .delete(marks)
        .where(
          and(
            eq(marks.key, armedMark(userId)),
            // A warning of the future is one before the clock was set back: it does not silence anybody for longer.
            sql`exists (select 1 from marks as warning where warning.key = ${warningMark(userId)}
              and (warning.value <= ${now - QUIET_SECONDS} or warning.value > ${now}))`,
          ),
        )
        .returning({ key: marks.key }),
    );
    if (disarmed.length === 0) return false;
    yield* q(
      tx
        .update(marks)
        .set({ value: now })
        .where(eq(marks.key, warningMark(userId)))
        .returning({ key: marks.key }),
    );
    return true;
  });
}

/** The warning of `claimedAt` reached nobody: it counts as one that lets the next go out at `retryAt`. */
export async function giveBackWarning(
  db: Database,
  userId: number,
  { claimedAt, retryAt }: { claimedAt: number; retryAt: number },
): Promise<void> {
  const { marks } = db.t;
  await db.atomic(function* (tx) {
    const mine = yield* q(
      tx
        .update(marks)
        .set({ value: retryAt - QUIET_SECONDS })
        .where(and(eq(marks.key, warningMark(userId)), eq(marks.value, claimedAt)))
        .returning({ key: marks.key }),
    );
    if (mine.length === 0) return;
    yield* q(
      tx
        .insert(marks)
        .values({ key: armedMark(userId), value: 1 })
        .onConflictDoNothing()
        .returning({ key: marks.key }),
    );
  });
}

/** After this the next fall is warned of (not sooner than two hours after the last warning). */
export async function rearm({ db }: { db: Database }, userId: number): Promise<void> {
  const { marks } = db.t;
  const state = await findWarning(db, userId);
  if (!state || state.isArmed) return;
  await db.orm
    .insert(marks)
    .values({ key: armedMark(userId), value: 1 })
    .onConflictDoNothing();
}
