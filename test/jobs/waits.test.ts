// Guarantees of what jobs are asked before their turn: whether there is something to do is true exactly when it is, so that
// nothing is begun for nothing and nothing that is due stays. Refuses to run a job: each has tests of its own.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { Table } from "drizzle-orm";
import { momentValues } from "../../src/db/moments.ts";
import { jobsOf } from "../../src/jobs/jobs.ts";
import { KeyStatus } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";

const DAY = 86_400;

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let app: TestApp;
    beforeAll(async () => {
      app = await startTestApp({ database });
    });
    afterAll(() => app.close());

    const nowSeconds = () => Math.floor(app.deps.clock.nowMs() / 1000);

    async function waiting(): Promise<string[]> {
      const jobs = jobsOf(app.deps, app.services.gateway.watch, () => Promise.resolve());
      const found: string[] = [];
      for (const { name, waits: condition, values } of jobs) {
        if (!condition) continue;
        const { marks } = app.deps.db.t;
        const flag = sql<string>`case when ${condition} then 'yes' else 'no' end`;
        const asked = app.deps.db.orm
          .select({ flag, count: sql`count(*)` })
          .from(marks)
          .prepare(name);
        const [row] = await asked.execute({ ...momentValues(app.deps.clock), ...values?.() });
        if (row?.flag === "yes") found.push(name);
      }
      return found;
    }

    /** What is left when the rows are there, and that nothing is once they are gone. */
    async function withRows(table: Table, rows: readonly object[]): Promise<string[]> {
      const { orm } = app.deps.db;
      await orm.insert(table as never).values(rows as never);
      const found = await waiting();
      await orm.delete(table as never);
      expect(await waiting()).toEqual([]);
      return found;
    }

    test("nothing waits on a site where nothing is to be done", async () => {
      expect(await waiting()).toEqual([]);
    });

    if (database === "sqlite")
      test("no condition goes through all accounts, tasks, runs or drafts", () => {
        const { client, orm, t } = app.deps.db;
        const jobs = jobsOf(app.deps, app.services.gateway.watch, () => Promise.resolve());
        const conditions = jobs.flatMap(({ waits }) => waits ?? []);
        expect(conditions.length).toBeGreaterThan(5);
        const plans = conditions.flatMap((condition) => {
          const { sql: text } = orm
            .select({ flag: sql`${condition}` })
            .from(t.marks)
            .toSQL();
          const statement = client?.prepare<{ detail: string }, []>(`explain query plan ${text}`);
          const steps = statement?.all() ?? [];
          statement?.finalize();
          return steps.map(({ detail }) => detail);
        });
        expect(plans.some((step) => step.includes("users_plan_until"))).toBe(true);
        const whole = /^SCAN (?:users|tasks|midjourneys|user_bulks|price_drafts)\b(?! USING)/;
        expect(plans.filter((step) => whole.test(step))).toEqual([]);
      });

    test("letters wait when they are due, or dead for a month", async () => {
      const { outbox } = app.deps.db.t;
      const now = nowSeconds();
      const letter = { kind: "test", letterSealed: "", createdAt: now };
      const later = { ...letter, nextAt: now + DAY };
      expect(await withRows(outbox, [later, { ...letter, nextAt: now, deadAt: now }])).toEqual([]);
      expect(await withRows(outbox, [later, { ...letter, nextAt: now }])).toEqual(["outbox"]);
      expect(await withRows(outbox, [{ ...letter, nextAt: now, deadAt: now - 31 * DAY }])).toEqual([
        "outbox",
      ]);
    });

    test("runs over accounts wait when nobody works on them, and are not over", async () => {
      const { userBulks } = app.deps.db.t;
      const now = nowSeconds();
      const run = { action: "flag", params: "{}", actor: "{}", actorId: 1, total: 1, createdAt: now };
      const rest = [
        { ...run, leaseUntil: now + DAY },
        { ...run, finishedAt: now },
      ];
      expect(await withRows(userBulks, rest)).toEqual([]);
      expect(await withRows(userBulks, [...rest, run])).toEqual(["user-bulk"]);
    });

    test("drafts of prices wait from their moment on", async () => {
      const { priceDrafts } = app.deps.db.t;
      const now = nowSeconds();
      const draft = { userId: 1, username: "root", createdAt: now, updatedAt: now };
      const rest = [
        { ...draft, effectiveAt: now },
        { ...draft, state: "scheduled", effectiveAt: now + DAY },
      ];
      expect(await withRows(priceDrafts, rest)).toEqual([]);
      const due = { ...draft, state: "scheduled", effectiveAt: now };
      expect(await withRows(priceDrafts, [...rest, due])).toEqual(["price-schedule"]);
    });

    for (const family of ["drawings", "tasks"] as const) {
      test(`open ${family} wait when they are to be polled`, async () => {
        const table = app.deps.db.t[family];
        const rest = [
          { userId: 1, progress: "100%" },
          { userId: 1, nextPollMs: app.deps.clock.nowMs() + 60_000 },
        ];
        expect(await withRows(table, rest)).toEqual([]);
        expect(await withRows(table, [...rest, { userId: 1 }])).toEqual(["task-poll"]);
      });
    }

    test("keys that went off by themselves wait from their next try on", async () => {
      const { channelKeys } = app.deps.db.t;
      const key = { channelId: 1, pos: 0, keySealed: "", keyHash: "", nextProbe: 0 };
      const off = { ...key, pos: 1, keyHash: "1", status: KeyStatus.autoOff };
      const later = { ...off, pos: 2, keyHash: "2", nextProbe: nowSeconds() + 6 * 3600 };
      expect(await withRows(channelKeys, [key, later])).toEqual([]);
      // By a clock that was ahead: nothing waits for so long.
      const ahead = { ...later, nextProbe: nowSeconds() + 7 * 3600 };
      expect(await withRows(channelKeys, [key, ahead])).toEqual(["key-probe"]);
      expect(await withRows(channelKeys, [key, later, off])).toEqual(["key-probe"]);
    });

    test("accounts wait whose period is over, erasures until they are through, sums of days in another zone", async () => {
      const { marks, rollupDays, users } = app.deps.db.t;
      const { orm } = app.deps.db;
      await app.createUser();
      const until = (planUntil: number) => orm.update(users).set({ planUntil });
      await until(nowSeconds() + DAY);
      expect(await waiting()).toEqual([]);
      await until(nowSeconds());
      expect(await waiting()).toEqual(["plan-periods"]);
      await until(0);

      await orm.insert(marks).values({ key: "erase:7", value: 1 });
      expect(await waiting()).toEqual(["erasure"]);
      await orm.delete(marks).where(eq(marks.key, "erase:7"));

      const [days] = await orm.select().from(rollupDays);
      for (const other of [{ fromHour: 3600 }, { zone: "Europe/Vienna" }]) {
        await orm.update(rollupDays).set(other);
        expect(await waiting()).toEqual(["coarse-sums"]);
        await orm.update(rollupDays).set(days ?? other);
      }
      expect(await waiting()).toEqual([]);
    });
  });
}
