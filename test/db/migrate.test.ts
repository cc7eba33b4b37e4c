// Migrations: forward only, all or nothing, a copy of the SQLite file before, one PostgreSQL node at a time.
// Refuses the real schema where made-up steps show the same.
import { Database as BunSqlite } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQLITE_FILE } from "../../src/db/connect.ts";
import { migratePostgres, migrateSqlite, SchemaTooNew, SchemaUnknown } from "../../src/db/migrate.ts";
import { openPostgres } from "../../src/db/postgres.ts";
import { openSqliteFile } from "../../src/db/sqlite.ts";
import { BREAKPOINT, onlyAdds } from "../../drizzle/migration.ts";
import type { Migration } from "../../drizzle/migration.ts";
import { createPostgresDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { PostgresDatabase } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";

const FIRST: Migration = {
  version: 1,
  tag: "0000_first",
  compatibleFrom: 1,
  sql: "create table things (id integer primary key);--> statement-breakpoint\ninsert into things values (1);",
};
/** The same place in the sequence with another text, as it stood before the migrations were squashed. */
const OTHER_FIRST: Migration = { ...FIRST, sql: "create table things (id integer);" };
/** The table of builds before the first release: it says which versions were applied, not which texts. */
const UNHASHED =
  "create table schema_version (version integer primary key, tag text not null, applied_at bigint not null)";
const REFUSED =
  /made by an older build of weir whose schema \("0000_\w+"\).*nothing in it was changed.*empty DATA_DIR.*older build can go on/;

const SECOND: Migration = {
  version: 2,
  tag: "0001_second",
  compatibleFrom: 2,
  sql: "insert into things values (2);",
};
/** As SECOND, in a way that programs bear which do not know of it. */
const ADDED: Migration = { ...SECOND, compatibleFrom: 1 };
const BROKEN: Migration = {
  version: 3,
  tag: "0002_broken",
  compatibleFrom: 2,
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
    expect(() => migrateSqlite(client, path, [FIRST])).toThrow(/schema version 2,.*up to 1 cannot/);
    expect(things()).toEqual([1, 2]);
  });

  test("a newer release's schema that only adds is served on, by the release before and not by one that it ended", () => {
    migrateSqlite(client, path, [FIRST, ADDED]);
    expect(migrateSqlite(client, path, [FIRST])).toBeUndefined();
    expect(things()).toEqual([1, 2]);
    const third: Migration = { version: 3, tag: "0002_third", compatibleFrom: 2, sql: "delete from things;" };
    migrateSqlite(client, path, [FIRST, ADDED, third]);
    expect(() => migrateSqlite(client, path, [FIRST])).toThrow(/schema version 3,.*up to 1 cannot/);
    expect(migrateSqlite(client, path, [FIRST, ADDED])).toBeUndefined();
  });

  test("a database of another build is refused by its text, or where it tells none, and not a byte of it changes", () => {
    const refuse = () => {
      client.run("pragma wal_checkpoint(truncate)");
      const before = readFileSync(path);
      expect(() => migrateSqlite(client, path, [FIRST, SECOND])).toThrow(SchemaUnknown);
      expect(() => migrateSqlite(client, path, [FIRST, SECOND])).toThrow(REFUSED);
      client.run("pragma wal_checkpoint(truncate)");
      expect(readFileSync(path).equals(before)).toBe(true);
      expect(readdirSync(dir).filter((name) => name.includes("before-v"))).toEqual([]);
    };
    migrateSqlite(client, path, [OTHER_FIRST]);
    refuse();
    migrateSqlite(client, path, [OTHER_FIRST, SECOND, { ...SECOND, version: 3 }]);
    rmSync(`${path}.before-v3`);
    refuse();
    client.run("drop table schema_version");
    client.run(UNHASHED);
    for (const version of [1, 2, 3, 4]) {
      client.run("insert into schema_version values (?, '0000_init', 0)", [version]);
      refuse();
    }
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
    await client`update schema_version set compatible_from = 1`;
    await migratePostgres(client, [FIRST]);
    expect(await client`select version from schema_version`).toHaveLength(2);
    await client.end();
  });

  test("a database of another build is refused by its text, or where it tells none, and not touched", async () => {
    const client = openPostgres(database.url, 2);
    const refuse = async () => {
      const before = await client`select * from schema_version`;
      const outcome = await migratePostgres(client, [FIRST, SECOND]).catch((error: unknown) => error);
      expect(outcome).toBeInstanceOf(SchemaUnknown);
      expect((outcome as Error).message).toMatch(REFUSED);
      expect(await client`select * from schema_version`).toEqual(before);
      expect(await client`select * from things`).toHaveLength(0);
    };
    await migratePostgres(client, [OTHER_FIRST]);
    await refuse();
    await client`drop table schema_version`;
    await client.unsafe(UNHASHED);
    for (const version of [1, 2, 3, 4]) {
      await client`insert into schema_version values (${version}, '0000_init', 0)`;
      await refuse();
    }
    await client.end();
  });
});

test.each([
  [true, "CREATE TABLE `a` (\n`id` integer PRIMARY KEY NOT NULL);", ""],
  [
    true,
    'ALTER TABLE "users" ADD COLUMN "more" bigint DEFAULT 0 NOT NULL;',
    'CREATE INDEX "i" ON "users" ("more");',
  ],
  [true, "ALTER TABLE `users` ADD `more` text;", ""],
  [true, 'CREATE TABLE "a" ("id" bigint);', 'CREATE UNIQUE INDEX "u" ON "a" USING btree ("id");'],
  [false, 'CREATE UNIQUE INDEX "u" ON "users" USING btree ("email");', ""],
  [false, 'ALTER TABLE "users" ADD COLUMN "more" bigint NOT NULL;', ""],
  [false, 'ALTER TABLE "users" DROP COLUMN "remark";', ""],
  [false, "CREATE TABLE `__new_users` (`id` integer);", "DROP TABLE `users`;"],
  [false, 'ALTER TABLE "users" ALTER COLUMN "remark" SET NOT NULL;', ""],
  [false, 'ALTER TABLE "users" ADD CONSTRAINT "c" CHECK (true);', ""],
])("whether an older program bears it: %p for %s %s", (is, first, second) => {
  expect(onlyAdds([first, second].join(BREAKPOINT))).toBe(is);
});

test.each(DATABASE_KINDS)(
  "on %s another build's database stops the program and every command in one sentence",
  async (kind) => {
    const database = kind === "postgres" ? await createPostgresDatabase() : undefined;
    const server = await startServerProcess(database ? { DATABASE_URL: database.url } : {});
    await server.stop();
    const setHash = async (change: string) => {
      const statement = `update schema_version set hash = ${change}`;
      if (database) {
        const client = openPostgres(database.url, 1);
        await client.unsafe(statement);
        await client.end();
      } else {
        const file = new BunSqlite(join(server.dataDir, SQLITE_FILE));
        file.run(statement);
        file.close();
      }
    };
    await setHash("'x' || hash");
    for (const args of [[], ["audit"], ["migrate"], ["journal", "check"]]) {
      const { code, text } = server.run(args, { PORT: "0" });
      expect([args, code, text]).toEqual([args, 1, expect.stringMatching(REFUSED) as string]);
      expect(text.trim().split("\n")).toHaveLength(1);
      expect(text).toStartWith("weir cannot start: ");
    }
    await setHash("substr(hash, 2)");
    await server.restart();
    expect((await fetch(`${server.url}/api/status`)).status).toBe(200);
    await server.remove();
    await database?.drop();
  },
  30_000,
);
