// Work that comes round: each job in its interval, one at a time, on one node only, also across restarts and long runs.
// Refuses to begin anything once it is stopped; a job that throws is logged and comes round again.
import { and, eq, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Deps } from "../core/deps.ts";

export interface Job {
  /** Key of the job's mark in the database: its last start in Unix seconds, give or take a second. */
  name: string;
  /** 0 or less = switched off; asked anew at every look. */
  everySeconds: () => number;
  run: () => Promise<void>;
}

export interface Scheduler {
  /** Looks now whether anything is due, and waits for what it began. Called by the timer, and by tests. */
  look(): Promise<void>;
  /** Resolves when the running job is through. */
  stop(): Promise<void>;
}

const LOOK_MS = 15_000;
/** Nodes do not all look at the same moment. */
const JITTER_MS = 5_000;

export function createScheduler(
  deps: Pick<Deps, "db" | "clock" | "logger">,
  jobs: readonly Job[],
  random: () => number = Math.random,
): Scheduler {
  const { marks } = deps.db.t;
  const running = new Map<string, Promise<void>>();
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** What this node knows of a job's mark: its value, and how old that was when it was first seen. */
  const seen = new Map<string, { value: number; ageMs: number; sinceMs: number }>();

  /** The time of day in Unix seconds: the database's where nodes share one, so that it is the same for all. */
  const wallSeconds = (): SQL<number> =>
    (deps.db.kind === "postgres"
      ? sql`floor(extract(epoch from now()))::bigint`
      : sql`${Math.floor(deps.clock.nowMs() / 1000)}`
    ).mapWith(Number) as SQL<number>;
  const keyOf = (job: Job): string => `job:${job.name}`;

  /** Any other value than before tells all nodes that the interval begins anew. */
  const nextValue = (): SQL => {
    const now = wallSeconds();
    return sql`case when ${marks.value} = ${now} then ${marks.value} + 1 else ${now} end`;
  };

  /**
   * How long ago the job was begun. Counted on this node's steady clock: the time of day is asked only for a mark that
   * stood there before this node did, and a mark of the future (the clock was set back) counts from now. Both are whole
   * seconds: two that differ by one may be a millisecond apart, so the last one does not count.
   */
  async function sinceLastStart(job: Job): Promise<{ value: number; elapsedMs: number } | undefined> {
    const key = keyOf(job);
    const found = { value: marks.value, now: wallSeconds() };
    const look = () => deps.db.orm.select(found).from(marks).where(eq(marks.key, key));
    let [row] = await look();
    const isFirst = row === undefined;
    if (isFirst) {
      // The first interval begins when the job is first seen: nothing starts merely because the process did.
      await deps.db.orm.insert(marks).values({ key, value: wallSeconds() }).onConflictDoNothing();
      [row] = await look();
    }
    if (!row) return undefined;
    const { value, now } = row;
    const nowMs = deps.clock.monotonicMs();
    let known = seen.get(job.name);
    if (known?.value !== value) {
      const isNew = known !== undefined || isFirst;
      known = { value, ageMs: isNew ? 0 : Math.max(0, now - value - 1) * 1000, sinceMs: nowMs };
      seen.set(job.name, known);
    }
    return { value, elapsedMs: known.ageMs + nowMs - known.sinceMs };
  }

  async function move(job: Job, where: SQL | undefined): Promise<boolean> {
    const [moved] = await deps.db.orm.update(marks).set({ value: nextValue() }).where(where).returning();
    if (!moved) return false;
    seen.set(job.name, { value: moved.value, ageMs: 0, sinceMs: deps.clock.monotonicMs() });
    return true;
  }

  /** The node that moves the mark has the turn; a start within the interval leaves it where it is. */
  async function takesTurn(job: Job, everySeconds: number): Promise<boolean> {
    const last = await sinceLastStart(job);
    if (!last || last.elapsedMs < everySeconds * 1000) return false;
    return move(job, and(eq(marks.key, keyOf(job)), eq(marks.value, last.value)));
  }

  /** A run may outlast its interval: as long as its node lives, no other node begins a second one. */
  async function keepTurn(job: Job): Promise<void> {
    await move(job, eq(marks.key, keyOf(job)));
  }

  async function lookAt(job: Job): Promise<void> {
    const everySeconds = job.everySeconds();
    if (everySeconds <= 0 || isStopped) return;
    if (running.has(job.name)) {
      await keepTurn(job).catch((error: unknown) =>
        deps.logger.warn("turn could not be kept", { job: job.name, error: String(error) }),
      );
      return;
    }
    try {
      if (!(await takesTurn(job, everySeconds)) || isStopped) return;
      const work = job.run();
      running.set(job.name, work);
      await work;
    } catch (error) {
      deps.logger.error("job failed", { job: job.name, error: String(error) });
    } finally {
      running.delete(job.name);
    }
  }

  const look = async (): Promise<void> => {
    await Promise.all(jobs.map(lookAt));
  };
  const arm = (): void => {
    if (isStopped) return;
    timer = setTimeout(
      () => {
        void look();
        arm();
      },
      LOOK_MS + random() * JITTER_MS,
    );
    timer.unref();
  };
  arm();

  return {
    look,
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await Promise.allSettled(running.values());
    },
  };
}
