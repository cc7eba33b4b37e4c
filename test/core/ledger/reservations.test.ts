// What a balance near its end can hold, on both databases alike: what comes back counts, open holds only delay, steps fit.
// Refuses to look at settlement itself, which ledger.test.ts covers.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Reservation } from "../../../src/core/deps.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { requestId, settlement, startBooks } from "./support.ts";
import type { TestBooks } from "./support.ts";

async function failureOf(ask: () => unknown): Promise<Failure> {
  try {
    await ask();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe.each(DATABASE_KINDS)("near the end of a balance on %s", (kind) => {
  let books: TestBooks;
  beforeEach(async () => {
    books = await startBooks(kind);
    await books.addChannel();
  });
  afterEach(() => books.close());

  test("calls one after another on a balance that pays one and a half reservations are all let through", async () => {
    const owner = await books.addUser(1500);
    const key = await books.addToken(owner, 1500);
    for (const token of [undefined, key]) {
      for (let call = 0; call < 24; call++) {
        const held = await books.ledger.reserve({ requestId: requestId(), user: owner, token, amount: 1000 });
        await held.settle(settlement(1));
      }
      for (let call = 0; call < 24; call++) {
        const held = await books.ledger.reserve({ requestId: requestId(), user: owner, token, amount: 1000 });
        await held.release();
      }
    }
    await books.expectBalanced();
    expect(await books.user(owner.id)).toMatchObject({ quota: 1452, reserved: 0, pending: 0, returning: 0 });
  });

  test("turn after turn: what a turn gave back pays the next at once, also before it is durable", async () => {
    const owner = await books.addUser(1500);
    const others = await Promise.all(Array.from({ length: 4 }, () => books.addUser(1500)));
    await Promise.all(
      [owner, ...others].map(async (user) => {
        for (let turn = 0; turn < 12; turn++) {
          const held = await books.ledger.reserve({
            requestId: requestId(),
            user,
            token: undefined,
            amount: 1000,
          });
          void held.settle(settlement(2));
        }
      }),
    );
    await books.expectBalanced();
    for (const user of [owner, ...others]) expect(user).toMatchObject({ quota: 1476, reserved: 0 });
  });

  test("where only open holds are in the way the caller is asked to come again, with 429; else 403", async () => {
    const owner = await books.addUser(1500);
    const key = await books.addToken(owner, 1200);
    const ask = (amount: number, token = key) =>
      books.ledger.reserve({ requestId: requestId(), user: owner, token, amount });
    const held = await ask(1000);
    expect(await failureOf(() => ask(1000))).toMatchObject({
      kind: "limit",
      code: "quota_held",
      status: 429,
      retryAfterSeconds: 2,
    });
    expect(await failureOf(() => ask(1300))).toMatchObject({ code: "token_quota_short", status: 403 });
    expect(await failureOf(() => ask(1600))).toMatchObject({ code: "user_quota_short", status: 403 });
    const rest = await ask(200);
    expect(await failureOf(() => ask(0))).toMatchObject({ code: "quota_held" });
    await held.settle(settlement(900));
    await rest.release();
    expect(await failureOf(() => ask(1000))).toMatchObject({ status: 403 });
    await (await ask(300)).settle(settlement(300));
    // What is charged already does not come back by waiting.
    expect(await failureOf(() => ask(1))).toMatchObject({ code: "token_quota_short", status: 403 });
    expect(await failureOf(() => ask(0))).toMatchObject({ code: "token_quota_short", status: 403 });
    await books.expectBalanced();
  });

  test("less than asked is held where less is there, but not less than the least", async () => {
    const owner = await books.addUser(1000);
    const key = await books.addToken(owner, 700);
    const ask = (amount: number, least: number, token?: typeof key) =>
      books.ledger.reserve({ requestId: requestId(), user: owner, token, amount, least });
    const first = await ask(5000, 100, key);
    expect(first.amount).toBe(700);
    expect(await failureOf(() => ask(5000, 1, key))).toMatchObject({ code: "quota_held" });
    const second = await ask(5000, 300);
    expect(second.amount).toBe(300);
    await second.release();
    expect(await failureOf(() => ask(5000, 301))).toMatchObject({ code: "quota_held" });
    expect(await failureOf(() => ask(5000, 1001))).toMatchObject({ code: "user_quota_short" });
    await first.settle(settlement(10));
    const third = await ask(5000, 16);
    expect(third.amount).toBe(990);
    await third.settle(settlement(990));
    expect((await failureOf(() => ask(0, 0))).code).toBe("user_quota_empty");
    await books.expectBalanced();
    expect(await books.user(owner.id)).toMatchObject({ quota: 0, usedQuota: 1000, reserved: 0 });
  });

  test("a hold is lengthened while user and key can pay, cut to what they can, and settled to the unit", async () => {
    const owner = await books.addUser(1000);
    const key = await books.addToken(owner, 800);
    const ask = (amount: number) =>
      books.ledger.reserve({ requestId: requestId(), user: owner, token: key, amount });
    const held = await ask(100);
    expect(await held.grow(300)).toBe(300);
    expect(held.amount).toBe(400);
    const other = await ask(300);
    expect(await held.grow(300)).toBe(100);
    expect(await held.grow(300)).toBe(0);
    expect(await failureOf(() => ask(1))).toMatchObject({ code: "quota_held" });
    await other.release();
    expect(await held.grow(50)).toBe(50);
    await held.settle(settlement(520));
    expect(await held.grow(10)).toBe(0);
    await books.expectBalanced();
    expect(await books.user(owner.id)).toMatchObject({ quota: 480, usedQuota: 520, reserved: 0 });
    const token = await books.accounts.tokenByKey(key.name);
    expect(token).toMatchObject({ remainQuota: 280, reserved: 0 });
  });

  test("parallel streams that start at nothing never hold more together than there is", async () => {
    const owner = await books.addUser(10_000);
    const held: Reservation[] = await Promise.all(
      Array.from({ length: 40 }, async () =>
        books.ledger.reserve({ requestId: requestId(), user: owner, token: undefined, amount: 0 }),
      ),
    );
    for (let round = 0; round < 4; round++) await Promise.all(held.map(async (each) => each.grow(100)));
    const sum = held.reduce((total, each) => total + each.amount, 0);
    expect(sum).toBe(10_000);
    await Promise.all(held.map((each) => each.settle(settlement(each.amount))));
    await books.expectBalanced();
    expect(await books.user(owner.id)).toMatchObject({ quota: 0, usedQuota: 10_000, reserved: 0 });
  });
});
