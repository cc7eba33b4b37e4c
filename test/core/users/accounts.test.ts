// In-memory accounts: what changes in the database is in force here, and memory stays bounded.
// Refuses to test balances, which belong to the ledger's tests.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { parseAllowIps } from "../../../src/core/users/account-rows.ts";
import { sha256Hex } from "../../../src/core/kit/seal.ts";
import { rawQuery } from "../../../src/db/database.ts";
import type { Database } from "../../../src/db/database.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { startBooks } from "../ledger/support.ts";
import type { Books, TestBooks } from "../ledger/support.ts";
import { handTurned } from "../../support/rest.ts";
import { untilSo } from "../../support/turns.ts";

describe.each(DATABASE_KINDS)("accounts on %s", (kind) => {
  let books: TestBooks;
  let reads = 0;

  function countReads(db: Database): Database {
    const orm = new Proxy(db.orm, {
      get(target, name, receiver) {
        if (name === "select") reads++;
        const value: unknown = Reflect.get(target, name, receiver);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    return { ...db, orm };
  }

  beforeAll(async () => {
    books = await startBooks(kind, {
      wrap: countReads,
      refreshMs: 0,
      limits: { maxTokens: 50, maxUsers: 20, maxMisses: 10 },
    });
  });
  afterAll(() => books.close());

  test("a known key answers at once and without the database, as one object for the whole process", async () => {
    const user = await books.addUser(5);
    const token = await books.addToken(user);
    reads = 0;
    expect(books.accounts.tokenByKey(token.name)).toBe(token);
    expect(token.user).toBe(user);
    expect(books.accounts.user(user.id)).toBe(user);
    expect(reads).toBe(0);
    expect(token.masked).toBe("abc***xyz");
  });

  test("many first uses of one key at once read it once", async () => {
    const user = await books.addUser(5);
    const { tokens } = books.db.t;
    await books.db.orm.insert(tokens).values({ userId: user.id, keyHash: sha256Hex("crowd"), keySealed: "" });
    reads = 0;
    const found = await Promise.all(
      Array.from({ length: 50 }, async () => await books.accounts.tokenByKey("crowd")),
    );
    expect(new Set(found).size).toBe(1);
    expect(found[0]?.userId).toBe(user.id);
    expect(reads).toBe(1);
  });

  test("an unknown key is looked up once a second at most, and works at once when it is created", async () => {
    reads = 0;
    expect(await books.accounts.tokenByKey("newcomer")).toBeUndefined();
    expect(books.accounts.tokenByKey("newcomer")).toBeUndefined();
    expect(reads).toBe(1);
    books.clock.advance(1001);
    expect(await books.accounts.tokenByKey("newcomer")).toBeUndefined();
    expect(reads).toBe(2);
    const user = await books.addUser(5);
    const { tokens } = books.db.t;
    const [row] = await books.db.orm
      .insert(tokens)
      .values({ userId: user.id, keyHash: sha256Hex("newcomer"), keySealed: "" })
      .returning({ id: tokens.id });
    await books.accounts.tokenChanged(row?.id ?? 0);
    expect((await books.accounts.tokenByKey("newcomer"))?.id).toBe(row?.id);
    for (const key of ["", "x".repeat(5000)]) expect(books.accounts.tokenByKey(key)).toBeUndefined();
  });

  test("a changed, then deleted key is seen by those who hold the object, then unknown", async () => {
    const user = await books.addUser(5);
    const token = await books.addToken(user, 100);
    const { tokens } = books.db.t;
    const change = async (values: Partial<typeof tokens.$inferInsert>) => {
      await books.db.orm.update(tokens).set(values).where(eq(tokens.id, token.id));
      await books.accounts.tokenChanged(token.id);
    };
    await change({
      status: 2,
      modelLimitsEnabled: true,
      modelLimits: "gpt-5, o3,,",
      allowIps: "1.2.3.4\nnonsense\n10.0. 0.0/8,\n::1\n300.1.1.1\n1.2.3",
      group: "vip",
      expiredTime: 77,
    });
    expect(books.accounts.tokenByKey(token.name)).toBe(token);
    expect(token).toMatchObject({ status: 2, group: "vip", expiredTime: 77 });
    expect([...(token.modelLimits ?? [])]).toEqual(["gpt-5", "o3"]);
    expect(token.allowIps).toEqual(["1.2.3.4", "10.0.0.0/8", "::1"]);
    await change({ modelLimitsEnabled: false });
    expect(token.modelLimits).toBeUndefined();
    await change({ deletedAt: 1 });
    expect(await books.accounts.tokenByKey(token.name)).toBeUndefined();
  });

  test("a disabled user stays known as disabled; a deleted one is unknown with all keys", async () => {
    const user = await books.addUser(5);
    const token = await books.addToken(user);
    const { users } = books.db.t;
    await books.db.orm
      .update(users)
      .set({ status: 2, setting: '{"notify_type":"email"}' })
      .where(eq(users.id, user.id));
    await books.accounts.userChanged(user.id);
    expect(token.user).toMatchObject({ status: 2, setting: { notify_type: "email" } });
    await books.db.orm.update(users).set({ setting: "[1" }).where(eq(users.id, user.id));
    await books.accounts.userChanged(user.id);
    expect(user.setting).toEqual({});
    await books.db.orm.update(users).set({ deletedAt: 5 }).where(eq(users.id, user.id));
    await books.accounts.userChanged(user.id);
    expect(user.deleted).toBe(true);
    expect(await books.accounts.user(user.id)).toBeUndefined();
    expect(await books.accounts.tokenByKey(token.name)).toBeUndefined();
    expect(await books.accounts.user(999_999)).toBeUndefined();
  });

  test("a system access token finds its user until it is replaced", async () => {
    const user = await books.addUser(5);
    const { users } = books.db.t;
    await books.db.orm
      .update(users)
      .set({ accessTokenHash: sha256Hex("secret") })
      .where(eq(users.id, user.id));
    expect(await books.accounts.userByAccessToken("secret")).toBe(user);
    for (const wrong of ["", "other", "x".repeat(9000)]) {
      expect(await books.accounts.userByAccessToken(wrong)).toBeUndefined();
    }
  });

  test("memory is bounded, but whoever has an open reservation stays", async () => {
    const held = await books.addUser(1_000_000_000);
    const token = await books.addToken(held);
    const reservation = await books.ledger.reserve({ requestId: "bound", user: held, token, amount: 9 });
    const seen: number[] = [];
    for (let count = 0; count < 60; count++) {
      const user = await books.addUser(0);
      await books.addToken(user);
      seen.push(user.id);
    }
    const collector = await books.addUser(0);
    const keys: string[] = [];
    for (let count = 0; count < 120; count++) keys.push((await books.addToken(collector)).name);
    reads = 0;
    for (const key of keys) await books.accounts.tokenByKey(key);
    expect(reads).toBeGreaterThan(20);
    expect(books.accounts.cachedUser(held.id)).toBe(held);
    expect(books.accounts.cachedToken(token.id)).toBe(token);
    expect(seen.filter((id) => books.accounts.cachedUser(id) !== undefined).length).toBeLessThanOrEqual(20);
    await reservation.release();
    expect(held.reserved).toBe(0);
  });

  test("a read that a change overtakes does not bring the old row back", async () => {
    const user = await books.addUser(5);
    const { users } = books.db.t;
    const reading = books.accounts.refresh();
    await books.db.orm.update(users).set({ group: "late" }).where(eq(users.id, user.id));
    await books.accounts.userChanged(user.id);
    await reading;
    expect(user.group).toBe("late");
  });
});

describe("what other processes write, on PostgreSQL", () => {
  let a: TestBooks;
  let b: Books;
  /** Which tables node b read accounts from, statement by statement; its lease looks at a row of its own beside them. */
  let asked: string[] = [];
  const watched = (db: Database): Database => {
    const { users, tokens } = db.t;
    const watch = (builder: object): object =>
      new Proxy(builder, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== "function") return value;
          return (...args: unknown[]): unknown => {
            if (name === "from" && args[0] === users) asked.push("users");
            if (name === "from" && args[0] === tokens) asked.push("tokens");
            const result: unknown = value.apply(target, args);
            return name === "select" ? watch(result as object) : result;
          };
        },
      });
    const orm = watch(db.orm) as Database["orm"];
    return { ...db, orm };
  };
  beforeAll(async () => {
    a = await startBooks("postgres", { refreshMs: 0 });
    b = await a.join("node-b", { refreshMs: 0, wrap: watched });
  });
  afterAll(() => a.close());

  /** Node b as nobody announces anything to it: as a charge, or an operator's own SQL. */
  const write = (statement: SQL) => rawQuery(a.db.orm, statement);

  test("is in force after a round, whoever wrote it, and only those rows are read", async () => {
    const known = await Promise.all(Array.from({ length: 100 }, () => a.addUser(1000)));
    const keys = await Promise.all(known.map((user) => a.addToken(user)));
    const seen = await Promise.all(keys.map(async ({ name }) => b.accounts.tokenByKey(name)));
    await b.accounts.refresh();
    const [user, key] = [known[3], keys[7]];
    await write(sql`update users set status = 2, quota = quota - 10 where id = ${user?.id}`);
    await write(sql`update tokens set status = 2 where id = ${key?.id}`);
    asked = [];
    await b.accounts.refresh();
    expect([seen[3]?.user.status, seen[3]?.user.quota, seen[7]?.status]).toEqual([2, 990, 2]);
    // Both tables once, whatever the number of accounts.
    expect(asked).toEqual(["users", "tokens"]);
    asked = [];
    await b.accounts.refresh();
    expect(asked).toEqual([]);
    await write(sql`delete from tokens where id = ${key?.id}`);
    await b.accounts.refresh();
    expect(b.accounts.cachedToken(key?.id ?? 0)).toBeUndefined();
  });

  test("is read on its next use where the account rested, whichever of its keys comes first", async () => {
    const user = await a.addUser(1000);
    const keys = [await a.addToken(user), await a.addToken(user)];
    const seen = await Promise.all(keys.map(async ({ name }) => b.accounts.tokenByKey(name)));
    const busy = await a.addUser(1);
    const rounds = async (count: number) => {
      for (let round = 0; round < count; round++) {
        // Somebody else keeps the node asking.
        await b.accounts.user(busy.id);
        await b.accounts.refresh();
      }
    };
    await rounds(45);
    await write(sql`update tokens set status = 2 where id = ${keys[1]?.id}`);
    await write(sql`update users set quota = 5 where id = ${user.id}`);
    await rounds(1);
    expect([seen[1]?.status, seen[1]?.user.quota]).toEqual([1, 1000]);
    await b.accounts.tokenByKey(keys[0]?.name ?? "");
    expect(seen[0]?.user.quota).toBe(5);
    const second = b.accounts.tokenByKey(keys[1]?.name ?? "");
    expect(second).toBeInstanceOf(Promise);
    expect((await second)?.status).toBe(2);
    // Nothing was written since: they are found without the database, rested or not.
    await rounds(45);
    asked = [];
    expect(b.accounts.tokenByKey(keys[1]?.name ?? "")).toBe(seen[1]);
    expect(asked).toEqual([]);
  });

  test("is in force for the first call after a rest, with whatever else it goes by, though the account was asked for just before", async () => {
    const hand = handTurned();
    let caughtUp: Promise<void> | undefined;
    const use = () => {
      hand.around.use();
      return caughtUp;
    };
    const wrap = (db: Database): Database => ({ ...db, use });
    const c = await a.join("node-c", { refreshMs: 500, around: hand.around, wrap });
    const key = await a.addToken(await a.addUser(1000));
    const seen = await c.accounts.tokenByKey(key.name);
    expect(c.accounts.tokenByKey(key.name)).toBe(seen);
    hand.rest();
    await write(sql`update tokens set status = 2 where id = ${key.id}`);
    const first = c.accounts.tokenByKey(key.name);
    expect(first).toBeInstanceOf(Promise);
    expect((await first)?.status).toBe(2);
    const others = Promise.withResolvers<void>();
    caughtUp = others.promise;
    let isAnswered = false;
    const second = Promise.resolve(c.accounts.tokenByKey(key.name)).finally(() => (isAnswered = true));
    await c.accounts.refresh();
    expect(isAnswered).toBe(false);
    others.resolve();
    expect(await second).toBe(seen);
  });

  test("is found where nobody asked for a while, and a node that nobody calls asks nothing", async () => {
    const key = await a.addToken(await a.addUser(1000));
    const seen = await b.accounts.tokenByKey(key.name);
    for (let round = 0; round < 45; round++) await b.accounts.refresh();
    await write(sql`update tokens set status = 2 where id = ${key.id}`);
    for (let round = 0; round < 5; round++) await b.accounts.refresh();
    expect(seen?.status).toBe(1);
    expect((await b.accounts.tokenByKey(key.name))?.status).toBe(2);
  });
});

describe("accounts of two nodes", () => {
  test("a key revoked, a user disabled or credited on one node is so on the other without being asked", async () => {
    const a = await startBooks("postgres");
    const b = await a.join("node-b");
    const owner = await a.addUser(5);
    const key = await a.addToken(owner);
    const seen = await b.accounts.tokenByKey(key.name);
    if (!seen) throw new Error("no token");
    const { tokens } = a.db.t;
    /** Until node b was told; announcements arrive on their own, a test's time limit is the judge. */
    const until = untilSo;
    await a.ledger.atomic((_, credit) => credit({ userId: owner.id, amount: 7, kind: "admin" }));
    await until(() => seen.user.quota === 12);
    await a.db.orm.update(tokens).set({ status: 2 }).where(eq(tokens.id, key.id));
    await a.accounts.tokenChanged(key.id);
    await until(() => seen.status === 2);
    expect(seen.status).toBe(2);
    await a.close();
  });

  test("a rotated key is the same account on the other node: under its new secret, and the old one for its time", async () => {
    const a = await startBooks("postgres");
    const b = await a.join("node-b");
    const key = await a.addToken(await a.addUser(5));
    const seen = await b.accounts.tokenByKey(key.name);
    if (!seen) throw new Error("no token");
    const until = untilSo;
    const { tokens } = a.db.t;
    const rotate = async (secret: string, previousKeyHash: string | null) => {
      const previousUntil = previousKeyHash === null ? 0 : Math.floor(Date.now() / 1000) + 3600;
      const set = { keyHash: sha256Hex(secret), previousKeyHash, previousUntil };
      await a.db.orm.update(tokens).set(set).where(eq(tokens.id, key.id));
      await a.accounts.tokenChanged(key.id);
    };
    // Held by a call of node b, which must not lose sight of it.
    seen.reserved = 3;
    await rotate("second secret", sha256Hex(key.name));
    await until(async () => (await b.accounts.tokenByKey("second secret")) === seen);
    expect(await b.accounts.tokenByKey(key.name)).toBe(seen);
    await rotate("third secret", null);
    await until(() => b.accounts.tokenByKey("third secret") === seen);
    expect([await b.accounts.tokenByKey(key.name), await b.accounts.tokenByKey("second secret")]).toEqual([
      undefined,
      undefined,
    ]);
    expect(seen.reserved).toBe(3);
    seen.reserved = 0;
    await a.close();
  });
});

test.each([
  ["", []],
  [" 1.1.1.1 \r\n2.2.2.2,", ["1.1.1.1", "2.2.2.2"]],
  ["1\n0x7f.1\nexample.com\n1.1.1.1/33\n/8", []],
  ["2001:db8::/32\nfe80::1", ["2001:db8::/32", "fe80::1"]],
])("the address list %j allows %j", (text, expected) => {
  expect(parseAllowIps(text)).toEqual(expected);
});
