// Group commit and spool: batches stay together, a bad row does not spoil the others, nothing is lost or doubled.
// Refuses a database for the queue itself; the spool is tried with the real SQLite ledger.
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createGroupCommit, MAX_BATCH } from "../../src/core/ledger-batch.ts";
import { openBooks, settlement, silent, startBooks } from "./ledger-support.ts";

class CodedError extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

test("items of one tick are committed together, at most 500 at once, in order", async () => {
  const batches: number[][] = [];
  const queue = createGroupCommit<number>({
    commit: (items) => void batches.push([...items]),
    spool: () => {},
    logger: silent,
  });
  const numbers = Array.from({ length: 2 * MAX_BATCH + 7 }, (_, index) => index);
  await Promise.all(numbers.map((number) => queue.add(number)));
  expect(batches.map((batch) => batch.length)).toEqual([MAX_BATCH, MAX_BATCH, 7]);
  expect(batches.flat()).toEqual(numbers);
});

test("a row that fails goes to the spool, the others of its batch are committed", async () => {
  const committed: number[] = [];
  const spooled: number[] = [];
  const queue = createGroupCommit<number>({
    commit: (items) => {
      if (items.includes(3)) throw new CodedError("SQLITE_CONSTRAINT_TRIGGER");
      committed.push(...items);
    },
    spool: (items) => void spooled.push(...items),
    logger: silent,
  });
  await Promise.all([1, 2, 3, 4].map((number) => queue.add(number)));
  expect([committed, spooled]).toEqual([[1, 2, 4], [3]]);
});

test("a full disk sends the whole batch to the spool at once; without a spool the caller is told", async () => {
  let commits = 0;
  const spooled: number[] = [];
  let isSpoolFull = false;
  const queue = createGroupCommit<number>({
    commit: () => {
      commits++;
      throw new CodedError("SQLITE_FULL");
    },
    spool: (items) => {
      if (isSpoolFull) throw new CodedError("ENOSPC");
      spooled.push(...items);
    },
    logger: silent,
  });
  await Promise.all([1, 2, 3].map((number) => queue.add(number)));
  expect([commits, spooled]).toEqual([1, [1, 2, 3]]);
  isSpoolFull = true;
  const outcomes = await Promise.allSettled([4, 5].map((number) => queue.add(number)));
  expect(outcomes.map((outcome) => outcome.status)).toEqual(["rejected", "rejected"]);
});

test("while another process holds the lock the batch waits, whole and in order", async () => {
  const committed: number[] = [];
  let busy = 2;
  const queue = createGroupCommit<number>({
    commit: (items) => {
      if (busy-- > 0) throw new CodedError("SQLITE_BUSY");
      committed.push(...items);
    },
    spool: () => {
      throw new Error("not needed");
    },
    logger: silent,
  });
  const first = queue.add(1);
  await queue.flush();
  await first;
  await queue.add(2);
  expect(committed).toEqual([1, 2]);
});

test("spooled settlements are applied once, in this process or the next one, and memory counts them meanwhile", async () => {
  const books = await startBooks("sqlite");
  await books.addChannel();
  const user = await books.addUser(1000);
  const { client } = books.db;
  if (!client) throw new Error("not SQLite");
  const forbid = () =>
    client.run(
      "create trigger no_poison before insert on logs when new.content = 'poison' begin select raise(abort, 'no'); end",
    );
  const allow = () => client.run("drop trigger no_poison");
  const spend = async (content: string) => {
    const held = await books.ledger.reserve({ requestId: content, user, token: undefined, amount: 10 });
    await held.settle(settlement(10, { content }));
  };
  const files = () => readdirSync(books.dataDir).filter((name) => name.startsWith("spool-"));

  forbid();
  await Promise.all([spend("fine"), spend("poison"), spend("poison")]);
  expect(books.ledger.backlog()).toBe(2);
  expect(user).toMatchObject({ quota: 990, reserved: 20, requestCount: 1 });
  await books.ledger.maintain();
  expect(books.ledger.backlog()).toBe(2);
  allow();
  await books.ledger.maintain();
  expect(user).toMatchObject({ quota: 970, reserved: 0, requestCount: 3 });
  expect(files()).toEqual([]);
  await books.expectBalanced();

  forbid();
  await spend("poison");
  allow();
  await books.ledger.close();
  const next = await openBooks({ dataDir: books.dataDir, databaseUrl: undefined });
  expect(await next.user(user.id)).toMatchObject({ quota: 960, reserved: 0, requestCount: 4 });
  expect(files()).toEqual([]);
  const { marks } = next.db.t;
  expect((await next.db.orm.select().from(marks)).filter((mark) => mark.key.startsWith("spool:"))).toEqual(
    [],
  );
  await next.expectBalanced();
  await next.close();
  await books.database.drop();
});

test("a spool file that is applied in two goes applies no line twice", async () => {
  const books = await startBooks("sqlite");
  await books.addChannel();
  const user = await books.addUser(1000);
  const { client } = books.db;
  if (!client) throw new Error("not SQLite");
  const forbid = (content: string) =>
    client.run(
      `create trigger no_poison before insert on logs when new.content like '${content}' begin select raise(abort, 'no'); end`,
    );
  const allow = () => client.run("drop trigger no_poison");
  forbid("poison%");
  for (const content of ["poison 1", "poison 2"]) {
    const held = await books.ledger.reserve({ requestId: content, user, token: undefined, amount: 10 });
    await held.settle(settlement(10, { content }));
  }
  allow();
  forbid("poison 2");
  await books.ledger.maintain();
  expect(user).toMatchObject({ quota: 990, reserved: 10, requestCount: 1 });
  const name = readdirSync(books.dataDir).find((each) => each.startsWith("spool-")) ?? "";
  const text = await Bun.file(join(books.dataDir, name)).text();
  await books.ledger.maintain();
  allow();
  const { marks } = books.db.t;
  const [mark] = await books.db.orm.select().from(marks);
  await books.ledger.maintain();
  expect(user).toMatchObject({ quota: 980, reserved: 0, requestCount: 2 });
  await books.expectBalanced();

  // As after a crash between the last commit and the removal of the file.
  await books.db.orm.insert(marks).values({ key: mark?.key ?? "", value: 2 });
  await Bun.write(join(books.dataDir, name), text);
  await books.ledger.maintain();
  await books.expectBalanced();
  expect((await books.user(user.id)).requestCount).toBe(2);
  await books.close();
});
