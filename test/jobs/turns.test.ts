// What a look asks when its question fails, with a database that answers as the test says.
import { expect, test } from "bun:test";
import { schema } from "../../drizzle/postgres.ts";
import { DatabaseSilent } from "../../src/db/deadline.ts";
import type { Database } from "../../src/db/database.ts";
import { createTurns } from "../../src/jobs/turns.ts";
import { testClock } from "../support/clock.ts";

const coded = (code: string): Error => Object.assign(new Error(code), { code });

test.each([
  ["says nothing", new DatabaseSilent(), 1],
  ["closed its connection", coded("CONNECTION_CLOSED"), 1],
  ["cannot be reached by a code that nobody listed", coded("ERR_SOCKET_GONE"), 1],
  ["is going down", coded("57P01"), 1],
  ["refuses the statement", coded("42P01"), 2],
  ["is a file that refuses it", coded("SQLITE_ERROR"), 2],
])("a database that %s is asked again only where the statement may be at fault", async (_, error, count) => {
  let asked = 0;
  const prepared = { execute: () => (asked++, Promise.reject(error)) };
  const where = { prepare: () => prepared };
  const orm = { select: () => ({ from: () => ({ where: () => where }) }) };
  const db = { kind: "postgres", t: schema, orm } as unknown as Database;
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const turns = createTurns({ db, clock: testClock(), logger });
  const [looked] = await Promise.allSettled([turns.look([{ name: "job" }])]);
  expect(looked).toEqual({ status: "rejected", reason: error });
  expect(asked).toBe(count);
});
