// Retention: calls and errors go when they are old enough, everything else stays, sums and books do not change, and on
// PostgreSQL the months have parts of their own into which rows find their way.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import { audit } from "../../../src/core/ledger/audit.ts";
import { COARSE } from "../../../src/core/logs/coarse-sums.ts";
import { dashboard } from "../../../src/core/logs/dashboard.ts";
import { END_OF_TIME } from "../../../src/core/logs/filter.ts";
import { listLogs } from "../../../src/core/logs/list.ts";
import { createLogPart, ensureLogParts, retainLogs } from "../../../src/core/logs/retention.ts";
import { logStat } from "../../../src/core/logs/statistics.ts";
import { q, rawQuery } from "../../../src/db/database.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { untilSo } from "../../support/turns.ts";

const DAY = 86_400;
const day = (text: string) => Date.parse(`${text}T00:00:00Z`) / 1000;

describe.each(DATABASE_KINDS)("retention on %s", (database) => {
  let app: TestApp;
  let user: TestUser;
  let nowSeconds = day("2026-01-10");
  const at = (seconds: number) => void (nowSeconds = seconds);

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => nowSeconds * 1000 } });
    user = await app.createUser({ quota: 1_000_000, username: "keeper" });
  });
  afterAll(() => app.close());

  /** A call that was settled then, and a row of every other type. */
  async function aDay(): Promise<void> {
    const { deps } = app;
    const account = await deps.accounts.user(user.id);
    if (!account) throw new Error("no account");
    const held = await deps.ledger.reserve({
      requestId: `r${nowSeconds}`,
      user: account,
      token: undefined,
      amount: 10,
    });
    await held.settle({
      quota: 10,
      promptTokens: 1,
      completionTokens: 1,
      modelName: "m",
      channelId: 1,
      group: "default",
      isStream: false,
      useTimeMs: 1,
      content: "",
      other: {},
    });
    for (const type of [1, 3, 4, 5, 7] as const)
      await deps.ledger.log({ type, userId: user.id, username: "keeper", content: "" });
    await deps.ledger.flush();
  }

  const rowsOf = async () => {
    const everything = { type: 0, userId: user.id, from: 0, to: END_OF_TIME };
    const page = await listLogs(app.deps, everything, { limit: 100, offset: 0 });
    expect(page.total).toBe(page.items.length);
    return page.items.map((row) => [row.created_at, row.type] as const);
  };

  /** Every table of sums, the hourly ones too. */
  const allSums = async () => {
    const { db } = app.deps;
    const found: [string, string[]][] = [];
    for (const table of ["rollups", ...COARSE.map(({ table }) => table)] as const) {
      const rows = await db.orm.select().from(db.t[table] as PgTable);
      found.push([table, rows.map((row) => JSON.stringify(row)).toSorted()]);
    }
    return found;
  };

  test("old calls and errors go, all else stays where a list finds it; sums and books do not change", async () => {
    const days = ["2026-01-10", "2026-01-20", "2026-02-15", "2026-03-05"].map(day);
    for (const each of days) {
      at(each);
      if (each !== days[0]) await ensureLogParts(app.deps);
      await aDay();
    }
    // Two in January: the first lay in no part until its month had one.
    const before = await rowsOf();
    expect(before.filter(([, type]) => type === 2).length).toBe(4);
    const spent = await logStat(app.deps, { type: 2, from: 0, to: END_OF_TIME });
    const sums = await allSums();
    // Somebody else's, of months that have no part on PostgreSQL.
    const { logs } = app.deps.db.t;
    const many = { createdAt: day("2025-12-01"), type: 2, userId: user.id + 1, username: "gone" };
    await app.deps.db.orm.insert(logs).values(Array.from({ length: 1100 }, () => many));

    const pauses: number[] = [];
    const left = [1100];
    const pause = async (ms: number) => {
      pauses.push(ms);
      left.push(await app.deps.db.orm.$count(logs, eq(logs.username, many.username)));
    };
    expect(await retainLogs(app.deps, 0, pause)).toBe(0);
    // 20 days before March 5 is February 13: January goes on either database.
    expect(await retainLogs(app.deps, 20, pause)).toBeGreaterThan(0);
    expect(await retainLogs(app.deps, 20, pause)).toBe(0);
    const after = await rowsOf();
    const isGone = ([time, type]: readonly [number, number]) =>
      time < day("2026-02-01") && (type === 2 || type === 5);
    expect(after).toEqual(before.filter((row) => !isGone(row)));
    expect(before.filter(isGone).length).toBe(4);

    // In steps of 500 rows at most, others between them.
    expect(left.at(-1)).toBe(0);
    expect(Math.max(...left.slice(1).map((count, step) => (left[step] ?? 0) - count))).toBeLessThanOrEqual(
      500,
    );

    expect(await logStat(app.deps, { type: 2, from: 0, to: END_OF_TIME })).toEqual(spent);
    expect(await allSums()).toEqual(sums);
    expect(sums.every(([, rows]) => rows.length > 0)).toBe(true);
    const [from, to] = [day("2026-01-01"), day("2026-03-10")];
    const zone = app.deps.options.get("site.time_zone");
    const drawn = await dashboard(app.deps, {
      userId: user.id,
      from,
      to,
      figure: "count",
      by: "model",
      zone,
    });
    expect(drawn.series.map(({ id, values }) => [id, values.reduce((sum, each) => sum + each, 0)])).toEqual([
      ["m", 4],
    ]);
    expect((await audit(app.deps.db)).differences).toEqual([]);
    if (database === "sqlite") expect(pauses.every((ms) => ms === 20) && pauses.length > 0).toBe(true);
  });

  test("on PostgreSQL this month and the next two have parts, and no row of theirs lies in the rest", async () => {
    if (database === "sqlite") {
      expect(app.deps.db.client?.query("pragma auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
      return;
    }
    at(day("2026-06-10"));
    await aDay();
    await ensureLogParts(app.deps);
    await ensureLogParts(app.deps);
    const found = await app.deps.db.atomic(function* (tx) {
      return yield* q(
        rawQuery(
          tx,
          sql`select distinct tableoid::regclass::text as part from logs where created_at >= ${day("2026-06-01")}`,
        ),
      );
    });
    expect([...found].map(({ part }) => part)).toEqual(["logs_2026_06"]);
    const parts = await app.deps.db.atomic(function* (tx) {
      return yield* q(
        rawQuery(
          tx,
          sql`select inhrelid::regclass::text as part from pg_inherits where inhparent = 'logs'::regclass`,
        ),
      );
    });
    const names = [...parts].map(({ part }) => String(part));
    for (const name of ["logs_rest", "logs_2026_06", "logs_2026_07", "logs_2026_08"])
      expect(names).toContain(name);
    expect(names).not.toContain("logs_2026_01");
    at(day("2026-06-10") + DAY);
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  test("whoever writes while a month gets its part is not disturbed, and every row is in it", async () => {
    const { db } = app.deps;
    if (db.kind === "sqlite") return;
    const months = [1, 2, 3, 4, 5, 6];
    for (const month of months) {
      let isMaking = true;
      let written = 0;
      const at = day(`2030-0${month}-15`);
      const write = async () => {
        for (let turns = 0; isMaking || turns < 3; turns++) {
          await db.orm
            .insert(db.t.logs)
            .values({ createdAt: at, type: 3, userId: user.id, username: "keeper" });
          written++;
        }
      };
      const writers = Array.from({ length: 6 }, write);
      await untilSo(() => written > 12);
      await createLogPart(db, 2030, month).finally(() => (isMaking = false));
      await Promise.all(writers);
      const found = await db.atomic(function* (tx) {
        return yield* q(
          rawQuery(
            tx,
            sql`select tableoid::regclass::text as part, count(*)::int as rows from logs where created_at = ${at} group by 1`,
          ),
        );
      });
      expect([...found]).toEqual([{ part: `logs_2030_0${month}`, rows: written }]);
    }
  });
});
