// Settlement on SQLite through the local journal: what is accepted is seen at once, whatever happens to the tables.
// Refuses to look at PostgreSQL's own path, which ledger-postgres.test.ts covers.
import { beforeEach, expect, test } from "bun:test";
import { copyFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { countRows, q } from "../../../src/db/database.ts";
import { SQLITE_FILE } from "../../../src/db/connect.ts";
import { countWaiting, SET_ASIDE_FILE } from "../../../src/core/ledger/journal/journal.ts";
import { findStorePosition } from "../../../src/core/ledger/node-lease.ts";
import { lockFile } from "../../support/lock-file.ts";
import { openBooks, requestId, settlement, startBooks } from "./support.ts";
import type { Books, TestBooks } from "./support.ts";
import { untilSo } from "../../support/turns.ts";

let books: TestBooks;
beforeEach(async () => {
  books = await startBooks("sqlite");
  await books.addChannel();
});

async function spend(node: Books, userId: number, quota: number, content = ""): Promise<void> {
  const user = await node.user(userId);
  const held = await node.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
  await held.settle(settlement(quota, { content }));
}

function reopen(): Promise<Books> {
  return openBooks({ dataDir: books.dataDir, databaseUrl: undefined, clock: books.clock });
}

/** Ends the process, so to say, and keeps its files. */
async function stop(): Promise<void> {
  await books.ledger.close();
  books.accounts.close();
  await books.db.close();
}

/** What the journal has and the tables do not. */
async function waiting(node: Books = books): Promise<number> {
  const position = await findStorePosition(node.db, "node-a");
  return position ? countWaiting(node.dataDir, position) : -1;
}

const lockTables = () => lockFile(join(books.dataDir, SQLITE_FILE));

test("whoever asks after an answer sees the call, in every way of asking", async () => {
  const user = await books.addUser(1000);
  const { logs } = books.db.t;
  const ways = [
    async () => (await books.db.orm.select({ rows: countRows() }).from(logs))[0]?.rows,
    async () => (await books.db.reader.select({ rows: countRows() }).from(logs))[0]?.rows,
    () =>
      books.db.atomic(function* (tx) {
        return (yield* q(tx.select({ rows: countRows() }).from(logs)))[0]?.rows;
      }),
  ];
  let calls = 0;
  for (const rowsSeen of ways) {
    await spend(books, user.id, 7);
    expect(books.ledger.backlog()).toBe(1);
    expect(await rowsSeen()).toBe(++calls);
    expect(books.ledger.backlog()).toBe(0);
  }
  await books.expectBalanced();
  await books.close();
});

test("calls are brought in soon, without anybody asking", async () => {
  const user = await books.addUser(1000);
  const { client } = books.db;
  if (!client) throw new Error("not SQLite");
  const count = client.prepare<{ rows: number }, []>("select count(*) as rows from logs");
  for (let call = 0; call < 5; call++) await spend(books, user.id, 7);
  await untilSo(() => (count.get()?.rows ?? 0) >= 5);
  expect(user).toMatchObject({ quota: 965, reserved: 0, requestCount: 5 });
  count.finalize();
  await books.close();
});

test("while another process holds the file calls go on; nobody waits for it, and nothing is lost", async () => {
  const user = await books.addUser(1000);
  const lock = lockTables();
  const begun = performance.now();
  for (let call = 0; call < 20; call++) await spend(books, user.id, 7);
  await books.ledger.flush();
  expect(performance.now() - begun).toBeLessThan(2000);
  expect(books.ledger.backlog()).toBe(20);
  expect(user).toMatchObject({ quota: 1000, reserved: 140 });
  lock.release();
  await untilSo(() => books.ledger.backlog() === 0);
  expect(user).toMatchObject({ quota: 860, reserved: 0, requestCount: 20 });
  await books.expectBalanced();
  await books.close();
});

test("what the tables did not get is applied at the next start, once", async () => {
  const user = await books.addUser(1000);
  const lock = lockTables();
  for (let call = 0; call < 5; call++) await spend(books, user.id, 10);
  await books.ledger.close();
  expect(await waiting()).toBe(5);
  lock.release();
  books.accounts.close();
  await books.db.close();
  for (let start = 0; start < 2; start++) {
    const next = await reopen();
    expect(await next.user(user.id)).toMatchObject({ quota: 950, reserved: 0, requestCount: 5 });
    await next.expectBalanced();
    expect(await waiting(next)).toBe(0);
    await next.close();
  }
  await books.database.drop();
});

test("tables that lost their last commits, as after a power cut, get them from the journal again", async () => {
  const user = await books.addUser(1000);
  await spend(books, user.id, 10);
  await stop();
  const file = join(books.dataDir, SQLITE_FILE);
  copyFileSync(file, `${file}.copy`);
  const second = await reopen();
  for (let call = 0; call < 5; call++) await spend(second, user.id, 10);
  await second.expectBalanced();
  await second.close();
  copyFileSync(`${file}.copy`, file);
  const third = await reopen();
  expect(await third.user(user.id)).toMatchObject({ quota: 940, requestCount: 6 });
  await third.expectBalanced();
  await third.close();
  await books.database.drop();
});

test("a new database beside an old journal is charged nothing: the journal is put away", async () => {
  const user = await books.addUser(1000);
  await spend(books, user.id, 10);
  await stop();
  for (const name of readdirSync(books.dataDir))
    if (name.startsWith(SQLITE_FILE)) rmSync(join(books.dataDir, name));
  const next = await reopen();
  await next.addChannel();
  const first = await next.addUser(500);
  expect(first.id).toBe(user.id);
  await spend(next, first.id, 3);
  await next.expectBalanced();
  expect(first).toMatchObject({ quota: 497, requestCount: 1 });
  expect(readdirSync(books.dataDir).filter((name) => name.includes(".foreign-"))).toHaveLength(1);
  await next.close();
  await books.database.drop();
});

test("a row that the tables refuse is set aside, and those beside it are brought in", async () => {
  const user = await books.addUser(1000);
  const { client } = books.db;
  if (!client) throw new Error("not SQLite");
  client.run(
    "create trigger no_poison before insert on logs when new.content = 'poison' begin select raise(abort, 'no'); end",
  );
  const file = join(books.dataDir, SET_ASIDE_FILE);
  await Promise.all(["fine", "poison", "fine"].map((content) => spend(books, user.id, 10, content)));
  await spend(books, user.id, 10, "poison");
  await books.expectBalanced();
  // What was refused stays held back: it was delivered.
  expect(user).toMatchObject({ quota: 980, reserved: 20, requestCount: 2 });
  const refused = () => readFileSync(file, "utf8").trim().split("\n");
  for (const line of refused())
    expect(JSON.parse(line)).toMatchObject({ item: { row: { content: "poison", quota: 10 } } });
  await stop();
  const next = await reopen();
  await spend(next, user.id, 10);
  await next.expectBalanced();
  expect(refused()).toHaveLength(2);
  await next.close();
  await books.database.drop();
});

test("whoever is told of a balance may query at once: nothing is entered twice", async () => {
  const seen: number[] = [];
  const own: TestBooks = await startBooks("sqlite", {
    balances: {
      charged() {
        const all = own.db.orm.select().from(own.db.t.logs) as unknown as { all(): unknown[] };
        seen.push(all.all().length);
      },
      credited: () => {},
    },
  });
  await own.addChannel();
  const user = await own.addUser(1000);
  own.db.client?.run(
    "create trigger no_poison before insert on logs when new.content = 'poison' begin select raise(abort, 'no'); end",
  );
  await Promise.all(["a", "poison", "b", "c"].map((content) => spend(own, user.id, 10, content)));
  await own.expectBalanced();
  expect(user).toMatchObject({ quota: 970, requestCount: 3 });
  expect(seen).toEqual([1, 2, 3]);
  await own.close();
});
