// When the last copy was made, as every node and every reader of it sees it, on both databases.
import { expect, test } from "bun:test";
import { backupAge, backupState, noteBackup, noteFailedBackup } from "../../../src/core/backup/state.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { startBooks } from "../ledger/support.ts";

const NOW = 1_800_000_000;

test.each(DATABASE_KINDS)(
  "on %s a failure shows until a whole copy follows it, and ages are told",
  async (kind) => {
    const books = await startBooks(kind);
    const { db } = books;
    expect(await backupState(db)).toEqual({ lastAt: 0, bytes: 0, failedAt: 0 });
    expect(backupAge(await backupState(db), NOW)).toBeUndefined();

    await noteBackup(db, NOW, 5_000_000_000);
    await noteFailedBackup(db, NOW + 60);
    expect(await backupState(db)).toEqual({ lastAt: NOW, bytes: 5_000_000_000, failedAt: NOW + 60 });
    expect(backupAge(await backupState(db), NOW + 7200)).toBe(7200);
    // A clock that was set back makes no negative ages.
    expect(backupAge(await backupState(db), NOW - 5)).toBe(0);

    await noteBackup(db, NOW + 120, 6000);
    expect(await backupState(db)).toEqual({ lastAt: NOW + 120, bytes: 6000, failedAt: 0 });
    await books.close();
  },
);
