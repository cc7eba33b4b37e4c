// The embedded database: one file, one writing process, WAL with full durability.
// Refuses nested atomic blocks and anything but queries inside one.
import { Database as BunSqlite } from "bun:sqlite";
import { drizzle as drizzleProxy } from "drizzle-orm/sqlite-proxy";
import { schema } from "../../drizzle/sqlite.ts";
import type { Database, Orm, Steps } from "./database.ts";
import type { ReaderReply, ReaderRequest } from "./reader-worker.ts";
import { BUSY_MS, createBusyQueue, patientOrm, SHORT_BUSY_MS } from "./sqlite-busy.ts";

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

interface SyncStep {
  prepare(): { execute(): { sync(): unknown } };
}

/** Opens the file (and creates it); the caller migrates it before use, and may block for it. */
export function openSqliteFile(path: string): BunSqlite {
  const client = new BunSqlite(path, { create: true, readwrite: true, strict: true });
  client.run("pragma journal_mode = wal");
  client.run("pragma synchronous = full");
  client.run(`pragma busy_timeout = ${BUSY_MS}`);
  client.run("pragma foreign_keys = on");
  client.run("pragma temp_store = memory");
  client.run("pragma cache_size = -16384");
  // Checkpoints are made beside the event loop (startCheckpoints); this is the safety net, 400 MB of log.
  client.run("pragma wal_autocheckpoint = 100000");
  return client;
}

export function sqliteDatabase(client: BunSqlite, path: string): Database {
  let beforeQuery = () => {};
  // From here on the event loop has others to serve.
  client.run(`pragma busy_timeout = ${SHORT_BUSY_MS}`);
  const queue = createBusyQueue(client);
  // drizzle tells its logger of every query just before it runs; inside an atomic block the block itself was told.
  const logger = { logQuery: () => void (queue.isInside || beforeQuery()) };
  const orm = patientOrm(client, queue, logger);
  const reader = startReader(path, () => beforeQuery());
  const checkpoints = startCheckpoints(client, () => reader.checkpoint());

  function drive<T>(body: (tx: Orm) => Steps<T>): T {
    if (queue.isInside) throw new Error("an atomic block cannot be opened inside another");
    beforeQuery();
    queue.isInside = true;
    try {
      client.run("begin immediate");
      const steps = body(orm as unknown as Orm);
      let state = steps.next();
      while (!state.done) {
        const query = state.value as unknown as SyncStep;
        state = steps.next(query.prepare().execute().sync());
      }
      client.run("commit");
      return state.value;
    } catch (error) {
      if (client.inTransaction) client.run("rollback");
      throw error;
    } finally {
      queue.isInside = false;
    }
  }

  return {
    kind: "sqlite",
    client,
    t: schema,
    orm: orm as unknown as Orm,
    reader: reader.orm,
    async atomic(body) {
      if (queue.isEmpty) {
        try {
          return drive(body);
        } catch (error) {
          queue.assertBusy(error);
        }
      }
      return queue.wait(() => drive(body));
    },
    announce: async () => {},
    *announceSteps() {},
    onChange: async () => {},
    beforeQuery(hook) {
      beforeQuery = hook;
    },
    ping: async () => {
      client.query("select 1").get();
      return true;
    },
    close: async () => {
      // Whoever asked in this very turn of the event loop may get into the queue while it is looked at.
      do await queue.settled();
      while (!queue.isEmpty);
      checkpoints.stop();
      reader.close();
      client.run(`pragma busy_timeout = ${BUSY_MS}`);
      // Folds the write-ahead log back so that the single file is complete for a copy.
      client.run("pragma wal_checkpoint(truncate)");
      client.close();
    },
  };
}

/** Pages in the write-ahead log that are not in the file yet, 16 MB of them. */
const CHECKPOINT_PAGES = 4000;
const CHECKPOINT_LOOK_MS = 250;
/** So many looks without a write, ten seconds, and the page cache is given back: the system has the same pages. */
const QUIET_LOOKS = 40;

/**
 * Copying a full write-ahead log into the file takes tens of milliseconds, which the event loop must not wait for:
 * the Worker copies nearly all of it, then this connection copies the few pages that came meanwhile, so that the log
 * starts anew with the next write.
 */
function startCheckpoints(client: BunSqlite, copy: () => Promise<unknown>): { stop(): void } {
  const look = client.prepare<{ log: number; checkpointed: number }, []>("pragma wal_checkpoint(noop)");
  let isRunning = false;
  let seenLog = -1;
  let quietLooks = 0;
  const timer = setInterval(() => {
    const state = isRunning || client.inTransaction ? null : look.get();
    if (state === null) return;
    quietLooks = state.log === seenLog ? quietLooks + 1 : 0;
    seenLog = state.log;
    if (quietLooks === QUIET_LOOKS) client.run("pragma shrink_memory");
    if (state.log - state.checkpointed < CHECKPOINT_PAGES) return;
    isRunning = true;
    copy()
      .then(() => {
        if (!client.inTransaction) client.run("pragma wal_checkpoint(passive)");
      })
      // A copy that could not be made now is made at the next look.
      .catch(() => undefined)
      .finally(() => {
        isRunning = false;
      });
  }, CHECKPOINT_LOOK_MS);
  timer.unref();
  return {
    stop() {
      clearInterval(timer);
      // An open statement would keep the last checkpoint from folding the log away.
      look.finalize();
    },
  };
}

/** The thread holds some 15 MB; starting it again takes a few milliseconds. */
const READER_IDLE_MS = 15_000;

/** Reports run in a Worker with a read-only connection: one GROUP BY over a million rows takes half a second. */
function startReader(
  path: string,
  beforeQuery: () => void,
): {
  orm: Orm;
  checkpoint(): Promise<unknown>;
  close(): void;
} {
  let worker: ReaderThread | undefined;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let nextId = 1;
  const waiting = new Map<number, { resolve: (rows: unknown[][]) => void; reject: (error: Error) => void }>();

  function stop(): void {
    clearTimeout(idle);
    worker?.terminate();
    worker = undefined;
  }

  function start(): ReaderThread {
    const started = new Worker(READER_URL) as ReaderThread;
    started.onmessage = (event: MessageEvent<ReaderReply>) => {
      const entry = waiting.get(event.data.id);
      waiting.delete(event.data.id);
      if (waiting.size === 0) {
        started.unref();
        idle = setTimeout(stop, READER_IDLE_MS);
        idle.unref();
      }
      if (event.data.error === undefined) entry?.resolve(event.data.rows);
      else entry?.reject(new Error(event.data.error));
    };
    started.onerror = (event) => {
      for (const entry of waiting.values()) entry.reject(new Error(event.message));
      waiting.clear();
      worker = undefined;
    };
    started.unref();
    return started;
  }

  function ask(text: string, params: unknown[]): Promise<unknown[][]> {
    return new Promise((resolve, reject) => {
      clearTimeout(idle);
      worker ??= start();
      worker.ref();
      const id = nextId++;
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, path, text, params } satisfies ReaderRequest);
    });
  }

  const orm = drizzleProxy(
    async (text, params, method) => {
      beforeQuery();
      const rows = await ask(text, params);
      // The proxy driver wants one row, not a list of rows, for `get`.
      return { rows: method === "get" ? (rows[0] as unknown[]) : rows };
    },
    // The driver reads the casing from its third parameter only (drizzle-orm 0.45.4).
    undefined,
    { casing: "snake_case" },
  );
  return {
    orm: orm as unknown as Orm,
    checkpoint: () => ask("checkpoint", []),
    close: stop,
  };
}
