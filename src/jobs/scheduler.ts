// Work that comes round: each job in its interval, one at a time, on one node only, also across restarts and long runs.
// Refuses to begin anything once it is stopped; a job that throws is logged and comes round again.
import { and, eq, lte } from "drizzle-orm";
import type { Deps } from "../core/deps.ts";

export interface Job {
  /** Key of the job's mark in the database: its last start in Unix seconds. */
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

  /** The node that moves the mark has the turn; a start within the interval leaves it where it is. */
  async function takesTurn(job: Job, everySeconds: number): Promise<boolean> {
    const nowSeconds = Math.floor(deps.clock.nowMs() / 1000);
    const key = `job:${job.name}`;
    // The first interval begins when the job is first seen: nothing starts merely because the process did.
    const first = await deps.db.orm
      .insert(marks)
      .values({ key, value: nowSeconds })
      .onConflictDoNothing()
      .returning();
    if (first.length > 0) return false;
    const moved = await deps.db.orm
      .update(marks)
      .set({ value: nowSeconds })
      .where(and(eq(marks.key, key), lte(marks.value, nowSeconds - everySeconds)))
      .returning();
    return moved.length > 0;
  }

  /** A run may outlast its interval: as long as its node lives, no other node begins a second one. */
  async function keepTurn(job: Job): Promise<void> {
    const value = Math.floor(deps.clock.nowMs() / 1000);
    await deps.db.orm
      .update(marks)
      .set({ value })
      .where(eq(marks.key, `job:${job.name}`))
      .returning();
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
