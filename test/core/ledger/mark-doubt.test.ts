// What is done when a node's mark is in doubt: a fall of the database is told once, whoever finds it, and a look that fails
// stops no call for good. Refuses a server that falls back: the row is set back, test/core/ledger/fallback.test.ts has one.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import type { LedgerItem } from "../../../src/core/ledger/items.ts";
import { openJournal } from "../../../src/core/ledger/journal/journal.ts";
import { isRenewable, takeLease } from "../../../src/core/ledger/node-lease.ts";
import type { NodeLease } from "../../../src/core/ledger/node-lease.ts";
import { createPostgresApplier } from "../../../src/core/ledger/postgres-apply.ts";
import type { Fall } from "../../../src/core/ledger/postgres-apply.ts";
import { createPostgresStore } from "../../../src/core/ledger/postgres-store.ts";
import { untilSo } from "../../support/turns.ts";
import { silent, startBooks } from "./support.ts";
import type { TestBooks } from "./support.ts";

const NODE = "node-doubt";

let books: TestBooks;
let dataDir: string;
let lease: NodeLease;

beforeAll(async () => {
  books = await startBooks("postgres");
  dataDir = mkdtempSync(join(tmpdir(), "weir-doubt-"));
  const { db, clock } = books;
  await db.orm
    .insert(db.t.nodes)
    .values({ nodeId: NODE, history: "00112233445566aa", mark: 5, journaled: 5, entered: 5 });
  lease = await takeLease({ db, clock, logger: silent, nodeId: NODE, dataDir });
}, 60_000);
afterAll(async () => {
  await lease.release();
  await books.close();
  rmSync(dataDir, { recursive: true, force: true });
}, 60_000);

const deps = (falls: Fall[]) => ({
  db: books.db,
  clock: books.clock,
  logger: silent,
  accounts: books.accounts,
  databaseWaitMs: 5000,
  fellBack: (fall: Fall) => void falls.push(fall),
});

async function setBack(mark: number): Promise<void> {
  const { nodes } = books.db.t;
  await books.db.orm
    .update(nodes)
    .set({ mark, updatedAt: sql`${nodes.updatedAt} - 100` })
    .where(eq(nodes.nodeId, NODE));
}

test("a look at the mark that fails is made again, and calls are taken when it succeeds", async () => {
  let looks = 0;
  let tell = (_mark: number, _isOlder: boolean) => {};
  const falls: Fall[] = [];
  const journal = openJournal<LedgerItem>(dataDir, silent);
  const store = createPostgresStore({
    ...deps(falls),
    journal,
    lease: {
      ...lease,
      look: () => (++looks === 1 ? Promise.reject(new Error("connection closed")) : Promise.resolve(5)),
      watchMark: (listener) => (tell = listener),
      takeOlder: () => falls.length === 0,
    },
  });
  await store.start();
  tell(5, true);
  await untilSo(() => store.isFailing());
  await untilSo(() => looks === 2 && !store.isFailing());
  expect(falls).toEqual([{ from: 6, to: 5, isReplayed: true }]);
  store.close();
  journal.close();
}, 20_000);

test("who waits for an entry is told when the lease is lost meanwhile, and nothing is tried any more", async () => {
  let isHeld = true;
  let looks = 0;
  const journal = openJournal<LedgerItem>(dataDir, silent);
  const store = createPostgresStore({
    ...deps([]),
    db: { ...books.db, atomic: () => Promise.reject(new Error("connection closed")) },
    journal,
    lease: {
      ...lease,
      look: () => Promise.resolve(5),
      watchMark: () => {},
      get isHeld() {
        if (!isHeld && ++looks > 100) throw new Error("asked without end");
        return isHeld;
      },
    },
  });
  await store.start();
  journal.append([{}]);
  const waited = store.whenApplied(journal.lastPosition);
  await untilSo(() => store.isFailing());
  isHeld = false;
  expect(await waited).toBe(false);
  store.close();
  journal.close();
}, 20_000);

test("a fall that a batch finds is told once, with what it lacks; one that lacks nothing as well", async () => {
  const falls: Fall[] = [];
  const journal = { rewind() {}, lastPosition: 6 } as never;
  const applier = createPostgresApplier({ ...deps(falls), journal, lease });
  await applier.start(5);
  await setBack(3);
  await applier.apply([{ position: 6, item: {} }]);
  const fall = { from: 4, to: 5, isReplayed: true };
  expect(falls).toEqual([fall]);
  // The lease's own round found the same.
  await applier.checkMark();
  expect(falls).toEqual([fall]);
  await setBack(3);
  await applier.checkMark();
  await applier.checkMark();
  expect(falls).toEqual([fall, { from: 4, to: 3, isReplayed: true }]);
}, 20_000);

test("of two looks at once at an older row both answer with its mark, one of them writes it again, and the lease is kept", async () => {
  const { db } = books;
  const { nodes } = db.t;
  const { incarnation } = lease;
  for (let round = 0; round < 5; round++) {
    await db.orm
      .update(nodes)
      .set({ incarnation: incarnation - 1, updatedAt: sql`${nodes.updatedAt} - 100`, mark: round })
      .where(eq(nodes.nodeId, NODE));
    expect(await Promise.all([lease.look(), lease.look(), lease.look()])).toEqual([round, round, round]);
    expect([lease.isHeld, lease.takeOlder()]).toEqual([true, true]);
    const [row] = await db.orm.select({ is: nodes.incarnation }).from(nodes).where(eq(nodes.nodeId, NODE));
    expect(row?.is).toBe(incarnation);
  }
}, 20_000);

test("a renewal does not set a row back that its successor wrote; a clock that was set back hinders none", async () => {
  const { db } = books;
  const { nodes } = db.t;
  const isRenewed = async (updatedAt: number, now: number) => {
    await db.orm.insert(nodes).values({ nodeId: "row", history: "00112233445566bb", updatedAt });
    const condition = isRenewable({ db, now: sql<number>`${now}::bigint` }, 100);
    const rows = await db.orm.select({ id: nodes.nodeId }).from(nodes).where(condition);
    await db.orm.delete(nodes).where(eq(nodes.nodeId, "row"));
    return rows.some(({ id }) => id === "row");
  };
  expect(await isRenewed(105, 102)).toBe(false);
  expect(await isRenewed(105, 110)).toBe(true);
  expect(await isRenewed(100, 40)).toBe(true);
  expect(await isRenewed(99, 110)).toBe(false);
}, 20_000);
