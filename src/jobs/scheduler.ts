// Work that comes round: each job in its interval, one at a time, on one node only, also across restarts and long runs.
// Refuses to begin anything once it is stopped; a job that throws is logged and comes round again.
import type { Deps } from "../core/deps.ts";
import { createTurns } from "./turns.ts";
import type { JobMark } from "./turns.ts";

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
  /** When each job last succeeded on this node, Unix seconds. */
  readonly succeeded: ReadonlyMap<string, number>;
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
  const turns = createTurns(deps);
  const running = new Map<string, Promise<void>>();
  const succeeded = new Map<string, number>();
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function lookAt(job: Job, mark: JobMark | undefined): Promise<void> {
    const everySeconds = job.everySeconds();
    if (everySeconds <= 0 || isStopped) return;
    if (running.has(job.name)) {
      await turns
        .keepTurn(job.name)
        .catch((error: unknown) =>
          deps.logger.warn("turn could not be kept", { job: job.name, error: String(error) }),
        );
      return;
    }
    try {
      if (!(await turns.takesTurn(job.name, everySeconds, mark)) || isStopped) return;
      const work = job.run();
      running.set(job.name, work);
      await work;
      succeeded.set(job.name, Math.floor(deps.clock.nowMs() / 1000));
    } catch (error) {
      deps.logger.error("job failed", { job: job.name, error: String(error) });
    } finally {
      running.delete(job.name);
    }
  }

  const look = async (): Promise<void> => {
    if (isStopped) return;
    try {
      const marks = await turns.marks();
      await Promise.all(jobs.map((job) => lookAt(job, marks.get(job.name))));
    } catch (error) {
      deps.logger.error("jobs could not be looked at", { error: String(error) });
    }
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
    succeeded,
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await Promise.allSettled(running.values());
    },
  };
}
