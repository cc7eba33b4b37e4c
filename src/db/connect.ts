// Opens the database that the settings name and brings it to the current schema.
// Refuses any address that is neither empty (embedded SQLite) nor postgres://.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "./database.ts";
import { migratePostgres, migrateSqlite } from "./migrate.ts";
import { openPostgres, postgresDatabase } from "./postgres.ts";
import { openSqliteFile, sqliteDatabase } from "./sqlite.ts";

export const SQLITE_FILE = "weir.sqlite";

export interface ConnectSettings {
  dataDir: string;
  /** Empty for the embedded database. */
  databaseUrl: string;
}

/** `onPending`: called before the embedded database is changed; may throw to stop that. */
export async function connect(settings: ConnectSettings, onPending?: () => void): Promise<Database> {
  if (settings.databaseUrl !== "") {
    const client = openPostgres(settings.databaseUrl);
    await migratePostgres(client);
    return postgresDatabase(client);
  }
  mkdirSync(settings.dataDir, { recursive: true, mode: 0o700 });
  const path = join(settings.dataDir, SQLITE_FILE);
  const client = openSqliteFile(path);
  migrateSqlite(client, path, undefined, onPending);
  return sqliteDatabase(client, path);
}
