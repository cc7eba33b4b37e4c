// Brings a database to the schema of this program: forward only, inside a transaction, with a copy of the
// SQLite file taken before. A newer release's schema that only adds to this one is served on, so that nodes can be upgraded
// one after the other. Refuses, and leaves as it is, one that it would not bear, and a database of another build.
import type { Database as BunSqlite } from "bun:sqlite";
import { existsSync, rmSync } from "node:fs";
import { sql } from "drizzle-orm";
import type { Sql } from "postgres";
import { postgresMigrations, sqliteMigrations } from "../../drizzle/migrations/index.ts";
import { BREAKPOINT } from "../../drizzle/migration.ts";
import type { Migration } from "../../drizzle/migration.ts";
import type { Database } from "./database.ts";

/** The start is stopped with this sentence. */
export class SchemaTooNew extends Error {
  constructor(found: number, known: number) {
    super(
      `The database has schema version ${found}, which programs that know only versions up to ${known} cannot work on: ` +
        "start a newer release of weir, or restore the copy that was made before the update.",
    );
  }
}

/** The start is stopped with this sentence. */
export class SchemaUnknown extends Error {
  constructor(tag: string) {
    super(
      `The database was made by an older build of weir whose schema ("${tag}") this one does not know, and nothing in it ` +
        "was changed: start with an empty DATA_DIR (and an empty database, where DATABASE_URL names one); the older build " +
        "can go on using this database.",
    );
  }
}

/** Whoever only reads does not migrate. */
export class SchemaNotCurrent extends Error {
  constructor() {
    super(
      "the database has another schema than this program: run weir migrate (a copy of the embedded file is kept), " +
        "or use the release that serves it",
    );
  }
}

const VERSION_TABLE =
  "create table if not exists schema_version (version integer primary key, tag text not null, hash text not null, compatible_from integer not null, applied_at bigint not null)";

/** Any constant: the same for all nodes, so that only one of them migrates at a time. */
const ADVISORY_LOCK = 0x77656972;

/** A row of schema_version; builds before the first release recorded less. */
interface AppliedMigration {
  version: number;
  tag: string;
  hash?: string;
  compatible_from?: number;
}

function statements(migration: Migration): string[] {
  return migration.sql
    .split(BREAKPOINT)
    .map((text) => text.trim())
    .filter((text) => text !== "");
}

/** A migration's text decides, not its name: until the first release a changed schema is a new text under the old name. */
function hashOf(migration: Migration): string {
  return new Bun.CryptoHasher("sha256").update(migration.sql).digest("hex");
}

/** Schemas that this program brings a database to, oldest first. */
export function knownSchemas(kind: Database["kind"]): { version: number; hash: string }[] {
  const migrations = kind === "postgres" ? postgresMigrations : sqliteMigrations;
  return migrations.map((migration) => ({ version: migration.version, hash: hashOf(migration) }));
}

/** The schema that a database has; undefined for an empty one. */
export async function schemaOf(db: Database): Promise<{ version: number; hash: string } | undefined> {
  const there = sql`(select ${
    db.kind === "postgres"
      ? sql`case when to_regclass('schema_version') is null then 0 else 1 end`
      : sql`count(*)`
  } as found ${db.kind === "postgres" ? sql`` : sql`from sqlite_master where name = 'schema_version'`}) as t`;
  const [table] = await db.orm.select({ found: sql`t.found`.mapWith(Number) }).from(there);
  if (!table?.found) return undefined;
  const rows = await db.orm
    .select({ version: sql`v.version`.mapWith(Number), hash: sql<string>`v.hash` })
    .from(sql`schema_version as v`)
    .orderBy(sql`v.version desc`)
    .limit(1);
  return rows[0];
}

function rowOf(migration: Migration) {
  const { version, tag, compatibleFrom } = migration;
  const appliedAt = Math.floor(Date.now() / 1000);
  return { version, tag, hash: hashOf(migration), compatible_from: compatibleFrom, applied_at: appliedAt };
}

/** Whether the rows of schema_version are those of this program, all of them. */
export function isCurrent(kind: "sqlite" | "postgres", applied: readonly unknown[]): boolean {
  const migrations = kind === "sqlite" ? sqliteMigrations : postgresMigrations;
  return (
    applied.length === migrations.length &&
    (applied as readonly AppliedMigration[]).every(({ hash }, at) => {
      const own = migrations[at];
      return own !== undefined && hash === hashOf(own);
    })
  );
}

/**
 * What is missing. Throws where the rows are no beginning of this program's migrations, and where they go on behind its
 * last one in a way that it does not bear.
 */
function pendingAfter(
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
): readonly Migration[] {
  for (const row of applied) {
    const own = migrations.find((migration) => migration.version === row.version);
    const isKnown = row.hash !== undefined && row.compatible_from !== undefined;
    if (!isKnown || (own && row.hash !== hashOf(own))) throw new SchemaUnknown(row.tag);
  }
  const found = Math.max(0, ...applied.map((row) => row.version));
  const known = migrations.at(-1)?.version ?? 0;
  const needed = Math.max(0, ...applied.map((row) => row.compatible_from ?? 0));
  if (found > known && needed > known) throw new SchemaTooNew(found, known);
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
  const isMigrated =
    client.query("select 1 from sqlite_master where type = 'table' and name = 'schema_version'").get() !==
    null;
  const applied = isMigrated
    ? client.query<AppliedMigration, []>("select * from schema_version order by version").all()
    : [];
  const pending = pendingAfter(applied, migrations);
  if (pending.length === 0) return undefined;
  onPending();

  let copy: string | undefined;
  if (applied.length > 0 && existsSync(path)) {
    copy = `${path}.before-v${pending.at(-1)?.version}`;
    // With what its write-ahead log holds, whoever reads it meanwhile.
    rmSync(copy, { force: true });
    client.query("vacuum into ?").run(copy);
  }
  client.run("begin immediate");
  try {
    client.run(VERSION_TABLE);
    for (const migration of pending) {
      for (const statement of statements(migration)) client.run(statement);
      client
        .query("insert into schema_version values ($version, $tag, $hash, $compatible_from, $applied_at)")
        .run(rowOf(migration));
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
      const [table] = await connection`select to_regclass('schema_version') is not null as found`;
      const applied = table?.["found"]
        ? await connection<AppliedMigration[]>`select * from schema_version order by version`
        : [];
      const pending = pendingAfter(applied, migrations);
      if (pending.length === 0) return;
      await connection.unsafe("begin");
      try {
        await connection.unsafe(VERSION_TABLE);
        for (const migration of pending) {
          for (const statement of statements(migration)) await connection.unsafe(statement);
          await connection`insert into schema_version ${connection(rowOf(migration))}`;
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
