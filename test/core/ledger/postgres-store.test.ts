// Settlement on PostgreSQL through the local journal: several nodes, lost databases, lost answers, lost files.
// Refuses to look at SQLite's own path, which ledger-sqlite.test.ts covers.
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { eq, inArray, sql } from "drizzle-orm";
import postgres from "postgres";
import { openJournal, SET_ASIDE_FILE } from "../../../src/core/ledger/journal/journal.ts";
import type { LedgerItem } from "../../../src/core/ledger/items.ts";
import { findStorePosition } from "../../../src/core/ledger/node-lease.ts";
import { DeadlineExceeded } from "../../../src/core/kit/deadline.ts";
import { settlementRow } from "../../../src/core/logs/rows.ts";
import { takeSteps } from "../../../src/core/ledger/reservation-rows.ts";
import { q, rawQuery } from "../../../src/db/database.ts";
import type { Database } from "../../../src/db/database.ts";
import { openPostgres, postgresDatabase } from "../../../src/db/postgres.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { FORTY_DAYS_MS } from "../../support/clock.ts";
import { untilSo } from "../../support/turns.ts";
import { openBooks, requestId, settlement, silent, startBooks } from "./support.ts";
import type { Books, TestBooks } from "./support.ts";

const RICH = 1_000_000_000;

/** Another node's transaction that stands still with the account's row, until the function is called. */
async function lockElsewhere({ database }: TestBooks, userId: number): Promise<() => Promise<void>> {
  const other = postgres(database.databaseUrl ?? "", { max: 1, onnotice: () => {} });
  const [held, locked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = other.begin(async (tx) => {
    await tx`select 1 from users where id = ${userId} for update`;
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  return async () => {
    held.resolve();
    await holding;
    await other.end();
  };
}

/** Connections that wait for a row. */
async function lockWaits({ db }: Books): Promise<number> {
  const [row] = await rawQuery(
    db.orm,
    sql`select count(*)::int as n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return Number(row?.["n"]);
}

describe("two nodes on one PostgreSQL", () => {
  let a: TestBooks;
  let b: Books;

  beforeEach(async () => {
    a = await startBooks("postgres");
    b = await a.join("node-b");
    await a.addChannel();
  });
  afterEach(() => a.close());

  const holdOnB = async (userId: number) =>
    b.ledger.reserve({ requestId: requestId(), user: await b.user(userId), token: undefined, amount: 300 });

  test.each(["balance", "key"] as const)(
    "300 concurrent calls over both nodes against a %s for exactly 100: exactly 100 are let through",
    async (limit) => {
      const amount = 11;
      const owner = await a.addUser(limit === "balance" ? 100 * amount : RICH);
      const key = await a.addToken(owner, limit === "key" ? 100 * amount : undefined);
      const outcomes = await Promise.all(
        Array.from({ length: 300 }, async (_, index) => {
          const node = index % 2 === 0 ? a : b;
          try {
            const user = await node.user(owner.id);
            const token = await node.accounts.tokenByKey(key.name);
            if (!token) throw new Error("no token");
            const held = await node.ledger.reserve({ requestId: requestId(), user, token, amount });
            await held.settle(settlement(amount));
            return "paid";
          } catch (error) {
            if (error instanceof Failure) return error.code;
            throw error;
          }
        }),
      );
      expect(outcomes.filter((outcome) => outcome === "paid")).toHaveLength(100);
      await b.ledger.flush();
      await a.expectBalanced();
      await a.accounts.userChanged(owner.id);
      expect(owner).toMatchObject({ usedQuota: 1100, requestCount: 100, reserved: 0 });
    },
  );

  /** How often accounts and keys were announced. */
  async function announced(): Promise<unknown[]> {
    const { marks } = a.db.t;
    return a.db.orm
      .select()
      .from(marks)
      .where(inArray(marks.key, ["version:users", "version:tokens"]))
      .orderBy(marks.key);
  }

  test("what one node settles, credits or disables is in force on the other after its next look", async () => {
    const owner = await a.addUser(RICH);
    const other = await b.user(owner.id);
    await (
      await a.ledger.reserve({ requestId: requestId(), user: owner, token: undefined, amount: 10 })
    ).settle(settlement(400));
    await a.ledger.flush();
    // A look that is at it already may have read before; then it is the next one.
    const afterALook = (isSo: () => boolean) => untilSo(() => b.accounts.refresh().then(isSo));
    await afterALook(() => other.quota !== RICH);
    expect(other.quota).toBe(RICH - 400);
    const before = await announced();
    await a.ledger.atomic((_tx, credit) =>
      credit({ userId: owner.id, amount: 50, kind: "admin", ref: "given" }),
    );
    await afterALook(() => other.quota !== RICH - 400);
    expect([owner.quota, other.quota]).toEqual([RICH - 350, RICH - 350]);
    // An announcement is a change, of which memory must not decide in an outage.
    expect(await announced()).toEqual(before);
    const { users } = a.db.t;
    await a.db.orm.update(users).set({ status: 2 }).where(eq(users.id, owner.id));
    await afterALook(() => other.status === 2);
    expect(other.status).toBe(2);
  });

  /** Leases are measured on the database's clock: they grow older there. */
  async function leasesAge(seconds: number): Promise<void> {
    const { reservations } = a.db.t;
    await a.db.orm.update(reservations).set({ expiresAt: sql`${reservations.expiresAt} - ${seconds}` });
  }

  test("what was given back while a call waited, for its turn or for the row, counts before it is refused or cut", async () => {
    const cases = [
      { behind: 1, amount: 500, least: 10 },
      { behind: 0, amount: 500, least: 200 },
    ];
    for (const { behind, amount, least } of cases) {
      const poor = await a.addUser(1000);
      const ask = (wanted: number, most = wanted) =>
        a.ledger.reserve({
          requestId: requestId(),
          user: poor,
          token: undefined,
          amount: wanted,
          least: most,
        });
      const whole = await ask(900);
      const unlock = await lockElsewhere(a, poor.id);
      const before = Array.from({ length: behind }, () => ask(5));
      const late = ask(amount, least);
      await untilSo(async () => (await lockWaits(a)) === 1);
      const released = whole.release();
      await unlock();
      expect((await late).amount).toBe(amount);
      await Promise.all([released, ...before]);
    }
  });

  test("a node whose clock is set by forty days gives back nothing of another node", async () => {
    const owner = await a.addUser(1000);
    const held = await holdOnB(owner.id);
    for (const jumpMs of [FORTY_DAYS_MS, -2 * FORTY_DAYS_MS, FORTY_DAYS_MS]) {
      a.clock.jump(jumpMs);
      await a.ledger.maintain();
      await a.accounts.userChanged(owner.id);
      expect(owner.quota).toBe(700);
    }
    await held.release();
    await b.expectBalanced();
  });

  test("what a dead node held is given back when its lease ends, and a late settlement is charged in full", async () => {
    const owner = await a.addUser(1000);
    const key = await a.addToken(owner, 1000);
    const token = await b.accounts.tokenByKey(key.name);
    if (!token) throw new Error("no token");
    const { user } = token;
    const held = await b.ledger.reserve({ requestId: requestId(), user, token, amount: 300 });
    await leasesAge(400);
    await a.ledger.maintain();
    expect([owner.quota, key.remainQuota]).toEqual([1000, 1000]);
    await a.accounts.userChanged(owner.id);
    await a.accounts.tokenChanged(key.id);
    expect([owner.quota, key.remainQuota]).toEqual([700, 700]);
    await leasesAge(400);
    // Nobody has renewed it; its node lives.
    await a.ledger.maintain();
    expect([owner.quota, key.remainQuota]).toEqual([700, 700]);
    const { nodes } = a.db.t;
    await a.db.orm.update(nodes).set({ leaseUntil: 1 }).where(eq(nodes.nodeId, "node-b"));
    const before = await announced();
    await a.ledger.maintain();
    expect([owner.quota, key.remainQuota]).toEqual([1000, 1000]);
    expect(await announced()).toEqual(before);
    await held.settle(settlement(250));
    await b.expectBalanced();
    await a.accounts.userChanged(owner.id);
    expect(owner.quota).toBe(750);
  });

  test("a node that lives keeps its reservations beyond the first lease", async () => {
    const owner = await a.addUser(1000);
    const held = await holdOnB(owner.id);
    for (let round = 0; round < 4; round++) {
      await leasesAge(400);
      await b.ledger.maintain();
      await a.ledger.maintain();
    }
    await a.accounts.userChanged(owner.id);
    expect(owner.quota).toBe(700);
    await held.release();
    await b.expectBalanced();
  });
});

describe("journal of one node", () => {
  let books: TestBooks;
  /** What stands between the ledger and the database. */
  let fault: ((run: () => Promise<unknown>) => Promise<unknown>) | undefined;
  let transactions = 0;
  /** What the node logged above debug. */
  let told: string[] = [];

  function wrap(db: Database): Database {
    return {
      ...db,
      atomic: (body, way) => {
        transactions++;
        const run = () => db.atomic(body, way);
        return (fault ? fault(run) : run()) as ReturnType<typeof db.atomic<never>>;
      },
    };
  }

  async function spend(node: Books, userId: number, quota: number): Promise<void> {
    const user = await node.user(userId);
    const held = await node.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
    await held.settle(settlement(quota));
  }

  function reopen(): Promise<Books> {
    return openBooks({
      dataDir: books.dataDir,
      databaseUrl: books.database.databaseUrl,
      clock: books.clock,
      wrap,
    });
  }

  beforeEach(async () => {
    fault = undefined;
    told = [];
    const tell = (level: string) => (text: string) => void told.push(`${level}: ${text}`);
    const logger = { ...silent, info: tell("info"), warn: tell("warn"), error: tell("error") };
    books = await startBooks("postgres", { wrap, databaseWaitMs: 500, logger });
    await books.addChannel();
  });

  test("calls one after another are brought in together and soon, without anybody asking", async () => {
    const user = await books.addUser(RICH);
    await books.ledger.flush();
    transactions = 0;
    for (let call = 0; call < 20; call++) await spend(books, user.id, 7);
    await untilSo(() => books.ledger.backlog() === 0);
    expect(transactions).toBeLessThan(10);
    expect(user).toMatchObject({ quota: RICH - 140, usedQuota: 140, requestCount: 20, reserved: 0 });
    await books.expectBalanced();
    await books.close();
  });

  test("while the database is away calls are settled and nothing is lost; it gets them when it is back", async () => {
    const rich = await books.addUser(RICH);
    const poor = await books.addUser(100);
    const url = new URL(books.database.databaseUrl ?? "");
    const name = url.pathname.slice(1);
    url.pathname = "/postgres";
    const admin = postgres(url.href, { max: 1, onnotice: () => {} });
    await admin.unsafe(`alter database ${name} allow_connections false`);
    await admin.unsafe(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);

    transactions = 0;
    for (let call = 0; call < 60; call++) await spend(books, rich.id, 7);
    await books.ledger.flush();
    expect(books.ledger.backlog()).toBe(60);
    // Retries are timed, not one per settlement.
    expect(transactions).toBeLessThan(30);
    expect(rich).toMatchObject({ quota: RICH, reserved: 420 });
    const refused: unknown = await Promise.resolve(
      books.ledger.reserve({ requestId: requestId(), user: poor, token: undefined, amount: 5 }),
    ).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "ledger_down", status: 503 });
    expect(poor.reserved).toBe(0);

    await admin.unsafe(`alter database ${name} allow_connections true`);
    await books.expectBalanced();
    expect(rich).toMatchObject({ quota: RICH - 420, usedQuota: 420, requestCount: 60, reserved: 0 });
    await admin.end();
    await books.close();
  });

  test("a commit whose answer was lost is not applied a second time", async () => {
    const user = await books.addUser(RICH);
    const token = await books.addToken(user, RICH);
    fault = async (run) => {
      fault = undefined;
      await run();
      throw Object.assign(new Error("connection closed"), { code: "CONNECTION_CLOSED" });
    };
    for (const call of [1, 2]) {
      const held = await books.ledger.reserve({ requestId: `lost-${call}`, user, token, amount: 5 });
      await held.settle(settlement(9));
    }
    const read = spyOn(books.accounts, "tokenCharged");
    await books.ledger.flush();
    await books.expectBalanced();
    expect(read).toHaveBeenCalledWith(token.id);
    read.mockRestore();
    await untilSo(() => token.remainQuota === RICH - 18);
    expect(token).toMatchObject({ usedQuota: 18, reserved: 0, pending: 0 });
    expect(user).toMatchObject({ quota: RICH - 18, requestCount: 2, reserved: 0 });
    await books.close();
  });

  test.each(["CONNECTION_CLOSED", "ETIMEDOUT", "EHOSTUNREACH"])(
    "a hold near zero whose commit was not answered (%s) is held once",
    async (code) => {
      const user = await books.addUser(100);
      fault = async (run) => {
        fault = undefined;
        await run();
        throw Object.assign(new Error("it broke"), { code });
      };
      const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
      await books.ledger.flush();
      const { reservations } = books.db.t;
      const rows = await books.db.orm.select({ amount: reservations.amount }).from(reservations);
      expect(rows).toEqual([{ amount: 5 }]);
      await held.settle(settlement(5));
      await books.expectBalanced();
      await books.close();
    },
  );

  test("a start whose database goes away behind its connection waits until it is back", async () => {
    await books.ledger.close();
    let failures = 2;
    const away = (db: Database): Database => ({
      ...wrap(db),
      t: new Proxy(db.t, {
        get(tables, name) {
          if (name === "rollupDays" && failures-- > 0)
            throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
          return Reflect.get(tables, name) as unknown;
        },
      }),
    });
    const { dataDir, clock, database } = books;
    const again = await openBooks({ dataDir, databaseUrl: database.databaseUrl, clock, wrap: away });
    expect(failures).toBeLessThan(0);
    await again.close();
  });

  test("a batch is one statement; where its function is gone it is made anew, and where the database takes none batches travel as before", async () => {
    const user = await books.addUser(RICH);
    const named = sql`select proname as name from pg_proc where proname like 'enter_batch_%'`;
    const functions = async () => (await rawQuery(books.db.orm, named)).map((row) => String(row["name"]));
    const entered = async (): Promise<number> => {
      const before = transactions;
      await spend(books, user.id, 9);
      await books.ledger.flush();
      await books.expectBalanced();
      return transactions - before;
    };
    const [name = ""] = await functions();
    const drop = () => rawQuery(books.db.orm, sql.raw(`drop function ${name}`));
    expect(name).toMatch(/^enter_batch_/);
    await drop();
    // The try that finds it gone, and the same batch step by step.
    expect(await entered()).toBe(2);
    expect(await functions()).toEqual([]);
    // It is made, and used.
    expect(await entered()).toBe(2);
    expect(await functions()).toEqual([name]);
    expect(await entered()).toBe(1);
    await drop();
    await entered();
    fault = () => {
      fault = undefined;
      return Promise.reject(Object.assign(new Error("permission denied for schema"), { code: "42501" }));
    };
    await entered();
    expect(await entered()).toBe(1);
    expect(await functions()).toEqual([]);
    expect(told.filter((line) => line.includes("takes no function"))).toHaveLength(1);
    await books.accounts.userChanged(user.id);
    expect(user).toMatchObject({ quota: RICH - 54, requestCount: 6, reserved: 0 });
    await books.close();
  });

  test("a try that was given up and runs after all applies nothing", async () => {
    const user = await books.addUser(RICH);
    let late: (() => Promise<unknown>) | undefined;
    fault = (run) => {
      fault = undefined;
      late = run;
      return Promise.reject(new Error("no answer"));
    };
    await spend(books, user.id, 9);
    await books.ledger.flush();
    await books.expectBalanced();
    const outcome = await Promise.allSettled([late?.()]);
    expect(outcome[0].status).toBe("rejected");
    await books.accounts.userChanged(user.id);
    expect(user).toMatchObject({ quota: RICH - 9, requestCount: 1, reserved: 0 });
    await books.close();
  });

  test("what waits in the journal is applied at the next start; an old copy of the file applies nothing twice", async () => {
    const user = await books.addUser(RICH);
    fault = () => Promise.reject(Object.assign(new Error("away"), { code: "ECONNREFUSED" }));
    for (let call = 0; call < 5; call++) await spend(books, user.id, 10);
    await books.ledger.flush();
    expect(books.ledger.backlog()).toBe(5);
    await books.ledger.close();
    fault = undefined;
    const file = join(books.dataDir, "journal-1.log");
    copyFileSync(file, `${file}.copy`);

    const second = await reopen();
    expect((await second.user(user.id)).quota).toBe(RICH - 50);
    await second.expectBalanced();
    await second.close();

    copyFileSync(`${file}.copy`, file);
    const third = await reopen();
    expect((await third.user(user.id)).quota).toBe(RICH - 50);
    await spend(third, user.id, 1);
    await third.expectBalanced();
    expect((await third.user(user.id)).quota).toBe(RICH - 51);
    await third.close();

    rmSync(file);
    const fourth = await reopen();
    await spend(fourth, user.id, 1);
    await fourth.expectBalanced();
    expect((await fourth.user(user.id)).quota).toBe(RICH - 52);
    await fourth.close();
    await books.database.drop();
  });

  test("a burst of calls near zero waits for its row with one connection, and leaves the others to everybody else", async () => {
    const poor = await books.addUser(1000);
    const url = books.database.databaseUrl ?? "";
    const other = postgres(url, { max: 2, onnotice: () => {} });
    const held = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const holding = other.begin(async (tx) => {
      await tx`select 1 from users where id = ${poor.id} for update`;
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    const calls = Array.from({ length: 30 }, async () =>
      books.ledger.reserve({ requestId: requestId(), user: poor, token: undefined, amount: 5 }),
    );
    const outcomes = Promise.allSettled(calls);
    const waiting = async () => {
      const rows = await other`select pid from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return rows.length;
    };
    await untilSo(async () => (await waiting()) > 0);
    // More of them would be there by now: all thirty have asked.
    expect(await waiting()).toBe(1);
    held.resolve();
    await holding;
    // Whoever found no turn in time was told so, and nothing stays behind for those who come next.
    const codes = (await outcomes).map((each) => (each.status === "fulfilled" ? "held" : each.reason.code));
    expect(codes.filter((code) => code !== "held" && code !== "ledger_down")).toEqual([]);
    await spend(books, poor.id, 5);
    await other.end();
    await books.close();
  });

  test("a row that another node holds without end keeps a connection no longer than the call waits for it", async () => {
    const poor = await books.addUser(1000);
    const unlock = await lockElsewhere(books, poor.id);
    const call = books.ledger.reserve({ requestId: requestId(), user: poor, token: undefined, amount: 5 });
    const refused = Promise.resolve(call).catch((error: Failure) => error.code);
    await untilSo(async () => (await lockWaits(books)) === 1);
    expect(await refused).toBe("ledger_down");
    await untilSo(async () => (await lockWaits(books)) === 0);
    expect(await lockWaits(books)).toBe(0);
    await unlock();
    // Nor does a session that was told nothing when it was opened hold the row of others longer than they wait.
    const unguarded = postgresDatabase(openPostgres(books.database.databaseUrl ?? "", 1));
    const limit = await unguarded.atomic(function* (tx) {
      const step = { row: { key: "k", amount: 0, userId: poor.id, tokenId: 0 }, more: 1, least: 1 };
      const held = { user: 0, token: 0, applied: 0, writtenAt: 0, leftMs: 10_000 };
      yield* takeSteps(tx, "node-z", step, { user: poor, limited: undefined }, held);
      const [row] = yield* q(
        rawQuery(tx, sql`select current_setting('idle_in_transaction_session_timeout') as limit`),
      );
      return row?.["limit"];
    });
    expect(limit).toBe("8s");
    await unguarded.close();
    await books.close();
  });

  test.each(["its mark", "its row alone"])(
    "a database that was set back, as %s tells, pays no call near zero with what was spent since",
    async (tells) => {
      const poor = await books.addUser(1000);
      await books.ledger.flush();
      const { nodes, users } = books.db.t;
      const [node] = await books.db.orm.select().from(nodes);
      await spend(books, poor.id, 900);
      await books.ledger.flush();
      // Before the node's own look, which comes once a second.
      await books.db.atomic(function* (tx) {
        const older =
          tells === "its mark" ? { mark: node?.mark ?? 0 } : { updatedAt: sql`${nodes.updatedAt} - 9` };
        yield* q(tx.update(nodes).set(older));
        yield* q(tx.update(users).set({ quota: 1000 }).where(eq(users.id, poor.id)));
      });
      const call = books.ledger.reserve({
        requestId: requestId(),
        user: poor,
        token: undefined,
        amount: 500,
      });
      expect(await Promise.resolve(call).catch((error: Failure) => error.code)).toBe("ledger_down");
      if (tells === "its mark") await untilSo(() => poor.quota === 100 && poor.reserved === 0);
      await books.close();
    },
    20_000,
  );

  test("a start whose entries find no turn in time tries again, and does not end", async () => {
    const user = await books.addUser(RICH);
    fault = () => Promise.reject(Object.assign(new Error("away"), { code: "ECONNREFUSED" }));
    for (let call = 0; call < 5; call++) await spend(books, user.id, 10);
    await books.ledger.flush();
    await books.ledger.close();
    let refusals = 0;
    fault = (run) => {
      if (++refusals > 2) fault = undefined;
      return refusals > 2 ? run() : Promise.reject(new DeadlineExceeded(500));
    };
    const second = await reopen();
    expect([refusals, (await second.user(user.id)).quota]).toEqual([3, RICH - 50]);
    await second.expectBalanced();
    await second.close();
    await books.database.drop();
  });

  test("what a run of this node held when it died is given back at its next start", async () => {
    const user = await books.addUser(100);
    const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 60 });
    await books.ledger.close();
    // Too late for the journal, and said in a sentence; nothing is lost by it.
    await held.release().catch(() => undefined);
    expect(told).toContain(
      "info: the process has ended: the next start of this node gives back what a call had reserved",
    );
    expect(told.filter((text) => text.startsWith("error"))).toEqual([]);
    const second = await reopen();
    expect((await second.user(user.id)).quota).toBe(100);
    await second.expectBalanced();
    await second.close();
    await books.database.drop();
  });

  test("an entry that the database refuses for its content is set aside and does not hold up the others", async () => {
    const user = await books.addUser(RICH);
    await spend(books, user.id, 1);
    await books.ledger.close();
    const position = await findStorePosition(books.db, "node-a");
    if (!position) throw new Error("no books");
    const journal = openJournal<LedgerItem>(books.dataDir, silent);
    journal.resume(position);
    const row = (content: string) => ({
      ...settlementRow("r", user, undefined, settlement(4), books.clock.nowMs()),
      content,
    });
    journal.append([{ row: row("good") }, { row: row("good") }, { row: row("b\0ad") }]);
    journal.close();
    const second = await reopen();
    expect((await second.user(user.id)).quota).toBe(RICH - 9);
    await second.close();
    const third = await reopen();
    // A second line would not parse: the entry is met once.
    expect(JSON.parse(readFileSync(join(books.dataDir, SET_ASIDE_FILE), "utf8"))).toMatchObject({
      position: 4,
      item: { row: { content: "b\0ad", quota: 4 } },
    });
    await spend(third, user.id, 1);
    await third.expectBalanced();
    await third.close();
    await books.database.drop();
  });
});
