// The change feed of nodes on one PostgreSQL: ids are told, everything is re-read only after a gap, within a second.
// Refuses fixed waits: it asks again and again until the second is over.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { migratePostgres } from "../../src/db/migrate.ts";
import { openPostgres, postgresDatabase } from "../../src/db/postgres.ts";
import type { Database } from "../../src/db/database.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { nextLook } from "../support/turns.ts";

interface Node {
  db: Database;
  ids: string[];
  lost: number;
}

let database: TestDatabase;
let nodes: Node[];

async function startNode(): Promise<Node> {
  const node: Node = {
    db: postgresDatabase(openPostgres(database.databaseUrl ?? "", 4)),
    ids: [],
    lost: 0,
  };
  await node.db.onChange("channels", {
    changed: (ids) => void node.ids.push(...ids),
    lost: () => void node.lost++,
  });
  return node;
}

async function soon(isSo: () => boolean, limitMs = 1000): Promise<void> {
  const startedMs = performance.now();
  for (let looks = 0; !isSo(); looks++) {
    if (performance.now() - startedMs > limitMs) throw new Error(`not so after ${limitMs} ms`);
    await nextLook(looks);
  }
}

beforeEach(async () => {
  database = await createTestDatabase("postgres");
  const client = openPostgres(database.databaseUrl ?? "", 1);
  await migratePostgres(client);
  await client.end();
  nodes = await Promise.all([startNode(), startNode()]);
});
afterEach(async () => {
  await Promise.all(nodes.map(({ db }) => db.close()));
  await database.drop();
});

test("each change is told to the other node by its id, once, and not to the one that made it", async () => {
  const [here, there] = nodes as [Node, Node];
  await here.db.announce("channels", [7, 8]);
  await here.db.announce("channels", [9]);
  await soon(() => there.ids.length === 3);
  expect([there.ids, there.lost]).toEqual([["7", "8", "9"], 0]);
  expect([here.ids, here.lost]).toEqual([[], 0]);
});

test("two busy nodes tell each other all changes, and nobody ever re-reads everything", async () => {
  const [here, there] = nodes as [Node, Node];
  await Promise.all(
    nodes.flatMap(({ db }, node) =>
      Array.from({ length: 150 }, (_, i) => db.announce("channels", [node * 1000 + i])),
    ),
  );
  await soon(() => here.ids.length === 150 && there.ids.length === 150, 5000);
  expect(new Set(here.ids).size + new Set(there.ids).size).toBe(300);
  // Two more rounds of comparing versions find nothing either.
  const until = performance.now() + 800;
  await soon(() => performance.now() > until);
  expect([here.lost, there.lost]).toEqual([0, 0]);
}, 20_000);

test("an announcement that is lost is noticed within a second by every node, and the next ones are told by id again", async () => {
  const [here, there] = nodes as [Node, Node];
  await here.db.announce("channels", [1]);
  await soon(() => there.ids.length === 1);
  const { marks } = here.db.t;
  await here.db.orm
    .update(marks)
    .set({ value: sql`${marks.value} + 1` })
    .where(eq(marks.key, "version:channels"));
  await soon(() => here.lost === 1 && there.lost === 1);
  await here.db.announce("channels", [2]);
  await soon(() => there.ids.includes("2"));
  expect([here.lost, there.lost]).toEqual([1, 1]);
});

test("a version that follows a missing one has everything re-read at once", async () => {
  const [here, there] = nodes as [Node, Node];
  await here.db.announce("channels", [1]);
  await soon(() => there.ids.length === 1);
  const { marks } = here.db.t;
  await here.db.orm
    .update(marks)
    .set({ value: sql`${marks.value} + 1` })
    .where(eq(marks.key, "version:channels"));
  await here.db.announce("channels", [3]);
  await soon(() => there.lost === 1);
  expect(there.ids).toEqual(["1"]);
});

test("a node whose listening connection is cut hears of everything within a second, by id or by the gap", async () => {
  const [here, there] = nodes as [Node, Node];
  for (let i = 0; i < 3; i++) {
    const before = there.ids.length + there.lost;
    // The connections that listen, whichever node's they are.
    await here.db.orm
      .select({ isCut: sql`pg_terminate_backend(pid)` })
      .from(sql`pg_stat_activity`)
      .where(sql`query ilike 'listen%' and datname = current_database() and pid <> pg_backend_pid()`);
    await here.db.announce("channels", [i]);
    await soon(() => there.ids.length + there.lost > before);
  }
});

test("a database that was set back has everything re-read, and the next changes are told by id again", async () => {
  const [here, there] = nodes as [Node, Node];
  for (const id of [1, 2, 3]) await here.db.announce("channels", [id]);
  await soon(() => there.ids.length === 3);
  const { marks } = here.db.t;
  await here.db.orm.update(marks).set({ value: 1 }).where(eq(marks.key, "version:channels"));
  await soon(() => here.lost === 1 && there.lost === 1);
  await here.db.announce("channels", [4]);
  await soon(() => there.ids.includes("4"));
  expect([here.lost, there.lost]).toEqual([1, 1]);
});

test("a long list is told as everything", async () => {
  const [here, there] = nodes as [Node, Node];
  await here.db.announce(
    "channels",
    Array.from({ length: 5000 }, (_, i) => i),
  );
  await soon(() => there.lost === 1);
  expect(there.ids).toEqual([]);
});
