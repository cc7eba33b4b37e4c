// The dashboard's figures over the wire: equal to what the raw rows add up to, in the visitor's own days and weeks.
// Refuses rows made by hand: every call goes through the ledger; the expectation is added up from the log itself.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Dashboard } from "../../src/core/logs/dashboard.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
/** 2025-11-05 12:20 UTC: the days before hold the end of New York's summer time (2025-11-02 06:00 UTC). */
const NOW = Date.UTC(2025, 10, 5, 12, 20) / 1000;
const ZONE = "America/New_York";

interface Envelope<T> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
}

interface Row {
  userId: number;
  modelName: string;
  channelId: number;
  tokenId: number;
  createdAt: number;
  quota: number;
  promptTokens: number;
  completionTokens: number;
  useTimeMs: number;
  type: number;
}

/** The local date of a moment, told by another part of the runtime than the product uses. */
const localDay = (seconds: number) =>
  new Date(seconds * 1000).toLocaleDateString("sv-SE", { timeZone: ZONE });

const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);
const sumsOf = (rows: readonly Row[]) => ({
  quota: total(rows.map((row) => row.quota)),
  count: rows.length,
  tokens: total(rows.map((row) => row.promptTokens + row.completionTokens)),
});

describe.each(DATABASE_KINDS)("dashboard on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  const people: TestUser[] = [];
  const keys: { id: number; key: string }[] = [];
  let channelId = 0;
  let clock = NOW;
  let rows: Row[] = [];

  async function charge(who: number, at: number, modelName: string, quota: number): Promise<void> {
    clock = at;
    const user = await app.deps.accounts.user(people[who]?.id ?? 0);
    const token = await app.deps.accounts.tokenByKey((keys[who]?.key ?? "").replace("sk-", ""));
    if (!user || !token) throw new Error("no account");
    const requestId = `${database}-${at}-${modelName}-${who}`;
    const hold = await app.deps.ledger.reserve({ requestId, user, token, amount: 0 });
    await hold.settle({
      quota,
      promptTokens: (quota * 3) % 17,
      completionTokens: quota % 5,
      modelName,
      channelId,
      group: "default",
      isStream: false,
      useTimeMs: 1000 + quota,
      content: "",
      other: {},
    });
  }

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => clock * 1000 } });
    admin = await app.createUser({ username: "admin", role: 10 });
    for (const username of ["alice", "bob"]) {
      const user = await app.createUser({ username, quota: 1_000_000 });
      people.push(user);
      keys.push(await app.createToken(user.id, { name: `key of ${username}` }));
    }
    channelId = await app.createChannel({ name: "upstream one" });
    // Every model ranks differently by quota; calls lie on both sides of the changed clock, of midnights and of hours.
    for (let index = 0; index < 66; index++) {
      const at = NOW - 10 * DAY + index * 13_063 + (index % 7) * 411;
      if (at > NOW) continue;
      await charge(index % 3 === 0 ? 1 : 0, at, `model-${index % 11}`, 5 + (index % 11) ** 2 * 3);
    }
    await charge(0, Date.UTC(2025, 10, 2, 3, 59, 59) / 1000, "model-0", 50);
    await charge(0, Date.UTC(2025, 10, 2, 4, 0, 0) / 1000, "model-0", 60);
    await charge(0, Date.UTC(2025, 10, 3, 4, 30, 0) / 1000, "model-0", 70);
    await charge(0, Date.UTC(2025, 10, 3, 5, 0, 0) / 1000, "model-0", 80);
    for (const at of [NOW - DAY, NOW - 2 * DAY, NOW - 2 * DAY - 60]) {
      clock = at;
      const [alice] = people;
      await app.deps.ledger.log({ type: 5, userId: alice?.id ?? 0, username: "alice", content: "broken" });
    }
    // Refused for want of a price, before a channel was asked.
    const [alice] = people;
    await app.deps.ledger.log({
      type: 5,
      userId: alice?.id ?? 0,
      username: "alice",
      content: "",
      modelName: "house-model",
      other: { error_code: "model_not_priced" },
    });
    clock = NOW;
    await app.deps.ledger.flush();
    rows = await app.deps.db.orm.select().from(app.deps.db.t.logs);
  });
  afterAll(() => app.close());

  const ask = async <T = Dashboard>(path: string, as: TestUser = admin) =>
    (await app.call<Envelope<T>>("GET", `/api/data${path}`, undefined, as)).body;
  const range = (from: number, to: number) => `start_timestamp=${from}&end_timestamp=${to - 1}`;
  const calls = (from: number, to: number, who?: TestUser) =>
    rows.filter(
      (row) =>
        row.type === 2 &&
        row.createdAt >= from &&
        row.createdAt < to &&
        (who === undefined || row.userId === who.id),
    );
  const whole = ({ lines }: Dashboard) => ({
    quota: total(lines.quota),
    count: total(lines.count),
    tokens: total(lines.tokens),
  });

  test("each series and the whole are what the log's rows add up to, and the rest is told", async () => {
    const from = NOW - (NOW % HOUR) - 8 * DAY;
    const to = from + 8 * DAY + HOUR;
    const { data } = await ask(`/summary?${range(from, to)}&granularity=day`);
    expect(data).toMatchObject({ from, to, step: "day", by: "model" });
    expect(whole(data)).toEqual(sumsOf(calls(from, to)));
    for (const figure of ["quota", "count", "tokens"] as const) {
      const found = (await ask(`/summary?${range(from, to)}&granularity=day&figure=${figure}`)).data;
      const expected = Array.from({ length: 11 }, (_, index) => {
        const own = calls(from, to).filter((row) => row.modelName === `model-${index}`);
        return [`model-${index}`, sumsOf(own)[figure]] as const;
      }).toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
      // Eleven models: the leaders of this very figure, by their own names, and how many are left.
      expect(found.series.map(({ id, name, values }) => [id, name, total(values)])).toEqual(
        expected.slice(0, 8).map(([id, sum]) => [id, id, sum]),
      );
      expect([found.figure, found.otherSize]).toEqual([figure, 3]);
      for (const [bar, sum] of found.lines[figure].entries()) {
        expect(total(found.series.map(({ values }) => values[bar] ?? 0))).toBeLessThanOrEqual(sum);
      }
    }
    expect(total(data.ms)).toBe(total(calls(from, to).map((row) => row.useTimeMs)));
    expect(total(data.errors)).toBe(4);
  });

  test("bars are days of the asked zone, also where a day has 25 hours", async () => {
    const from = Date.UTC(2025, 9, 30, 4) / 1000;
    const to = Date.UTC(2025, 10, 6, 5) / 1000;
    const { data } = await ask(`/summary?${range(from, to)}&granularity=day&time_zone=${ZONE}`);
    expect(data.at.map((at) => localDay(at))).toEqual([
      "2025-10-30",
      "2025-10-31",
      "2025-11-01",
      "2025-11-02",
      "2025-11-03",
      "2025-11-04",
      "2025-11-05",
    ]);
    expect(data.at.every((at, index) => index === 0 || localDay(at - 1) < localDay(at))).toBe(true);
    const byDay = data.at.map((at) => {
      const own = rows.filter((row) => localDay(row.createdAt) === localDay(at));
      return [sumsOf(own.filter((row) => row.type === 2)).quota, own.filter((row) => row.type === 5).length];
    });
    expect(data.at.map((_, bar) => [data.lines.quota[bar], data.errors[bar]])).toEqual(byDay);
    // The same days seen from UTC are others.
    const utc = (await ask(`/summary?${range(from, to)}&granularity=day`)).data;
    expect(utc.at.length).toBe(8);
    expect(whole(utc)).toEqual(whole(data));
  });

  test("weeks begin on Monday, hours are hours, and without a granularity the range decides", async () => {
    const from = Date.UTC(2025, 9, 29, 4) / 1000;
    const weeks = (await ask(`/summary?${range(from, NOW)}&granularity=week&time_zone=${ZONE}`)).data;
    expect(weeks.at.slice(1).map((at) => [localDay(at), localDay(at - 1)])).toEqual([
      ["2025-11-03", "2025-11-02"],
    ]);
    expect(whole(weeks)).toEqual(sumsOf(calls(from, NOW + HOUR)));
    const hours = (await ask(`/summary?${range(NOW - DAY, NOW)}`)).data;
    expect([hours.step, hours.at.length]).toEqual(["hour", 25]);
    for (const [bar, at] of hours.at.entries()) {
      expect([at, hours.lines.count[bar]]).toEqual([at, calls(at, at + HOUR).length]);
    }
    expect((await ask(`/summary?${range(NOW - 9 * DAY, NOW)}`)).data.step).toBe("day");
    expect((await ask(`/summary?${range(NOW - 300 * DAY, NOW)}`)).data.step).toBe("week");
  });

  test("the comparison is the same stretch before, as far as this one has passed", async () => {
    const from = NOW - (NOW % HOUR) - 2 * DAY;
    const to = from + 3 * DAY;
    const { data } = await ask(`/summary?${range(from, to)}`);
    expect(data.elapsed).toBe(NOW - from);
    const before = calls(from - 3 * DAY, from - 3 * DAY + (NOW - from));
    expect(before.length).toBeGreaterThan(5);
    expect(data.previous).toEqual(sumsOf(before));
  });

  test("administrators see it by user, channel and key, and one user's by name", async () => {
    const days = range(NOW - 9 * DAY, NOW + 1);
    const names = async (by: string) =>
      (await ask(`/summary?${days}&by=${by}`)).data.series.map(({ name }) => name).toSorted();
    expect(await names("user")).toEqual(["alice", "bob"]);
    expect(await names("channel")).toEqual(["upstream one"]);
    expect(await names("key")).toEqual(["key of alice", "key of bob"]);
    const unpriced = async (more = "") => (await ask(`/summary?${days}${more}`)).data.unpriced;
    expect(await unpriced()).toEqual(["house-model"]);
    expect(await unpriced("&username=alice")).toEqual(["house-model"]);
    expect(await unpriced("&username=bob")).toEqual([]);
    const { data } = await ask(`/summary?${days}&username=bob`);
    expect(whole(data)).toEqual(sumsOf(calls(data.from, data.to, people[1])));
    expect(total(data.errors)).toBe(0);
    expect(whole((await ask(`/summary?${days}&username=nobody`)).data).count).toBe(0);
  });

  test("users see their own and nobody else's, by model or key only, one month at most", async () => {
    const bob = people[1] as TestUser;
    const days = range(NOW - 9 * DAY, NOW + 1);
    for (const more of ["", "&username=alice", "&by=user", "&by=channel", "&by=key"]) {
      const { data } = await ask(`/self/summary?${days}${more}`, bob);
      expect(whole(data)).toEqual(sumsOf(calls(data.from, data.to, bob)));
      expect([more, data.by]).toEqual([more, more === "&by=key" ? "key" : "model"]);
    }
    const month = await ask(`/self/summary?${range(NOW - 2_592_000, NOW + 2)}`, bob);
    expect([month.success, month.message]).toEqual([false, "时间跨度不能超过 1 个月"]);
    expect((await ask(`/self/summary?${range(NOW - 2_592_000, NOW + 1)}`, bob)).success).toBe(true);
    for (const [path, as, status] of [
      ["/summary", bob, 403],
      ["/summary", undefined, 401],
      ["/self/summary", undefined, 401],
    ] as const) {
      expect((await app.call("GET", `/api/data${path}`, undefined, as)).status).toBe(status);
    }
  });

  test("more bars than a chart has are refused, and hostile parameters are not given ones", async () => {
    const long = await ask(`/summary?${range(NOW - 121 * HOUR, NOW + 1)}&granularity=hour`);
    expect([long.success, long.code]).toEqual([false, "data_bars_many"]);
    expect((await ask(`/summary?${range(1, NOW)}`)).code).toBe("data_bars_many");
    expect((await ask(`/summary?end_timestamp=999999999999999`)).success).toBe(true);
    for (const value of ["-1", "1e309", "%00", "'%20or%201=1", "../../etc", "9".repeat(15)]) {
      for (const name of [
        "start_timestamp",
        "end_timestamp",
        "granularity",
        "figure",
        "by",
        "time_zone",
        "username",
      ]) {
        const answer = await app.call("GET", `/api/data/summary?${name}=${value}`, undefined, admin);
        expect([name, value, answer.status < 500]).toEqual([name, value, true]);
      }
    }
    const { data } = await ask(`/summary?${range(NOW - DAY, NOW)}&time_zone=Nowhere/Land&granularity=year`);
    expect(data).toMatchObject({ step: "hour", by: "model" });
  });
});
