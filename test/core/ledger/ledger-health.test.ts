// A full disk and a lost database file, as they come: calls are refused before they cost, and go on when it is over.
// Refuses made-up errors: the disk is a small one of its own, the file is really moved away.
import { expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQLITE_FILE } from "../../../src/db/connect.ts";
import type { Reservation } from "../../../src/core/deps.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { openBooks, requestId, settlement, startBooks } from "./support.ts";
import type { Books } from "./support.ts";
import { untilSo } from "../../support/turns.ts";

const DOWN = { code: "ledger_down", status: 503 };

async function failureOf(run: () => Promise<unknown>): Promise<Failure | undefined> {
  try {
    await run();
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}

async function begin(books: Books, userId: number) {
  return books.ledger.reserve({
    requestId: requestId(),
    user: await books.user(userId),
    token: undefined,
    amount: 5,
  });
}

/** Fills what is left, in ever smaller pieces. */
function fill(dir: string): void {
  let piece = 256 * 1024;
  for (let count = 0; piece >= 512; count++) {
    try {
      writeFileSync(join(dir, `filler-${count}`), Buffer.alloc(piece));
    } catch {
      piece = Math.floor(piece / 2);
    }
  }
}

/** A disk of 12 MB; where none may be mounted, the directory itself. */
function smallDisk(): { dir: string; isSmall: boolean; end(): void } {
  const dir = mkdtempSync(join(tmpdir(), "weir-disk-"));
  const mount = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", dir], {
    stderr: "ignore",
    stdout: "ignore",
  });
  return {
    dir,
    isSmall: mount.exitCode === 0,
    end() {
      if (mount.exitCode === 0) Bun.spawnSync(["umount", "-l", dir]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

test("on a full disk no call is let through that cannot be recorded: not one answer goes unbilled", async () => {
  const disk = smallDisk();
  const books = await openBooks({ dataDir: disk.dir, databaseUrl: undefined });
  await books.addChannel();
  const user = await books.addUser(1_000_000_000);
  // Large rows, so that the files fill up while the test looks.
  const content = "x".repeat(20_000);
  let billed = 0;
  if (disk.isSmall) fill(disk.dir);
  let refusedAtFirst: Failure | undefined;
  for (let call = 0; call < 400; call++) {
    // Others are running when the room ends.
    const held: Reservation[] = [];
    for (let each = 0; each < 4; each++) {
      const failure = await failureOf(async () => held.push(await begin(books, user.id)));
      if (failure) {
        expect(failure).toMatchObject(DOWN);
        refusedAtFirst ??= failure;
      }
    }
    if (held.length === 0) books.clock.advance(1000);
    await Promise.all(held.map((each) => each.settle(settlement(1, { content }))));
    billed += held.length;
    if (call > 100 && refusedAtFirst) break;
  }
  if (disk.isSmall) {
    expect(refusedAtFirst).toBeDefined();
    for (let second = 0; second < 10; second++) {
      books.clock.advance(1000);
      expect(await failureOf(() => begin(books, user.id))).toMatchObject(DOWN);
    }
    for (let count = 0; count < 400; count++) rmSync(join(disk.dir, `filler-${count}`), { force: true });
  }
  let last: Reservation | undefined;
  for (let second = 0; second < 20 && !last; second++) {
    books.clock.advance(1000);
    await failureOf(async () => (last = await begin(books, user.id)));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  const held = await begin(books, user.id);
  await held.settle(settlement(1));
  billed++;
  // The tables try again by a timer of their own.
  await untilSo(async () => {
    await books.ledger.flush();
    return books.ledger.backlog() === 0;
  });
  await last?.release();
  await books.expectBalanced();
  expect(await books.user(user.id)).toMatchObject({ usedQuota: billed, requestCount: billed });
  await books.close();
  disk.end();
}, 60_000);

test("a database file that is moved away or replaced is noticed within two seconds; put back, calls go on", async () => {
  const books = await startBooks("sqlite");
  await books.addChannel();
  const user = await books.addUser(1000);
  const file = join(books.dataDir, SQLITE_FILE);
  const running = await begin(books, user.id);
  for (const how of ["moved", "replaced"]) {
    renameSync(file, `${file}.away`);
    if (how === "replaced") writeFileSync(file, "");
    const begun = performance.now();
    let failure: Failure | undefined;
    while (!failure && performance.now() - begun < 5000) {
      failure = await failureOf(async () => (await begin(books, user.id)).release());
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect([how, failure]).toMatchObject([how, DOWN]);
    expect(performance.now() - begun).toBeLessThan(2000);
    renameSync(`${file}.away`, file);
    await untilSo(
      async () => (await failureOf(async () => (await begin(books, user.id)).release())) === undefined,
    );
  }
  await running.settle(settlement(9));
  await books.expectBalanced();
  expect(user).toMatchObject({ usedQuota: 9, requestCount: 1 });
  await books.close();
});
