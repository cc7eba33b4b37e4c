// What a writer told of, of many accounts or of a charge, when the database goes away behind its commit.
import { PgDialect } from "drizzle-orm/pg-core";
import type { SQL } from "drizzle-orm";
import { expect, test } from "bun:test";
import { schema } from "../../../drizzle/postgres.ts";
import { sha256Hex } from "../../../src/core/kit/seal.ts";
import { createAccounts } from "../../../src/core/users/accounts.ts";
import type { ChangeListener, Database } from "../../../src/db/database.ts";
import { DatabaseSilent } from "../../../src/db/deadline.ts";
import { testClock } from "../../support/clock.ts";

const logger = { debug() {}, info() {}, warn() {}, error() {} };
const KEY = { id: 7, userId: 1, keyHash: sha256Hex("key"), keyHead: "k", keyTail: "y" };
const KEY_ROW = { ...KEY, allowIps: "", autoGroups: "", limits: "", deletedAt: null };
/** A round's answer: no row was written. */
const NOTHING_TOLD = {
  snapshot: "1:1:",
  server: "1",
  mark: "1",
  at_ms: 0,
  many: 0,
  noted: false,
  told: null,
};
const dialect = new PgDialect();

/** Accounts of users 1 to 3, with a key of the first, all in memory; `state.isAway` has the database say nothing. */
async function startBooks() {
  const state = {
    isAway: false,
    told: [] as string[],
    lost: () => {},
    changed: (_ids: string[]) => Promise.resolve(),
  };
  const rowsOf = (table: unknown, where: SQL): unknown[] => {
    if (table === schema.tokens) return [KEY_ROW];
    // One id, or a list of them in one text.
    const ids = String(dialect.sqlToQuery(where).params[0]).match(/\d+/g) ?? [];
    return ids.map((id) => ({ id: Number(id), status: 1, limits: "", setting: "", deletedAt: null }));
  };
  const answer = <T>(value: () => T): Promise<T> =>
    state.isAway ? Promise.reject(new DatabaseSilent()) : Promise.resolve(value());
  const db = {
    kind: "postgres",
    t: schema,
    orm: {
      select: () => ({
        from: (table: unknown) => ({ where: (where: SQL) => answer(() => rowsOf(table, where)) }),
      }),
      session: { client: { unsafe: () => answer(() => [NOTHING_TOLD]) } },
    },
    onChange: (kind: string, { lost, changed }: ChangeListener) => {
      state.lost = () => void lost();
      if (kind === "users") state.changed = async (ids) => changed(ids);
      return Promise.resolve();
    },
    use: () => undefined,
    announce: (kind: string, ids: readonly number[]) =>
      answer(() => void state.told.push(`${kind} ${ids.join(",")}`)),
  } as unknown as Database;
  const accounts = await createAccounts({ db, clock: testClock(), logger, refreshMs: 0, databaseWaitMs: 0 });
  await accounts.tokenByKey("key");
  for (const id of [1, 2, 3]) await accounts.user(id);
  /** Ids of the users, and of the key, that are served once the database has been found away. */
  const servedInOutage = async (): Promise<number[]> => {
    await accounts.refresh();
    const asked = [accounts.user(1), accounts.user(2), accounts.user(3), accounts.tokenByKey("key")];
    const found = await Promise.allSettled(asked.map((each) => Promise.resolve(each)));
    return found.flatMap((each) => (each.status === "fulfilled" && each.value ? [each.value.id] : []));
  };
  return { state, accounts, servedInOutage };
}

test("of many accounts that were changed none is served by memory, though not one could be read again", async () => {
  const { state, accounts, servedInOutage } = await startBooks();
  state.isAway = true;
  const [changed] = await Promise.allSettled([accounts.usersChanged([1, 2])]);
  expect(changed.status).toBe("rejected");
  expect(await servedInOutage()).toEqual([3]);
  accounts.close();
});

test("a charge, credit or refund is announced to nobody, and leaves user and key to memory where they cannot be read again", async () => {
  const { state, accounts, servedInOutage } = await startBooks();
  await accounts.usersCharged([1, 2]);
  await accounts.tokenCharged(7);
  expect(state.told).toEqual([]);
  state.isAway = true;
  const charged = await Promise.allSettled([accounts.usersCharged([1, 2]), accounts.tokenCharged(7)]);
  expect(charged.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await servedInOutage()).toEqual([1, 2, 3, 7]);
  // A change of the key is one.
  await Promise.allSettled([accounts.tokenChanged(7)]);
  expect(await servedInOutage()).toEqual([1, 2, 3]);
  accounts.close();
});

test("where an announcement was lost nobody knows who was changed: none is served by memory before it was read, however often the database goes away", async () => {
  const { state, accounts, servedInOutage } = await startBooks();
  state.isAway = true;
  state.lost();
  expect(await servedInOutage()).toEqual([]);
  // Back for a moment, in which one is read.
  state.isAway = false;
  await accounts.user(2);
  state.isAway = true;
  expect(await servedInOutage()).toEqual([2]);
  accounts.close();
});

test("after a gap those that nobody uses are read, too: the next outage serves them", async () => {
  const { state, accounts, servedInOutage } = await startBooks();
  // Nobody has used them for long.
  for (let round = 0; round < 50; round++) await accounts.refresh();
  state.lost();
  // The round that this began comes to its end.
  await new Promise((resolve) => void setImmediate(resolve));
  state.isAway = true;
  expect(await servedInOutage()).toEqual([1, 2, 3, 7]);
  accounts.close();
});

test("of changed ones that are known and cannot be read the others stay in memory's hands, and a round reads them", async () => {
  const { state, accounts, servedInOutage } = await startBooks();
  state.isAway = true;
  await state.changed(["1", "2"]);
  expect(await servedInOutage()).toEqual([3]);
  state.isAway = false;
  await accounts.refresh();
  state.isAway = true;
  expect(await servedInOutage()).toEqual([1, 2, 3, 7]);
  accounts.close();
});
