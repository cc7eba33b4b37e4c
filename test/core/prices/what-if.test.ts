// What the last days would have cost, read out of filled logs: every row of the window once and no other, also where thousands
// share a second; samples say that they are some, and stay close; few ask at once.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { tablesIn } from "../../../src/core/prices/changes.ts";
import { priceState } from "../../../src/core/prices/revisions.ts";
import type { PriceTables } from "../../../src/core/prices/prices.ts";
import { whatIf } from "../../../src/core/prices/what-if.ts";
import type { Failure } from "../../../src/shared/failures.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { START_MS } from "../../support/clock.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

const NOW = Math.floor(START_MS / 1000);
const HOUR = 3600;
/** At ratio 1: 1,000 units. */
const COST = JSON.stringify({ cost: { fresh: 1000, modelRatio: 1, revision: "0" } });
const UNITS = 1000;

describe.each(DATABASE_KINDS)("what-if on %s", (database) => {
  let app: TestApp;
  let before: PriceTables;
  let after: PriceTables;

  interface Filled {
    at: number;
    count: number;
    model?: string;
    userId?: number;
    other?: string;
    type?: number;
  }
  async function fill({ at, count, model = "m", userId = 1, other = COST, type = 2 }: Filled): Promise<void> {
    const { logs } = app.deps.db.t;
    const row = { createdAt: at, type, userId, username: `u${userId}`, modelName: model, group: "default" };
    for (let from = 0; from < count; from += 500)
      await app.deps.db.orm
        .insert(logs)
        .values(Array.from({ length: Math.min(500, count - from) }, () => ({ ...row, quota: UNITS, other })));
  }
  const sums = async (hour: number, count: number): Promise<void> => {
    const fields = { userId: 1, modelName: "m", channelId: 1, tokenId: 1, group: "default" };
    const figures = { count, loggedCount: count, quota: count * UNITS, loggedQuota: count * UNITS };
    await app.deps.db.orm.insert(app.deps.db.t.rollups).values({ hour, ...fields, ...figures });
  };
  const hourOf = (at: number): number => Math.floor(at / HOUR) * HOUR;

  beforeAll(async () => {
    app = await startTestApp({ database });
    await app.deps.options.set("ModelRatio", '{"m":1,"n":1}');
    before = tablesIn((await priceState(app.deps.db)).texts);
    after = { ...before, modelRatio: { m: 3, n: 1 } };
    const from = hourOf(NOW - 86_400);
    // The window's first and last second, a second with more rows than a part, and an hour with no sums of its own.
    await fill({ at: from, count: 1 });
    await fill({ at: NOW - 5 * HOUR, count: 2300 });
    await fill({ at: NOW - 5 * HOUR + 1, count: 7, model: "n", userId: 2 });
    await fill({ at: NOW - 3 * HOUR, count: 4 });
    await fill({ at: NOW, count: 2 });
    await sums(from, 1);
    await sums(hourOf(NOW - 5 * HOUR), 2307);
    await sums(hourOf(NOW), 2);
    // None of these counts: before the window, after it, no use.
    await fill({ at: from - 1, count: 5 });
    await fill({ at: NOW + 1, count: 5 });
    await fill({ at: NOW - HOUR, count: 5, type: 3, other: "" });
    await fill({ at: NOW - HOUR, count: 6, type: 5, other: "" });
  });
  afterAll(() => app.close());

  const run = (more: object = {}) =>
    whatIf(app.deps.db, { before, after, days: 1, nowMs: START_MS, ...more });

  test("counts every call of the window once, whatever shares its second, and nothing else", async () => {
    const m = 2307;
    expect(await run()).toMatchObject({
      everyHours: 1,
      calls: m + 7,
      charged: (m + 7) * UNITS,
      old: (m + 7) * UNITS,
      new: (3 * m + 7) * UNITS,
      approximate: { calls: 0, charged: 0 },
      refusedCalls: 6,
      byModel: [
        { model: "m", calls: m, old: m * UNITS, new: 3 * m * UNITS },
        { model: "n", calls: 7, old: 7 * UNITS, new: 7 * UNITS },
      ],
      byUser: [
        { userId: 1, username: "u1", calls: m },
        { userId: 2, username: "u2", calls: 7 },
      ],
    });
  });

  test("calls that began within a second of an hour's edge are counted as uncertain, in either price", async () => {
    const iso = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(".000", "");
    const rules = (from: number): PriceTables => ({
      ...before,
      priceRules: { n: { when: [{ from: iso(from), times: 2 }] } },
    });
    const at = NOW - 5 * HOUR + 1;
    const uncertain = async (from: number): Promise<number> => (await run({ after: rules(from) })).uncertain;
    expect((await run()).uncertain).toBe(0);
    expect([await uncertain(at), await uncertain(at + 1)]).toEqual([7, 7]);
    // A second earlier it had begun already, and a second later it has not.
    expect([await uncertain(at - 1), await uncertain(at + 2)]).toEqual([0, 0]);
    expect((await run({ before: rules(at), after: before })).uncertain).toBe(7);
  });

  test("a longer window has the earlier calls too", async () => {
    expect((await run({ days: 7 })).calls).toBe(2314 + 5);
  });

  test("more rows than may be read are read in whole hours, which is said, and projected to all", async () => {
    const later = START_MS + 90 * 86_400_000;
    const end = hourOf(Math.floor(later / 1000));
    for (let hour = end - 24 * HOUR; hour < end; hour += HOUR) {
      await fill({ at: hour + 1000, count: 20 });
      await sums(hour, 20);
    }
    // Every second hour would be few enough: it is every fifth, because no divisor of a day is taken.
    const sampled = await run({ nowMs: end * 1000 - 1, maxRows: 300 });
    expect(sampled.everyHours).toBe(5);
    expect(sampled).toMatchObject({ calls: 480, old: 480 * UNITS, new: 1440 * UNITS });
    expect((await run({ nowMs: end * 1000 - 1, maxRows: 480 })).everyHours).toBe(1);
  });

  test("a sample never misses a log that stands in a single hour", async () => {
    const later = START_MS + 60 * 86_400_000;
    const hour = hourOf(Math.floor(later / 1000)) - 7 * HOUR;
    await fill({ at: hour + 10, count: 50 });
    await sums(hour, 50);
    expect(await run({ nowMs: later, maxRows: 10 })).toMatchObject({ calls: 50, new: 150 * UNITS });
  });

  test("rows of other software and rows without figures count, and are said to be approximate", async () => {
    const later = START_MS + 30 * 86_400_000;
    const at = Math.floor(later / 1000) - 60;
    await fill({ at, count: 1 });
    await fill({ at, count: 1, other: '{"model_ratio":1,"completion_ratio":1,"group_ratio":1}' });
    await fill({ at, count: 2, other: "no json" });
    const found = await run({ nowMs: later });
    expect(found).toMatchObject({ calls: 4, approximate: { calls: 3, charged: 3 * UNITS } });
    // Without figures: as the model's other calls change, by three.
    expect(found.new).toBe(3 * found.old);
  });

  test("few ask at once; who leaves is not read for", async () => {
    const codes = await Promise.all(
      Array.from({ length: 7 }, () =>
        run().then(
          () => "done",
          (error: Failure) => error.code,
        ),
      ),
    );
    expect(codes.filter((code) => code === "done")).toHaveLength(4);
    expect(codes.filter((code) => code === "price_what_if_busy")).toHaveLength(3);
    const left = run({ signal: AbortSignal.abort() }).catch((error: Failure) => error.code);
    expect(await left).toBe("client_gone");
    expect((await run()).calls).toBe(2314);
  });
});
