// DURABILITY=database on a real PostgreSQL behind a line that is cut: when a settlement's promise resolves, what an outage
// refuses, and what becomes of a call that it meets on its way. Refuses to fake the outage.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { connect } from "../../../src/db/connect.ts";
import type { Database } from "../../../src/db/database.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { startSwitchTo } from "../../support/tcp-switch.ts";
import type { TcpSwitch } from "../../support/tcp-switch.ts";
import { untilSo } from "../../support/turns.ts";
import { MIGRATED, openBooks, requestId, settlement, startBooks } from "./support.ts";
import type { Books } from "./support.ts";
import { startStretch } from "../../support/stretch.ts";

const RICH = 1_000_000_000;
const WAIT_MS = 1500;

async function reserve(books: Books, userId: number, amount = 5) {
  const user = await books.user(userId);
  return books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount });
}

const failureOf = (asked: Promise<unknown>) =>
  asked.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("answers that wait for the database", () => {
  let database: TestDatabase;
  let link: TcpSwitch & { url: string };
  let books: Books;
  /** Past the line that is cut. */
  let direct: Database;
  let userId = 0;

  beforeEach(async () => {
    database = await createTestDatabase("postgres", MIGRATED);
    link = await startSwitchTo(database.databaseUrl ?? "");
    direct = await connect({ dataDir: database.dataDir, databaseUrl: database.databaseUrl ?? "" });
    books = await openBooks({
      databaseUrl: link.url,
      dataDir: database.dataDir,
      durability: "database",
      databaseWaitMs: WAIT_MS,
    });
    await books.addChannel();
    userId = (await books.addUser(RICH)).id;
  });
  afterEach(async () => {
    await link.restore();
    await books.close();
    await direct.close();
    await link.stop();
    await database.drop();
  });

  const rowsThere = async () => (await direct.orm.select().from(direct.t.logs)).length;

  test("a settlement resolves when its row is there for everybody, alone and many at once", async () => {
    for (let call = 1; call <= 3; call++) {
      await (await reserve(books, userId)).settle(settlement(7));
      expect(await rowsThere()).toBe(call);
    }
    const held = await Promise.all(Array.from({ length: 40 }, () => reserve(books, userId)));
    const seen = await Promise.all(
      held.map(async (each) => {
        await each.settle(settlement(7));
        const rows = await direct.orm.select({ id: direct.t.logs.requestId }).from(direct.t.logs);
        return rows.some(({ id }) => id === each.requestId);
      }),
    );
    expect(seen).not.toContain(false);
    expect(books.ledger.lag()).toMatchObject({ waiting: 0, early: 0 });
    await books.expectBalanced();
  });

  test("in an outage every call is refused, free ones too, and nothing is held or charged; afterwards it is served", async () => {
    for (const end of ["cut", "hold"] as const) {
      await link[end]();
      // The last word of the database may be two seconds old before it is asked again.
      let failure: unknown;
      await untilSo(async () => {
        const asked = reserve(books, userId, 0);
        failure = await failureOf(asked);
        if (!failure) await (await asked).release();
        return failure !== undefined;
      });
      expect(failure).toMatchObject({ code: "database_down", status: 503, retryAfterSeconds: 2 });
      expect(await failureOf(reserve(books, userId))).toMatchObject({ code: "database_down", status: 503 });
      expect(await books.user(userId)).toMatchObject({ quota: RICH, reserved: 0, pending: 0 });
      await link.restore();
      await untilSo(async () => {
        const asked = reserve(books, userId);
        const isRefused = (await failureOf(asked)) !== undefined;
        if (!isRefused) await (await asked).release();
        return !isRefused;
      });
    }
    await books.expectBalanced();
  }, 30_000);

  test("a call that the outage meets is held while it is young, then answered; the journal brings it in, once", async () => {
    const held = await Promise.all(Array.from({ length: 3 }, () => reserve(books, userId)));
    await link.cut();
    const stretch = startStretch();
    const begun = performance.now();
    await Promise.all(held.map((each) => each.settle(settlement(7))));
    const tookMs = performance.now() - begun;
    expect(tookMs).toBeGreaterThan(WAIT_MS / 3);
    expect(tookMs).toBeLessThan(WAIT_MS + 1000 * stretch());
    expect(await rowsThere()).toBe(0);
    expect(books.ledger.lag()).toMatchObject({ waiting: 3, early: 3 });
    await link.restore();
    await untilSo(async () => (await rowsThere()) === 3);
    await books.expectBalanced();
    expect(await books.user(userId)).toMatchObject({ quota: RICH - 21, usedQuota: 21, reserved: 0 });
  });

  test("a short outage delays an answer and nothing else: it ends after the commit", async () => {
    const held = await reserve(books, userId);
    await link.hold();
    let isThrough = false;
    const settled = held.settle(settlement(7)).then(async () => {
      isThrough = true;
      return rowsThere();
    });
    await untilSo(() => books.ledger.lag().waiting === 1);
    expect([isThrough, await rowsThere()]).toEqual([false, 0]);
    await link.restore();
    expect(await settled).toBe(1);
    expect(books.ledger.lag()).toMatchObject({ waiting: 0, early: 0 });
    await books.expectBalanced();
  });
});

test("a database that answers and takes no settlements is an outage too", async () => {
  const books = await startBooks("postgres", { durability: "database", databaseWaitMs: 300 });
  const admin = postgres(books.database.databaseUrl ?? "", { max: 1, onnotice: () => {} });
  try {
    await books.addChannel();
    const { id } = await books.addUser(RICH);
    const running = await reserve(books, id);
    // What a server says that was made a standby, or whose disk is full, for the statement that settles.
    await admin.unsafe(`
      create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'no room' using errcode = '53100'; end $$;
      create trigger refuse before update on nodes for each row when (new.mark > old.mark) execute function refuse()`);
    await running.settle(settlement(7));
    expect(books.ledger.lag()).toMatchObject({ waiting: 1, early: 1 });
    // On a busy machine the refusal of that batch may still be on its way.
    let failure: unknown;
    await untilSo(async () => {
      failure = await failureOf(reserve(books, id).then((held) => held.release()));
      return failure !== undefined;
    });
    expect(failure).toMatchObject({ code: "database_down", status: 503 });
    await admin.unsafe("drop trigger refuse on nodes");
    await untilSo(
      async () => (await failureOf(reserve(books, id).then((held) => held.release()))) === undefined,
    );
    await books.expectBalanced();
  } finally {
    await admin.end();
    await books.close();
  }
});

test("with SQLite the journal is what answers wait for, whatever is set", async () => {
  const books = await startBooks("sqlite", { durability: "database" });
  try {
    await books.addChannel();
    const { id } = await books.addUser(RICH);
    await (await reserve(books, id)).settle(settlement(7));
    expect(books.ledger.lag()).toMatchObject({ early: 0 });
    await books.expectBalanced();
  } finally {
    await books.close();
  }
});
