// Brings a database to the schema of this program: forward only, inside a transaction, with a copy of the
// SQLite file taken before. Refuses a database that a newer version of the program has already changed.
import type { Database as BunSqlite } from "bun:sqlite";
import { copyFileSync, existsSync } from "node:fs";
import type { Sql } from "postgres";
import { postgresMigrations, sqliteMigrations } from "../../drizzle/migrations/index.ts";
import type { Migration } from "../../drizzle/migration.ts";

/** The start is stopped with this sentence. */
export class SchemaTooNew extends Error {
  constructor(found: number, known: number) {
    super(
      `The database has schema version ${found}, but this program knows only versions up to ${known}: ` +
        "start a newer release of weir, or restore the copy that was made before the update.",
    );
  }
}

const VERSION_TABLE =
  "create table if not exists schema_version (version integer primary key, tag text not null, applied_at bigint not null)";

/** Any constant: the same for all nodes, so that only one of them migrates at a time. */
const ADVISORY_LOCK = 0x77656972;

function statements(migration: Migration): string[] {
  return migration.sql
    .split("--> statement-breakpoint")
    .map((text) => text.trim())
    .filter((text) => text !== "");
}

function pendingAfter(found: number, migrations: readonly Migration[]): readonly Migration[] {
  const known = migrations.at(-1)?.version ?? 0;
  if (found > known) throw new SchemaTooNew(found, known);
  return migrations.filter((migration) => migration.version > found);
}

/**
 * Returns the path of the copy, or undefined when nothing had to be done or the file was new. `onPending` is called
 * before anything is changed and may throw.
 */
export function migrateSqlite(
  client: BunSqlite,
  path: string,
  migrations: readonly Migration[] = sqliteMigrations,
  onPending: () => void = () => {},
): string | undefined {
  client.run(VERSION_TABLE);
  const row = client
    .query<{ version: number | null }, []>("select max(version) as version from schema_version")
    .get();
  const found = row?.version ?? 0;
  const pending = pendingAfter(found, migrations);
  if (pending.length === 0) return undefined;
  onPending();

  let copy: string | undefined;
  if (found > 0 && existsSync(path)) {
    copy = `${path}.before-v${pending.at(-1)?.version}`;
    client.run("pragma wal_checkpoint(truncate)");
    copyFileSync(path, copy);
  }
  client.run("begin immediate");
  try {
    for (const migration of pending) {
      for (const statement of statements(migration)) client.run(statement);
      client.run("insert into schema_version values (?, ?, ?)", [
        migration.version,
        migration.tag,
        Math.floor(Date.now() / 1000),
      ]);
    }
    client.run("commit");
  } catch (error) {
    if (client.inTransaction) client.run("rollback");
    throw error;
  }
  return copy;
}

/** Several nodes may start at once: the advisory lock lets one migrate while the others wait. */
export async function migratePostgres(
  client: Sql,
  migrations: readonly Migration[] = postgresMigrations,
): Promise<void> {
  const connection = await client.reserve();
  try {
    await connection`select pg_advisory_lock(${ADVISORY_LOCK})`;
    try {
      await connection.unsafe(VERSION_TABLE);
      const rows = await connection`select max(version) as version from schema_version`;
      const pending = pendingAfter(Number(rows[0]?.version ?? 0), migrations);
      if (pending.length === 0) return;
      await connection.unsafe("begin");
      try {
        for (const migration of pending) {
          for (const statement of statements(migration)) await connection.unsafe(statement);
          await connection`insert into schema_version values
            (${migration.version}, ${migration.tag}, ${Math.floor(Date.now() / 1000)})`;
        }
        await connection.unsafe("commit");
      } catch (error) {
        await connection.unsafe("rollback");
        throw error;
      }
    } finally {
      await connection`select pg_advisory_unlock(${ADVISORY_LOCK})`;
    }
  } finally {
    connection.release();
  }
}
