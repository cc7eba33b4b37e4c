// Opens the database that the settings name and brings it to the current schema.
// Refuses any address that is neither empty (embedded SQLite) nor postgres://.
import { join } from "node:path";
import { prepareDataDir } from "./data-dir-lock.ts";
import type { Database } from "./database.ts";
import { migratePostgres, migrateSqlite } from "./migrate.ts";
import { openPostgres, postgresDatabase } from "./postgres.ts";
import { openSqliteFile, sqliteDatabase } from "./sqlite.ts";

/** The start is stopped with this sentence. */
export class DatabaseUnreachable extends Error {
  constructor(reason: string) {
    super(`DATABASE_URL names a database that cannot be used: ${reason}.`);
  }
}

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
    try {
      await client`select 1`;
    } catch (error) {
      await client.end({ timeout: 1 });
      throw new DatabaseUnreachable(error instanceof Error ? error.message : String(error));
    }
    await migratePostgres(client);
    return postgresDatabase(client);
  }
  prepareDataDir(settings.dataDir);
  const path = join(settings.dataDir, SQLITE_FILE);
  const client = openSqliteFile(path);
  migrateSqlite(client, path, undefined, onPending);
  return sqliteDatabase(client, path);
}
