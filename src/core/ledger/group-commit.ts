// Group commit: items that arrive in the same tick become durable together, at most 500 in one write.
// Never throws out of its timer: the promise of what could not be written rejects.
export const MAX_BATCH = 500;

interface Waiting<T> {
  item: T;
  promise: Promise<void>;
  resolve(): void;
  reject(error: unknown): void;
}

export interface GroupCommit<T> {
  /** Resolves when the item is durable, rejects when it could not be written. */
  add(item: T): Promise<void>;
  /** Resolves when what is queued now is durable or lost, whatever comes after it. */
  written(): Promise<void>;
  /** Writes what is queued now; resolves when nothing is left. */
  flush(): Promise<void>;
}

export interface GroupCommitDeps<T> {
  /** Durable when it returns; all or a throw. */
  write: (items: readonly T[]) => void;
  /**
   * The same off the event loop. While it runs the next batch gathers, so that a busy process is never held up by its
   * disk.
   */
  writeLater: (items: readonly T[]) => Promise<void>;
  /** Called with items that could not be written; answers what their callers' promises reject with. */
  lost: (items: readonly T[], error: unknown) => unknown;
  /** Calls that are still running: with none the write waits for the disk itself, which is quicker for a lone caller. */
  running: () => number;
}

/** A batch waits a few turns of the event loop for others that are about to settle; a single call never waits. */
const MAX_TURNS = 24;
const MAX_QUIET_TURNS = 4;

export function createGroupCommit<T>({
  write,
  writeLater,
  lost,
  running,
}: GroupCommitDeps<T>): GroupCommit<T> {
  let waiting: Waiting<T>[] = [];
  /** The batch that is being written. */
  let writing: Waiting<T>[] | undefined;
  let turns = 0;
  let quietTurns = 0;
  let seen = 0;
  let isScheduled = false;
  let idle: PromiseWithResolvers<void> | undefined;

  function run(): void {
    isScheduled = false;
    const batch = waiting.length <= MAX_BATCH ? waiting : waiting.slice(0, MAX_BATCH);
    waiting = waiting.length <= MAX_BATCH ? [] : waiting.slice(MAX_BATCH);
    const items = batch.map((each) => each.item);
    writing = batch;
    if (running() > 0) {
      writeLater(items).then(
        () => end(batch),
        (error: unknown) => end(batch, { error }),
      );
      return;
    }
    try {
      write(items);
      end(batch);
    } catch (error) {
      end(batch, { error });
    }
  }

  function end(batch: Waiting<T>[], failed?: { error: unknown }): void {
    writing = undefined;
    if (!failed) for (const each of batch) each.resolve();
    else {
      const items = batch.map((each) => each.item);
      const failure = lost(items, failed.error);
      for (const each of batch) each.reject(failure);
    }
    if (waiting.length > 0) schedule();
    else {
      idle?.resolve();
      idle = undefined;
    }
  }

  function schedule(): void {
    if (isScheduled || writing) return;
    isScheduled = true;
    setImmediate(gather);
  }

  /** Goes on gathering while somebody is left who could join and the queue has grown not long ago. */
  function gather(): void {
    quietTurns = waiting.length > seen ? 0 : quietTurns + 1;
    seen = waiting.length;
    turns++;
    const others = Math.min(running(), MAX_BATCH);
    if (turns < MAX_TURNS && quietTurns < MAX_QUIET_TURNS && waiting.length < others) {
      setImmediate(gather);
      return;
    }
    turns = 0;
    quietTurns = 0;
    seen = 0;
    run();
  }

  return {
    add(item) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.push({ item, promise, resolve, reject });
      schedule();
      return promise;
    },
    written() {
      const last = (waiting.length > 0 ? waiting : writing)?.at(-1);
      return last ? last.promise.catch(() => undefined) : Promise.resolve();
    },
    flush() {
      if (waiting.length === 0 && !writing) return Promise.resolve();
      idle ??= Promise.withResolvers<void>();
      schedule();
      return idle.promise;
    },
  };
}
