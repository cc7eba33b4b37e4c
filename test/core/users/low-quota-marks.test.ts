// Of any number of nodes exactly one may warn of a fall: the claim stands in the database, on both databases.
import { expect, test } from "bun:test";
import {
  claimWarning,
  findWarning,
  giveBackWarning,
  QUIET_SECONDS,
  rearm,
} from "../../../src/core/users/low-quota-marks.ts";
import { startBooks } from "../ledger/support.ts";

const NOW = 1_800_000_000;

for (const database of ["sqlite", "postgres"] as const) {
  test(`on ${database} one of twenty claims gets a fall, and the next after a rise and two hours`, async () => {
    const books = await startBooks(database);
    const { db } = books;
    const claims = async (at: number) => {
      const all = await Promise.all(Array.from({ length: 20 }, () => claimWarning(db, 7, at)));
      return all.filter(Boolean).length;
    };
    // A rise before the first warning is nobody's business.
    await rearm({ db }, 7);
    expect(await findWarning(db, 7)).toBeUndefined();
    expect(await claims(NOW)).toBe(1);
    expect(await findWarning(db, 7)).toEqual({ warnedAt: NOW, isArmed: false });
    expect(await claims(NOW + 10 * QUIET_SECONDS)).toBe(0);

    await Promise.all([rearm({ db }, 7), rearm({ db }, 7)]);
    expect(await claims(NOW + QUIET_SECONDS - 1)).toBe(0);
    expect(await findWarning(db, 7)).toEqual({ warnedAt: NOW, isArmed: true });
    expect(await claims(NOW + QUIET_SECONDS)).toBe(1);
    expect(await findWarning(db, 7)).toEqual({ warnedAt: NOW + QUIET_SECONDS, isArmed: false });

    // A clock that is set back silences nobody for longer.
    await rearm({ db }, 7);
    expect(await claims(NOW - QUIET_SECONDS)).toBe(1);
    await books.close();
  });

  test(`on ${database} a warning that reached nobody lets the next go out when it says`, async () => {
    const books = await startBooks(database);
    const { db } = books;
    expect(await claimWarning(db, 7, NOW)).toBe(true);
    // Somebody else's claim is not given back.
    await giveBackWarning(db, 7, { claimedAt: NOW - 1, retryAt: NOW + 1 });
    expect(await claimWarning(db, 7, NOW + 600)).toBe(false);
    await giveBackWarning(db, 7, { claimedAt: NOW, retryAt: NOW + 600 });
    expect(await claimWarning(db, 7, NOW + 599)).toBe(false);
    expect(await claimWarning(db, 7, NOW + 600)).toBe(true);
    await books.close();
  });
}
