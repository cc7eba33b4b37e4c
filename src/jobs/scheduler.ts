// Work that comes round: each job in its interval, one at a time, on one node only, also across restarts and long runs.
// Refuses to begin anything once it is stopped; a job that throws is logged and comes round again.
import type { SQL } from "drizzle-orm";
import type { Deps } from "../core/deps.ts";
import { createTurns } from "./turns.ts";
import type { JobMark } from "./turns.ts";

export interface Job {
  /** Key of the job's mark in the database: its last start in Unix seconds, give or take a second. */
  name: string;
  /** 0 or less = switched off; asked anew at every look. */
  everySeconds: () => number;
  /**
   * Condition, asked together with the marks: there is something to do. While there is nothing no turn is taken, and no mark
   * moved; what comes later begins with the next look. Undefined: it begins whenever its interval is over. It is built once:
   * moments stand in it by their names (db/moments.ts), other values by those that `values` gives at each look.
   */
  waits?: SQL | undefined;
  values?: () => Readonly<Record<string, string | number>>;
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

/** A little more than the shortest intervals, so that what is begun at one look is due again at the next. */
const LOOK_MS = 15_500;
/** In an interval a turn is kept at least so often. */
const KEPT_TIMES = 3;

/** `lookEvery` calls at intervals until what it returns is called (db/look-around.ts); absent: whoever calls `look` looks. */
export function createScheduler(
  deps: Pick<Deps, "db" | "clock" | "logger">,
  jobs: readonly Job[],
  lookEvery?: (ms: number, look: () => void) => () => void,
): Scheduler {
  const turns = createTurns(deps);
  const running = new Map<string, Promise<void>>();
  const succeeded = new Map<string, number>();
  let isStopped = false;

  async function keep({ name }: Pick<Job, "name">): Promise<void> {
    try {
      await turns.keepTurn(name);
    } catch (error) {
      deps.logger.warn("turn could not be kept", { job: name, error: String(error) });
    }
  }

  /**
   * Looks keep the turn of what runs. Where they come too seldom for its interval, so that another node's may fall between two of
   * them, a timer of its own does, as long as it runs. Returns what ends that.
   */
  function keepMeanwhile(job: Job, everySeconds: number): (() => void) | undefined {
    const everyMs = (everySeconds * 1000) / KEPT_TIMES;
    let isKeeping = false;
    const keepOnce = async (): Promise<void> => {
      if (isKeeping) return;
      isKeeping = true;
      await keep(job);
      isKeeping = false;
    };
    return everyMs < LOOK_MS ? lookEvery?.(everyMs, () => void keepOnce()) : undefined;
  }

  async function lookAt(job: Job, everySeconds: number, mark: JobMark | undefined): Promise<void> {
    if (isStopped || !mark) return;
    if (running.has(job.name)) return keep(job);
    if (!turns.isDue(job.name, everySeconds, mark)) return;
    if (!mark.waits) return void succeeded.set(job.name, Math.floor(deps.clock.nowMs() / 1000));
    let stopKeeping: (() => void) | undefined;
    try {
      if (!(await turns.takesTurn(job.name, mark)) || isStopped) return;
      stopKeeping = keepMeanwhile(job, everySeconds);
      const work = job.run();
      running.set(job.name, work);
      await work;
      succeeded.set(job.name, Math.floor(deps.clock.nowMs() / 1000));
    } catch (error) {
      deps.logger.error("job failed", { job: job.name, error: String(error) });
    } finally {
      stopKeeping?.();
      running.delete(job.name);
    }
  }

  const look = async (): Promise<void> => {
    if (isStopped) return;
    try {
      const wanted = jobs
        .map((job) => ({ job, everySeconds: job.everySeconds() }))
        .filter(({ everySeconds }) => everySeconds > 0);
      const marks = await turns.look(wanted.map(({ job }) => job));
      await Promise.all(
        wanted.map(({ job, everySeconds }) => lookAt(job, everySeconds, marks.get(job.name))),
      );
    } catch (error) {
      deps.logger.error("jobs could not be looked at", { error: String(error) });
    }
  };
  const stopLooking = lookEvery?.(LOOK_MS, () => void look());

  return {
    look,
    succeeded,
    async stop() {
      isStopped = true;
      stopLooking?.();
      await Promise.allSettled(running.values());
    },
  };
}
