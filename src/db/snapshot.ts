// A database as it stood at one moment, for who reads all of it: beside a running server, or where none may be started.
// Refuses to write (the database itself does), and a schema that is not this program's.
import { Database as BunSqlite } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { drizzle as onSqlite } from "drizzle-orm/bun-sqlite";
import { drizzle as onPostgres } from "drizzle-orm/postgres-js";
import { schema as postgresSchema } from "../../drizzle/postgres.ts";
import type { Schema } from "../../drizzle/schema.ts";
import { schema as sqliteSchema } from "../../drizzle/sqlite.ts";
import type { ConnectSettings } from "./connect.ts";
import { DatabaseUnreachable, SQLITE_FILE } from "./connect.ts";
import type { Orm, RawRow } from "./database.ts";
import { SchemaNotCurrent, isCurrent } from "./migrate.ts";
import { openPostgres } from "./postgres.ts";

export interface Snapshot {
  readonly kind: "sqlite" | "postgres";
  readonly t: Schema;
  /** Of the same moment; for the audit. */
  readonly bulkReader: Orm;
  /** Rows by their columns' names, some thousands at a time, in the statement's order. PostgreSQL's 64-bit numbers are text. */
  pages(statement: string): AsyncIterable<readonly RawRow[]>;
  close(): Promise<void>;
}

/** There is nothing to read. */
export class NoDatabase extends Error {
  constructor(path: string) {
    super(`there is no database in ${path}: set DATA_DIR, or DATABASE_URL`);
  }
}

const PAGE_ROWS = 2000;
const APPLIED = "select version, tag, hash from schema_version order by version";

/** `file`: of the embedded database. Throws NoDatabase, DatabaseUnreachable, SchemaNotCurrent. */
export function openSnapshot(settings: ConnectSettings, file = SQLITE_FILE): Promise<Snapshot> {
  return settings.databaseUrl === "" ? ofFile(settings.dataDir, file) : ofServer(settings.databaseUrl);
}

async function ofFile(dataDir: string, file: string): Promise<Snapshot> {
  const path = join(dataDir, file);
  if (!existsSync(path)) throw new NoDatabase(dataDir);
  const client = new BunSqlite(path, { readonly: true, strict: true });
  try {
    client.run("pragma busy_timeout = 5000");
    client.run("pragma query_only = on");
    // What it reads first is what it goes on reading: writers append behind it.
    client.run("begin");
    if (!isCurrent("sqlite", client.query(APPLIED).all())) throw new SchemaNotCurrent();
  } catch (error) {
    client.close();
    throw noTable(error) ? new SchemaNotCurrent() : error;
  }
  return {
    kind: "sqlite",
    t: sqliteSchema,
    bulkReader: onSqlite(client, { casing: "snake_case" }) as unknown as Orm,
    async *pages(statement) {
      let page: RawRow[] = [];
      for (const row of client.query<RawRow, []>(statement).iterate()) {
        page.push(row);
        if (page.length < PAGE_ROWS) continue;
        yield page;
        page = [];
      }
      if (page.length > 0) yield page;
    },
    async close() {
      client.run("rollback");
      client.close();
    },
  };
}

async function ofServer(url: string): Promise<Snapshot> {
  // One connection, whose transaction all of it is read in.
  const client = openPostgres(url, 1);
  const end = () => client.end({ timeout: 1 });
  try {
    await client`select 1`;
  } catch (error) {
    await end();
    throw new DatabaseUnreachable(error instanceof Error ? error.message : String(error), error);
  }
  try {
    await client.unsafe("begin isolation level repeatable read read only");
    if (!isCurrent("postgres", await client.unsafe(APPLIED))) throw new SchemaNotCurrent();
  } catch (error) {
    await end();
    throw noTable(error) ? new SchemaNotCurrent() : error;
  }
  return {
    kind: "postgres",
    t: postgresSchema,
    bulkReader: onPostgres(client, { casing: "snake_case" }) as unknown as Orm,
    pages: (statement) => client.unsafe<RawRow[]>(statement).cursor(PAGE_ROWS) as AsyncIterable<RawRow[]>,
    async close() {
      await client.unsafe("rollback");
      await end();
    },
  };
}

function noTable(error: unknown): boolean {
  return (
    error instanceof Error && /no such table|relation "schema_version" does not exist/.test(error.message)
  );
}
