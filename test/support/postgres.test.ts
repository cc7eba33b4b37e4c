// What every data test leans on: databases that are real, fresh and apart from each other.
// Refuses to test PostgreSQL itself.

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import {
  createPostgresDatabase,
  createTestDatabase,
  postgresServer,
  type PostgresTemplate,
} from "./postgres.ts";

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.end();
  }
}

/** The message a promise is rejected with; empty when it is kept. */
function refusalOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

test("two databases share nothing, and a dropped one is gone", async () => {
  const [a, b] = await Promise.all([createPostgresDatabase(), createPostgresDatabase()]);
  await query(a.url, "create table only_here (id int)");
  expect(await query(b.url, "select to_regclass('only_here') as found")).toEqual([{ found: null }]);
  await a.drop();
  expect(await refusalOf(query(a.url, "select 1"))).toContain("does not exist");
  await a.drop();
  await b.drop();
});

test("a template is built once, and every copy of it has its tables and its own rows", async () => {
  let builds = 0;
  const template: PostgresTemplate = {
    name: `counted_${process.pid}`,
    async build(url) {
      builds++;
      await query(url, "create table seeds (n int); insert into seeds values (7)");
    },
  };
  const databases = await Promise.all([1, 2, 3].map(() => createPostgresDatabase(template)));
  const [first, second] = databases as [(typeof databases)[0], (typeof databases)[0]];
  await query(first.url, "delete from seeds");
  expect(await query(second.url, "select n from seeds")).toEqual([{ n: 7 }]);
  expect(builds).toBe(1);
  await Promise.all(databases.map((database) => database.drop()));
});

test("a failing template build tells its reason and leaves no half-built copy behind", async () => {
  const name = `broken_${process.pid}`;
  const broken = { name, build: () => Promise.reject(new Error("migration 3 failed")) };
  expect(await refusalOf(createPostgresDatabase(broken))).toContain("migration 3 failed");
  const { origin } = await postgresServer();
  const left = await query(
    `${origin}/postgres`,
    `select datname from pg_database where datname = 'template_${name}'`,
  );
  expect(left).toEqual([]);
});

test("the server is the throw-away kind: no fsync, loopback only, a password asked", async () => {
  const { origin } = await postgresServer();
  const url = `${origin}/postgres`;
  expect(await query(url, "show fsync")).toEqual([{ fsync: "off" }]);
  expect(await query(url, "show listen_addresses")).toEqual([{ listen_addresses: "127.0.0.1" }]);
  const stranger = new URL(url);
  stranger.password = "wrong";
  expect(await refusalOf(query(stranger.href, "select 1"))).toContain("password authentication failed");
});

test("a test database of either kind brings an empty directory and takes it away again", async () => {
  const sqlite = await createTestDatabase("sqlite");
  const real = await createTestDatabase("postgres");
  expect(sqlite.databaseUrl).toBeUndefined();
  expect(await query(real.databaseUrl ?? "", "select 1 as one")).toEqual([{ one: 1 }]);
  expect(existsSync(join(sqlite.dataDir, "."))).toBe(true);
  for (const database of [sqlite, real]) await database.drop();
  expect([sqlite, real].map((database) => existsSync(database.dataDir))).toEqual([false, false]);
});
