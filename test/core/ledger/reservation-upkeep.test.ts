// Whose rounds give back what others held, and when: not with the first word of a database that was away.
// Refuses a database: postgres-store.test.ts has the rows.
import { expect, test } from "bun:test";
import { IndexedSet } from "../../../src/shared/indexed-set.ts";
import { startUpkeep } from "../../../src/core/ledger/reservation-upkeep.ts";
import type { UpkeepDeps } from "../../../src/core/ledger/reservation-upkeep.ts";
import type { Look } from "../../../src/db/look-around.ts";
import { silent, testClock } from "./support.ts";

test("after an outage one round renews before another gives back what nobody renewed", async () => {
  let look: (look: Look) => void = () => {};
  let isAway = false;
  let rounds: string[] = [];
  const asked = async (what: string): Promise<void> => {
    await Promise.resolve();
    if (isAway) throw new Error("away");
    rounds.push(what);
  };
  const shared = { renew: () => asked("renew"), releaseExpired: () => asked("give back") };
  startUpkeep({
    keeper: { open: new IndexedSet() } as unknown as UpkeepDeps["keeper"],
    shared: shared as unknown as UpkeepDeps["shared"],
    clock: testClock(),
    logger: silent,
    around: {
      lookEvery(_, run) {
        look = run;
        return () => {};
      },
    },
  });
  const round = async (isWaking = false): Promise<string[]> => {
    rounds = [];
    look({ dueMs: 30_000, isWaking } as Look);
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    return rounds;
  };
  expect(await round()).toEqual(["renew", "give back"]);
  isAway = true;
  expect(await round()).toEqual([]);
  isAway = false;
  expect(await round()).toEqual(["renew"]);
  expect(await round()).toEqual(["renew", "give back"]);
  // Who was at rest knows of no outage.
  expect(await round(true)).toEqual(["renew"]);
  expect(await round()).toEqual(["renew", "give back"]);
});
