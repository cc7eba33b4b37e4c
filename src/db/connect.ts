// Opens the database that the settings name and brings it to the current schema.
// Refuses any address that is neither empty (embedded SQLite) nor postgres://.
import { join } from "node:path";
import type { Sql } from "postgres";
import { isAway } from "./away.ts";
import { prepareDataDir } from "./data-dir-lock.ts";
import { DatabaseBusy } from "./database.ts";
import type { Database } from "./database.ts";
import { migratePostgres, migrateSqlite } from "./migrate.ts";
import { poolerMode, reach } from "./pooler.ts";
import type { PoolerMode, Reached } from "./pooler.ts";
import { openPostgres, postgresDatabase } from "./postgres.ts";
import { sqlState } from "./sql-state.ts";
import { isBusy } from "./sqlite-busy.ts";
import { openSqliteCopy, openSqliteFile, sqliteDatabase } from "./sqlite.ts";

/** The start is stopped with this sentence. */
export class DatabaseUnreachable extends Error {
  constructor(reason: string, cause?: unknown, variable = "DATABASE_URL") {
    super(`${variable} names a database that cannot be used: ${reason}.`, { cause });
  }
}

export const SQLITE_FILE = "weir.sqlite";

export interface ConnectSettings {
  dataDir: string;
  /** Empty for the embedded database. */
  databaseUrl: string;
  /** The same database past a pooler, for what needs a session: LISTEN, migrations. Absent or empty: databaseUrl does. */
  databaseDirectUrl?: string;
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

/** Ways to one PostgreSQL; the same one twice where no pooler is in between, or one that keeps sessions. */
interface Clients {
  pool: Sql;
  session: Sql;
}

/** Beside LISTEN, which has a connection of its own, sessions are for moments. */
const SESSION_CONNECTIONS = 2;
const SESSION_IDLE_SECONDS = 5;

/** Below the ten seconds that calls near zero wait: those that meet it may still be answered. */
const SILENT_MS = 8000;
/** With the knock at the door that follows it, reads wait for a silent database for six seconds. */
const QUIET_MS = 3000;

const DIRECT_VARIABLE = "DATABASE_DIRECT_URL";
const NEEDS_SESSIONS =
  "a pooler in transaction mode stands before it, through which LISTEN hears nothing: " +
  `set pool_mode = session for this database, or ${DIRECT_VARIABLE} to the address of PostgreSQL itself`;
/** protocol_violation: how poolers call a parameter of the connection that they do not know. */
const UNKNOWN_PARAMETER = "08P01";
const NO_TRANSACTIONS = "a pooler in statement mode stands before it: set pool_mode = session";

async function reached(client: Sql, variable?: string): Promise<Reached> {
  return reach(client).catch((error: unknown) => {
    throw new DatabaseUnreachable(error instanceof Error ? error.message : String(error), error, variable);
  });
}

async function modeOf(url: string, { hasPooler }: Reached, variable?: string): Promise<PoolerMode> {
  if (!hasPooler) return "none";
  const mode = await poolerMode(url).catch((error: unknown) => {
    throw new DatabaseUnreachable(error instanceof Error ? error.message : String(error), error, variable);
  });
  if (mode === "statement") throw new DatabaseUnreachable(NO_TRANSACTIONS, undefined, variable);
  return mode;
}

/** Who answers, and whether sessions may be guarded: poolers refuse what they do not know, before anything else. */
async function firstReached(url: string, isGuarded = true): Promise<{ there: Reached; isGuarded: boolean }> {
  const client = openPostgres(url, 1, { isGuarded });
  try {
    return { there: await reached(client), isGuarded };
  } catch (error) {
    if (isGuarded && sqlState(error) === UNKNOWN_PARAMETER) return await firstReached(url, false);
    throw error;
  } finally {
    await client.end({ timeout: 1 });
  }
}

/** What it opens it adds to `opened`, for whoever closes them where it throws. Throws DatabaseUnreachable. */
async function openClients(settings: ConnectSettings, opened: Sql[]): Promise<Clients> {
  const { databaseUrl, databaseDirectUrl = "", databasePool } = settings;
  const { there, isGuarded } = await firstReached(databaseUrl);
  const mode = await modeOf(databaseUrl, there);
  const pool = openPostgres(databaseUrl, databasePool, {
    isNamed: mode !== "transaction",
    isGuarded,
    silentMs: SILENT_MS,
    quietMs: QUIET_MS,
  });
  opened.push(pool);
  if (databaseDirectUrl === "") {
    if (mode === "transaction") throw new DatabaseUnreachable(NEEDS_SESSIONS);
    return { pool, session: pool };
  }
  const session = openPostgres(databaseDirectUrl, SESSION_CONNECTIONS, { idleSeconds: SESSION_IDLE_SECONDS });
  opened.push(session);
  const past = await reached(session, DIRECT_VARIABLE);
  if (past.server !== there.server)
    throw new DatabaseUnreachable("it is not the one of DATABASE_URL", undefined, DIRECT_VARIABLE);
  if ((await modeOf(databaseDirectUrl, past, DIRECT_VARIABLE)) === "transaction")
    throw new DatabaseUnreachable(NEEDS_SESSIONS, undefined, DIRECT_VARIABLE);
  return { pool, session };
}

/**
 * A database that is away is waited for; one that answers with a refusal (password, unknown name) is not. Migrations
 * belong to it: a server that comes up may go down once more.
 */
async function openWhenThere(settings: ConnectSettings, patience: Patience | undefined): Promise<Clients> {
  const until = performance.now() + (patience?.waitSeconds ?? 0) * 1000;
  let reportedAtMs = -Infinity;
  for (;;) {
    const opened: Sql[] = [];
    try {
      const clients = await openClients(settings, opened);
      await migratePostgres(clients.session);
      return clients;
    } catch (error) {
      await Promise.all(opened.map((client) => client.end({ timeout: 1 })));
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
 * must be there; it is opened for reading alone unless something is to be written, then as a guest of whoever serves it.
 */
export async function openAsIs(
  settings: ConnectSettings,
  mode: "read" | "write" = "read",
): Promise<Database> {
  if (settings.databaseUrl === "") {
    const path = join(settings.dataDir, SQLITE_FILE);
    return mode === "read" ? openSqliteCopy(path) : sqliteDatabase(openSqliteFile(path), path, "guest");
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
export function connect(
  settings: ConnectSettings,
  onPending?: () => void,
  patience?: Patience,
  file = SQLITE_FILE,
): Promise<Database> {
  return open(settings, { onPending, patience, file, mode: "write" });
}

/** As `connect`, of what a server may be serving meanwhile: its writers are never held up by the end of it. */
export function connectBeside(settings: ConnectSettings, onPending?: () => void): Promise<Database> {
  return open(settings, { onPending, patience: undefined, file: SQLITE_FILE, mode: "guest" });
}

interface Opening {
  onPending: (() => void) | undefined;
  patience: Patience | undefined;
  file: string;
  mode: "guest" | "write";
}

async function open(
  settings: ConnectSettings,
  { onPending, patience, file, mode }: Opening,
): Promise<Database> {
  if (settings.databaseUrl !== "") {
    const { pool, session } = await openWhenThere(settings, patience);
    return postgresDatabase(pool, session);
  }
  prepareDataDir(settings.dataDir);
  const path = join(settings.dataDir, file);
  const client = openSqliteFile(path);
  try {
    migrateSqlite(client, path, undefined, onPending);
  } catch (error) {
    client.close();
    throw isBusy(error) ? new DatabaseBusy() : error;
  }
  return sqliteDatabase(client, path, mode);
}
