// Rounds that read accounts again, with queries that answer when the test says so: no old row decides.
import { expect, test } from "bun:test";
import { schema } from "../../../drizzle/postgres.ts";
import { createAccountCache } from "../../../src/core/users/account-cache.ts";
import { createAccountLookups } from "../../../src/core/users/account-lookups.ts";
import type { AccountQueries } from "../../../src/core/users/account-queries.ts";
import { createReadsInFlight } from "../../../src/core/users/account-reads.ts";
import { createAccounts } from "../../../src/core/users/accounts.ts";
import { createAccountRefresh } from "../../../src/core/users/account-refresh.ts";
import { sha256Hex } from "../../../src/core/kit/seal.ts";
import type { TokenRow, UserRow } from "../../../src/core/users/account-rows.ts";
import type { UserAccount } from "../../../src/core/deps.ts";
import type { Database } from "../../../src/db/database.ts";
import { DatabaseSilent } from "../../../src/db/deadline.ts";
import type { LookAround } from "../../../src/db/look-around.ts";
import { testClock } from "../../support/clock.ts";

const logger = { debug() {}, info() {}, warn() {}, error() {} };
const KEY_ROW = {
  id: 7,
  userId: 1,
  keyHash: sha256Hex("key"),
  keyHead: "k",
  keyTail: "y",
  allowIps: "",
  autoGroups: "",
  limits: "",
  deletedAt: null,
} as unknown as TokenRow;
const rowOf = (status: number) => ({ id: 1, status, limits: "", setting: "", deletedAt: null }) as UserRow;

test("a user disabled while a round reads is not decided by what that round brings", async () => {
  const cache = createAccountCache({ maxTokens: 9, maxUsers: 9, maxMisses: 9 });
  const reads = createReadsInFlight();
  const round = Promise.withResolvers<[UserRow[], []]>();
  let own = Promise.resolve<UserRow | undefined>(rowOf(1));
  const queries: AccountQueries = {
    user: () => own,
    many: () => round.promise,
    token: () => Promise.resolve(undefined),
    tokenById: () => Promise.resolve(undefined),
    userIdByAccessToken: () => Promise.resolve(undefined),
  };
  const renewPlans = () => Promise.resolve();
  const clock = testClock();
  const lookups = createAccountLookups({ cache, reads, queries, clock, isShared: true, renewPlans });
  const refresh = createAccountRefresh({ cache, reads, queries, changes: undefined, logger });
  await lookups.user(1);
  const reading = refresh();
  const late = Promise.withResolvers<UserRow | undefined>();
  own = late.promise;
  // Its writer has told of it: the row is asked for while the round's own question is under way.
  const reloading = lookups.reloadUser(1);
  round.resolve([[rowOf(1)], []]);
  await reading;
  const asked = lookups.user(1);
  expect(asked).toBeInstanceOf(Promise);
  late.resolve(rowOf(2));
  await reloading;
  expect((await asked)?.status).toBe(2);
  // The row that was read last stands, and decides at once.
  expect(lookups.user(1)).toMatchObject({ status: 2 });
});

/** What is kept on PostgreSQL, as a database answers that is there or away. */
function keptBooks() {
  const cache = createAccountCache({ maxTokens: 9, maxUsers: 9, maxMisses: 9 });
  const reads = createReadsInFlight();
  const state = { isAway: false, status: 1 };
  const away = Promise.withResolvers<never>();
  const ask = <T>(answer: T): Promise<T> =>
    state.isAway ? Promise.reject(new Error("the database is away")) : Promise.resolve(answer);
  const queries: AccountQueries = {
    // Whoever needs a row waits for the database.
    user: () => (state.isAway ? away.promise : ask(rowOf(state.status))),
    many: (userIds) => ask([userIds.map(() => rowOf(state.status)), []]),
    token: () => (state.isAway ? away.promise : ask(KEY_ROW)),
    tokenById: () => ask(undefined),
    userIdByAccessToken: () => ask(undefined),
  };
  const changes = {
    next: () => ask({ users: [], tokens: [] }),
    look: () => ask({ told: undefined, marks: new Map<string, number>() }),
  };
  const clock = testClock();
  const renewPlans = () => Promise.resolve();
  const lookups = createAccountLookups({ cache, reads, queries, clock, isShared: true, renewPlans });
  const refresh = createAccountRefresh({ cache, reads, queries, changes, logger });
  const rounds = async (count: number): Promise<void> => {
    for (let round = 0; round < count; round++) await refresh();
  };
  return { state, clock, lookups, rounds, away };
}

test.each([0, 1])(
  "an outage that begins while nobody calls: the first call waits for the round that fails, memory serves it and the next (plan until %i)",
  async (planUntil) => {
    const { state, clock, lookups, rounds, away } = keptBooks();
    const user = await lookups.user(1);
    const key = await lookups.tokenByKey("key");
    if (!user || !key) throw new Error("no account");
    await rounds(45);
    user.planUntil = planUntil && Math.floor(clock.nowMs() / 1000);
    state.isAway = true;
    const first = [lookups.tokenByKey("key"), lookups.user(1)];
    expect(first[0]).toBeInstanceOf(Promise);
    await rounds(1);
    expect(await Promise.all(first.map((each) => Promise.resolve(each)))).toEqual([key, user]);
    expect([lookups.tokenByKey("key"), lookups.user(1)]).toEqual([key, user]);
    // Nobody calls for a while, and it is still away.
    await rounds(45);
    expect(lookups.user(1)).toBe(user);
    await rounds(45);
    // It comes back while nobody calls: rows decide again.
    away.reject(new Error("nobody answered in time"));
    [state.isAway, state.status] = [false, 2];
    await rounds(1);
    expect(lookups.user(1)).toBeInstanceOf(Promise);
    expect((await lookups.user(1))?.status).toBe(2);
  },
);

test("where PostgreSQL says nothing the console's look-ups are refused at once, and a key's call waits for its owner's row", async () => {
  let isSilent = true;
  const asked = Promise.withResolvers<void>();
  const answers = new Map<unknown, () => Promise<unknown[]>>([
    [
      schema.users,
      () => {
        asked.resolve();
        return isSilent ? Promise.reject(new DatabaseSilent()) : Promise.resolve([rowOf(1)]);
      },
    ],
    [schema.tokens, () => Promise.resolve([KEY_ROW])],
  ]);
  const db = {
    kind: "postgres",
    t: schema,
    orm: { select: () => ({ from: (table: unknown) => ({ where: answers.get(table) }) }) },
    onChange: () => Promise.resolve(),
    use: () => undefined,
  } as unknown as Database;
  const accounts = await createAccounts({
    db,
    clock: testClock(),
    logger,
    refreshMs: 0,
    databaseWaitMs: 60_000,
  });
  const called = accounts.tokenByKey("key");
  await asked.promise;
  const signedIn = await Promise.allSettled([accounts.user(1)]);
  expect(signedIn).toMatchObject([{ status: "rejected", reason: { code: "database_down", status: 503 } }]);
  isSilent = false;
  expect((await called)?.id).toBe(KEY_ROW.id);
  expect(await accounts.user(1)).toMatchObject({ id: 1 });
  accounts.close();
});

test("while the database is away the process does not rest, so that rows decide as soon as it is back", async () => {
  let isAtWork = (): boolean => false;
  const db = {
    kind: "postgres",
    t: schema,
    orm: { execute: () => Promise.reject(new Error("the database is away")) },
    onChange: () => Promise.resolve(),
  } as unknown as Database;
  const around: LookAround = {
    lookEvery: () => () => {},
    use() {},
    restUnless(work) {
      isAtWork = work;
      return () => {};
    },
  };
  const accounts = await createAccounts({ db, clock: testClock(), logger, around });
  expect(isAtWork()).toBe(false);
  accounts.keepUser({ id: 1 } as UserAccount);
  for (let round = 0; round < 45; round++) await accounts.refresh();
  expect(isAtWork()).toBe(true);
  accounts.close();
});
