// A database that was set back while nobody ran: the next start tells what is missing, also where no file of the journal is
// left that could bring it in again. Refuses to fake the older state: the file of the database is put back as it was.
import { expect, test } from "bun:test";
import { copyFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SQLITE_FILE } from "../../../src/db/connect.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import { MIGRATED, openBooks, requestId, settlement, silent } from "./support.ts";
import type { Books } from "./support.ts";

test("a start on an older state enters what the journal has, and tells once what is missing where it is gone", async () => {
  const database = await createTestDatabase("sqlite", MIGRATED);
  const { dataDir } = database;
  const told: unknown[] = [];
  const logger = { ...silent, error: (text: string, fields?: object) => void told.push([text, fields]) };
  const open = () => openBooks({ databaseUrl: undefined, dataDir, logger });
  const file = join(dataDir, SQLITE_FILE);
  const setBack = (): void => {
    for (const name of [`${file}-wal`, `${file}-shm`]) rmSync(name, { force: true });
    copyFileSync(`${file}.old`, file);
  };
  async function spend(books: Books, userId: number, times: number): Promise<void> {
    const user = await books.user(userId);
    for (let call = 0; call < times; call++) {
      const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
      await held.settle(settlement(7));
    }
  }

  const first = await open();
  await first.addChannel();
  const { id } = await first.addUser(1_000_000);
  await spend(first, id, 1);
  await first.close();
  copyFileSync(file, `${file}.old`);
  const second = await open();
  await spend(second, id, 3);
  await second.close();

  setBack();
  const replayed = await open();
  // The embedded database ends like this after a power cut, which loses nothing.
  expect([replayed.ledger.lag().falls, told.length]).toEqual([0, 0]);
  expect(await replayed.user(id)).toMatchObject({ usedQuota: 28 });
  await replayed.expectBalanced();
  await replayed.close();

  setBack();
  for (const name of readdirSync(dataDir)) if (name.startsWith("journal-")) rmSync(join(dataDir, name));
  const lacking = await open();
  expect(lacking.ledger.lag().falls).toBe(1);
  expect(told).toEqual([[expect.stringMatching(/these settlements are missing/), { from: 2, to: 4 }]]);
  expect(await lacking.user(id)).toMatchObject({ usedQuota: 7 });
  await spend(lacking, id, 1);
  await lacking.close();

  const after = await open();
  expect([after.ledger.lag().falls, told.length]).toEqual([0, 1]);
  await after.expectBalanced();
  await after.close();
  await database.drop();
});
