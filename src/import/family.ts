// Which product a database belongs to, told by its columns: version texts say little of what is in the tables.
// Refuses a database of none of them, and names what it lacks.
import { SourceRefused } from "./dsn.ts";
import type { SourceDatabase } from "./source.ts";

/**
 * `one-api` as of 2025-02; `new-api` as of 2025-05, which has soft deletion and today's channel numbers; `new-api-v1`, whose
 * channels have several keys, and whose further tables come one by one.
 */
export type Family = "one-api" | "new-api" | "new-api-v1";

const NEEDED: readonly [table: string, column: string][] = [
  ["users", "username"],
  ["users", "quota"],
  ["tokens", "key"],
  ["channels", "models"],
  ["options", "key"],
];

export function familyOf(source: Pick<SourceDatabase, "has" | "tables">): Family {
  const missing = NEEDED.filter(([table, column]) => !source.has(table, column));
  if (missing.length > 0)
    throw new SourceRefused(
      `the source is no database of one-api or new-api: it lacks ${missing.map((each) => each.join(".")).join(", ")}` +
        ` (found: ${[...source.tables.keys()].toSorted().slice(0, 12).join(", ") || "no table"})`,
    );
  if (source.has("channels", "channel_info")) return "new-api-v1";
  if (source.has("tokens", "model_limits") || source.has("users", "deleted_at")) return "new-api";
  if (
    source.has("logs", "elapsed_time") ||
    source.has("tokens", "subnet") ||
    source.has("channels", "config")
  )
    return "one-api";
  throw new SourceRefused(
    "the source looks older than one-api of 2025-02 and new-api of 2025-05: start its newest release on a copy first, which brings the tables up to date",
  );
}
