// Whose accounts were written on PostgreSQL, told exactly: once each, in whatever order transactions end.
// Refuses to wait: transactions are held open and ended by hand, and time is passed by hand.
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Sql } from "postgres";
import { BY_ROW, toldColumns } from "../../drizzle/row-changes.ts";
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
let changes: RowChanges<"users" | "tokens">;
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
  changes = createRowChanges(db.orm, ["users", "tokens"], () => nowMs);
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
/** Without the mark, which stays. */
const notes = async () =>
  Number((await client.unsafe("select count(*) as n from row_changes where kind <> 'mark'"))[0]?.["n"] ?? -1);

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
  // It holds up neither.
  expect(await notes()).toBe(0);
  await late.unsafe("commit");
  late.release();
  expect(await told()).toEqual([[1], []]);
  expect(await told()).toEqual([[], []]);
});

test("readers of their own hear of everything, each once", async () => {
  const other = createRowChanges(db.orm, ["users", "tokens"], () => nowMs);
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

test("what a crash of one of PostgreSQL's processes empties has everything read anew, by every reader, once", async () => {
  const other = createRowChanges(db.orm, ["users", "tokens"], () => nowMs);
  await other.next();
  expect([await told(), await other.next()]).toEqual([[[], []], { users: [], tokens: [] }]);
  await touch("3");
  // The server itself goes on: its start time stays.
  await client.unsafe("truncate row_changes");
  expect(await told()).toBeUndefined();
  // By now the first one has written the mark again.
  expect(await other.next()).toBeUndefined();
  await told();
  await touch("4");
  expect([await told(), await other.next()]).toEqual([[[4], []], { users: [4], tokens: [] }]);
});

test("notes are tidied up after a minute, those that a copied database brought along too", async () => {
  await touch("1");
  await client.unsafe("insert into row_changes (xact, kind, ids) values ('9000000000', 'users', '{2}')");
  expect(await told()).toEqual([[1, 2], []]);
  for (let looks = 0; looks < 5; looks++) {
    nowMs += 20_000;
    await told();
  }
  expect(await notes()).toBe(0);
  await touch("3");
  expect(await told()).toEqual([[3], []]);
});

test("channels, their keys and costs are told by the channel, whatever of them is written but what charges and tests write", async () => {
  const routed = createRowChanges(db.orm, ["channels", "costs"], () => nowMs);
  await routed.next();
  const next = async () => {
    const found = await routed.next();
    return [found?.channels, found?.costs];
  };
  await client.unsafe("insert into channels (id, name) values (5, 'five'), (6, 'six')");
  await client.unsafe(
    "insert into channel_keys (id, channel_id, pos, key_hash) values (50, 5, 0, 'a'), (60, 6, 0, 'b')",
  );
  expect(await next()).toEqual([[5, 6], []]);
  await client.unsafe(
    "update channels set used_quota = 1, gone_keys_quota = 1, test_time = 1, response_time = 1",
  );
  await client.unsafe("update channel_keys set used_quota = 1, last_used = 1, probes = 1, next_probe = 1");
  expect(await next()).toEqual([[], []]);
  await client.unsafe("update channel_keys set status = 2 where id = 60");
  expect(await next()).toEqual([[6], []]);
  await client.unsafe("delete from channels where id = 6");
  expect(await next()).toEqual([[6], []]);
  await client.unsafe(
    "insert into channel_costs (channel_id, model, valid_from, created_at) values (5, '*', 1, 1)",
  );
  expect(await next()).toEqual([[], [5]]);
  await client.unsafe("update channel_costs set factor = 2");
  expect(await next()).toEqual([[], [5]]);
  // Accounts are another reader's.
  await touch("1");
  expect(await next()).toEqual([[], []]);
});

test("a column that is added to such a table is told, unless it is named as silent", async () => {
  for (const table of Object.keys(BY_ROW) as (keyof typeof BY_ROW)[]) {
    const columns = await client.unsafe<{ name: string }[]>(
      `select a.attname as name from pg_trigger t join pg_attribute a on a.attrelid = t.tgrelid and a.attnum = any(t.tgattr)
       where t.tgname = $1 order by a.attnum`,
      [`${table.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}_noted`],
    );
    expect(columns.map(({ name }) => name)).toEqual(toldColumns(table));
  }
});

test("an answer that nobody waited for takes nothing from the next", async () => {
  await touch("1");
  const gate = await client.reserve();
  await gate.unsafe("begin");
  await gate.unsafe("lock table row_changes in access exclusive mode");
  const given = changes.next().catch(() => "too late");
  // On its way before the second one is.
  await untilSo(async () => {
    const [row] = await client.unsafe(
      "select count(*) as n from pg_locks where relation = 'row_changes'::regclass and not granted and database = (select oid from pg_database where datname = current_database())",
    );
    return Number(row?.["n"]) > 0;
  });
  const next = told();
  await gate.unsafe("commit");
  gate.release();
  expect(await given).toBe("too late");
  expect(await next).toEqual([[1], []]);
});
