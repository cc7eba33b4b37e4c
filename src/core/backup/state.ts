// When the last copy of the books was made, and when one failed: marks of the database, for the inbox, the status and metrics.
// Refuses to count a copy that was not proved: only a whole one, checked, moves the mark.
import { inArray } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";

const LAST_KEY = "backup:last";
const BYTES_KEY = "backup:bytes";
const FAILED_KEY = "backup:failed";

/** From here on a copy counts as missing: one a day, and two hours for a large database or a late night. */
export const BACKUP_LATE_SECONDS = 26 * 3600;

export interface BackupState {
  /** The moment whose books the last whole copy holds, Unix seconds; 0: none was ever made. */
  lastAt: number;
  /** Its size. */
  bytes: number;
  /** When a copy failed that no whole one has followed, Unix seconds; 0: the last one went well. */
  failedAt: number;
}

/** Read from the marks; the same on every node. */
export async function backupState(db: Database): Promise<BackupState> {
  const { marks } = db.t;
  const rows = await db.orm
    .select()
    .from(marks)
    .where(inArray(marks.key, [LAST_KEY, BYTES_KEY, FAILED_KEY]));
  const of = (key: string): number => rows.find((row) => row.key === key)?.value ?? 0;
  return { lastAt: of(LAST_KEY), bytes: of(BYTES_KEY), failedAt: of(FAILED_KEY) };
}

/** Seconds since the last whole copy; undefined: none was ever made. */
export function backupAge({ lastAt }: Pick<BackupState, "lastAt">, nowSeconds: number): number | undefined {
  return lastAt === 0 ? undefined : Math.max(0, nowSeconds - lastAt);
}

/** A whole copy of the books of that moment. */
export function noteBackup(db: Database, atSeconds: number, bytes: number): Promise<void> {
  return writeMarks(db, [
    { key: LAST_KEY, value: atSeconds },
    { key: BYTES_KEY, value: bytes },
    { key: FAILED_KEY, value: 0 },
  ]);
}

export function noteFailedBackup(db: Database, atSeconds: number): Promise<void> {
  return writeMarks(db, [{ key: FAILED_KEY, value: atSeconds }]);
}

async function writeMarks(db: Database, rows: readonly { key: string; value: number }[]): Promise<void> {
  const { marks } = db.t;
  await db.atomic(function* (tx) {
    for (const row of rows)
      yield* q(
        tx
          .insert(marks)
          .values(row)
          .onConflictDoUpdate({ target: marks.key, set: { value: row.value } }),
      );
  });
}
