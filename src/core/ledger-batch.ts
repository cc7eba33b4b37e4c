// Group commit: items that arrive in the same tick become durable together, at most 500 in one transaction.
// Refuses to throw out of its timer, and to lose an item: what the database will not take goes to the spool.
import { sqlState } from "../db/sql-state.ts";
import type { Logger } from "./deps.ts";

export const MAX_BATCH = 500;
const BUSY_RETRY_MS = 50;
/** A writer that holds the lock for longer than this many tries is treated like any other failure. */
const MAX_BUSY_TRIES = 100;

interface Waiting<T> {
  item: T;
  resolve(): void;
  reject(error: unknown): void;
}

export interface GroupCommit<T> {
  /** Resolves when the item is durable; rejects when neither the database nor the spool took it. */
  add(item: T): Promise<void>;
  /** Commits what is queued now; resolves when nothing is left. */
  flush(): Promise<void>;
}

export interface GroupCommitDeps<T> {
  /** One transaction: all of it or a throw. Synchronous. Durable when it returns, unless `later` and `sync` say so. */
  commit: (items: readonly T[], later: boolean) => void;
  /**
   * Makes everything that was committed `later` durable, off the event loop. While it runs the next batch gathers, so
   * that a busy process is never held up by its disk. Without it every commit is durable by itself.
   */
  sync?: () => Promise<void>;
  /** The last resort, also all or a throw. */
  spool: (items: readonly T[]) => void;
  logger: Logger;
  /** Calls that are still running: with none, a commit syncs by itself, which is quicker for a single caller. */
  running?: () => number;
}

/** A batch waits a few turns of the event loop for others that are about to settle; a single call never waits. */
const MAX_TURNS = 24;
const MAX_QUIET_TURNS = 4;

/** Failures of the place, not of a row: trying each row alone would fail 500 times. */
function isEnvironmental(error: unknown): boolean {
  return /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY|CORRUPT|NOTADB|MISUSE)/.test(sqlState(error));
}

function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(sqlState(error));
}

export function createGroupCommit<T>({
  commit,
  sync,
  spool,
  logger,
  running,
}: GroupCommitDeps<T>): GroupCommit<T> {
  let waiting: Waiting<T>[] = [];
  let isSyncing = false;
  let turns = 0;
  let quietTurns = 0;
  let seen = 0;
  let isScheduled = false;
  let busyTries = 0;
  let idle: PromiseWithResolvers<void> | undefined;

  function run(): void {
    isScheduled = false;
    const batch = waiting.length <= MAX_BATCH ? waiting : waiting.slice(0, MAX_BATCH);
    waiting = waiting.length <= MAX_BATCH ? [] : waiting.slice(MAX_BATCH);
    try {
      if (batch.length > 0) commitBatch(batch);
    } catch (error) {
      for (const each of batch) each.reject(error);
    }
    next();
  }

  function next(): void {
    if (isSyncing) return;
    if (waiting.length > 0) schedule();
    else {
      idle?.resolve();
      idle = undefined;
    }
  }

  function schedule(): void {
    if (isScheduled || isSyncing) return;
    isScheduled = true;
    if (busyTries > 0) setTimeout(run, BUSY_RETRY_MS);
    else setImmediate(gather);
  }

  /** Goes on gathering while somebody is left who could join and the queue has grown not long ago. */
  function gather(): void {
    quietTurns = waiting.length > seen ? 0 : quietTurns + 1;
    seen = waiting.length;
    turns++;
    const others = Math.min(running?.() ?? 0, MAX_BATCH);
    if (turns < MAX_TURNS && quietTurns < MAX_QUIET_TURNS && waiting.length < others) {
      setImmediate(gather);
      return;
    }
    turns = 0;
    quietTurns = 0;
    seen = 0;
    run();
  }

  function commitBatch(batch: Waiting<T>[]): void {
    try {
      const later = sync !== undefined && (running?.() ?? 0) > 0;
      commit(
        batch.map((each) => each.item),
        later,
      );
      busyTries = 0;
      if (later) syncLater(batch);
      else for (const each of batch) each.resolve();
    } catch (error) {
      if (isBusy(error) && ++busyTries <= MAX_BUSY_TRIES) {
        waiting = batch.concat(waiting);
        return;
      }
      busyTries = 0;
      logger.error("settlement batch failed", { rows: batch.length, error: String(error) });
      if (isEnvironmental(error)) spoolAll(batch, error);
      else for (const each of batch) commitAlone(each);
    }
  }

  function syncLater(batch: Waiting<T>[]): void {
    isSyncing = true;
    const finish = (settle: (each: Waiting<T>) => void) => {
      isSyncing = false;
      for (const each of batch) settle(each);
      next();
    };
    (sync?.() ?? Promise.resolve()).then(
      () => finish((each) => each.resolve()),
      (error: unknown) => {
        logger.error("settlements could not be synced", { rows: batch.length, error: String(error) });
        finish((each) => each.reject(error));
      },
    );
  }

  function commitAlone(each: Waiting<T>): void {
    try {
      commit([each.item], false);
      each.resolve();
    } catch (error) {
      spoolAll([each], error);
    }
  }

  function spoolAll(batch: Waiting<T>[], cause: unknown): void {
    try {
      spool(batch.map((each) => each.item));
      logger.error("settlements went to the spool file", { rows: batch.length, error: String(cause) });
      for (const each of batch) each.resolve();
    } catch (error) {
      logger.error("settlements could not be written anywhere", {
        rows: batch.length,
        error: String(error),
        cause: String(cause),
      });
      for (const each of batch) each.reject(error);
    }
  }

  return {
    add(item) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.push({ item, resolve, reject });
      schedule();
      return promise;
    },
    flush() {
      if (waiting.length === 0) return Promise.resolve();
      idle ??= Promise.withResolvers<void>();
      schedule();
      return idle.promise;
    },
  };
}
