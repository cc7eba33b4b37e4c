// One clearing of the usage log as a run: how far it is, how long it takes, and its end when somebody cancels it.
// Refuses a second one meanwhile.
import { and, count as countRows, gte, lt } from "drizzle-orm";
import { refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { clearLogs } from "./list.ts";

interface ClearingProgress {
  isRunning: boolean;
  /** Somebody ended it: what was deleted stays deleted, the rest stays. */
  isCancelled: boolean;
  done: number;
  total: number;
  elapsedMs: number;
}

export interface LogClearing {
  /** How many rows are older than the moment (Unix seconds): what a clearing would delete. */
  count(before: number): Promise<number>;
  /** Deletes what is older than the moment (Unix seconds); answers how many rows. Throws `log_clear_running`. */
  run(before: number): Promise<number>;
  progress(): ClearingProgress;
  /** Nothing more is deleted after the batch under way. */
  cancel(): void;
}

export function createLogClearing(deps: Deps): LogClearing {
  const { clock } = deps;
  const { logs } = deps.db.t;
  const state: ClearingProgress = { isRunning: false, isCancelled: false, done: 0, total: 0, elapsedMs: 0 };
  let startedMs = 0;
  const elapsedMs = () => Math.round(clock.monotonicMs() - startedMs);
  const count = async (before: number): Promise<number> => {
    const [old] = await deps.db.reader
      .select({ rows: countRows() })
      .from(logs)
      .where(and(gte(logs.createdAt, 0), lt(logs.createdAt, before)));
    return Number(old?.rows ?? 0);
  };
  return {
    count,
    async run(before) {
      if (state.isRunning) throw refuse("log_clear_running");
      startedMs = clock.monotonicMs();
      Object.assign(state, { isRunning: true, isCancelled: false, done: 0, total: 0 });
      try {
        state.total = await count(before);
        return await clearLogs(deps, before, (deleted) => {
          state.done = deleted;
          return !state.isCancelled;
        });
      } finally {
        state.elapsedMs = elapsedMs();
        state.isRunning = false;
      }
    },
    progress: () => ({ ...state, elapsedMs: state.isRunning ? elapsedMs() : state.elapsedMs }),
    cancel() {
      if (state.isRunning) state.isCancelled = true;
    },
  };
}
