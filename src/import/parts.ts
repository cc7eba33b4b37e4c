// PostgreSQL keeps the log by months: those of an imported log get their parts before its rows come.
// Refuses nothing: what has no month, rows without a time among it, lies in the rest.
import { createLogPart } from "../core/logs/retention.ts";
import type { Database } from "../db/database.ts";

/** Older rows, or later ones, are slips of a clock: they are not worth a part. */
const FIRST_YEAR = 2023;
const DAY = 86_400;

/** Answers what makes the parts of these moments (Unix seconds); on the embedded database there are none. */
export function ensureImportedParts(
  db: Database,
  now: number,
): (moments: readonly number[]) => Promise<void> {
  const made = new Set<string>();
  return async (moments) => {
    if (db.kind !== "postgres") return;
    for (const moment of moments) {
      const date = new Date(moment * 1000);
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + 1];
      if (year < FIRST_YEAR || moment > now + DAY) continue;
      const name = `${year}-${month}`;
      if (made.has(name)) continue;
      made.add(name);
      await createLogPart(db, year, month);
    }
  };
}
