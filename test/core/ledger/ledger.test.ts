// The ledger's promises on both databases: no overspending, each call charged once, every sum in step.
// The audit is the judge at the end of each test.
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import fc from "fast-check";
import type { Reservation } from "../../../src/core/deps.ts";
import { q } from "../../../src/db/database.ts";
import { isUniqueViolation } from "../../../src/db/sql-state.ts";
import { LogType, TokenStatus } from "../../../src/shared/enums.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { untilSo } from "../../support/turns.ts";
import { requestId, settlement, startBooks } from "./support.ts";
import type { TestBooks } from "./support.ts";

async function failureOf(action: () => unknown): Promise<Failure> {
  try {
    await action();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe.each(DATABASE_KINDS)("ledger on %s", (kind) => {
  let books: TestBooks;
  let channelId: number;

  beforeAll(async () => {
    books = await startBooks(kind);
    channelId = await books.addChannel();
  });
  afterAll(() => books.close());

  /** Figures as the database has them. */
  async function storedUser(id: number) {
    await books.ledger.flush();
    const { users } = books.db.t;
    const [row] = await books.db.orm.select().from(users).where(eq(users.id, id));
    if (!row) throw new Error("no user row");
    return row;
  }

  async function storedToken(id: number) {
    await books.ledger.flush();
    const { tokens } = books.db.t;
    const [row] = await books.db.orm.select().from(tokens).where(eq(tokens.id, id));
    if (!row) throw new Error("no token row");
    return row;
  }

  test.each([7, 9_000])(
    "of 300 concurrent calls of %i against a balance for exactly 100, exactly 100 are let through",
    async (amount) => {
      const user = await books.addUser(100 * amount);
      const token = await books.addToken(user);
      const outcomes = await Promise.all(
        Array.from({ length: 300 }, async () => {
          try {
            const held = await books.ledger.reserve({ requestId: requestId(), user, token, amount });
            await held.settle(settlement(amount, { channelId }));
            return "paid";
          } catch (error) {
            if (error instanceof Failure) return error.code;
            throw error;
          }
        }),
      );
      expect(outcomes.filter((outcome) => outcome === "paid")).toHaveLength(100);
      // Whoever comes while the others' holds are open is told to come again.
      expect(outcomes.filter((outcome) => /^(user_quota_|quota_held)/.test(outcome))).toHaveLength(200);
      await books.expectBalanced();
      expect(await storedUser(user.id)).toMatchObject({
        quota: 0,
        usedQuota: 100 * amount,
        requestCount: 100,
      });
      expect(user).toMatchObject({ quota: 0, usedQuota: 100 * amount, requestCount: 100, reserved: 0 });
    },
  );

  test("a settled call changes user, key, channel, hour and log together, and memory follows", async () => {
    const user = await books.addUser(10_000_000);
    const token = await books.addToken(user, 9_000_000);
    const id = requestId();
    const held = await books.ledger.reserve({ requestId: id, user, token, amount: 100 });
    expect(user.reserved + token.reserved).toBe(200);
    await held.settle(
      settlement(250, { channelId, isStream: true, modelName: "gpt-5", other: { cost: ["a", 1] } }),
    );
    await books.expectBalanced();
    expect(user).toMatchObject({ quota: 9_999_750, usedQuota: 250, requestCount: 1, reserved: 0 });
    expect(token).toMatchObject({ remainQuota: 8_999_750, usedQuota: 250, reserved: 0 });
    const { logs, rollups } = books.db.t;
    const rows = await books.db.orm.select().from(logs).where(eq(logs.requestId, id));
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({
      type: LogType.consume,
      userId: user.id,
      username: user.username,
      tokenId: token.id,
      tokenName: token.name,
      channelId,
      quota: 250,
      promptTokens: 10,
      completionTokens: 5,
      useTimeMs: 120,
      isStream: true,
      modelName: "gpt-5",
      group: "default",
      content: "模型倍率 1.00",
      other: '{"cost":["a",1]}',
      createdAt: Math.floor(books.clock.nowMs() / 1000),
    });
    const hours = await books.db.orm.select().from(rollups).where(eq(rollups.userId, user.id));
    expect(hours).toHaveLength(1);
    expect(hours[0]).toMatchObject({
      count: 1,
      quota: 250,
      loggedCount: 1,
      loggedQuota: 250,
      useTimeMs: 120,
    });
    expect((hours[0]?.hour ?? 1) % 3600).toBe(0);
    expect((await storedToken(token.id)).accessedTime).toBe(Math.floor(books.clock.nowMs() / 1000));
  });

  test.each([50_000_000, 1_000])(
    "of settle and release exactly one takes effect, with a balance of %i",
    async (balance) => {
      const user = await books.addUser(balance);
      const open = () => books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 10 });

      const twice = await open();
      await Promise.all([
        twice.settle(settlement(10, { channelId })),
        twice.settle(settlement(99, { channelId })),
      ]);
      const late = await open();
      await late.release();
      await late.settle(settlement(500, { channelId }));
      const released = await open();
      await Promise.all([released.release(), released.release()]);
      const settled = await open();
      await settled.settle(settlement(3, { channelId }));
      await settled.release();

      await books.expectBalanced();
      expect(await storedUser(user.id)).toMatchObject({
        quota: balance - 13,
        usedQuota: 13,
        requestCount: 2,
      });
      expect(user).toMatchObject({ quota: balance - 13, reserved: 0 });
    },
  );

  test("an amount held back is not available to the next call until it is released", async () => {
    const user = await books.addUser(100);
    const ask = (amount: number) =>
      books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount });
    const first = await ask(60);
    expect(await failureOf(() => ask(60))).toMatchObject({ kind: "limit", code: "quota_held", status: 429 });
    expect(await failureOf(() => ask(101))).toMatchObject({
      kind: "quota",
      code: "user_quota_short",
      status: 403,
      wireCode: "insufficient_user_quota",
      params: { A: "＄0.000080", B: "＄0.000202" },
    });
    await first.release();
    await books.ledger.flush();
    await (await ask(60)).release();
    await books.expectBalanced();
  });

  test("without a balance even a free call is refused, and a charge above the reservation may overdraw once", async () => {
    const user = await books.addUser(50);
    const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 20 });
    await held.settle(settlement(80, { channelId }));
    await books.ledger.flush();
    expect(user.quota).toBe(-30);
    const penniless = await books.addUser(0);
    const ask = () =>
      books.ledger.reserve({ requestId: requestId(), user: penniless, token: undefined, amount: 0 });
    expect((await failureOf(ask)).code).toBe("user_quota_empty");
    for (const amount of [0, 1]) {
      const refused = await failureOf(() =>
        books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount }),
      );
      expect(refused.code).toBe("user_quota_empty");
    }
    await books.expectBalanced();
  });

  test("a limited key stops at its own limit whatever its user has, and becomes exhausted", async () => {
    const user = await books.addUser(50_000_000);
    const token = await books.addToken(user, 100);
    const ask = (amount: number) => books.ledger.reserve({ requestId: requestId(), user, token, amount });
    const refused = await failureOf(() => ask(101));
    expect(refused).toMatchObject({
      code: "token_quota_short",
      wireCode: "pre_consume_token_quota_failed",
      params: { A: "＄0.000200", B: "＄0.000202" },
    });
    await (await ask(60)).settle(settlement(60, { channelId }));
    await books.ledger.flush();
    expect(token).toMatchObject({ remainQuota: 40, status: TokenStatus.enabled });
    await (await ask(40)).settle(settlement(45, { channelId }));
    await books.ledger.flush();
    expect(token).toMatchObject({ remainQuota: -5, status: TokenStatus.exhausted });
    expect(await storedToken(token.id)).toMatchObject({ status: TokenStatus.exhausted, usedQuota: 105 });
    expect((await failureOf(() => ask(1))).code).toBe("token_quota_short");
    expect(user).toMatchObject({ quota: 50_000_000 - 105, reserved: 0 });
    await books.expectBalanced();
  });

  test("a limited key is not exhausted while an open reservation may still come back", async () => {
    const user = await books.addUser(50_000_000);
    const token = await books.addToken(user, 100);
    const ask = () => books.ledger.reserve({ requestId: requestId(), user, token, amount: 50 });
    const [first, second] = [await ask(), await ask()];
    await first.settle(settlement(50, { channelId }));
    await books.ledger.flush();
    expect(token.status).toBe(TokenStatus.enabled);
    await second.release();
    await books.ledger.flush();
    expect(await storedToken(token.id)).toMatchObject({ status: TokenStatus.enabled, remainQuota: 50 });
    await books.expectBalanced();
  });

  test("an unlimited key never refuses, but its figures move", async () => {
    const user = await books.addUser(50_000_000);
    const token = await books.addToken(user);
    await (
      await books.ledger.reserve({ requestId: requestId(), user, token, amount: 500 })
    ).settle(settlement(500, { channelId }));
    await books.ledger.flush();
    expect(token).toMatchObject({ remainQuota: -500, usedQuota: 500, status: TokenStatus.enabled });
    await books.expectBalanced();
  });

  test("setting a key's quota while calls are open keeps the books balanced", async () => {
    const user = await books.addUser(1_000);
    const token = await books.addToken(user, 1_000);
    const held = await books.ledger.reserve({ requestId: requestId(), user, token, amount: 100 });
    const spent = await books.ledger.reserve({ requestId: requestId(), user, token, amount: 100 });
    await books.db.atomic((tx) => books.ledger.setTokenQuota(tx, token.id, 5_000));
    await books.accounts.tokenChanged(token.id);
    await books.expectBalanced();
    await held.release();
    await spent.settle(settlement(70, { channelId }));
    await books.expectBalanced();
    expect(
      (await failureOf(() => books.db.atomic((tx) => books.ledger.setTokenQuota(tx, token.id, 1.5)))).code,
    ).toBe("quota_out_of_range");
  });

  test("an expired key gets its status durably and at once in memory; one that was extended meanwhile keeps its own", async () => {
    const user = await books.addUser(10);
    const token = await books.addToken(user);
    const { tokens } = books.db.t;
    const setTime = (expiredTime: number) =>
      books.db.orm.update(tokens).set({ expiredTime }).where(eq(tokens.id, token.id));
    // Extended while this process knew the time before, also by a process whose clock is ahead.
    for (const later of [-1, 4_000_000_000]) {
      await setTime(later);
      token.expiredTime = 1000;
      await books.ledger.tokenExpired(token);
      expect(token).toMatchObject({ status: TokenStatus.enabled, expiredTime: later });
      expect((await storedToken(token.id)).status).toBe(TokenStatus.enabled);
      // Looked at a moment ago: by a clock that is ahead every call of the key would ask for the same rows.
      const writes = spyOn(books.db.orm, "update");
      token.expiredTime = 1000;
      await books.ledger.tokenExpired(token);
      expect([writes.mock.calls.length, token.status]).toEqual([0, TokenStatus.enabled]);
      writes.mockRestore();
      books.clock.advance(5000);
    }
    await setTime(1000);
    const done = books.ledger.tokenExpired(token);
    expect(token.status).toBe(TokenStatus.expired);
    await done;
    expect((await storedToken(token.id)).status).toBe(TokenStatus.expired);
  });

  test("behind a commit all are marked before anybody is read, those that more than a credit changed as changed; a try that failed marks nobody", async () => {
    const ids = [1, 2, 3, 4].map(async () => (await books.addUser(5)).id);
    const [both = 0, credited = 0, changed = 0, undone = 0] = await Promise.all(ids);
    const reading = Promise.withResolvers<void>();
    const told: [string, readonly number[]][] = [];
    const watch = (name: "usersChanged" | "usersCharged") =>
      spyOn(books.accounts, name).mockImplementation((users) => {
        told.push([name, users.toSorted((one, other) => one - other)]);
        return reading.promise;
      });
    const watched = [watch("usersChanged"), watch("usersCharged")];
    const refused = books.ledger.atomic(function* (tx, credit) {
      books.ledger.changed(tx, undone);
      yield* credit({ userId: undone, amount: 1, kind: "redeem", ref: "undone" });
      throw new Error("refused");
    });
    await Promise.allSettled([refused]);
    const done = books.ledger.atomic(function* (tx, credit) {
      for (const userId of [credited, both])
        yield* credit({ userId, amount: 1, kind: "redeem", ref: `c${userId}` });
      for (const userId of [both, changed]) books.ledger.changed(tx, userId);
    });
    await untilSo(() => told.length === 2);
    expect(told).toEqual([
      ["usersChanged", [both, changed].toSorted((one, other) => one - other)],
      ["usersCharged", [credited]],
    ]);
    reading.reject(new Error("the database went away"));
    // The credit stands.
    await done;
    for (const each of watched) each.mockRestore();
  });

  test("a credit with a reference counts once, and a refused one takes the whole transaction with it", async () => {
    const user = await books.addUser(5);
    const { users } = books.db.t;
    const redeem = () =>
      books.ledger.atomic(function* (tx, credit) {
        yield* q(
          tx
            .update(users)
            .set({ displayName: "paid" })
            .where(eq(users.id, user.id))
            .returning({ id: users.id }),
        );
        yield* credit({ userId: user.id, amount: 100, kind: "redeem", ref: `code-${user.id}` });
      });
    await redeem();
    expect(user.quota).toBe(105);
    await books.db.orm.update(users).set({ displayName: "" }).where(eq(users.id, user.id));
    const second: unknown = await redeem().catch((error: unknown) => error);
    expect(isUniqueViolation(second)).toBe(true);
    expect(await storedUser(user.id)).toMatchObject({ quota: 105, displayName: "" });
    for (const [kindOfCredit, ref] of [
      ["payment", `code-${user.id}`],
      ["redeem", ""],
      ["redeem", ""],
    ] as const) {
      await books.ledger.atomic((_, credit) =>
        credit({ userId: user.id, amount: 1, kind: kindOfCredit, ref }),
      );
    }
    expect(user.quota).toBe(108);
    await books.expectBalanced();
  });

  test("credits outside the exact integers, and for nobody, are refused and change nothing", async () => {
    const user = await books.addUser(Number.MAX_SAFE_INTEGER);
    const give = (userId: number, amount: number) =>
      failureOf(() => books.ledger.atomic((_, credit) => credit({ userId, amount, kind: "admin" })));
    for (const amount of [1, 1.5, Number.NaN, 1e309, 2 ** 53]) {
      expect((await give(user.id, amount)).code).toBe("quota_out_of_range");
    }
    expect((await give(987_654_321, 5)).code).toBe("user_missing");
    expect((await storedUser(user.id)).quota).toBe(Number.MAX_SAFE_INTEGER);
    await books.ledger.atomic((_, credit) =>
      credit({ userId: user.id, amount: -Number.MAX_SAFE_INTEGER, kind: "admin" }),
    );
    await books.expectBalanced();
  });

  test("absurd charges from outside never raise a balance", async () => {
    const user = await books.addUser(50_000_000);
    for (const quota of [-5, Number.NaN, -Infinity, -1e300]) {
      const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
      await held.settle(settlement(quota, { channelId, promptTokens: -7, completionTokens: Number.NaN }));
    }
    await books.ledger.flush();
    expect(user).toMatchObject({ quota: 50_000_000, usedQuota: 0, requestCount: 4 });
    for (const amount of [-1, 0.5, Number.NaN, 2 ** 53]) {
      const refused = await failureOf(() =>
        books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount }),
      );
      expect(refused.code).toBe("quota_out_of_range");
    }
    await books.expectBalanced();
  });

  test("with consume logs switched off a call is charged and summed, but leaves no log row", async () => {
    const user = await books.addUser(50_000_000);
    await books.options.set("LogConsumeEnabled", "false");
    const id = requestId();
    await (
      await books.ledger.reserve({ requestId: id, user, token: undefined, amount: 5 })
    ).settle(settlement(5, { channelId }));
    await books.options.set("LogConsumeEnabled", "true");
    await books.expectBalanced();
    const { logs, rollups } = books.db.t;
    expect(await books.db.orm.select().from(logs).where(eq(logs.requestId, id))).toHaveLength(0);
    const [hour] = await books.db.orm.select().from(rollups).where(eq(rollups.userId, user.id));
    expect(hour).toMatchObject({ count: 1, quota: 5, loggedCount: 0, loggedQuota: 0 });
  });

  test("other log rows are kept, also with characters that a database refuses; consume rows need a settlement", async () => {
    const user = await books.addUser(0);
    const entry = { type: LogType.error, userId: user.id, username: user.username };
    await books.ledger.log({ ...entry, content: "bad\0 \ud800 text", other: { code: "x\0y" } });
    await books.db.atomic((tx) =>
      books.ledger.logSteps(tx, { ...entry, type: LogType.manage, content: "b" }),
    );
    await books.ledger.flush();
    const { logs } = books.db.t;
    const rows = await books.db.orm.select().from(logs).where(eq(logs.userId, user.id)).orderBy(logs.type);
    expect(rows.map((row) => [row.type, row.content])).toEqual([
      [LogType.manage, "b"],
      [LogType.error, "bad � text"],
    ]);
    expect(JSON.parse(rows[1]?.other ?? "")).toEqual({ code: "x\0y" });
    expect(() => books.ledger.log({ ...entry, type: LogType.consume, content: "" })).toThrow();
    await books.expectBalanced();
  });

  test("errors of names that no channel was asked for are one sum, whatever clients choose; those of channels have theirs", async () => {
    const user = await books.addUser(0);
    const entry = { type: LogType.error, userId: user.id, username: user.username, content: "" };
    for (const modelName of ["made up", "made up too", ""]) await books.ledger.log({ ...entry, modelName });
    await books.ledger.log({ ...entry, modelName: "served", channelId });
    await books.ledger.flush();
    const { rollups } = books.db.t;
    const sums = await books.db.orm.select().from(rollups).where(eq(rollups.userId, user.id));
    expect(sums.map((sum) => [sum.modelName, sum.errorCount]).sort()).toEqual([
      ["", 3],
      ["served", 1],
    ]);
    await books.expectBalanced();
  });

  test("a reservation that nobody closes is given back, and a settlement that still comes is charged", async () => {
    const user = await books.addUser(50_000_000);
    const poor = await books.addUser(100);
    const lost = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 70 });
    const lostToo = await books.ledger.reserve({
      requestId: requestId(),
      user: poor,
      token: undefined,
      amount: 70,
    });
    books.clock.advance(3 * 60 * 60 * 1000);
    const young = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
    await books.ledger.maintain();
    await books.ledger.flush();
    expect([user.reserved, poor.reserved, poor.quota]).toEqual([5, 0, 100]);
    await books.expectBalanced();
    await lost.settle(settlement(10, { channelId }));
    await lostToo.settle(settlement(10, { channelId }));
    await young.release();
    await books.expectBalanced();
    expect((await storedUser(user.id)).quota).toBe(50_000_000 - 10);
    expect((await storedUser(poor.id)).quota).toBe(90);
  });

  test("calls of a user who was removed meanwhile are still recorded", async () => {
    const user = await books.addUser(50_000_000);
    const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
    const { users, credits, logs } = books.db.t;
    await books.db.orm.delete(users).where(eq(users.id, user.id));
    await books.db.orm.delete(credits).where(eq(credits.userId, user.id));
    await books.accounts.userChanged(user.id);
    await held.settle(settlement(5, { channelId }));
    await books.expectBalanced();
    expect(user.deleted).toBe(true);
    expect(await books.db.orm.select().from(logs).where(eq(logs.userId, user.id))).toHaveLength(1);
  });

  test("whatever the order of reservations, settlements, releases and credits, every sum agrees", async () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant("reserve" as const), amount: fc.nat(400) }) },
      {
        weight: 4,
        arbitrary: fc.record({ do: fc.constant("settle" as const), pick: fc.nat(20), quota: fc.nat(600) }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("release" as const), pick: fc.nat(20) }) },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constant("credit" as const),
          amount: fc.integer({ min: -50, max: 900 }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.nat(3_000_000) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("flush" as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.nat(3000),
        fc.option(fc.nat(2000)),
        async (steps, quota, limit) => {
          const user = await books.addUser(quota);
          const token = await books.addToken(user, limit ?? undefined);
          const open: Reservation[] = [];
          const running: Promise<void>[] = [];
          for (const each of steps) {
            if (each.do === "reserve") {
              try {
                open.push(
                  await books.ledger.reserve({ requestId: requestId(), user, token, amount: each.amount }),
                );
              } catch (error) {
                // Refused for good, or because open holds alone are in the way.
                const isRight =
                  error instanceof Failure && (error.kind === "quota" || error.code === "quota_held");
                if (!isRight) throw error;
                if (error.code === "quota_held") expect(open.length).toBeGreaterThan(0);
              }
            } else if (each.do === "settle") {
              const held = open[each.pick % Math.max(1, open.length)];
              if (held) running.push(held.settle(settlement(each.quota, { channelId })));
            } else if (each.do === "release") {
              const held = open[each.pick % Math.max(1, open.length)];
              if (held) running.push(held.release());
            } else if (each.do === "credit") {
              running.push(
                books.ledger.atomic((_, credit) =>
                  credit({ userId: user.id, amount: each.amount, kind: "admin" }),
                ),
              );
            } else if (each.do === "pass") books.clock.advance(each.ms);
            else await books.expectBalanced();
          }
          await Promise.all(running);
          await Promise.all(open.map((held) => held.release()));
          await books.expectBalanced();
          expect([user.reserved, token.reserved]).toEqual([0, 0]);
          expect((await storedUser(user.id)).quota).toBe(user.quota);
        },
      ),
      { numRuns: kind === "sqlite" ? 60 : 30, endOnFailure: true },
    );
  });
});

test.each(DATABASE_KINDS)(
  "on %s, while nothing can be recorded, calls are refused before they cost anything; they go on once there is room",
  async (kind) => {
    let isFull = false;
    const books = await startBooks(kind, {
      wrapJournal: (journal) => ({
        ...journal,
        get lastPosition() {
          return journal.lastPosition;
        },
        append(items) {
          if (isFull) throw new Error("no space left on device");
          journal.append(items);
        },
        async appendLater(items) {
          if (isFull) throw new Error("no space left on device");
          await journal.appendLater(items);
        },
        prove: () => !isFull && journal.prove(),
      }),
    });
    await books.addChannel();
    const user = await books.addUser(1_000_000_000);
    const open = async () =>
      books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 5 });
    const [first, second] = [await open(), await open()];
    isFull = true;
    const down = { code: "ledger_down", status: 503 };
    expect(await failureOf(() => first.settle(settlement(7)))).toMatchObject(down);
    expect(await failureOf(open)).toMatchObject(down);
    expect(await failureOf(() => second.settle(settlement(7)))).toMatchObject(down);
    expect(user).toMatchObject({ quota: 1_000_000_000, reserved: 0 });
    // Time alone opens nothing: a write that was proved does.
    for (let second = 0; second < 5; second++) {
      books.clock.advance(1000);
      expect(await failureOf(open)).toMatchObject(down);
    }
    isFull = false;
    expect(await failureOf(open)).toMatchObject(down);
    books.clock.advance(1000);
    await (await open()).settle(settlement(7));
    await books.expectBalanced();
    expect(user).toMatchObject({ quota: 999_999_993, reserved: 0, requestCount: 1 });
    await books.close();
  },
);
