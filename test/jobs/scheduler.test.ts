// Guarantees of what comes round by itself: in its interval, once at a time, on one node, and not after the stop.
import { afterEach, describe, expect, mock, test } from "bun:test";
import { eq, exists, sql } from "drizzle-orm";
import type { Sql } from "postgres";
import { createScheduler } from "../../src/jobs/scheduler.ts";
import type { Job, Scheduler } from "../../src/jobs/scheduler.ts";
import { startTestApp } from "../support/app.ts";
import { FORTY_DAYS_MS, testClock } from "../support/clock.ts";
import type { TestApp } from "../support/app.ts";
import { untilSo } from "../support/turns.ts";

/** So many statements about jobs have been sent since, on PostgreSQL. */
function countQuestions(app: TestApp): () => number {
  let count = 0;
  const { client } = (app.deps.db.orm as unknown as { session: { client: Sql } }).session;
  const unsafe = client.unsafe.bind(client);
  client.unsafe = (...statement) => {
    if (statement[1]?.some((value) => typeof value === "string" && value.startsWith("job:"))) count++;
    return unsafe(...statement);
  };
  return () => count;
}

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let app: TestApp;
    const made: Scheduler[] = [];
    afterEach(async () => {
      await Promise.all(made.map((scheduler) => scheduler.stop()));
      await app.close();
    });

    /** `nodes` schedulers over the same database with a clock that the test moves. */
    async function setUp(nodes: number, job: Job) {
      app = await startTestApp({ database });
      const clock = testClock();
      const list = Array.from({ length: nodes }, () => createScheduler({ ...app.deps, clock }, [job]));
      made.push(...list);
      return {
        pass: (seconds: number) => clock.advance(seconds * 1000),
        clock,
        look: () => Promise.all(list.map((scheduler) => scheduler.look())),
        list,
      };
    }

    /** The same with a job that comes round each minute and only counts its runs. */
    async function setUpCounting(nodes: number) {
      const counted = { runs: 0 };
      const job: Job = {
        name: "count",
        everySeconds: () => 60,
        run: () => Promise.resolve(void counted.runs++),
      };
      return { counted, job, nodes: await setUp(nodes, job) };
    }

    test("a job runs once an interval, on one of three nodes, and not at the start", async () => {
      const { counted, nodes } = await setUpCounting(3);
      await nodes.look();
      expect(counted.runs).toBe(0);
      nodes.pass(59);
      await nodes.look();
      expect(counted.runs).toBe(0);
      nodes.pass(1);
      await nodes.look();
      expect(counted.runs).toBe(1);
      await nodes.look();
      expect(counted.runs).toBe(1);
      nodes.pass(600);
      await nodes.look();
      expect(counted.runs).toBe(2);
    });

    test("a second that ends between two nodes' first looks brings nothing forward", async () => {
      const { counted, nodes } = await setUpCounting(9);
      const [first, ...others] = nodes.list;
      await first?.look();
      const { marks } = app.deps.db.t;
      const now =
        database === "postgres"
          ? sql<number>`floor(extract(epoch from now()))::bigint`
          : sql<number>`${Math.floor(nodes.clock.nowMs() / 1000)}`;
      let second: Scheduler | undefined;
      // One that looked within the next second, and not, on a slow machine, in the one after it.
      const isNextSecond = async () => {
        const [row] = await app.deps.db.orm
          .select({ age: sql`${now} - ${marks.value}`.mapWith(Number) })
          .from(marks);
        return row?.age === 1;
      };
      do {
        second = others.pop();
        expect(second).toBeDefined();
        await app.deps.db.orm.update(marks).set({ value: sql`${now} - 1` });
        await second?.look();
      } while (!(await isNextSecond()));
      nodes.pass(59);
      await second?.look();
      expect(counted.runs).toBe(0);
      nodes.pass(1);
      await second?.look();
      expect(counted.runs).toBe(1);
    });

    test("several turns within one second are told apart by a node that missed one of them", async () => {
      const { counted, nodes } = await setUpCounting(2);
      const [first, second] = nodes.list;
      await nodes.look();
      for (let turn = 1; turn <= 2; turn++) {
        nodes.pass(60);
        await first?.look();
        expect(counted.runs).toBe(turn);
      }
      // Two turns behind: the mark must not look as it did when this node read it.
      await second?.look();
      expect(counted.runs).toBe(2);
    });

    for (const [way, jumpMs] of [
      ["back", -FORTY_DAYS_MS],
      ["forward", FORTY_DAYS_MS],
    ] as const) {
      test(`a clock that is set ${way} by forty days neither stops a job nor hurries it`, async () => {
        const { counted, nodes } = await setUpCounting(2);
        await nodes.look();
        nodes.clock.jump(jumpMs);
        nodes.pass(59);
        await nodes.look();
        expect(counted.runs).toBe(0);
        nodes.pass(1);
        await nodes.look();
        expect(counted.runs).toBe(1);
        nodes.pass(60);
        await nodes.look();
        expect(counted.runs).toBe(2);
      });
    }

    test("after a start with a clock that was set back a job is due within its interval", async () => {
      const { counted, job, nodes } = await setUpCounting(1);
      await nodes.look();
      nodes.clock.jump(-FORTY_DAYS_MS);
      const restarted = createScheduler({ ...app.deps, clock: nodes.clock }, [job]);
      made.push(restarted);
      await restarted.look();
      nodes.pass(60);
      await restarted.look();
      expect(counted.runs).toBe(1);
    });

    test("a job without work takes no turn and moves no mark, and begins with the first look once there is some", async () => {
      let runs = 0;
      const { marks } = (app = await startTestApp({ database })).deps.db.t;
      const { orm } = app.deps.db;
      const work = orm
        .select({ one: sql`1` })
        .from(marks)
        .where(eq(marks.key, "work"));
      const clock = testClock();
      const job: Job = {
        name: "idle",
        everySeconds: () => 60,
        waits: exists(work),
        run: () => Promise.resolve(void runs++),
      };
      const nodes = [1, 2].map(() => createScheduler({ ...app.deps, clock }, [job]));
      made.push(...nodes);
      const look = () => Promise.all(nodes.map((node) => node.look()));
      const mark = async () => (await orm.select().from(marks).where(eq(marks.key, "job:idle")))[0]?.value;
      await look();
      const first = await mark();
      expect(nodes[0]?.succeeded.has("idle")).toBe(false);
      const questions = database === "postgres" ? countQuestions(app) : undefined;
      for (let minutes = 0; minutes < 3; minutes++) {
        clock.advance(60_000);
        await look();
      }
      expect(runs).toBe(0);
      // A look of a node is one question, and nothing is written.
      if (questions) expect(questions()).toBe(3 * nodes.length);
      expect(await mark()).toBe(first);
      // Nothing is late either: what is watched is that the looks come.
      expect(nodes.map(({ succeeded }) => succeeded.get("idle"))).toEqual(
        Array(2).fill(Math.floor(clock.nowMs() / 1000)),
      );
      await orm.insert(marks).values({ key: "work", value: 1 });
      await look();
      expect(runs).toBe(1);
      expect(await mark()).not.toBe(first);
      // Its interval counts from there.
      clock.advance(59_000);
      await look();
      expect(runs).toBe(1);
      clock.advance(1000);
      await look();
      expect(runs).toBe(2);
    });

    test("a condition that cannot be asked ends no job: all are begun as if each had work, and it is said once", async () => {
      app = await startTestApp({ database });
      const runs: string[] = [];
      const job = (name: string, waits?: Job["waits"]): Job => ({
        name,
        everySeconds: () => 60,
        waits,
        run: () => Promise.resolve(void runs.push(name)),
      });
      const clock = testClock();
      const logger = { ...app.deps.logger, error: mock() };
      const scheduler = createScheduler({ ...app.deps, clock, logger }, [
        job("broken", sql`exists (select 1 from no_such_table)`),
        job("sound", sql`1 = 1`),
      ]);
      made.push(scheduler);
      for (let minutes = 0; minutes < 3; minutes++) {
        await scheduler.look();
        clock.advance(60_000);
      }
      expect(runs.toSorted()).toEqual(["broken", "broken", "sound", "sound"]);
      expect(logger.error).toHaveBeenCalledTimes(1);
    });

    test("an interval of zero switches it off", async () => {
      let runs = 0;
      const nodes = await setUp(1, {
        name: "off",
        everySeconds: () => 0,
        run: () => Promise.resolve(void runs++),
      });
      for (let i = 0; i < 3; i++) {
        nodes.pass(1000);
        await nodes.look();
      }
      expect(runs).toBe(0);
    });

    test("a job that is still running is not begun again, one that throws comes round again", async () => {
      let runs = 0;
      const doors = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const nodes = await setUp(1, {
        name: "slow",
        everySeconds: () => 10,
        run: () => doors[runs++]?.promise ?? Promise.resolve(),
      });
      await nodes.look();
      nodes.pass(10);
      const first = nodes.look();
      nodes.pass(10);
      // The first look must have begun its job before the second one looks.
      await untilSo(() => runs > 0);
      await nodes.look();
      expect(runs).toBe(1);
      doors[0]?.reject(new Error("broken"));
      await first;
      doors[1]?.resolve();
      nodes.pass(10);
      await nodes.look();
      expect(runs).toBe(2);
    });

    test("a run that outlasts its interval is not begun again on another node, and a dead node's turn passes on", async () => {
      let runs = 0;
      const door = Promise.withResolvers<void>();
      const nodes = await setUp(2, {
        name: "long",
        everySeconds: () => 60,
        run: () => (runs++ === 0 ? door.promise : Promise.resolve()),
      });
      const [first, second] = nodes.list;
      await first?.look();
      nodes.pass(60);
      const running = first?.look();
      await untilSo(() => runs > 0);
      for (let i = 0; i < 10; i++) {
        nodes.pass(15);
        await first?.look();
        await second?.look();
      }
      expect(runs).toBe(1);
      // The first node says nothing any more: after one interval the job is the other's.
      nodes.pass(60);
      await second?.look();
      expect(runs).toBe(2);
      door.resolve();
      await running;
    });

    test("a short interval is no gap between two looks: its turn is kept by a timer of its own, as long as the job runs", async () => {
      let runs = 0;
      const door = Promise.withResolvers<void>();
      app = await startTestApp({ database });
      const clock = testClock();
      const timers: { ms: number; due: () => void }[] = [];
      const lookEvery = (ms: number, due: () => void) => {
        const timer = { ms, due };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      };
      const run = () => (runs++ === 0 ? door.promise : Promise.resolve());
      const job: Job = { name: "short", everySeconds: () => 15, run };
      const first = createScheduler({ ...app.deps, clock }, [job], lookEvery);
      const second = createScheduler({ ...app.deps, clock }, [job]);
      made.push(first, second);
      expect(timers.map(({ ms }) => ms)).toEqual([15_500]);
      await first.look();
      clock.advance(15_000);
      const running = first.look();
      await untilSo(() => runs > 0);
      try {
        expect(timers.map(({ ms }) => ms)).toEqual([15_500, 5000]);
        await second.look();
        const { marks } = app.deps.db.t;
        const mark = async () =>
          (await app.deps.db.orm.select().from(marks).where(eq(marks.key, "job:short")))[0]?.value;
        // The other one's look comes a moment before the first one's, which would keep the turn.
        for (let looks = 0; looks < 3; looks++) {
          for (let kept = 0; kept < 3; kept++) {
            const before = await mark();
            clock.advance(5000);
            timers[1]?.due();
            await untilSo(async () => (await mark()) !== before);
          }
          clock.advance(498);
          await second.look();
        }
        expect(runs).toBe(1);
      } finally {
        door.resolve();
        await running;
      }
      expect(timers.map(({ ms }) => ms)).toEqual([15_500]);
    });

    test("nothing begins after the stop, and the stop waits for what runs", async () => {
      let runs = 0;
      const nodes = await setUp(1, {
        name: "end",
        everySeconds: () => 10,
        run: () => Promise.resolve(void runs++),
      });
      await nodes.look();
      nodes.pass(10);
      await nodes.list[0]?.stop();
      await nodes.look();
      expect(runs).toBe(0);
    });
  });
}
