// The watch over the shared database, held against one that answers and takes nothing: a standby before it is promoted.
// Refuses a real server: what is asked here is when an answer counts, by a clock of the test's own.
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "bun:test";
import { isQueryAway } from "../../../src/db/away.ts";
import type { Database } from "../../../src/db/database.ts";
import { createOutageWatch, OUTAGE_MS } from "../../../src/core/ledger/outage.ts";
import { handTurned } from "../../support/rest.ts";

test("a database that only reads is away: its answers do not count until it takes what is written", async () => {
  let nowMs = 0;
  let isReadOnly = false;
  let refused = 0;
  let asked = 0;
  const client = {
    // The text tells writes from questions.
    unsafe(text: string) {
      asked++;
      if (!isReadOnly || !text.includes("insert")) return Promise.resolve([{ others: 1, rank: 0 }]);
      refused++;
      return Promise.reject(Object.assign(new Error("read-only transaction"), { code: "25006" }));
    },
  };
  const db = { kind: "postgres", orm: { session: { client } } } as unknown as Database;
  const { around, look } = handTurned();
  const watch = createOutageWatch({ db, nodeId: "one", monotonicMs: () => nowMs, around });
  await watch.start();
  expect([watch.silentMs(), watch.nodesAlive()]).toEqual([0, 2]);

  isReadOnly = true;
  nowMs = OUTAGE_MS + 1;
  for (const beat of [1, 2]) {
    look(1000);
    await turn();
    expect(refused).toBe(beat);
  }
  // Whoever reads gets answers all the time.
  watch.answered();
  await watch.ask();
  expect(watch.silentMs()).toBe(nowMs);

  isReadOnly = false;
  look(1000);
  await turn();
  expect(watch.silentMs()).toBe(0);
  expect(asked).toBeGreaterThan(4);
  await watch.close();
});

test("a node is alone from the first count on that found nobody else, also where nobody has counted for long", async () => {
  let nowMs = 100;
  let others = 1;
  let isSilent = false;
  const client = {
    unsafe() {
      return isSilent ? Promise.reject(new Error("away")) : Promise.resolve([{ others, rank: 0 }]);
    },
  };
  const db = { kind: "postgres", orm: { session: { client } } } as unknown as Database;
  const { around, look } = handTurned();
  const watch = createOutageWatch({ db, nodeId: "one", monotonicMs: () => nowMs, around });
  const countedAt = async (ms: number): Promise<number> => {
    nowMs = ms;
    look(5000);
    await turn();
    return watch.aloneMs();
  };
  expect(watch.aloneMs()).toBe(0);
  await watch.start();
  expect(watch.aloneMs()).toBe(0);
  expect(await countedAt(5000)).toBe(0);
  others = 0;
  expect(await countedAt(10_000)).toBe(0);
  expect(await countedAt(40_000)).toBe(30_000);
  isSilent = true;
  expect(await countedAt(60_000)).toBe(50_000);
  isSilent = false;
  // Whoever came and went in between was counted by nobody.
  expect(await countedAt(71_000)).toBe(0);
  await watch.close();
});

test("a transaction that loses its connection between two queries is told as a database that is away", () => {
  const failed = (code: string) => Object.assign(new Error("it broke"), { code });
  expect(isQueryAway(failed("CONNECTION_CLOSED"))).toBe(true);
  // Sockets of others break with the same codes.
  expect(isQueryAway(failed("ECONNRESET"))).toBe(false);
});
