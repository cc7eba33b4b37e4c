// Whose accounts were written on PostgreSQL, told exactly: once each, in whatever order transactions end.
// Refuses to wait: transactions are held open and ended by hand, and time is passed by hand.
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Sql } from "postgres";
import { openPostgres, postgresDatabase } from "../../src/db/postgres.ts";
import { createRowChanges } from "../../src/db/row-changes.ts";
import type { RowChanges } from "../../src/db/row-changes.ts";
import type { Database } from "../../src/db/database.ts";
import { MIGRATED } from "../core/ledger/support.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { untilSo } from "../support/turns.ts";

const USERS = 6000;

let database: TestDatabase;
let client: Sql;
let db: Database;
let nowMs: number;
let changes: RowChanges;
beforeEach(async () => {
  database = await createTestDatabase("postgres", MIGRATED);
  client = openPostgres(database.databaseUrl ?? "", 4);
  db = postgresDatabase(client);
  await client.unsafe(
    `insert into users (id, username) select id, 'u' || id from generate_series(1, ${USERS}) as id`,
  );
  await client.unsafe(
    "insert into tokens (id, user_id, key_hash, key_sealed) select id, id, 'h' || id, '' from generate_series(1, 9) as id",
  );
  nowMs = 0;
  changes = createRowChanges(db.orm, () => nowMs);
  // What went before is not known to anybody who has just come.
  expect(await changes.next()).toBeUndefined();
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

const touch = (ids: string, by: Pick<Sql, "unsafe"> = client) =>
  by.unsafe(`update users set quota = quota + 1 where id in (${ids})`);
const told = async () => {
  const found = await changes.next();
  return found && [found.users.toSorted((a, b) => a - b), found.tokens.toSorted((a, b) => a - b)];
};
const notes = async () =>
  Number((await client.unsafe("select count(*) as n from account_changes"))[0]?.["n"] ?? -1);

test("each write is told once, of accounts and of keys, several of one row together; what was rolled back is not", async () => {
  await touch("3, 5");
  await touch("5");
  await client.unsafe("update tokens set status = 2 where id = 7");
  await client.unsafe("delete from tokens where id = 8");
  await client
    .begin(async (tx) => {
      await touch("9", tx);
      throw new Error("given up");
    })
    .catch(() => undefined);
  expect(await told()).toEqual([
    [3, 5],
    [7, 8],
  ]);
  expect(await told()).toEqual([[], []]);
  // A statement that finds no row notes nothing.
  const before = await notes();
  await touch("-1");
  expect(await notes()).toBe(before);
});

test("a transaction that commits late is told then, however many went by", async () => {
  const late = await client.reserve();
  await late.unsafe("begin");
  await touch("1", late);
  for (let round = 0; round < 20; round++) {
    await touch(String(100 + round));
    expect(await told()).toEqual([[100 + round], []]);
  }
  // Minutes later, when what others noted meanwhile has been tidied up.
  for (let looks = 0; looks < 12; looks++) {
    nowMs += 20_000;
    expect(await told()).toEqual([[], []]);
  }
  await late.unsafe("commit");
  late.release();
  expect(await told()).toEqual([[1], []]);
  expect(await told()).toEqual([[], []]);
});

test("readers of their own hear of everything, each once", async () => {
  const other = createRowChanges(db.orm, () => nowMs);
  await other.next();
  await touch("1");
  expect((await other.next())?.users).toEqual([1]);
  await touch("2");
  expect((await other.next())?.users).toEqual([2]);
  expect(await told()).toEqual([[1, 2], []]);
});

test("what is too much to tell, and a long silence, have everything read anew", async () => {
  await client.unsafe("update users set quota = quota + 1");
  expect(await told()).toBeUndefined();
  expect(await told()).toEqual([[], []]);
  nowMs += 30_001;
  expect(await told()).toBeUndefined();
  expect(await told()).toEqual([[], []]);
});

test("notes are tidied up after a minute, those that a copied database brought along too", async () => {
  await touch("1");
  await client.unsafe("insert into account_changes (xact, kind, ids) values ('9000000000', 'users', '{2}')");
  expect(await told()).toEqual([[1, 2], []]);
  for (let looks = 0; looks < 5; looks++) {
    nowMs += 20_000;
    await told();
  }
  expect(await notes()).toBe(0);
  await touch("3");
  expect(await told()).toEqual([[3], []]);
});

test("an answer that nobody waited for takes nothing from the next", async () => {
  await touch("1");
  const gate = await client.reserve();
  await gate.unsafe("begin");
  await gate.unsafe("lock table account_changes in access exclusive mode");
  const given = changes.next().catch(() => "too late");
  // On its way before the second one is.
  await untilSo(async () => {
    const [row] = await client.unsafe(
      "select count(*) as n from pg_locks where relation = 'account_changes'::regclass and not granted",
    );
    return Number(row?.["n"]) > 0;
  });
  const next = told();
  await gate.unsafe("commit");
  gate.release();
  expect(await given).toBe("too late");
  expect(await next).toEqual([[1], []]);
});
