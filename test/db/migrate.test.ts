// Migrations: forward only, all or nothing, a copy of the SQLite file before, one PostgreSQL node at a time.
// Refuses the real schema where made-up steps show the same.
import { Database as BunSqlite } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migratePostgres, migrateSqlite, SchemaTooNew } from "../../src/db/migrate.ts";
import { openPostgres } from "../../src/db/postgres.ts";
import { openSqliteFile } from "../../src/db/sqlite.ts";
import type { Migration } from "../../drizzle/migration.ts";
import { createPostgresDatabase } from "../support/postgres.ts";
import type { PostgresDatabase } from "../support/postgres.ts";

const FIRST: Migration = {
  version: 1,
  tag: "0000_first",
  sql: "create table things (id integer primary key);--> statement-breakpoint\ninsert into things values (1);",
};
const SECOND: Migration = { version: 2, tag: "0001_second", sql: "insert into things values (2);" };
const BROKEN: Migration = {
  version: 3,
  tag: "0002_broken",
  sql: "insert into things values (3);--> statement-breakpoint\ninsert into nowhere values (1);",
};

describe("SQLite", () => {
  let dir: string;
  let path: string;
  let client: BunSqlite;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "weir-migrate-"));
    path = join(dir, "weir.sqlite");
    client = openSqliteFile(path);
  });
  afterEach(() => {
    client.close();
    rmSync(dir, { recursive: true });
  });

  const things = (from = client) =>
    from
      .query<{ id: number }, []>("select id from things order by id")
      .all()
      .map((row) => row.id);

  test("a new file is migrated without a copy, and a second start has nothing to do", () => {
    expect(migrateSqlite(client, path, [FIRST, SECOND])).toBeUndefined();
    expect(things()).toEqual([1, 2]);
    expect(migrateSqlite(client, path, [FIRST, SECOND])).toBeUndefined();
    expect(things()).toEqual([1, 2]);
  });

  test("before an update a whole copy of the file is taken, what stood in the write-ahead log included", () => {
    migrateSqlite(client, path, [FIRST]);
    client.run("insert into things values (77)");
    const copy = migrateSqlite(client, path, [FIRST, SECOND]);
    expect(copy).toBe(`${path}.before-v2`);
    expect(things()).toEqual([1, 2, 77]);
    const copied = new BunSqlite(copy ?? "", { readonly: true });
    expect(things(copied)).toEqual([1, 77]);
    copied.close();
  });

  test("a step that fails leaves the database as it was", () => {
    migrateSqlite(client, path, [FIRST]);
    expect(() => migrateSqlite(client, path, [FIRST, SECOND, BROKEN])).toThrow();
    expect(things()).toEqual([1]);
    expect(existsSync(`${path}.before-v3`)).toBe(true);
    migrateSqlite(client, path, [FIRST, SECOND]);
    expect(things()).toEqual([1, 2]);
  });

  test("a database of a newer release is refused with both versions named, and not touched", () => {
    migrateSqlite(client, path, [FIRST, SECOND]);
    expect(() => migrateSqlite(client, path, [FIRST])).toThrow(SchemaTooNew);
    expect(() => migrateSqlite(client, path, [FIRST])).toThrow(/schema version 2.*up to 1/);
    expect(things()).toEqual([1, 2]);
  });

  test("the program's own migrations make every table", () => {
    migrateSqlite(client, path);
    const tables = client
      .query<{ name: string }, []>("select name from sqlite_master where type = 'table'")
      .all();
    expect(tables.map((row) => row.name)).toEqual(
      expect.arrayContaining(["users", "logs", "rollups", "marks"]),
    );
  });
});

describe("PostgreSQL", () => {
  let database: PostgresDatabase;

  beforeEach(async () => {
    database = await createPostgresDatabase();
  });
  afterEach(() => database.drop());

  test("four nodes that start at once migrate once, and all of them succeed", async () => {
    const clients = Array.from({ length: 4 }, () => openPostgres(database.url, 2));
    await Promise.all(clients.map((client) => migratePostgres(client, [FIRST, SECOND])));
    const client = clients[0];
    if (!client) throw new Error("no client");
    expect((await client`select id from things order by id`).map((row) => row.id)).toEqual([1, 2]);
    expect(await client`select version from schema_version order by version`).toHaveLength(2);
    await Promise.all(clients.map((each) => each.end()));
  });

  test("a step that fails leaves the database as it was, and the lock is free again", async () => {
    const client = openPostgres(database.url, 2);
    await migratePostgres(client, [FIRST]);
    const outcome = await Promise.allSettled([migratePostgres(client, [FIRST, SECOND, BROKEN])]);
    expect(outcome[0].status).toBe("rejected");
    expect((await client`select id from things`).map((row) => row.id)).toEqual([1]);
    await migratePostgres(client, [FIRST, SECOND]);
    expect((await client`select id from things order by id`).map((row) => row.id)).toEqual([1, 2]);
    await client.end();
  });

  test("a database of a newer release is refused, and not touched", async () => {
    const client = openPostgres(database.url, 2);
    await migratePostgres(client, [FIRST, SECOND]);
    const outcome = await migratePostgres(client, [FIRST]).catch((error: unknown) => error);
    expect(outcome).toBeInstanceOf(SchemaTooNew);
    await client.end();
  });
});
