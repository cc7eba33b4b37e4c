// Reads the database's own code from an error or from its causes (drizzle wraps the driver's error).
// An error without a code gives the empty text.

/** SQLSTATE on PostgreSQL, `SQLITE_…` on SQLite. */
export function sqlState(error: unknown): string {
  for (let e: unknown = error; typeof e === "object" && e !== null; e = (e as { cause?: unknown }).cause) {
    const code = (e as { code?: unknown }).code;
    if (typeof code === "string") return code;
  }
  return "";
}

/** True for a broken unique constraint on either database. */
export function isUniqueViolation(error: unknown): boolean {
  const state = sqlState(error);
  return (
    state === "23505" || state === "SQLITE_CONSTRAINT_UNIQUE" || state === "SQLITE_CONSTRAINT_PRIMARYKEY"
  );
}
