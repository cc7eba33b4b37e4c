// Rounds that read accounts again, with queries that answer when the test says so: no old row decides.
import { expect, test } from "bun:test";
import { schema } from "../../../drizzle/postgres.ts";
import { Hold } from "../../../src/core/ledger/reservation.ts";
import type { HoldKeeper } from "../../../src/core/ledger/reservation.ts";
import { createAccountCache, forgetTold, markChanged } from "../../../src/core/users/account-cache.ts";
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
import { IndexedSet } from "../../../src/shared/indexed-set.ts";
import { testClock } from "../../support/clock.ts";
import { untilSo } from "../../support/turns.ts";

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

/** Whom nobody else spends with. */
const ALONE = () => ({ silentMs: 0, aloneMs: Infinity });
const renewing = { renewPlans: () => Promise.resolve(), renewWaitMs: 10_000, logger };
const LIMITS = { maxTokens: 9, maxUsers: 9, maxMisses: 9 };

test("a user disabled while a round reads is not decided by what that round brings", async () => {
  const clock = testClock();
  const cache = createAccountCache(LIMITS, clock.monotonicMs);
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
  const lookups = createAccountLookups({ cache, reads, queries, clock, isShared: true, ...renewing });
  const refresh = createAccountRefresh({
    cache,
    reads,
    queries,
    changes: undefined,
    lastHeard: ALONE,
    logger,
  });
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
  const clock = testClock();
  const cache = createAccountCache(LIMITS, clock.monotonicMs);
  const reads = createReadsInFlight();
  const state = {
    isAway: false,
    status: 1,
    told: [] as number[],
    toldTokens: [] as number[],
    silentMs: 0,
    aloneMs: Infinity,
  };
  const away = Promise.withResolvers<never>();
  const asked = {
    next: undefined as Promise<{ users: number[]; tokens: number[] }> | undefined,
    manyTakeMs: 0,
    /** Users whose rows were asked for, question by question. */
    many: [] as number[][],
    refuses: (_userIds: readonly number[]): boolean => false,
    renewal: Promise.resolve(),
    renewals: 0,
    owner: undefined as Promise<UserRow> | undefined,
    /** What a key's row says, once it is there. */
    key: undefined as (() => Promise<TokenRow>) | undefined,
  };
  const ask = <T>(answer: T): Promise<T> =>
    state.isAway ? Promise.reject(new Error("the database is away")) : Promise.resolve(answer);
  const queries: AccountQueries = {
    // Whoever needs a row waits for the database.
    user: (id) => asked.owner ?? (state.isAway ? away.promise : ask({ ...rowOf(state.status), id })),
    many(userIds, tokenIds) {
      clock.advance(asked.manyTakeMs);
      asked.many.push([...userIds]);
      if (asked.refuses(userIds)) return Promise.reject(new DatabaseSilent());
      return ask([userIds.map((id) => ({ ...rowOf(state.status), id })), tokenIds.map(() => KEY_ROW)] as [
        UserRow[],
        TokenRow[],
      ]);
    },
    token: () => asked.key?.() ?? (state.isAway ? away.promise : ask(KEY_ROW)),
    tokenById: () => (state.isAway ? away.promise : ask(KEY_ROW)),
    userIdByAccessToken: () => ask(undefined),
  };
  const changes = {
    next: () => asked.next ?? ask({ users: state.told.splice(0), tokens: state.toldTokens.splice(0) }),
    look: () => ask({ told: undefined, marks: new Map<string, number>() }),
  };
  const plans = { ...renewing, renewWaitMs: 0, renewPlans: () => (asked.renewals++, asked.renewal) };
  const lookups = createAccountLookups({ cache, reads, queries, clock, isShared: true, ...plans });
  const lastHeard = () => state;
  const refresh = createAccountRefresh({ cache, reads, queries, changes, lastHeard, logger });
  const rounds = async (count: number): Promise<void> => {
    for (let round = 0; round < count; round++) await refresh();
  };
  return { state, asked, clock, cache, reads, lookups, rounds, away };
}

/** Answers when the database has been found away: undefined for whoever waits for it still. */
async function foundAway(books: ReturnType<typeof keptBooks>): Promise<(number | undefined)[]> {
  books.state.isAway = true;
  const found = [undefined, undefined] as (number | undefined)[];
  const look = (): void => {
    for (const [index, each] of [books.lookups.tokenByKey("key"), books.lookups.user(1)].entries())
      void Promise.resolve(each).then(
        (account) => (found[index] = account?.id),
        () => undefined,
      );
  };
  look();
  await books.rounds(1);
  look();
  // What is resolved has been heard of by the end of another round.
  await books.rounds(1);
  return found;
}

test("a change that was heard is not overruled by memory when the row cannot be read: user and key", async () => {
  for (const kind of ["user", "token"] as const) {
    const books = keptBooks();
    const { state, lookups, rounds, away } = books;
    await lookups.tokenByKey("key");
    await rounds(1);
    state.isAway = true;
    const heard = kind === "user" ? lookups.reloadUser(1) : lookups.reloadToken(7);
    expect(await foundAway(books)).toEqual([undefined, kind === "user" ? undefined : 1]);
    // Read again it is an account like any other one, in the next outage too.
    away.reject(new Error("nobody answered in time"));
    await heard.catch(() => undefined);
    state.isAway = false;
    await rounds(1);
    await lookups.tokenByKey("key");
    state.isAway = true;
    await rounds(3);
    expect(await foundAway(books)).toEqual([7, 1]);
  }
});

test("a charge whose answer was lost leaves memory to decide in the outage that lost it", async () => {
  const books = keptBooks();
  await books.lookups.tokenByKey("key");
  await books.rounds(1);
  books.state.isAway = true;
  void books.lookups.reloadUser(1, "charged").catch(() => undefined);
  expect(await foundAway(books)).toEqual([7, 1]);
});

test.each([
  {
    what: "current a minute before the last answer",
    restMs: 60_000,
    silentMs: 0,
    aloneMs: 0,
    isServed: true,
  },
  { what: "older", restMs: 60_001, silentMs: 0, aloneMs: 0, isServed: false },
  { what: "older, of a lone process", restMs: 60_001, silentMs: 0, aloneMs: Infinity, isServed: true },
  {
    what: "older than the departure of another process",
    restMs: 60_001,
    silentMs: 0,
    aloneMs: 60_000,
    isServed: false,
  },
  {
    what: "read after the departure of another process",
    restMs: 60_001,
    silentMs: 0,
    aloneMs: 60_001,
    isServed: true,
  },
  {
    what: "as old, in a long silence",
    restMs: 7_200_000,
    silentMs: 7_199_000,
    aloneMs: 0,
    isServed: true,
  },
])("a row that rested when the database went away: $what", async ({ restMs, isServed, ...heard }) => {
  const books = keptBooks();
  await books.lookups.tokenByKey("key");
  await books.rounds(45);
  books.clock.advance(restMs);
  Object.assign(books.state, heard);
  expect(await foundAway(books)).toEqual(isServed ? [7, 1] : [undefined, undefined]);
});

test.each([Infinity, 0])(
  "a resting row that was noted as written does not serve in an outage of a process that is alone for %p ms: one that has gone may have spent it",
  async (aloneMs) => {
    const books = keptBooks();
    const { state, lookups, rounds } = books;
    await lookups.tokenByKey("key");
    await rounds(41);
    state.aloneMs = aloneMs;
    // Somebody else is in use, so that rounds go on.
    state.told = [1];
    await lookups.user(2);
    await rounds(1);
    expect(await foundAway(books)).toEqual([undefined, undefined]);
  },
);

test.each([true, false])(
  "who has an open call does not rest, so that its charge is not taken for another node's (held durably: %p)",
  async (isDurable) => {
    const books = keptBooks();
    const { state, lookups, rounds } = books;
    const key = await lookups.tokenByKey("key");
    if (!key) throw new Error("no account");
    const { user } = key;
    const durable = isDurable ? { key: "3", userId: 1, tokenId: 7, amount: 5 } : undefined;
    const keeper = { open: new IndexedSet<Hold>(), add: () => Promise.resolve() } as unknown as HoldKeeper;
    const hold = new Hold({ ...keeper, monotonicMs: () => 0 }, "r", 5, user, key, durable, undefined);
    state.aloneMs = 0;
    await rounds(45);
    state.told = [1];
    // Rounds go on whoever rests.
    await lookups.user(2);
    await rounds(1);
    expect(await foundAway(books)).toEqual([7, 1]);
    // Given back without its end, and then ended: one call less.
    for (const end of [() => hold.abandon(), () => hold.release()]) {
      end();
      expect(user.openCalls).toBe(0);
    }
  },
);

test("a key that a slow round read is as old as its question", async () => {
  const books = keptBooks();
  const { asked, state, lookups, rounds } = books;
  await lookups.tokenByKey("key");
  await rounds(1);
  asked.manyTakeMs = 60_001;
  state.toldTokens = [7];
  await rounds(1);
  // Its owner is read after that.
  await lookups.reloadUser(1, "charged");
  Object.assign(state, { aloneMs: 0, isAway: true });
  await rounds(3);
  expect(await foundAway(books)).toEqual([undefined, 1]);
});

test("a resting row that is read again for a change is not taken for another node's by the note of that change", async () => {
  const books = keptBooks();
  const { state, lookups, rounds } = books;
  await lookups.tokenByKey("key");
  await rounds(45);
  // Rounds go on whoever rests.
  await lookups.user(2);
  await lookups.reloadUser(1);
  state.told = [1];
  await rounds(1);
  expect(await foundAway(books)).toEqual([7, 1]);
});

test("a resting account that this process writes is not taken for another node's by the note of its write", async () => {
  const books = { isAway: false, told: [] as number[] };
  const answers = new Map<unknown, unknown[]>([
    [schema.users, [rowOf(1)]],
    [schema.tokens, []],
  ]);
  const answer = (rows: unknown): Promise<unknown> =>
    books.isAway ? Promise.reject(new DatabaseSilent()) : Promise.resolve(rows);
  const round = () => ({
    mark: "1",
    snapshot: "1:1:",
    server: "one",
    ["at_ms"]: 0,
    many: 0,
    told: JSON.stringify({ users: books.told.splice(0) }),
  });
  const db = {
    kind: "postgres",
    t: schema,
    orm: {
      session: { client: { unsafe: () => answer([round()]) } },
      select: () => ({ from: (table: unknown) => ({ where: () => answer(answers.get(table)) }) }),
    },
    onChange: () => Promise.resolve(),
    use: () => undefined,
  } as unknown as Database;
  const accounts = await createAccounts({ db, clock: testClock(), logger, refreshMs: 0, databaseWaitMs: 0 });
  const user = await accounts.user(1);
  for (let count = 0; count < 45; count++) await accounts.refresh();
  // Rounds go on whoever rests.
  accounts.keepUser({ id: 2 } as UserAccount);
  accounts.beginWrite([1], [])();
  books.told = [1];
  await accounts.refresh();
  expect(books.told).toEqual([]);
  books.isAway = true;
  for (let count = 0; count < 4; count++) await accounts.refresh();
  expect(accounts.user(1)).toBe(user);
  accounts.close();
});

test("rounds that take long make no call read its row", async () => {
  const { asked, lookups, rounds } = keptBooks();
  for (const id of [1, 2]) await lookups.user(id);
  await rounds(1);
  for (const each of [1, 2]) {
    const slow = Promise.withResolvers<{ users: number[]; tokens: number[] }>();
    asked.next = slow.promise;
    const begun = rounds(1);
    // Their moments come and go while it runs.
    await rounds(9);
    expect(lookups.user(each)).toMatchObject({ id: each });
    slow.resolve({ users: [], tokens: [] });
    await begun;
    expect(lookups.user(each)).toMatchObject({ id: each });
  }
});

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

test("a look-up of a key that its caller drops is refused without a word", async () => {
  const db = {
    kind: "postgres",
    t: schema,
    orm: { select: () => ({ from: () => ({ where: () => Promise.reject(new DatabaseSilent()) }) }) },
    onChange: () => Promise.resolve(),
    use: () => Promise.resolve(),
  } as unknown as Database;
  const accounts = await createAccounts({ db, clock: testClock(), logger, refreshMs: 0, databaseWaitMs: 0 });
  // The runner tells of a refusal that nobody hears.
  expect(accounts.tokenByKey("key")).toBeInstanceOf(Promise);
  const [heard] = await Promise.allSettled([accounts.tokenByKey("key")]);
  expect(heard).toMatchObject({ status: "rejected", reason: { code: "database_down" } });
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

test.each(["is told", "is among those of which nobody heard"])(
  "a key that is written after its row was read, and before its owner's was: where that %s the row is read again",
  async (how) => {
    const { asked, lookups, reads } = keptBooks();
    const owner = Promise.withResolvers<UserRow>();
    asked.owner = owner.promise;
    const rows = [KEY_ROW, { ...KEY_ROW, status: 2 }];
    asked.key = () => Promise.resolve(rows.shift() ?? KEY_ROW);
    const found = lookups.tokenByKey("key");
    await untilSo(() => rows.length === 1);
    // Nothing of it is in memory yet.
    if (how === "is told") await lookups.reloadToken(7);
    else reads.wroteSome();
    owner.resolve(rowOf(1));
    expect(await found).toMatchObject({ status: 2 });
    expect(rows).toEqual([]);
  },
);

test("a key whose row is written at every reading is read once more by its next use", async () => {
  const { asked, lookups, reads } = keptBooks();
  let read = 0;
  asked.key = () => {
    read++;
    reads.wroteToken(7);
    return Promise.resolve(KEY_ROW);
  };
  expect(await lookups.tokenByKey("key")).toMatchObject({ id: 7 });
  expect(read).toBe(5);
  asked.key = undefined;
  expect(lookups.tokenByKey("key")).toBeInstanceOf(Promise);
});

test("behind a gap: where those that nobody uses cannot be read, the others are as current, and come first in the next round", async () => {
  const { asked, cache, lookups, rounds, state } = keptBooks();
  await lookups.user(1);
  await rounds(45);
  await lookups.user(2);
  for (const entry of cache.users.values()) markChanged(cache, entry);
  cache.isLost = true;
  asked.refuses = (ids) => ids.includes(1);
  await rounds(1);
  expect(cache).toMatchObject({ isStale: false, isLost: true, toldRound: cache.round });
  expect(lookups.user(2)).toMatchObject({ id: 2 });
  expect(asked.many).toEqual([[2], [1]]);
  asked.refuses = () => false;
  await rounds(1);
  expect(asked.many).toEqual([[2], [1], [2], [1]]);
  expect(cache.isLost).toBe(false);
  state.isAway = true;
  expect(lookups.user(2)).toMatchObject({ id: 2 });
});

test("rows that were asked for before the process rested or stood still are read again", async () => {
  const { asked, cache, lookups } = keptBooks();
  const owner = Promise.withResolvers<UserRow>();
  asked.owner = owner.promise;
  const found = lookups.user(1);
  const key = lookups.tokenByKey("key");
  forgetTold(cache);
  owner.resolve(rowOf(1));
  await Promise.all([found, key]);
  const again = lookups.user(1);
  expect(again).toBeInstanceOf(Promise);
  await again;
  // Its owner is as new as now.
  expect(lookups.tokenByKey("key")).toBeInstanceOf(Promise);
});

test("a round that was asked before the process stood still tells nothing of now: neither its answer nor its failure", async () => {
  for (const isAnswered of [true, false]) {
    const { asked, cache, lookups, rounds } = keptBooks();
    await lookups.tokenByKey("key");
    await rounds(1);
    const slow = Promise.withResolvers<{ users: number[]; tokens: number[] }>();
    asked.next = slow.promise;
    const begun = rounds(1);
    forgetTold(cache);
    if (isAnswered) slow.resolve({ users: [], tokens: [] });
    else slow.reject(new Error("too late"));
    await begun;
    expect(lookups.tokenByKey("key")).toBeInstanceOf(Promise);
    expect(cache.isStale).toBe(false);
  }
});

test("somebody holds the row of an account whose plan is due: calls wait once, then go on with it as it is, until it is renewed", async () => {
  const { asked, clock, lookups } = keptBooks();
  const user = await lookups.user(1);
  if (!user) throw new Error("no account");
  const planUntil = Math.floor(clock.nowMs() / 1000);
  user.planUntil = planUntil;
  asked.owner = Promise.resolve({ ...rowOf(1), planUntil } as UserRow);
  const renewal = Promise.withResolvers<void>();
  asked.renewal = renewal.promise;
  const [first, second] = [lookups.user(1), lookups.user(1)];
  expect(await Promise.all([first, second])).toEqual([user, user]);
  expect(lookups.user(1)).toBe(user);
  expect(asked.renewals).toBe(1);
  renewal.resolve();
  await renewal.promise;
  // What is due still is renewed again.
  expect(lookups.user(1)).toBeInstanceOf(Promise);
  expect(asked.renewals).toBe(2);
});
