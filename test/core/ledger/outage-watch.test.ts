// The watch over the shared database, held against one that answers and takes nothing: a standby before it is promoted.
// Refuses a real server: what is asked here is when an answer counts, by a clock of the test's own.
import { expect, test } from "bun:test";
import { isQueryAway } from "../../../src/db/away.ts";
import type { Database } from "../../../src/db/database.ts";
import { createOutageWatch, OUTAGE_MS } from "../../../src/core/ledger/outage.ts";
import { untilSo } from "../../support/turns.ts";

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
  const watch = createOutageWatch({ db, nodeId: "one", monotonicMs: () => nowMs });
  await watch.start();
  expect([watch.silentMs(), watch.nodesAlive()]).toEqual([0, 2]);

  isReadOnly = true;
  nowMs = OUTAGE_MS + 1;
  await untilSo(() => refused >= 2);
  // Whoever reads gets answers all the time.
  watch.answered();
  await watch.ask();
  expect(watch.silentMs()).toBe(nowMs);

  isReadOnly = false;
  await untilSo(() => watch.silentMs() === 0);
  expect(asked).toBeGreaterThan(4);
  await watch.close();
});

test("a transaction that loses its connection between two queries is told as a database that is away", () => {
  const failed = (code: string) => Object.assign(new Error("it broke"), { code });
  expect(isQueryAway(failed("CONNECTION_CLOSED"))).toBe(true);
  // Sockets of others break with the same codes.
  expect(isQueryAway(failed("ECONNRESET"))).toBe(false);
});
