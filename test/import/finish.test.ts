// The end of an import beside processes that serve the same PostgreSQL: what it wrote into the options is in force there.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createSealer } from "../../src/core/kit/seal.ts";
import { createOptions } from "../../src/core/options/store.ts";
import { migratePostgres } from "../../src/db/migrate.ts";
import { openPostgres, postgresDatabase } from "../../src/db/postgres.ts";
import type { Database } from "../../src/db/database.ts";
import { closeSite } from "../../src/import/finish.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { nextLook } from "../support/turns.ts";

const LIMIT_MS = 5000;

let database: TestDatabase;
let nodes: Database[];

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  const client = openPostgres(database.databaseUrl ?? "", 1);
  await migratePostgres(client);
  await client.end();
  nodes = [1, 2].map(() => postgresDatabase(openPostgres(database.databaseUrl ?? "", 2)));
});
afterAll(async () => {
  await Promise.all(nodes.map((db) => db.close()));
  await database.drop();
});

test("another process reads all options anew, those that came before the last step too", async () => {
  const [importing, serving] = nodes as [Database, Database];
  const known = await createOptions(serving, createSealer("one key"));
  expect(known.get("site.maintenance_enabled")).toBe(false);
  await importing.orm.insert(importing.t.options).values({ key: "SystemName", value: "moved in" });
  await importing.atomic((tx) => closeSite(importing, tx));
  const untilMs = performance.now() + LIMIT_MS;
  for (let looks = 0; !known.get("site.maintenance_enabled"); looks++) {
    expect(performance.now()).toBeLessThan(untilMs);
    await nextLook(looks);
  }
  expect(known.get("SystemName")).toBe("moved in");
});
