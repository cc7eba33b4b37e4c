// The embedded database while another process writes it: who waits, who does not, in which order, and for how long.
// Refuses to look at the ledger's batches, which ledger-sqlite.test.ts covers.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { Database as BunSqlite } from "bun:sqlite";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import { connect, connectBeside, SQLITE_FILE } from "../../src/db/connect.ts";
import { DatabaseBusy, q } from "../../src/db/database.ts";
import type { Database } from "../../src/db/database.ts";
import { isUniqueViolation } from "../../src/db/sql-state.ts";
import { BUSY_MS, SHORT_BUSY_MS } from "../../src/db/sqlite-busy.ts";
import { lockElsewhere } from "../support/lock-file.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { startStretch } from "../support/stretch.ts";

/** The longest turn of the event loop, on a machine that others use too; a wait on it would be BUSY_MS for each write. */
const STALL_MS = 1000;

let place: TestDatabase;
let db: Database;
let lock: { release(): Promise<void> } | undefined;
beforeEach(async () => {
  place = await createTestDatabase("sqlite");
  db = await connect({ dataDir: place.dataDir, databaseUrl: "" });
  await db.orm.insert(db.t.marks).values({ key: "a", value: 0 });
});
afterEach(async () => {
  await lock?.release();
  await db.close();
  await place.drop();
});

async function hold(): Promise<void> {
  lock = await lockElsewhere(join(place.dataDir, SQLITE_FILE));
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Turns the event loop until it is so; the longest of its turns. */
async function turnsUntil(isSo: () => boolean): Promise<number> {
  let longestMs = 0;
  for (let lastMs = performance.now(); !isSo();) {
    await nextTurn();
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
  }
  return longestMs;
}

/** What was written, in the order in which it happened. */
async function written(): Promise<number | undefined> {
  const [row] = await db.orm
    .select({ value: db.t.marks.value })
    .from(db.t.marks)
    .where(eq(db.t.marks.key, "a"));
  return row?.value;
}

/** Every way of writing, each a step further only if those before it were done. */
function ways() {
  const { marks } = db.t;
  const { orm } = db;
  const step = (from: number) =>
    orm
      .update(marks)
      .set({ value: from + 1 })
      .where(eq(marks.value, from));
  let bodies = 0;
  return {
    bodies: () => bodies,
    start: [
      () => step(0),
      () => step(1).returning({ value: marks.value }),
      () =>
        db.atomic(function* (tx) {
          bodies++;
          const [row] = yield* q(tx.select().from(marks).where(eq(marks.key, "a")));
          yield* q(tx.delete(marks).where(eq(marks.key, "a")));
          yield* q(tx.insert(marks).values({ key: "a", value: (row?.value ?? 0) + 1 }));
          return row?.value;
        }),
      () => orm.insert(marks).values({ key: "b", value: 1 }),
      () => orm.insert(marks).values({ key: "c", value: 1 }).onConflictDoNothing().returning(),
      () => orm.delete(marks).where(eq(marks.key, "b")).returning({ key: marks.key }),
      () => orm.delete(marks).where(eq(marks.key, "c")),
      () => step(3),
    ],
  };
}

test("writes of every kind wait beside the event loop, and are done in their order once the file is free", async () => {
  await hold();
  const { start, bodies } = ways();
  const done: number[] = [];
  const results: Promise<unknown>[] = [];
  for (const [index, way] of start.entries()) {
    results.push(Promise.resolve<unknown>(way()).finally(() => done.push(index)));
    // A query runs when it is awaited, an atomic block when it is called: each has its own turn here.
    await nextTurn();
  }
  const startedMs = performance.now();
  let reads = 0;
  const stretch = startStretch();
  const stallMs = await turnsUntil(() => {
    void written().then((value) => (reads += value === 0 ? 1 : 0));
    return performance.now() - startedMs > 500;
  });
  expect(stallMs).toBeLessThan(STALL_MS * stretch());
  expect(reads).toBeGreaterThan(10);
  expect(done).toEqual([]);
  await lock?.release();
  const told = await Promise.all(results);
  expect(done).toEqual(start.map((_, index) => index));
  expect(told[1]).toEqual([{ value: 2 }]);
  expect(told[2]).toBe(2);
  expect(told[4]).toEqual([{ key: "c", value: 1 }]);
  expect(told[5]).toEqual([{ key: "b" }]);
  expect(bodies()).toBe(1);
  expect(await written()).toBe(4);
});

test("whoever waited as long as anybody waits is refused in time with nothing done; the next write works", async () => {
  await hold();
  const { start, bodies } = ways();
  const refused: number[] = [];
  const stretch = startStretch();
  const startedMs = performance.now();
  for (const way of start)
    Promise.resolve(way()).then(
      () => refused.push(-1),
      (error: unknown) => refused.push(error instanceof DatabaseBusy ? performance.now() - startedMs : -2),
    );
  expect(await turnsUntil(() => refused.length === start.length)).toBeLessThan(STALL_MS * stretch());
  expect(Math.min(...refused)).toBeGreaterThanOrEqual(BUSY_MS);
  expect(Math.max(...refused)).toBeLessThan(BUSY_MS + 1000 * stretch());
  expect(db.client?.inTransaction).toBe(false);
  expect(bodies()).toBe(0);
  expect(await written()).toBe(0);
  await lock?.release();
  for (const way of ways().start) await way();
  expect(await written()).toBe(4);
  // The connection is as it was: the next one who meets a held file waits for a moment first.
  const look = db.client?.prepare<{ timeout: number }, []>("pragma busy_timeout");
  await turnsUntil(() => look?.get()?.timeout === SHORT_BUSY_MS);
}, 20_000);

test("who waited and fails fails alone: those behind are served, and no transaction stays open", async () => {
  await hold();
  const { marks } = db.t;
  const outcomes = [
    db.orm.insert(marks).values({ key: "a", value: 9 }),
    db.atomic(function* (tx) {
      yield* q(tx.update(marks).set({ value: 9 }));
      throw new Error("on second thoughts");
    }),
    db.orm.update(marks).set({ value: 1 }).returning({ value: marks.value }),
  ].map((work) =>
    Promise.resolve<unknown>(work).then(
      (value) => value,
      (error: unknown) => (isUniqueViolation(error) ? "not unique" : String(error)),
    ),
  );
  await lock?.release();
  expect(await Promise.all(outcomes)).toEqual(["not unique", "Error: on second thoughts", [{ value: 1 }]]);
  expect(db.client?.inTransaction).toBe(false);
});

test("a database that is closed lets those who wait come to their end first", async () => {
  await hold();
  const { marks } = db.t;
  const early = db.orm.update(marks).set({ value: 5 }).execute();
  // Begins with the next microtask, when the closing has looked at the line already.
  const late = Promise.resolve(db.orm.update(marks).set({ value: sql`${marks.value} + 1` }));
  const closed = db.close();
  await nextTurn();
  await lock?.release();
  await Promise.all([early, late, closed]);
  db = await connect({ dataDir: place.dataDir, databaseUrl: "" });
  expect(await written()).toBe(6);
});

test("a write of the turn in which the database is closed comes to its end", async () => {
  await hold();
  const late = Promise.resolve(db.orm.update(db.t.marks).set({ value: 7 }));
  const closed = db.close();
  await nextTurn();
  await lock?.release();
  await Promise.all([late, closed]);
  db = await connect({ dataDir: place.dataDir, databaseUrl: "" });
  expect(await written()).toBe(7);
});

test("a start that has nothing to change in the tables does not wait for whoever holds the file", async () => {
  await db.close();
  await hold();
  const startedMs = performance.now();
  db = await connect({ dataDir: place.dataDir, databaseUrl: "" });
  expect(await written()).toBe(0);
  expect(performance.now() - startedMs).toBeLessThan(BUSY_MS / 2);
  await lock?.release();
});

test("a command beside the server ends without waiting for who reads an older state, and keeps no writer out", async () => {
  const reader = new BunSqlite(join(place.dataDir, SQLITE_FILE), { readonly: true });
  reader.run("begin");
  reader.query("select count(*) from marks").get();
  const guest = await connectBeside({ dataDir: place.dataDir, databaseUrl: "" });
  await guest.orm.insert(guest.t.marks).values({ key: "guest", value: 1 });
  const startedMs = performance.now();
  await guest.close();
  // Folding the log away would wait for the reader, with every writer behind it.
  expect(performance.now() - startedMs).toBeLessThan(BUSY_MS / 2);
  await db.orm.insert(db.t.marks).values({ key: "server", value: 2 });
  reader.close();
  expect(await db.orm.select({ key: db.t.marks.key }).from(db.t.marks).orderBy(db.t.marks.key)).toEqual([
    { key: "a" },
    { key: "guest" },
    { key: "server" },
  ]);
});
