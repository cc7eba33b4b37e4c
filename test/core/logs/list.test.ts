// The usage log against a naive reading of the same rows: pages, totals, figures, clearing and index use, on both databases.
// Refuses its own arithmetic for sums: the expected figures come from filtering plain arrays.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq, lt, sql } from "drizzle-orm";
import { addHourlySums } from "../../../bench/log-rows.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import { buildCoarse } from "../../../src/core/ledger/coarse-build.ts";
import { audit } from "../../../src/core/ledger/audit.ts";
import { dayOf } from "../../../src/core/logs/coarse-days.ts";
import { coarseState } from "../../../src/core/logs/coarse-state.ts";
import { END_OF_TIME, HOUR_SECONDS, rareWhere, rawWhere, splitRange } from "../../../src/core/logs/filter.ts";
import type { LogFilter } from "../../../src/core/logs/filter.ts";
import { dashboard } from "../../../src/core/logs/dashboard.ts";
import { namesGoneSteps } from "../../../src/core/logs/key-names.ts";
import { logHistogram } from "../../../src/core/logs/histogram.ts";
import { createLogClearing } from "../../../src/core/logs/clearing.ts";
import { clearLogs, listLogs, listOwnLogs, rowsQuery, searchLogs } from "../../../src/core/logs/list.ts";
import { CLEARED_MARK, countLogs, logStat, quotaSeries } from "../../../src/core/logs/statistics.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

type LogRow = Schema["logs"]["$inferSelect"];

const NOW = 1_760_000_000;
const DAY_AGO = NOW - 72 * HOUR_SECONDS;
const MODELS = ["gpt-4o", "gpt-4o-mini", "claude-sonnet", "a_b", "axb"] as const;

/** mulberry32: the same rows in every run. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
  };
}

/** The table's indexes by the columns that PostgreSQL names those of its parts after. */
const PART_INDEXES: Record<string, string> = {
  created_at: "logs_time",
  user_id_created_at: "logs_user_time",
  request_id: "logs_request",
  type_created_at_group_token_id_model_name: "logs_rare_types",
  expr_type_created_at_channel_id: "logs_rare_user",
  model_name_type_created_at_channel_id: "logs_rare_model",
  channel_id_type_created_at: "logs_rare_channel",
};

const BY = {
  id: 1,
  username: "root",
  role: 100,
  address: "",
  userAgent: "",
  authMethod: "session" as const,
};

describe.each(DATABASE_KINDS)("log on %s", (database) => {
  let app: TestApp;
  let rows: LogRow[] = [];
  const users: number[] = [];

  async function insertRows(count: number): Promise<void> {
    const { db } = app.deps;
    const roll = dice(7);
    const wanted = Array.from({ length: count }, (_, index) => {
      const kind = roll(10);
      const isCall = kind < 8;
      const user = users[roll(3) === 0 ? 1 : 0] ?? 0;
      return {
        createdAt: DAY_AGO + roll(72 * HOUR_SECONDS),
        type: isCall ? 2 : ([1, 3, 4, 5][roll(4)] ?? 5),
        userId: user,
        username: user === users[0] ? "alice" : "bob",
        channelId: index % 997 === 5 ? 99 : !isCall && index % 3 === 0 ? 0 : 1 + roll(3),
        tokenId: 1 + roll(4),
        tokenName: `key ${roll(3)}`,
        modelName: MODELS[roll(MODELS.length)] ?? "",
        group: roll(2) === 0 ? "default" : "vip",
        quota: isCall ? roll(1000) : 0,
        promptTokens: isCall ? roll(100) : 0,
        completionTokens: isCall ? roll(100) : 0,
        content: isCall ? "" : `note ${index}`,
        requestId: `r${index >> 1}`,
      };
    });
    for (let at = 0; at < wanted.length; at += 1000) {
      rows.push(
        ...(await db.orm
          .insert(db.t.logs)
          .values(wanted.slice(at, at + 1000))
          .returning()),
      );
    }
    await addHourlySums(app.deps);
  }

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW * 1000 } });
    for (const username of ["alice", "bob"]) users.push((await app.createUser({ username })).id);
    await app.deps.options.set("site.time_zone", "Asia/Kolkata");
    await insertRows(6000);
    // Names that no row of a key bears: as after an import.
    await app.deps.db.atomic((tx) => namesGoneSteps(app.deps.db, tx, NOW));
    // The coarse sums of these hours, with days that begin at half past an hour.
    await makeCoarse();
    expect(await coarseState(app.deps.db)).toEqual({ zone: "Asia/Kolkata", fromHour: 0 });
  });
  afterAll(() => app.close());

  /** By a clock that stands still: every step counts as quick, so that the next one has twice as many hours. */
  const makeCoarse = (pause: () => Promise<void> = async () => {}) =>
    buildCoarse({ ...app.deps, clock: { ...app.deps.clock, monotonicMs: () => 0 } }, pause);

  function naive(filter: LogFilter): LogRow[] {
    const pattern = (name: string) => {
      const source = name.split("%").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
      return new RegExp(`^${source.join(".*")}$`, "i");
    };
    return rows
      .filter(
        (row) =>
          row.createdAt >= filter.from &&
          row.createdAt < filter.to &&
          (filter.type === 0 || row.type === filter.type) &&
          (filter.userId === undefined || row.userId === filter.userId) &&
          (filter.tokenId === undefined || row.tokenId === filter.tokenId) &&
          (filter.tokenName === undefined || row.tokenName === filter.tokenName) &&
          (filter.channelId === undefined || row.channelId === filter.channelId) &&
          (filter.group === undefined || row.group === filter.group) &&
          (filter.modelName === undefined ||
            (filter.modelName.includes("%")
              ? pattern(filter.modelName).test(row.modelName)
              : row.modelName === filter.modelName)),
      )
      .sort((a, b) => b.createdAt - a.createdAt || b.id - a.id);
  }

  async function counted(filter: LogFilter): Promise<number> {
    const { total, isMore } = await countLogs(app.deps, filter);
    expect(isMore).toBe(false);
    return total;
  }

  const everything = { from: 0, to: END_OF_TIME };
  const filters = (): LogFilter[] => [
    { type: 0, ...everything },
    { type: 2, ...everything },
    { type: 5, ...everything },
    { type: 0, from: DAY_AGO + 1234, to: DAY_AGO + 9876 },
    { type: 2, from: DAY_AGO + 1800, to: DAY_AGO + 1900 },
    { type: 0, from: DAY_AGO + 5 * HOUR_SECONDS + 77, to: NOW - 10 * HOUR_SECONDS - 55 },
    { type: 0, userId: users[1] ?? 0, ...everything },
    { type: 1, userId: users[1] ?? 0, ...everything },
    { type: 2, userId: users[1] ?? 0, modelName: "gpt-4o", ...everything },
    { type: 0, userId: users[0] ?? 0, modelName: "gpt%", from: DAY_AGO + 100, to: NOW - 100 },
    { type: 0, channelId: 99, ...everything },
    { type: 2, channelId: 2, ...everything },
    { type: 0, channelId: 1, group: "vip", from: DAY_AGO + 100, to: NOW - 100 },
    { type: 5, group: "vip", ...everything },
    { type: 5, modelName: "gpt-4o", ...everything },
    { type: 5, channelId: 2, ...everything },
    { type: 5, channelId: 0, modelName: "gpt-4o", from: DAY_AGO + 100, to: NOW - 100 },
    { type: 5, modelName: "gpt%", from: DAY_AGO + 100, to: NOW - 100 },
    { type: 0, modelName: "%", from: DAY_AGO + 100, to: NOW - 100 },
    { type: 2, modelName: "gpt-4o", group: "vip", from: DAY_AGO + 100, to: NOW - 100 },
    { type: 0, modelName: "gpt%", ...everything },
    { type: 0, modelName: "%a_b%", ...everything },
    { type: 0, modelName: "GPT-4O", ...everything },
    { type: 0, tokenName: "key 1", ...everything },
    { type: 0, tokenId: 3, userId: users[0] ?? 0, from: DAY_AGO + 99, to: NOW - 3 },
    { type: 0, from: NOW, to: NOW },
    { type: 0, from: NOW, to: DAY_AGO },
  ];

  test("pages and totals are those of the plain rows, for every filter and however deep the page", async () => {
    for (const filter of filters()) {
      const expected = naive(filter);
      expect([filter, await counted(filter)]).toEqual([filter, expected.length]);
      // One page behind the last row is as good as several.
      const deep = [10, 1990, 2345, 4711];
      for (const offset of [0, ...deep.filter((each, at) => (deep[at - 1] ?? 0) <= expected.length)]) {
        const page = await listLogs(app.deps, filter, { limit: 17, offset });
        const ids = expected.slice(offset, offset + 17).map((row) => row.id);
        expect([filter, offset, page.items.map((row) => row.id)]).toEqual([filter, offset, ids]);
      }
    }
  });

  test("figures over a range are the sum of its consume rows; rates are those of the last minute", async () => {
    for (const filter of filters()) {
      const stat = await logStat(app.deps, filter);
      const calls = naive({ ...filter, type: 2 });
      const last = naive({ ...filter, type: 2, from: NOW - 60, to: END_OF_TIME });
      expect([filter, stat]).toEqual([
        filter,
        {
          quota: calls.reduce((sum, row) => sum + row.quota, 0),
          rpm: last.length,
          tpm: last.reduce((sum, row) => sum + row.promptTokens + row.completionTokens, 0),
        },
      ]);
    }
  });

  test("the histogram counts the same rows as the list, errors apart, in at most 61 buckets", async () => {
    const ranges = [
      [DAY_AGO, NOW],
      [DAY_AGO + 1234, DAY_AGO + 1234 + HOUR_SECONDS],
      [DAY_AGO - 400 * 24 * HOUR_SECONDS, NOW + 5],
    ] as const;
    expect((await logHistogram(app.deps, { type: 0, from: NOW, to: DAY_AGO })).buckets).toEqual([]);
    for (const each of filters()) {
      for (const [from, to] of ranges) {
        const filter = { ...each, from, to };
        const drawn = await logHistogram(app.deps, filter);
        const expected = naive(filter);
        expect(drawn.buckets.length).toBeLessThanOrEqual(61);
        const last = drawn.buckets.at(-1);
        expect(last === undefined || last.at + drawn.step >= to).toBe(true);
        const found = drawn.buckets.map(({ at, count, errors }) => [at, count, errors]);
        const counted = drawn.buckets.map(({ at }) => {
          const inside = expected.filter((row) => row.createdAt >= at && row.createdAt < at + drawn.step);
          const errors = inside.filter((row) => row.type === 5).length;
          return [at, inside.length - errors, errors];
        });
        expect([filter, found]).toEqual([filter, counted]);
        expect(drawn.isCut).toBe(false);
      }
    }
  });

  test("the dashboard's series add up to the plain rows of the hours they touch", async () => {
    const from = DAY_AGO - (DAY_AGO % HOUR_SECONDS) + 10 * HOUR_SECONDS;
    const to = from + 20 * HOUR_SECONDS - 1;
    for (const id of [undefined, users[0] ?? 0]) {
      const user = id === undefined ? undefined : { id, username: "alice" };
      const series = await quotaSeries(app.deps, { from: from + 5, to, user });
      const expected = naive({ type: 2, from, to: to + 1, ...(id === undefined ? {} : { userId: id }) });
      expect(series.reduce((sum, row) => sum + row.count, 0)).toBe(expected.length);
      expect(series.reduce((sum, row) => sum + row.quota, 0)).toBe(
        expected.reduce((sum, row) => sum + row.quota, 0),
      );
      expect(new Set(series.map((row) => `${row.created_at} ${row.model_name}`)).size).toBe(series.length);
      expect(series.every((row) => row.user_id === (id ?? 0))).toBe(true);
    }
  });

  test("days by model, key and channel are those of the plain rows, one user's too, of keys that others use", async () => {
    const zone = "Asia/Kolkata";
    const fields = { model: "modelName", key: "tokenId", channel: "channelId" } as const;
    const dayHours = DAY_AGO - (DAY_AGO % HOUR_SECONDS);
    for (const [by, field] of Object.entries(fields) as [keyof typeof fields, keyof LogRow][])
      for (const userId of [undefined, ...users])
        // Three days; and a range that begins and ends within days.
        for (const [from, to] of [
          [dayHours - 24 * HOUR_SECONDS, NOW + HOUR_SECONDS],
          [dayHours + 5 * HOUR_SECONDS, dayHours + 60 * HOUR_SECONDS],
        ] as const) {
          const drawn = await dashboard(app.deps, {
            userId,
            from,
            to,
            step: "day",
            figure: "quota",
            by,
            zone,
          });
          const calls = naive({ type: 2, ...(userId === undefined ? {} : { userId }), from, to: drawn.to });
          const expected = new Map<string, number>();
          for (const row of calls) {
            const key = `${row[field]} ${dayOf(zone, row.createdAt - (row.createdAt % HOUR_SECONDS))}`;
            expected.set(key, (expected.get(key) ?? 0) + row.quota);
          }
          const found = drawn.series.flatMap(({ id, values }) =>
            values.flatMap((value, bar) =>
              value === 0 ? [] : [[`${id} ${dayOf(zone, drawn.at[bar] ?? 0)}`, value] as [string, number]],
            ),
          );
          expect(found.toSorted()).toEqual([...expected].filter(([, sum]) => sum > 0).toSorted());
          expect(drawn.otherSize).toBe(0);
        }
  });

  test("what is entered while a dashboard is read is in its lines as soon as it is in their series", async () => {
    const { rollups } = app.deps.db.t;
    const raise = (by: number) =>
      app.deps.db.orm.update(rollups).set({ quota: sql`${rollups.quota} + ${by}` });
    const [from, to] = [DAY_AGO - (DAY_AGO % HOUR_SECONDS), NOW];
    const entered = Promise.withResolvers<unknown>();
    // Behind the line's statement, before that of its series.
    setImmediate(() => entered.resolve(raise(1000)));
    const drawn = await dashboard(app.deps, {
      from,
      to,
      step: "hour",
      figure: "quota",
      by: "key",
      zone: "UTC",
    });
    await entered.promise;
    await raise(-1000);
    const over = drawn.lines.quota.map((line, bar) =>
      drawn.series.reduce((left, { values }) => left - (values[bar] ?? 0), line),
    );
    expect(Math.min(...over)).toBe(0);
  });

  test("a range is cut into whole hours and the pieces beside them, without gap or overlap", () => {
    const cases: [number, number][] = [
      [0, 7200],
      [1, 7200],
      [1, 7201],
      [100, 200],
      [3599, 3601],
      [3600, 3600],
      [5000, 100],
      [0, END_OF_TIME],
    ];
    for (const [from, to] of cases) {
      const { fullHours, edges } = splitRange(from, to);
      const pieces = [...edges, ...(fullHours.from < fullHours.to ? [fullHours] : [])].sort(
        (a, b) => a.from - b.from,
      );
      const covered = pieces.reduce((sum, piece) => sum + piece.to - piece.from, 0);
      expect(covered).toBe(Math.max(0, to - from));
      expect(pieces.every((piece, at) => at === 0 || pieces[at - 1]?.to === piece.from)).toBe(true);
      expect(fullHours.from % HOUR_SECONDS).toBe(0);
    }
  });

  test("users see their own rows only, with the channel's number alone and nothing that belongs to administrators", async () => {
    const { db } = app.deps;
    const other = {
      frt: 12,
      admin_info: { use_channel: ["7"] },
      attempts: [{ channel: 7, ms: 3 }],
      channel_id: 7,
      channel_name: "secret channel",
      channel_type: 1,
      upstream_dialect: "anthropic",
    };
    const carol = await app.createUser({ username: "carol" });
    const entry = { type: 5, userId: carol.id, username: "carol", content: "", channelId: 7, other };
    await app.deps.ledger.log(entry);
    await app.deps.ledger.flush();
    const [row] = await db.orm.select().from(db.t.logs).where(eq(db.t.logs.userId, carol.id));
    if (row) rows.push(row);
    const actor = await app.deps.accounts.user(carol.id);
    if (!row || !actor) throw new Error("no row or user");
    const filter: LogFilter = { type: 0, userId: users[0] ?? 0, channelId: 1, ...everything };
    const page = await listOwnLogs(app.deps, actor, filter, { limit: 10, offset: 0 });
    expect(page.total).toBe(1);
    expect(page.items[0]).toMatchObject({ id: row.id % 1024, channel: 7, channel_name: "" });
    expect(JSON.parse(page.items[0]?.other ?? "")).toEqual({ frt: 12 });
  });

  test("the rows of one call are found by its request id, by its owner only, and count as in the list", async () => {
    const [first, second] = rows.filter((row) => row.requestId === "r42");
    if (!first || !second) throw new Error("no rows");
    const filter: LogFilter = { type: 0, requestId: "r42", ...everything };
    const all = await listLogs(app.deps, filter, { limit: 10, offset: 0 });
    expect([all.total, all.items.map((row) => row.id).sort()]).toEqual([2, [first.id, second.id].sort()]);
    expect(await logStat(app.deps, filter)).toMatchObject({ quota: first.quota + second.quota });
    const typed = await listLogs(app.deps, { ...filter, type: 9 }, { limit: 10, offset: 0 });
    expect(typed).toMatchObject({ items: [], total: 0, isMore: false });
    const late = await listLogs(app.deps, { ...filter, from: NOW }, { limit: 10, offset: 0 });
    expect(late).toMatchObject({ items: [], total: 0, isMore: false });
    const histogram = await logHistogram(app.deps, { ...filter, from: DAY_AGO, to: NOW });
    expect(histogram.buckets.reduce((sum, { count, errors }) => sum + count + errors, 0)).toBe(2);
    for (const userId of users) {
      const own = rows.filter((row) => row.requestId === "r42" && row.userId === userId);
      const actor = { id: userId } as Parameters<typeof listOwnLogs>[1];
      const found = await listOwnLogs(app.deps, actor, filter, { limit: 10, offset: 0 });
      expect(found.total).toBe(own.length);
    }
  });

  test("list queries are served by an index, never by reading the whole table", async () => {
    const { db } = app.deps;
    const execute = (db.orm as unknown as { execute(query: unknown): Promise<Record<string, string>[]> })
      .execute;
    if (database === "postgres") await execute.call(db.orm, sql`analyze logs`);
    const plan = async (query: ReturnType<typeof rowsQuery>): Promise<string> => {
      if (db.client) {
        const { sql: text, params } = query.toSQL();
        const statement = db.client.prepare(`explain query plan ${text}`);
        const lines = statement.all(...(params as string[]));
        statement.finalize();
        return (lines as { detail: string }[]).map((line) => line.detail).join("\n");
      }
      const lines = await execute.call(db.orm, sql`explain ${query.getSQL()}`);
      // A part's indexes have names of their own.
      return lines
        .map((line) => line["QUERY PLAN"] ?? "")
        .join("\n")
        .replace(/logs_\w+?_(\w+)_idx\b/g, (name, columns: string) => PART_INDEXES[columns] ?? name);
    };
    const range = { from: NOW - 3 * HOUR_SECONDS, to: NOW };
    const user = users[1] ?? 0;
    const cases: [string, LogFilter, RegExp][] = [
      ["admin, newest", { type: 0, ...everything }, /logs_time/],
      ["admin, time range", { type: 0, ...range }, /logs_time/],
      ["admin, calls in a range", { type: 2, ...range }, /logs_time/],
      ["admin, one model in an hour", { type: 0, modelName: "gpt-4o", ...range }, /logs_time/],
      ["admin, errors", { type: 5, ...everything }, /logs_rare_types|logs_time/],
      ["admin, errors in a range", { type: 5, ...range }, /logs_rare_types/],
      ["one user", { type: 0, userId: user, ...range }, /logs_user_time/],
      ["one user's calls", { type: 2, userId: user, ...range }, /logs_user_time/],
      ["one call", { type: 0, requestId: "20260101", ...everything }, /logs_request/],
      ["one user's call", { type: 2, userId: user, requestId: "20260101", ...range }, /logs_request/],
      ["one user's top-ups", { type: 1, userId: user, ...range }, /logs_rare_user/],
      // Within few hours PostgreSQL finds it as cheap to pass over other models' errors in the index.
      ["a model's errors", { type: 5, modelName: "gpt-4o", ...range }, /logs_rare_(model|types)/],
      ["a channel's errors", { type: 5, channelId: 99, ...range }, /logs_rare_channel/],
    ];
    for (const [name, filter, index] of cases) {
      const text = await plan(rowsQuery(db.orm, db, rawWhere(db, filter, filter.from, filter.to), 10, 0));
      expect([name, text]).toEqual([name, expect.stringMatching(index)]);
      expect([name, text]).toEqual([name, expect.not.stringMatching(/SCAN logs(?! USING)|Seq Scan/)]);
      if (db.client && filter.type !== 0 && filter.type !== 2) expect(text).toContain("logs_rare_");
    }
    for (const userId of [undefined, user]) {
      const filter: LogFilter = { type: 0, ...range, ...(userId === undefined ? {} : { userId }) };
      const text = await plan(rowsQuery(db.orm, db, rareWhere(db, filter, range.from, range.to), 1, 0));
      expect(text).toMatch(database === "sqlite" ? /logs_rare_/ : /logs_rare_|logs_time/);
    }
  });

  test("a key's name finds the rows of the keys that bear it now, by their ids", async () => {
    const { db } = app.deps;
    const [owner = 0] = users;
    const [key] = await db.orm
      .insert(db.t.tokens)
      .values({ userId: owner, name: "renamed since", keyHash: "h", keySealed: "" })
      .returning({ id: db.t.tokens.id });
    if (!key) throw new Error("no key");
    await db.orm.update(db.t.tokens).set({ id: 3 }).where(eq(db.t.tokens.id, key.id));
    const filter: LogFilter = { type: 2, tokenName: "renamed since", ...everything };
    const expected = naive({ type: 2, tokenId: 3, userId: owner, ...everything });
    for (const offset of [0, 40]) {
      const page = await listLogs(app.deps, filter, { limit: 20, offset });
      expect(page.items.map(({ id }) => id)).toEqual(expected.slice(offset, offset + 20).map(({ id }) => id));
      expect(page).toMatchObject({ total: expected.length, isMore: false, isCut: false });
    }
    await db.orm.delete(db.t.tokens).where(eq(db.t.tokens.id, 3));
  });

  test("coarse sums made anew for another zone are those of the hourly ones, and the audit compares them", async () => {
    const { db, options } = app.deps;
    const { rollupsByUser, rollups } = db.t;
    for (const zone of ["America/St_Johns", "UTC"]) {
      await options.set("site.time_zone", zone);
      await makeCoarse();
      const days = await db.orm.select().from(rollupsByUser);
      const expected = new Map<string, number>();
      for (const { hour, userId, quota } of await db.orm.select().from(rollups)) {
        const key = `${dayOf(zone, hour)} ${userId}`;
        expected.set(key, (expected.get(key) ?? 0) + quota);
      }
      const found = new Map(days.map(({ day, userId, quota }) => [`${day} ${userId}`, quota]));
      expect([...found].sort()).toEqual([...expected].sort());
    }
    const coarse = async () =>
      (await audit(db)).differences.filter(({ what }) => what.startsWith("rollups_by"));
    expect(await coarse()).toEqual([]);
    const [day] = await db.orm.select().from(rollupsByUser).limit(1);
    const it = and(eq(rollupsByUser.day, day?.day ?? 0), eq(rollupsByUser.userId, day?.userId ?? 0));
    const set = (quota: number) => db.orm.update(rollupsByUser).set({ quota }).where(it);
    await set((day?.quota ?? 0) + 1);
    expect((await coarse()).map(({ what, id }) => [what, id])).toEqual([
      ["rollups_by_user.quota", String(day?.userId)],
    ]);
    await set(day?.quota ?? 0);
  });

  test("sums of an earlier zone are dropped two days at a time at most, however quick that is", async () => {
    const { db, options } = app.deps;
    const { rollupsByModel } = db.t;
    const [row] = await db.orm.select().from(rollupsByModel).limit(1);
    const old = Array.from({ length: 20 * 24 }, (_, hour) => ({ ...row!, hour: hour * HOUR_SECONDS }));
    await db.orm.insert(rollupsByModel).values(old);
    await options.set("site.time_zone", "Asia/Kolkata");
    const isOld = lt(rollupsByModel.hour, old.length * HOUR_SECONDS);
    const left = [old.length];
    await makeCoarse(async () => void left.push(await db.orm.$count(rollupsByModel, isOld)));
    expect(left.at(-1)).toBe(0);
    expect(Math.max(...left.slice(1).map((count, at) => (left[at] ?? 0) - count))).toBe(48);
  });

  test("wildcards in a search are letters, and a pattern with many % is refused", async () => {
    const found = await searchLogs(app.deps, "note 1%");
    expect(found).toEqual({ items: [], isCut: false });
    expect((await searchLogs(app.deps, "note 12")).items.length).toBeGreaterThan(3);
    expect((await searchLogs(app.deps, "5")).items.every((row) => row.type === 5)).toBe(true);
    const filter: LogFilter = { type: 0, modelName: "%a%b%c%d%e%", ...everything };
    expect(countLogs(app.deps, filter)).rejects.toMatchObject({ code: "wildcards_many" });
  });

  test("clearing deletes strictly older rows, keeps the figures, and pages stay right", async () => {
    await app.deps.options.set("AuditRetentionDays", "0");
    const moment = DAY_AGO + 30 * HOUR_SECONDS + 1000;
    const whole: LogFilter = { type: 2, ...everything };
    const before = await logStat(app.deps, whole);
    const gone = rows.filter((row) => row.createdAt < moment).length;
    const total = await counted({ type: 0, ...everything });
    expect(await clearLogs(app.deps, moment)).toBe(gone);
    expect(total - gone).toBe(await counted({ type: 0, ...everything }));
    rows = rows.filter((row) => row.createdAt >= moment);
    expect((await logStat(app.deps, whole)).quota).toBe(before.quota);
    for (const filter of filters()) {
      const expected = naive(filter);
      expect([filter, await counted(filter)]).toEqual([filter, expected.length]);
      const page = await listLogs(app.deps, filter, { limit: 50, offset: 2100 });
      expect(page.items.map((row) => row.id)).toEqual(expected.slice(2100, 2150).map((row) => row.id));
    }
    expect(await clearLogs(app.deps, moment - 500)).toBe(0);
    const { marks } = app.deps.db.t;
    const mark = () => app.deps.db.orm.select().from(marks).where(eq(marks.key, CLEARED_MARK));
    expect((await mark())[0]?.value).toBe(moment);
    const differences = (await audit(app.deps.db)).differences.filter(({ what }) => what.startsWith("logs."));
    expect(differences).toEqual([]);
    // What is cancelled keeps the rest, and a second one waits for nobody.
    const clearing = createLogClearing(app.deps);
    const running = clearing.run(NOW, BY);
    expect(clearing.run(NOW, BY)).rejects.toMatchObject({ code: "log_clear_running" });
    clearing.cancel();
    expect(clearing.progress()).toMatchObject({ isRunning: true, isCancelled: true });
    const cleared = await running;
    const left = rows.filter((row) => row.createdAt < NOW).length - cleared;
    expect(clearing.progress()).toMatchObject({ isRunning: false, done: cleared, total: cleared + left });
    expect(left).toBeGreaterThan(0);
    // A moment to come must not blind the audit for rows that are still to be written.
    await clearLogs(app.deps, NOW + 1_000_000);
    expect((await mark())[0]?.value).toBe(NOW);
  });
});
