// One process at a time moves a node's mark: copies of a data directory, older databases, and what waits above the mark.
// Refuses to wait for real leases: a short one is given where its end matters.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { frameOf } from "../../../src/core/ledger/journal/frames.ts";
import { settlementRow } from "../../../src/core/logs/rows.ts";
import { NodeTaken, LeaseLost, takeLease } from "../../../src/core/ledger/node-lease.ts";
import { connect } from "../../../src/db/connect.ts";
import { createTestDatabase, createPostgresDatabase, DATABASE_KINDS } from "../../support/postgres.ts";
import { handTurned } from "../../support/rest.ts";
import { startServerProcess } from "../../support/server.ts";
import { untilSo } from "../../support/turns.ts";
import { MIGRATED, openBooks, requestId, settlement, silent, startBooks } from "./support.ts";
import type { Books, TestBooks } from "./support.ts";

const RICH = 1_000_000_000;

async function spend(node: Books, userId: number, quota: number): Promise<void> {
  const user = await node.user(userId);
  const held = await node.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
  await held.settle(settlement(quota));
}

const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("a node's lease on PostgreSQL", () => {
  let books: TestBooks;
  let elsewhere: string;
  beforeEach(async () => {
    books = await startBooks("postgres");
    await books.addChannel();
    elsewhere = mkdtempSync(join(tmpdir(), "weir-copy-"));
  });
  afterEach(async () => {
    rmSync(elsewhere, { recursive: true, force: true });
    await books.close();
  });

  const leaseDeps = (dataDir: string) => ({
    db: books.db,
    logger: silent,
    clock: books.clock,
    nodeId: "node-a",
    dataDir,
  });

  test("a copy of the directory waits the lease out, and is refused when it was renewed meanwhile", async () => {
    const { nodes } = books.db.t;
    const renewed = takeLease({
      ...leaseDeps(elsewhere),
      async pause() {
        await books.db.orm.update(nodes).set({ leaseUntil: 4_000_000_000 }).where(eq(nodes.nodeId, "node-a"));
      },
    });
    const error = await errorOf(renewed);
    expect(error).toBeInstanceOf(NodeTaken);
    expect(String(error)).toMatch(/node-a.*running elsewhere.*DATA_DIR of its own.*delete node.id/);
    // The first goes on as if nothing had been.
    const user = await books.addUser(RICH);
    await spend(books, user.id, 7);
    await books.expectBalanced();
  });

  test("a copy takes the lease of a node that renews no more; a node that lost it answers nothing more", async () => {
    const user = await books.addUser(RICH);
    await spend(books, user.id, 7);
    await books.ledger.flush();
    let looks = 0;
    const lease = await takeLease({
      ...leaseDeps(elsewhere),
      leaseSeconds: 1,
      async pause() {
        looks++;
        await Bun.sleep(50);
      },
    });
    // How often a slow machine looks in a second or two is its own affair: not at once.
    expect(looks).toBeGreaterThan(1);
    expect(lease.position.mark).toBe(1);
    // Its next batch, or its next renewal, tells the first.
    const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
    await spend(books, user.id, 7);
    const begun = performance.now();
    let failure: unknown;
    while (!failure && performance.now() - begun < 5000) {
      await books.ledger.flush();
      try {
        await (
          await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 })
        ).release();
      } catch (error) {
        failure = error;
      }
    }
    expect(failure).toMatchObject({ code: "ledger_down", status: 503 });
    // Nor is a call answered that was running.
    expect(await errorOf(held.settle(settlement(7)))).toMatchObject({ code: "ledger_down" });
    await lease.release();
  });

  test("a process that was frozen, with its machine or alone, asks whose the lease is before it answers anything", async () => {
    const user = await books.addUser(RICH);
    const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
    books.clock.advance(60_000);
    await spend(books, user.id, 7);
    await books.ledger.flush();
    const lease = await takeLease({ ...leaseDeps(elsewhere), leaseSeconds: 0, pause: () => Bun.sleep(50) });
    books.clock.advance(60_000);
    expect(await errorOf(held.settle(settlement(7)))).toMatchObject({ code: "ledger_down" });
    expect(lease.position.mark).toBe(1);
    await lease.release();
  });

  test("a process that rests renews as often as any other, and the first call after a rest finds that its node id was taken", async () => {
    const hand = handTurned();
    const { nodes } = books.db.t;
    const own = eq(nodes.nodeId, "node-r");
    const deps = { ...leaseDeps(elsewhere), nodeId: "node-r", lookEvery: hand.around.lookEvery };
    const lease = await takeLease(deps);
    let looks = 0;
    lease.watchMark(() => looks++);
    /** Whether a look that comes so long after the one before renews. */
    async function renews(dueMs: number): Promise<boolean> {
      await books.db.orm.update(nodes).set({ leaseUntil: 7 }).where(own);
      const before = looks;
      hand.look(dueMs);
      await untilSo(() => looks > before);
      const [row] = await books.db.orm.select({ until: nodes.leaseUntil }).from(nodes).where(own);
      return row?.until !== 7;
    }
    const inUse = [];
    for (let second = 1; second <= 10; second++) inUse.push(await renews(1000));
    expect(inUse).toEqual([4, 9].reduce((all, at) => all.with(at, true), Array<boolean>(10).fill(false)));
    expect([await renews(5000), await renews(5000)]).toEqual([true, true]);
    hand.rest();
    await books.db.orm.update(nodes).set({ incarnation: 99, place: "elsewhere" }).where(own);
    expect(lease.isHeld).toBe(true);
    hand.around.use();
    await untilSo(() => !lease.isHeld);
    await lease.release();
  });

  test("whoever has the same directory takes over at once, and after a clean end everybody does", async () => {
    const pause = () => Promise.reject(new Error("it waited"));
    const place = books.dataDir;
    const second = await takeLease({ ...leaseDeps(place), pause });
    const third = await takeLease({ ...leaseDeps(place), pause });
    expect(third.incarnation).toBe(second.incarnation + 1);
    expect(await errorOf(second.look())).toBeInstanceOf(LeaseLost);
    expect([second.isHeld, third.isHeld]).toEqual([false, true]);
    await third.release();
    await (await takeLease({ ...leaseDeps(elsewhere), pause })).release();
  });

  test("a database that was set back while the node runs gets everything again, once", async () => {
    const user = await books.addUser(RICH);
    await spend(books, user.id, 7);
    await books.ledger.flush();
    const { nodes, users, channels, rollups, logs } = books.db.t;
    const { rollupsByModel, rollupsByUser, rollupsByUserModel, rollupsByChannel, rollupsByToken } =
      books.db.t;
    const coarse = [
      rollupsByModel,
      rollupsByUser,
      rollupsByUserModel,
      rollupsByChannel,
      rollupsByToken,
    ] as const;
    const tables = [users, channels, rollups, ...coarse, logs, nodes] as const;
    const before = await Promise.all(tables.map((table) => books.db.orm.select().from(table)));
    for (let call = 0; call < 5; call++) await spend(books, user.id, 7);
    await books.ledger.flush();
    await books.db.atomic(function* (tx) {
      for (const [index, table] of tables.entries()) {
        yield tx.delete(table) as never;
        const old = before[index] ?? [];
        if (old.length > 0) yield tx.insert(table).values(old as never) as never;
      }
    });
    for (let call = 0; call < 2; call++) await spend(books, user.id, 7);
    await books.expectBalanced();
    expect(await books.db.orm.select({ usedQuota: users.usedQuota }).from(users)).toEqual([
      { usedQuota: 56 },
    ]);
    expect(await books.db.orm.select({ mark: nodes.mark, entered: nodes.entered }).from(nodes)).toEqual([
      { mark: 8, entered: 8 },
    ]);
  });
});

describe.each(DATABASE_KINDS)("a node's row and files on %s", (kind) => {
  test("what waits above the mark is entered once, and the counts add up", async () => {
    const database = await createTestDatabase(kind, MIGRATED);
    const place = { dataDir: database.dataDir, databaseUrl: database.databaseUrl };
    const first = await openBooks({ ...place, nodeId: "another" });
    await first.addChannel();
    const user = await first.addUser(1000);
    await first.close();
    const before = await connect({ dataDir: place.dataDir, databaseUrl: place.databaseUrl ?? "" });
    const history = "00112233445566aa";
    await before.orm
      .insert(before.t.nodes)
      .values({ nodeId: "node-a", history, mark: 12, journaled: 12, entered: 12 });
    await before.close();
    const item = (name: string) => ({
      row: settlementRow(name, user, undefined, settlement(10), Date.now()),
    });
    const frame = (position: number, items: unknown[]) => frameOf(history, position, items);
    writeFileSync(
      join(place.dataDir, "journal-1.log"),
      Buffer.concat([frame(11, [item("k"), item("l")]), frame(13, [item("m")]), frame(14, [item("n")])]),
    );
    for (let start = 0; start < 2; start++) {
      const books = await openBooks(place);
      expect(await books.user(user.id)).toMatchObject({ quota: 980, requestCount: 2 });
      await books.expectBalanced();
      const { nodes } = books.db.t;
      const [row] = await books.db.orm.select().from(nodes).where(eq(nodes.nodeId, "node-a"));
      expect(row).toMatchObject({ mark: 14, journaled: 14, entered: 14, setAside: 0, skipped: 0 });
      // A count that is off is a difference.
      await books.db.orm.update(nodes).set({ entered: 13 }).where(eq(nodes.nodeId, "node-a"));
      expect((await audit(books.db)).differences).toEqual([
        { what: "nodes.mark", id: "node-a", expected: 13, found: 14 },
      ]);
      await books.db.orm.update(nodes).set({ entered: 14, journaled: 17 }).where(eq(nodes.nodeId, "node-a"));
      expect(await audit(books.db)).toMatchObject({
        differences: [],
        waiting: [{ nodeId: "node-a", count: 3 }],
        skipped: [],
      });
      await books.db.orm.update(nodes).set({ journaled: 14 }).where(eq(nodes.nodeId, "node-a"));
      await books.close();
    }
    await database.drop();
  });
});

test("a copied data directory does not start beside the node it was copied from, and says why", async () => {
  const database = await createPostgresDatabase();
  const node = await startServerProcess({ DATABASE_URL: database.url });
  const copy = mkdtempSync(join(tmpdir(), "weir-copy-"));
  cpSync(node.dataDir, copy, { recursive: true });
  const second = node.run([], { DATA_DIR: copy, PORT: "0" });
  expect(second.code).toBe(1);
  expect(second.text).toMatch(
    /weir cannot start: the node id [0-9a-f]{16} of .* belongs to a process that is running/,
  );
  expect((await fetch(`${node.url}/api/status`)).status).toBe(200);
  await node.stop();
  // A clean end lets go of the id.
  const moved = node.run(["journal", "check"], { DATA_DIR: copy });
  expect([moved.code, moved.text]).toEqual([0, expect.stringContaining("books have everything") as string]);
  rmSync(copy, { recursive: true });
  await node.remove();
  await database.drop();
}, 60_000);
