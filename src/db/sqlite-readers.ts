// Threads that read the SQLite file beside the event loop: some for lists and figures, one for exports and the audit, so that
// nobody's list queues behind a file of a million rows. Refuses to hold anybody up for a reader that has left: what waits is
// dropped, and a thread that is inside its query is given up for a fresh one.
import { drizzle as drizzleProxy } from "drizzle-orm/sqlite-proxy";
import type { Orm } from "./database.ts";
import type { ReaderReply, ReaderRequest } from "./reader-worker.ts";

/** In the binary every module lies at its root, and workers below it where they lay below src. */
const READER_URL = new URL(
  Bun.isStandaloneExecutable ? "./db/reader-worker.ts" : "./reader-worker.ts",
  import.meta.url,
).href;

/** Bun's Worker can let the process end; the browser's type, which shadows it here, does not know that. */
interface ReaderThread extends Worker {
  ref(): void;
  unref(): void;
}

/** A thread holds some 15 MB; starting it again takes a few milliseconds. */
const IDLE_MS = 15_000;

interface Job {
  text: string;
  params: unknown[];
  signal: AbortSignal | undefined;
  resolve: (rows: unknown[][]) => void;
  reject: (error: unknown) => void;
}

interface ReaderPool {
  ask(text: string, params: unknown[], signal?: AbortSignal): Promise<unknown[][]>;
  close(): void;
}

/** One query a thread at a time; the rest waits here, where it can be dropped. */
function createPool(path: string, size: number): ReaderPool {
  const waiting: Job[] = [];
  const idle: { thread: ReaderThread; timer: ReturnType<typeof setTimeout> }[] = [];
  const busy = new Set<ReaderThread>();

  function next(): void {
    while (waiting.length > 0 && busy.size < size) {
      const job = waiting.shift();
      // Who left with the query that ran before it has not been told yet.
      if (job?.signal?.aborted) job.reject(job.signal.reason);
      else if (job) run(job);
    }
  }

  function run(job: Job): void {
    const rested = idle.pop();
    clearTimeout(rested?.timer);
    const thread = rested?.thread ?? (new Worker(READER_URL) as ReaderThread);
    busy.add(thread);
    thread.ref();
    /** The thread can be used again, or not. */
    const over = (isUsable: boolean) => {
      job.signal?.removeEventListener("abort", leave);
      if (!busy.delete(thread)) return;
      if (isUsable) rest(thread);
      else thread.terminate();
      next();
    };
    const leave = () => {
      // SQLite's own interrupt cannot be reached from here: the thread ends after the step that it is in.
      thread.unref();
      over(false);
      job.reject(job.signal?.reason);
    };
    thread.onmessage = (event: MessageEvent<ReaderReply>) => {
      over(true);
      if (event.data.error === undefined) job.resolve(event.data.rows);
      else job.reject(new Error(event.data.error));
    };
    thread.onerror = (event) => {
      over(false);
      job.reject(new Error(event.message));
    };
    job.signal?.addEventListener("abort", leave);
    thread.postMessage({ path, text: job.text, params: job.params } satisfies ReaderRequest);
  }

  function rest(thread: ReaderThread): void {
    thread.unref();
    const timer = setTimeout(() => {
      idle.splice(
        idle.findIndex((each) => each.thread === thread),
        1,
      );
      thread.terminate();
    }, IDLE_MS);
    timer.unref();
    idle.push({ thread, timer });
  }

  return {
    ask(text, params, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const job: Job = { text, params, signal, resolve, reject };
        signal?.addEventListener(
          "abort",
          () => {
            const at = waiting.indexOf(job);
            if (at < 0) return;
            waiting.splice(at, 1);
            reject(signal.reason);
          },
          { once: true },
        );
        waiting.push(job);
        next();
      });
    },
    close() {
      for (const { thread, timer } of idle) {
        clearTimeout(timer);
        thread.terminate();
      }
      for (const thread of busy) thread.terminate();
      idle.length = 0;
      busy.clear();
    },
  };
}

export interface SqliteReaders {
  /** Lists and figures. */
  orm: Orm;
  /** Exports and the audit. */
  bulk: Orm;
  /** The queries of somebody who may leave. */
  until(signal: AbortSignal, isBulk: boolean): Orm;
  checkpoint(): Promise<unknown>;
  close(): void;
}

/** Lists of two people do not wait for each other. */
const LIST_THREADS = 2;

export function startReaders(path: string, beforeQuery: () => void): SqliteReaders {
  const lists = createPool(path, LIST_THREADS);
  const bulk = createPool(path, 1);
  const ormOf = (pool: ReaderPool, signal?: AbortSignal): Orm =>
    drizzleProxy(
      async (text, params, method) => {
        beforeQuery();
        const rows = await pool.ask(text, params, signal);
        // The proxy driver wants one row, not a list of rows, for `get`.
        return { rows: method === "get" ? (rows[0] as unknown[]) : rows };
      },
      // The driver reads the casing from its third parameter only (drizzle-orm 0.45.4).
      undefined,
      { casing: "snake_case" },
    ) as unknown as Orm;
  return {
    orm: ormOf(lists),
    bulk: ormOf(bulk),
    until: (signal, isBulk) => ormOf(isBulk ? bulk : lists, signal),
    checkpoint: () => lists.ask("checkpoint", []),
    close() {
      lists.close();
      bulk.close();
    },
  };
}
