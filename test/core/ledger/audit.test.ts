// The audit itself: a clean book passes, and every single figure that is off is named.
// Refuses to be content with a count: row and both figures are checked.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq, like, sql } from "drizzle-orm";
import { MOST_DIFFERENCES } from "../../../src/core/ledger/audit-lines.ts";
import { forgetMonths } from "../../../src/core/ledger/audit-months.ts";
import { audit, formatAudit } from "../../../src/core/ledger/audit.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { requestId, settlement, startBooks } from "./support.ts";
import type { TestBooks } from "./support.ts";

/** Of the calls that `settlement` makes. */
const MODEL = "gpt-4o-mini";

describe.each(DATABASE_KINDS)("audit on %s", (kind) => {
  let books: TestBooks;
  let userId: number;
  let tokenId: number;
  let channelId: number;
  let hour: number;

  beforeAll(async () => {
    books = await startBooks(kind);
    channelId = await books.addChannel();
    const user = await books.addUser(50_000_000);
    const token = await books.addToken(user, 40_000_000);
    for (const quota of [100, 250]) {
      const held = await books.ledger.reserve({ requestId: requestId(), user, token, amount: 50 });
      await held.settle(settlement(quota, { channelId }));
    }
    await books.ledger.flush();
    userId = user.id;
    tokenId = token.id;
    const now = Math.floor(books.clock.nowMs() / 1000);
    hour = now - (now % 3600);
  });
  afterAll(() => books.close());

  async function differences() {
    const report = await audit(books.db);
    const lines = report.differences.map((line) => [line.what, line.id, line.expected, line.found]);
    return lines.sort((a, b) => String(a).localeCompare(String(b)));
  }

  test("balanced books have no difference, and the report says what was looked at", async () => {
    await books.expectBalanced();
    const report = await audit(books.db);
    expect(report.checked).toMatchObject({ users: 1, tokens: 1, channels: 1, credits: 1, rollups: 1 });
    expect(formatAudit(report)).toContain("No difference");
  });

  test("of many differences the first are listed, and all are counted, also those that later parts of the audit find", async () => {
    const { users, rollups } = books.db.t;
    const { orm } = books.db;
    const many = MOST_DIFFERENCES + 200;
    const wrong = Array.from({ length: many }, (_, nth) => ({
      username: `wrong${nth}`,
      quota: 1,
      createdAt: 0,
    }));
    for (let from = 0; from < many; from += 300)
      await orm.insert(users).values(wrong.slice(from, from + 300));
    const report = await audit(books.db);
    expect([report.differences.length, report.total]).toEqual([MOST_DIFFERENCES, many]);
    expect(
      report.differences.every(
        ({ what, expected, found }) => what === "users.quota" && expected === 0 && found === 1,
      ),
    ).toBe(true);
    expect(report.checked.users).toBe(many + 1);
    expect(formatAudit(report)).toContain(`${many} differences, the first ${MOST_DIFFERENCES}:`);
    // The list is full when the hourly sums are read.
    const shift = (byMs: number) =>
      orm.update(rollups).set({ useTimeMs: sql`${rollups.useTimeMs} + ${byMs}` });
    await shift(-1_000_000);
    const more = await audit(books.db);
    expect([more.differences.length, more.total > many]).toEqual([MOST_DIFFERENCES, true]);
    expect((await audit(books.db, { mostDifferences: many * 2 })).differences.length).toBe(more.total);
    await shift(1_000_000);
    await orm.delete(users).where(like(users.username, "wrong%"));
  });

  test("every figure that is off by one is named with both figures", async () => {
    const { users, tokens, channels, rollups, logs, credits } = books.db.t;
    const { rollupsByModel, rollupsByUser, rollupsByUserModel, rollupsByToken, rollupsByChannel } =
      books.db.t;
    const { affinitySums } = books.db.t;
    const { orm } = books.db;
    const bump = [
      {
        change: (by: number) =>
          orm
            .update(users)
            .set({ quota: sql`${users.quota} + ${by}` })
            .where(eq(users.id, userId)),
        expected: [["users.quota", String(userId), 49_999_650, 49_999_651]],
      },
      {
        change: (by: number) =>
          orm
            .update(users)
            .set({ requestCount: sql`${users.requestCount} + ${by}` })
            .where(eq(users.id, userId)),
        expected: [["users.request_count", String(userId), 2, 3]],
      },
      {
        change: (by: number) =>
          orm
            .update(users)
            .set({ usedQuota: sql`${users.usedQuota} + ${by}` })
            .where(eq(users.id, userId)),
        expected: [
          ["users.quota", String(userId), 49_999_649, 49_999_650],
          ["users.used_quota", String(userId), 350, 351],
        ],
      },
      {
        change: (by: number) =>
          orm
            .update(tokens)
            .set({ remainQuota: sql`${tokens.remainQuota} + ${by}` })
            .where(eq(tokens.id, tokenId)),
        expected: [["tokens.remain_quota", String(tokenId), 39_999_650, 39_999_651]],
      },
      {
        change: (by: number) =>
          orm
            .update(tokens)
            .set({ usedQuota: sql`${tokens.usedQuota} + ${by}` })
            .where(eq(tokens.id, tokenId)),
        expected: [
          ["tokens.remain_quota", String(tokenId), 39_999_649, 39_999_650],
          ["tokens.used_quota", String(tokenId), 350, 351],
        ],
      },
      {
        change: (by: number) =>
          orm
            .update(channels)
            .set({ usedQuota: sql`${channels.usedQuota} + ${by}` })
            .where(eq(channels.id, channelId)),
        expected: [["channels.used_quota", String(channelId), 350, 351]],
      },
      {
        change: (by: number) =>
          orm
            .update(channels)
            .set({ goneKeysQuota: sql`${channels.goneKeysQuota} + ${by}` })
            .where(eq(channels.id, channelId)),
        expected: [["channel_keys.used_quota", String(channelId), 350, 351]],
      },
      {
        change: (by: number) =>
          orm
            .update(credits)
            .set({ amount: sql`${credits.amount} + ${by}` })
            .where(eq(credits.userId, userId)),
        expected: [["users.quota", String(userId), 49_999_651, 49_999_650]],
      },
      {
        change: (by: number) =>
          orm
            .update(logs)
            .set({ quota: sql`${logs.quota} + ${by}` })
            .where(eq(logs.quota, by > 0 ? 250 : 251)),
        expected: [["logs.quota", `${userId}@${hour}`, 350, 351]],
      },
      {
        change: (by: number) =>
          orm
            .update(rollups)
            .set({ loggedCount: sql`${rollups.loggedCount} + ${by}` })
            .where(eq(rollups.userId, userId)),
        expected: [
          ["logs.count", `${userId}@${hour}`, 3, 2],
          ["rollups_by_channel.logged_count", `${channelId}@${MODEL}@default`, 3, 2],
          ["rollups_by_model.logged_count", `${hour}@${MODEL}`, 3, 2],
          ["rollups_by_token.logged_count", `${tokenId}@${userId}`, 3, 2],
          ["rollups_by_user_model.logged_count", `${userId}@${MODEL}`, 3, 2],
          ["rollups_by_user.logged_count", String(userId), 3, 2],
          ["rollups.unsound", `${userId}@${hour}`, 0, 1],
        ],
      },
      {
        change: (by: number) =>
          orm.update(rollupsByModel).set({ cacheInput: sql`${rollupsByModel.cacheInput} + ${by}` }),
        expected: [["rollups_by_model.cache_input", `${hour}@${MODEL}`, 0, 1]],
      },
      {
        change: (by: number) => orm.update(rollups).set({ errorCount: sql`${rollups.errorCount} + ${by}` }),
        expected: [
          ["logs.errors", `${userId}@${hour}`, 1, 0],
          ["rollups_by_channel.error_count", `${channelId}@${MODEL}@default`, 1, 0],
          ["rollups_by_model.error_count", `${hour}@${MODEL}`, 1, 0],
          ["rollups_by_token.error_count", `${tokenId}@${userId}`, 1, 0],
          ["rollups_by_user_model.error_count", `${userId}@${MODEL}`, 1, 0],
          ["rollups_by_user.error_count", String(userId), 1, 0],
        ],
      },
      {
        change: (by: number) =>
          orm.update(rollupsByToken).set({ quota: sql`${rollupsByToken.quota} + ${by}` }),
        // What was charged is compared with these.
        expected: [
          ["rollups_by_token.quota", `${tokenId}@${userId}`, 350, 351],
          ["tokens.used_quota", String(tokenId), 351, 350],
        ],
      },
      {
        change: (by: number) =>
          orm.update(rollupsByUser).set({ cacheSaved: sql`${rollupsByUser.cacheSaved} + ${by}` }),
        expected: [["rollups_by_user.cache_saved", String(userId), 0, 1]],
      },
      {
        change: (by: number) =>
          orm.update(rollupsByUserModel).set({ quota: sql`${rollupsByUserModel.quota} + ${by}` }),
        expected: [["rollups_by_user_model.quota", `${userId}@${MODEL}`, 350, 351]],
      },
      {
        change: (by: number) =>
          orm.update(rollupsByChannel).set({ cacheRead: sql`${rollupsByChannel.cacheRead} + ${by}` }),
        expected: [["rollups_by_channel.cache_read", `${channelId}@${MODEL}@default`, 0, 1]],
      },
      {
        change: (by: number) =>
          by > 0
            ? orm.insert(affinitySums).values({ hour, rule: "r", count: 3, kept: 4 })
            : orm.delete(affinitySums),
        expected: [
          ["affinity_sums.unsound", `hour@${hour}`, 0, 1],
          ["affinity_sums.unsound", `r@${hour}`, 0, 1],
        ],
      },
    ];
    for (const { change, expected } of bump) {
      await change(1);
      expect(await differences()).toEqual(expected);
      await change(-1);
    }
    expect(await differences()).toEqual([]);
    await bump[0]?.change(1);
    const text = formatAudit(await audit(books.db));
    expect(text).toContain("1 differences");
    expect(text).toMatch(/users\.quota +\d+ +49999650 +49999651 +1$/m);
    await bump[0]?.change(-1);
  });

  test("a missing log row is a difference until the logs before it count as cleared", async () => {
    const { logs, marks } = books.db.t;
    const [row] = await books.db.orm.select().from(logs).where(eq(logs.quota, 100));
    if (!row) throw new Error("no log row");
    await books.db.orm.delete(logs).where(eq(logs.id, row.id));
    expect(await differences()).toEqual([
      ["logs.count", `${userId}@${hour}`, 2, 1],
      ["logs.quota", `${userId}@${hour}`, 350, 250],
    ]);
    await books.db.orm.insert(marks).values({ key: "logs:clearedBefore", value: row.createdAt });
    expect(await differences()).toEqual([]);
    await books.db.orm.delete(marks).where(eq(marks.key, "logs:clearedBefore"));
    await books.db.orm.insert(logs).values(row);
    expect(await differences()).toEqual([]);
  });

  test("it may run at any moment: while calls are settled it never sees half of one", async () => {
    const user = await books.addUser(1_000_000_000);
    let isDone = false;
    const load = Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let call = 0; call < 60; call++) {
          const held = await books.ledger.reserve({
            requestId: requestId(),
            user,
            token: undefined,
            amount: 2,
          });
          await held.settle(settlement(3, { channelId }));
        }
      }),
    ).finally(() => {
      isDone = true;
    });
    let audits = 0;
    do {
      expect(await differences()).toEqual([]);
      audits++;
    } while (!isDone);
    await load;
    expect(audits).toBeGreaterThan(0);
    await books.expectBalanced();
  });

  describe("closed months of sums", () => {
    const DAY_MS = 86_400_000;
    /** An audit so long after the calls that their month is over: months of sums read and remembered, and what differs. */
    async function later(isFull = false, days = 40) {
      const nowMs = books.clock.nowMs() + days * DAY_MS;
      const { sums, differences: found } = await audit(books.db, { nowMs, isFull });
      const ofSums = found.filter(({ what }) => what.startsWith("rollups"));
      return [sums.read, sums.remembered, ofSums.map(({ what }) => what)] as const;
    }
    /** Changes the first hourly sum alone, as nothing of the product does; undone by the opposite number. */
    async function tamper(by: number) {
      const { rollups } = books.db.t;
      await books.db.orm
        .update(rollups)
        .set({ promptTokens: sql`${rollups.promptTokens} + ${by}` })
        .where(and(eq(rollups.userId, userId), eq(rollups.tokenId, tokenId)));
    }
    const OFF = ["channel", "model", "token", "user", "user_model"].map(
      (of) => `rollups_by_${of}.prompt_tokens`,
    );
    const sorted = ([read, remembered, what]: Awaited<ReturnType<typeof later>>) => [
      read,
      remembered,
      [...what].sort(),
    ];

    beforeAll(() => forgetMonths(books.db));

    test("a difference in the current month is found by every audit", async () => {
      await tamper(1);
      expect(sorted(await later(false, 0))).toEqual([1, 0, OFF]);
      expect(sorted(await later(false, 0))).toEqual([1, 0, OFF]);
      await tamper(-1);
      expect(await later(false, 0)).toEqual([1, 0, []]);
    });

    test("a month that is over is remembered; a difference in it is found by a full audit, and then until it is mended", async () => {
      expect(await later()).toEqual([1, 0, []]);
      expect(await later()).toEqual([0, 1, []]);
      await tamper(1);
      expect(await later()).toEqual([0, 1, []]);
      expect(sorted(await later(true))).toEqual([1, 0, OFF]);
      expect(sorted(await later())).toEqual([1, 0, OFF]);
      await tamper(-1);
      expect(await later()).toEqual([1, 0, []]);
      expect(await later()).toEqual([0, 1, []]);
    });

    test("a month that was looked at thirty days ago is read again by itself", async () => {
      await tamper(1);
      expect(sorted(await later(false, 80))).toEqual([1, 0, OFF]);
      await tamper(-1);
      expect(await later(false, 80)).toEqual([1, 0, []]);
    });

    test("coarse sums that change alone have their month read again, each table's", async () => {
      const { rollupsByModel, rollupsByUser, rollupsByUserModel, rollupsByToken, rollupsByChannel } =
        books.db.t;
      for (const table of [
        rollupsByModel,
        rollupsByUser,
        rollupsByUserModel,
        rollupsByToken,
        rollupsByChannel,
      ]) {
        const change = (by: number) =>
          books.db.orm.update(table).set({ costNanos: sql`${table.costNanos} + ${by}` });
        await change(1);
        const [read, remembered, what] = await later(false, 80);
        expect([read, remembered]).toEqual([1, 0]);
        expect(new Set(what).size).toBe(1);
        await change(-1);
        expect(await later(false, 80)).toEqual([1, 0, []]);
      }
    });

    test("a settlement that comes late has the month read again, without a difference", async () => {
      expect(await later(false, 80)).toEqual([0, 1, []]);
      const user = await books.user(userId);
      const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 1 });
      await held.settle(settlement(7, { channelId }));
      await books.ledger.flush();
      expect(await later(false, 80)).toEqual([1, 0, []]);
      expect(await later(false, 80)).toEqual([0, 1, []]);
    });
  });

  describe("closed months", () => {
    const DAY_MS = 86_400_000;
    let days = 40;
    /** An audit so many days after the calls: months read and remembered, and what differs. */
    async function later(isFull = false) {
      const nowMs = books.clock.nowMs() + days * DAY_MS;
      const { months, differences: found } = await audit(books.db, { nowMs, isFull });
      return [months.read, months.remembered, found.map(({ what }) => what)] as const;
    }
    async function settle(quota: number) {
      const user = await books.user(userId);
      const held = await books.ledger.reserve({ requestId: requestId(), user, token: undefined, amount: 1 });
      await held.settle(settlement(quota, { channelId }));
      await books.ledger.flush();
    }
    /** Changes the first call's row behind everybody's back; undone by the opposite number. */
    async function tamper(column: "quota" | "promptTokens" | "createdAt", by: number) {
      const { logs } = books.db.t;
      const [row] = await books.db.orm.select().from(logs).where(eq(logs.userId, userId)).orderBy(logs.id);
      if (!row) throw new Error("no log row");
      await books.db.orm
        .update(logs)
        .set({ [column]: row[column] + by })
        .where(eq(logs.id, row.id));
    }

    beforeAll(() => forgetMonths(books.db));

    test("a month is read until it is over, then it is remembered; --full reads it all the same", async () => {
      expect((await audit(books.db, { nowMs: books.clock.nowMs() })).months).toEqual({
        read: 1,
        remembered: 0,
      });
      expect((await audit(books.db, { nowMs: books.clock.nowMs() })).months.read).toBe(1);
      expect(await later()).toEqual([1, 0, []]);
      expect(await later()).toEqual([0, 1, []]);
      expect(await later(true)).toEqual([1, 0, []]);
      expect(formatAudit(await audit(books.db))).toContain("Read the log of");
    });

    test("a settlement that comes late, and a clearing, have the month read again", async () => {
      await settle(7);
      expect(await later()).toEqual([1, 0, []]);
      expect(await later()).toEqual([0, 1, []]);
      const { marks } = books.db.t;
      const cleared = { key: "logs:clearedBefore", value: hour + 1 };
      await books.db.orm.insert(marks).values(cleared);
      expect(await later()).toEqual([0, 0, []]);
      await books.db.orm.delete(marks).where(eq(marks.key, cleared.key));
      expect(await later()).toEqual([1, 0, []]);
    });

    test("a row that was changed is found by a full audit, and by every later one until it is mended", async () => {
      await tamper("quota", 5);
      expect(await later()).toEqual([0, 1, []]);
      expect(await later(true)).toEqual([1, 0, ["logs.quota", "logs.rows"]]);
      expect(await later()).toEqual([1, 0, ["logs.quota", "logs.rows"]]);
      await tamper("quota", -5);
      expect(await later()).toEqual([1, 0, []]);
      expect(await later()).toEqual([0, 1, []]);
    });

    test("a change that leaves every sum as it was is found by the digest, until the month is forgotten", async () => {
      for (const column of ["promptTokens", "createdAt"] as const) {
        await tamper(column, 1);
        expect(await later(true)).toEqual([1, 0, ["logs.rows"]]);
        expect(await later()).toEqual([1, 0, ["logs.rows"]]);
        await tamper(column, -1);
        expect(await later()).toEqual([1, 0, []]);
      }
      await tamper("promptTokens", 1);
      await forgetMonths(books.db);
      expect(await later()).toEqual([1, 0, []]);
      expect(await later(true)).toEqual([1, 0, []]);
    });

    test("a month that was read thirty days ago is read again by itself", async () => {
      expect(await later()).toEqual([0, 1, []]);
      await tamper("quota", 1);
      days += 31;
      expect(await later()).toEqual([1, 0, ["logs.quota", "logs.rows"]]);
      await tamper("quota", -1);
      expect(await later()).toEqual([1, 0, []]);
    });

    test("a month that differs takes no other month's turn to be read again", async () => {
      books.clock.advance(40 * DAY_MS);
      await settle(3);
      await later();
      expect(await later()).toEqual([0, 2, []]);
      await tamper("quota", 1);
      expect(await later(true)).toEqual([2, 0, ["logs.quota", "logs.rows"]]);
      expect((await later()).slice(0, 2)).toEqual([1, 1]);
      days += 31;
      expect((await later()).slice(0, 2)).toEqual([2, 0]);
      await tamper("quota", -1);
    });
  });
});
