// An operator's way out of a damaged journal: what is missing is named, brought in from a copy or given up, and counted.
// Refuses to give anything up silently: every skipped entry stands in a file and in the books.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { audit, formatAudit } from "../../../../src/core/ledger/audit.ts";
import { journalCommand, SKIPPED_FILE } from "../../../../src/core/ledger/journal/command.ts";
import { framesOf } from "../../../../src/core/ledger/journal/frames.ts";
import { connect, SQLITE_FILE } from "../../../../src/db/connect.ts";
import type { Database } from "../../../../src/db/database.ts";
import { lockFile } from "../../../support/lock-file.ts";
import { createTestDatabase, DATABASE_KINDS } from "../../../support/postgres.ts";
import type { TestDatabase } from "../../../support/postgres.ts";
import { startServerProcess } from "../../../support/server.ts";
import { MIGRATED, openBooks, requestId, settlement } from "../support.ts";
import type { Books } from "../support.ts";

const NODE = "00112233445566aa";
const RICH = 1_000_000_000;

const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe.each(DATABASE_KINDS)("weir journal on %s", (kind) => {
  let database: TestDatabase;
  let userId: number;
  const file = () => join(database.dataDir, "journal-1.log");

  function open(wrap?: (db: Database) => Database): Promise<Books> {
    const { dataDir, databaseUrl } = database;
    return openBooks({ dataDir, databaseUrl, nodeId: NODE, ...(wrap ? { wrap } : {}) });
  }

  async function spend(books: Books, quotas: number[]): Promise<void> {
    const user = await books.user(userId);
    for (const quota of quotas) {
      const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
      await held.settle(settlement(quota));
    }
  }

  async function command(...args: string[]): Promise<{ code: number; text: string }> {
    const db = await connect({ dataDir: database.dataDir, databaseUrl: database.databaseUrl ?? "" });
    const lines: string[] = [];
    const { dataDir } = database;
    const code = await journalCommand({ db, dataDir, say: (line) => lines.push(line) }, args);
    await db.close();
    return { code, text: lines.join("\n") };
  }

  async function used(): Promise<{ usedQuota: number; audited: string }> {
    const books = await open();
    await books.expectBalanced();
    const { usedQuota } = await books.user(userId);
    const audited = formatAudit(await audit(books.db));
    await books.close();
    return { usedQuota, audited };
  }

  /** Damages the write that begins with a position. */
  function damage(position: number): void {
    const bytes = readFileSync(file());
    const frame = [...framesOf(bytes)].find((each) => each.first === position);
    bytes[(frame?.end ?? 0) - 3] = 0;
    writeFileSync(file(), bytes);
  }

  /** Two entries in the books (100, 200), and six behind them that only the journal has (1, 2, 4, 8, 16, 32). */
  beforeEach(async () => {
    database = await createTestDatabase(kind, MIGRATED);
    writeFileSync(join(database.dataDir, "node.id"), `${NODE}\n`);
    let isAway = false;
    const books = await open((db) =>
      kind === "sqlite"
        ? db
        : {
            ...db,
            atomic: (body) => (isAway ? Promise.reject(new Error("away")) : db.atomic(body)),
          },
    );
    await books.addChannel();
    userId = (await books.addUser(RICH)).id;
    await spend(books, [100, 200]);
    await books.ledger.flush();
    isAway = true;
    const lock = kind === "sqlite" ? lockFile(join(database.dataDir, SQLITE_FILE)) : undefined;
    await spend(books, [1, 2, 4, 8, 16, 32]);
    await books.ledger.close();
    lock?.release();
    books.accounts.close();
    await books.db.close();
  });
  afterEach(() => database.drop());

  test("what is all there is shown as waiting, and the next start enters it", async () => {
    expect(await command("check")).toEqual({
      code: 0,
      text: "positions 3 to 8 wait and are all there; the next start enters them.",
    });
    const shown = await command("show");
    expect([shown.code, shown.text]).toEqual([
      0,
      expect.stringMatching(
        /books end with position 2 \(2 entered, 0 set aside, 0 skipped\).*up to 8[^]*waiting: 3-8/,
      ) as string,
    ]);
    expect((await used()).usedQuota).toBe(363);
    expect((await command("check")).text).toBe("The books have everything that is in the journal.");
    for (const wrong of [[], ["mend"], ["enter"], ["skip"], ["check", "more"]])
      expect((await command(...wrong)).code).toBe(2);
    expect((await command("skip", "9")).code).toBe(2);
  });

  test("a damaged write refuses the start; a copy of the file brings it in, once", async () => {
    copyFileSync(file(), `${file()}.copy`);
    damage(5);
    expect(String(await errorOf(open()))).toMatch(
      /position 5 of the journal is missing or damaged.*journal-1.log.*skip 5-5/,
    );
    const checked = await command("check");
    expect([checked.code, checked.text]).toEqual([
      1,
      expect.stringContaining("weir journal skip 5-5") as string,
    ]);
    expect((await command("enter", `${file()}.lost`)).code).toBe(2);
    const entered = await command("enter", `${file()}.copy`);
    expect([entered.code, entered.text]).toEqual([0, expect.stringContaining("Brought in") as string]);
    expect((await command("enter", `${file()}.copy`)).text).toContain(
      "has nothing that the books and the journal lack",
    );
    expect((await used()).usedQuota).toBe(363);
    expect((await command("enter", `${file()}.copy`)).text).toContain(
      "has nothing that the books and the journal lack",
    );
    expect((await used()).usedQuota).toBe(363);
  });

  test("what is given up goes to a file and is counted in the books; the rest is entered", async () => {
    damage(5);
    for (const [range, code] of [
      ["1-5", 2],
      ["5-9", 2],
      ["x", 2],
      ["5-4", 2],
    ] as const)
      expect([range, (await command("skip", range)).code]).toEqual([range, code]);
    // 6 could be read: it stands in the file.
    const skipped = await command("skip", "5-6");
    expect([skipped.code, skipped.text]).toEqual([
      0,
      expect.stringContaining("Given up: positions 5 to 6") as string,
    ]);
    const lines = readFileSync(join(database.dataDir, SKIPPED_FILE), "utf8").trim().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { nodeId: NODE, from: 5, to: 6 },
      { position: 6, item: { row: { quota: 8 } } },
    ]);
    const { usedQuota, audited } = await used();
    expect(usedQuota).toBe(363 - 4 - 8);
    expect(audited).toContain("2 entries of its journal were given up");
    expect(audited).toContain("No difference");
    expect((await command("show")).text).toMatch(
      /position 8 \(6 entered, 0 set aside, 2 skipped\)[^]*Given up: positions 5-6/,
    );
    // New calls go on behind it.
    const books = await open();
    await spend(books, [64]);
    await books.expectBalanced();
    await books.close();
    expect((await used()).usedQuota).toBe(363 - 4 - 8 + 64);
  });

  test("a lost file is given up alike, and what the books know of it bounds the range", async () => {
    rmSync(file());
    const books = await connect({ dataDir: database.dataDir, databaseUrl: database.databaseUrl ?? "" });
    await books.orm.update(books.t.nodes).set({ journaled: 8 });
    await books.close();
    expect(String(await errorOf(open()))).toMatch(/positions 3 to 8 of the journal are missing/);
    expect((await command("skip", "3-8")).code).toBe(0);
    expect((await used()).usedQuota).toBe(300);
    expect(existsSync(join(database.dataDir, SKIPPED_FILE))).toBe(true);
    expect(readdirSync(database.dataDir).filter((name) => name.endsWith(".draft"))).toEqual([]);
  });
});

test("the command's exit codes, beside a server and after it", async () => {
  const server = await startServerProcess();
  expect(server.run(["journal", "show"])).toMatchObject({
    code: 1,
    text: expect.stringContaining("another weir process is running") as string,
  });
  await server.stop();
  expect(server.run(["journal", "show"])).toMatchObject({ code: 0 });
  expect(server.run(["journal", "check"])).toMatchObject({ code: 0 });
  expect(server.run(["journal"])).toMatchObject({
    code: 2,
    text: expect.stringContaining("usage") as string,
  });
  await server.remove();
});
