// The database layer's promises, the same on SQLite and on a real PostgreSQL.
// Refuses the tables' meaning: rows here are only rows.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, asc, eq, gte, sql } from "drizzle-orm";
import { connect } from "../../src/db/connect.ts";
import { contains, countRows, escapeLike, q, startsWith, sumOf } from "../../src/db/database.ts";
import type { Database } from "../../src/db/database.ts";
import { isUniqueViolation, sqlState } from "../../src/db/sql-state.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";

async function errorOf(action: PromiseLike<unknown>): Promise<unknown> {
  try {
    await action;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

describe.each(DATABASE_KINDS)("database on %s", (kind) => {
  let place: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    place = await createTestDatabase(kind);
    db = await connect({ dataDir: place.dataDir, databaseUrl: place.databaseUrl ?? "" });
  });
  afterAll(async () => {
    await db.close();
    await place.drop();
  });

  async function addUser(username: string, quota = 0): Promise<number> {
    const { users } = db.t;
    const [row] = await db.orm.insert(users).values({ username, quota }).returning({ id: users.id });
    if (!row) throw new Error("no row");
    return row.id;
  }

  test("columns that are not given get their defaults, and come back as the types they were written in", async () => {
    const { users, tokens } = db.t;
    const [user] = await db.orm.insert(users).values({ username: "defaults" }).returning();
    expect(user).toMatchObject({
      role: 1,
      status: 1,
      quota: 0,
      group: "default",
      accessTokenHash: null,
      deletedAt: null,
      sessionVersion: 1,
    });
    const values = { userId: user?.id ?? 0, keyHash: "h", keySealed: "", unlimitedQuota: true };
    const [token] = await db.orm
      .insert(tokens)
      .values({ ...values, remainQuota: 2 ** 53 - 1 })
      .returning();
    expect(token).toMatchObject({
      unlimitedQuota: true,
      modelLimitsEnabled: false,
      remainQuota: 2 ** 53 - 1,
    });
  });

  test("update and delete answer the rows they touched", async () => {
    const { users } = db.t;
    const id = await addUser("returned");
    const change = (group: string) =>
      db.orm.update(users).set({ group }).where(eq(users.id, id)).returning({ group: users.group });
    expect(await change("vip")).toEqual([{ group: "vip" }]);
    expect(await db.orm.delete(users).where(eq(users.id, id)).returning({ id: users.id })).toEqual([{ id }]);
    expect(await change("vip")).toEqual([]);
  });

  test("an upsert adds to what is there", async () => {
    const { marks } = db.t;
    const add = (value: number) =>
      db.orm
        .insert(marks)
        .values({ key: "sum", value })
        .onConflictDoUpdate({ target: marks.key, set: { value: sql`${marks.value} + excluded.value` } })
        .returning({ value: marks.value });
    await add(3);
    expect(await add(4)).toEqual([{ value: 7 }]);
  });

  test("a throw inside an atomic block leaves nothing of it, and the next block works", async () => {
    const { users } = db.t;
    const spoiled = db.atomic(function* (tx) {
      yield* q(tx.insert(users).values({ username: "ghost" }).returning({ id: users.id }));
      throw new Error("changed my mind");
    });
    expect(String(await errorOf(spoiled))).toContain("changed my mind");
    expect(await db.orm.select().from(users).where(eq(users.username, "ghost"))).toEqual([]);
    const broken = db.atomic(function* (tx) {
      yield* q(tx.insert(users).values({ username: "twin" }).returning({ id: users.id }));
      yield* q(tx.insert(users).values({ username: "twin" }).returning({ id: users.id }));
    });
    expect(isUniqueViolation(await errorOf(broken))).toBe(true);
    expect(await db.orm.select().from(users).where(eq(users.username, "twin"))).toEqual([]);
    const value = await db.atomic(function* (tx) {
      const [row] = yield* q(tx.insert(users).values({ username: "twin" }).returning({ id: users.id }));
      return row !== undefined;
    });
    expect(value).toBe(true);
  });

  test("50 concurrent guarded spends against a balance for 3: exactly 3 succeed", async () => {
    const { users, logs } = db.t;
    const id = await addUser("spender", 30);
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, () =>
        db.atomic(function* (tx) {
          const [row] = yield* q(
            tx
              .update(users)
              .set({ requestCount: sql`${users.requestCount} + 1`, quota: sql`${users.quota} - 10` })
              .where(and(eq(users.id, id), gte(users.quota, 10)))
              .returning({ id: users.id }),
          );
          if (!row) return false;
          yield* q(tx.insert(logs).values({ userId: id, type: 2, createdAt: 1 }).returning({ id: logs.id }));
          return true;
        }),
      ),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(3);
    const [user] = await db.orm.select().from(users).where(eq(users.id, id));
    expect(user).toMatchObject({ quota: 0, requestCount: 3 });
    const [count] = await db.orm.select({ rows: countRows() }).from(logs).where(eq(logs.userId, id));
    expect(count?.rows).toBe(3);
  });

  test("a search term's wildcards mean themselves, and case does not matter", async () => {
    const { users } = db.t;
    for (const name of ["Rate_100%", "rateX100Y", "back\\slash", "中文名"]) await addUser(name);
    const names = async (where: ReturnType<typeof contains>) => {
      const rows = await db.orm.select().from(users).where(where).orderBy(asc(users.id));
      return rows.map((row) => row.username);
    };
    expect(await names(contains(users.username, "E_100%"))).toEqual(["Rate_100%"]);
    expect(await names(contains(users.username, "RATE"))).toEqual(["Rate_100%", "rateX100Y"]);
    expect(await names(contains(users.username, "\\"))).toEqual(["back\\slash"]);
    expect(await names(contains(users.username, "%"))).toEqual(["Rate_100%"]);
    expect(await names(contains(users.username, "文"))).toEqual(["中文名"]);
    expect(await names(startsWith(users.username, "rate_"))).toEqual(["Rate_100%"]);
    expect(escapeLike("a%b_c\\")).toBe("a\\%b\\_c\\\\");
  });

  test("the reader answers from its own connection what was committed before, with sums as numbers", async () => {
    const { credits } = db.t;
    const [empty] = await db.reader.select({ sum: sumOf(credits.amount), rows: countRows() }).from(credits);
    expect(empty).toEqual({ sum: 0, rows: 0 });
    await db.orm
      .insert(credits)
      .values([1, 2, 40].map((amount) => ({ userId: 1, amount, kind: "admin", createdAt: 1 })));
    const [full] = await db.reader.select({ sum: sumOf(credits.amount), rows: countRows() }).from(credits);
    expect(full).toEqual({ sum: 43, rows: 3 });
    const rows = await db.reader.select().from(credits).where(eq(credits.amount, 40));
    expect(rows[0]).toMatchObject({ userId: 1, amount: 40, kind: "admin", ref: "" });
    const { users } = db.t;
    const many = await Promise.all(
      Array.from({ length: 20 }, () => db.reader.select({ rows: countRows() }).from(users)),
    );
    expect(new Set(many.map(([row]) => row?.rows)).size).toBe(1);
    expect(await errorOf(db.reader.select({ x: sql`no_such_function(1)` }).from(users))).toBeInstanceOf(
      Error,
    );
    expect(await db.reader.select({ rows: countRows() }).from(credits)).toEqual([{ rows: 3 }]);
  });

  test("only a broken unique rule counts as one", async () => {
    const { users } = db.t;
    await addUser("only");
    expect(isUniqueViolation(await errorOf(addUser("only")))).toBe(true);
    const nothing = db.orm.insert(users).values({ username: sql`null` });
    const error = await errorOf(nothing);
    expect(sqlState(error)).not.toBe("");
    expect(isUniqueViolation(error)).toBe(false);
    expect(sqlState(new Error("plain"))).toBe("");
  });

  test("it answers a ping", async () => {
    expect(await db.ping()).toBe(true);
  });
});

test("on SQLite the reader cannot write, and an atomic block inside another is refused", async () => {
  const place = await createTestDatabase("sqlite");
  const db = await connect({ dataDir: place.dataDir, databaseUrl: "" });
  const { users } = db.t;
  await errorOf(db.reader.insert(users).values({ username: "sneaky" }));
  expect(await db.orm.select().from(users)).toEqual([]);
  const nested = db.atomic(function* (tx) {
    yield* q(tx.insert(users).values({ username: "outer" }).returning({ id: users.id }));
    void db
      .atomic(function* (inner) {
        yield* q(inner.insert(users).values({ username: "inner" }).returning({ id: users.id }));
      })
      .catch((error: unknown) => {
        nestedError = error;
      });
  });
  let nestedError: unknown;
  await nested;
  expect(String(nestedError)).toContain("inside another");
  expect((await db.orm.select().from(users)).map((row) => row.username)).toEqual(["outer"]);
  await db.close();
  await place.drop();
});
