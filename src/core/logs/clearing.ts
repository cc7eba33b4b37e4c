// One clearing of the usage log as a run: how far it is, how long it takes, and its end when somebody cancels it.
// Refuses a second one meanwhile, and to touch the audit trail and top-ups of the last AuditRetentionDays.
import { count as countRows } from "drizzle-orm";
import { refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { auditSteps } from "./audit.ts";
import type { AuditActor } from "./audit.ts";
import { clearLogs, clearWhere } from "./list.ts";

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
  run(before: number, by: AuditActor): Promise<number>;
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
      .where(clearWhere(deps, 0, before));
    return Number(old?.rows ?? 0);
  };
  return {
    count,
    async run(before, by) {
      if (state.isRunning) throw refuse("log_clear_running");
      startedMs = clock.monotonicMs();
      Object.assign(state, { isRunning: true, isCancelled: false, done: 0, total: 0 });
      try {
        state.total = await count(before);
        const params = { before: new Date(before * 1000).toISOString().slice(0, 10), rows: state.total };
        return await clearLogs(deps, before, {
          also: (tx) => auditSteps(tx, deps, { user: by, action: "log.clear", params, by }),
          onBatch(deleted) {
            state.done = deleted;
            return !state.isCancelled;
          },
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
