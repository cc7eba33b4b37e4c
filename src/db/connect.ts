// Opens the database that the settings name and brings it to the current schema.
// Refuses any address that is neither empty (embedded SQLite) nor postgres://.
import { join } from "node:path";
import type { Sql } from "postgres";
import { isAway } from "./away.ts";
import { prepareDataDir } from "./data-dir-lock.ts";
import { DatabaseBusy } from "./database.ts";
import type { Database } from "./database.ts";
import { migratePostgres, migrateSqlite } from "./migrate.ts";
import { openPostgres, postgresDatabase } from "./postgres.ts";
import { isBusy } from "./sqlite-busy.ts";
import { openSqliteCopy, openSqliteFile, sqliteDatabase } from "./sqlite.ts";

/** The start is stopped with this sentence. */
export class DatabaseUnreachable extends Error {
  constructor(reason: string, cause?: unknown) {
    super(`DATABASE_URL names a database that cannot be used: ${reason}.`, { cause });
  }
}

export const SQLITE_FILE = "weir.sqlite";

export interface ConnectSettings {
  dataDir: string;
  /** Empty for the embedded database. */
  databaseUrl: string;
  /** Connections to PostgreSQL; the driver's usual number when absent. */
  databasePool?: number;
}

/** A start beside its database, which may come up later. */
export interface Patience {
  waitSeconds: number;
  /** Told at once and every few seconds. */
  waiting(reason: string, leftSeconds: number): void;
}

const PAUSE_MS = 250;
const REPORT_MS = 5000;

/**
 * A database that is away is waited for; one that answers with a refusal (password, unknown name) is not. Migrations
 * belong to it: a server that comes up may go down once more.
 */
async function openWhenThere(
  { databaseUrl, databasePool }: ConnectSettings,
  patience: Patience | undefined,
): Promise<Sql> {
  const until = performance.now() + (patience?.waitSeconds ?? 0) * 1000;
  let reportedAtMs = -Infinity;
  for (;;) {
    const client = openPostgres(databaseUrl, databasePool);
    try {
      await client`select 1`.catch((error: unknown) => {
        throw new DatabaseUnreachable(error instanceof Error ? error.message : String(error), error);
      });
      await migratePostgres(client);
      return client;
    } catch (error) {
      await client.end({ timeout: 1 });
      const now = performance.now();
      if (now >= until || !isAway(error)) throw error;
      if (now - reportedAtMs >= REPORT_MS) {
        reportedAtMs = now;
        const reason = error instanceof Error ? error.message : String(error);
        patience?.waiting(reason, Math.ceil((until - now) / 1000));
      }
      await Bun.sleep(PAUSE_MS);
    }
  }
}

/**
 * The database as it is, without bringing it to the current schema: another release may be serving on it. The embedded file
 * must be there; it is opened for reading alone unless something is to be written.
 */
export async function openAsIs(
  settings: ConnectSettings,
  mode: "read" | "write" = "read",
): Promise<Database> {
  if (settings.databaseUrl === "") {
    const path = join(settings.dataDir, SQLITE_FILE);
    return mode === "read" ? openSqliteCopy(path) : sqliteDatabase(openSqliteFile(path), path);
  }
  const client = openPostgres(settings.databaseUrl, 2);
  try {
    await client`select 1`;
    return postgresDatabase(client);
  } catch (error) {
    await client.end({ timeout: 1 });
    throw new DatabaseUnreachable(error instanceof Error ? error.message : String(error), error);
  }
}

/**
 * `onPending`: called before the embedded database is changed; may throw to stop that. `file`: of the embedded database, where
 * it is not the one that is served.
 */
export async function connect(
  settings: ConnectSettings,
  onPending?: () => void,
  patience?: Patience,
  file = SQLITE_FILE,
): Promise<Database> {
  if (settings.databaseUrl !== "") return postgresDatabase(await openWhenThere(settings, patience));
  prepareDataDir(settings.dataDir);
  const path = join(settings.dataDir, file);
  const client = openSqliteFile(path);
  try {
    migrateSqlite(client, path, undefined, onPending);
  } catch (error) {
    client.close();
    throw isBusy(error) ? new DatabaseBusy() : error;
  }
  return sqliteDatabase(client, path);
}
