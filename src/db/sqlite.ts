// The embedded database: one file, one writing process, WAL with full durability.
// Refuses nested atomic blocks and anything but queries inside one.
import { Database as BunSqlite } from "bun:sqlite";
import { existsSync } from "node:fs";
import { schema } from "../../drizzle/sqlite.ts";
import type { Database, Orm, Steps } from "./database.ts";
import { lookAround, lookEvery } from "./look-around.ts";
import { startReaders } from "./sqlite-readers.ts";
import { BUSY_MS, createBusyQueue, patientOrm, SHORT_BUSY_MS } from "./sqlite-busy.ts";

interface SyncStep {
  prepare(): { execute(): { sync(): unknown } };
}

/** Opens the file (and creates it); the caller migrates it before use, and may block for it. */
export function openSqliteFile(path: string): BunSqlite {
  const isNew = !existsSync(path);
  const client = new BunSqlite(path, { create: true, readwrite: true, strict: true });
  // What retention deletes is given back to the disk in small steps; a file decides that at its beginning.
  if (isNew) client.run("pragma auto_vacuum = incremental");
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

/** A file that is only read: a copy, or one that a server is writing. */
export function openSqliteCopy(path: string): Database {
  return sqliteDatabase(new BunSqlite(path, { readonly: true, strict: true }), path, "read");
}

/**
 * The state of one moment of a file that others are writing, as a new file without a write-ahead log. Holds up no writer;
 * the log of the file grows meanwhile, because it cannot begin anew. Blocks this thread: call it in a process of its own.
 */
export function copySqliteFile(from: string, to: string): void {
  const client = new BunSqlite(from, { readonly: true, strict: true });
  try {
    client.run(`pragma busy_timeout = ${BUSY_MS}`);
    client.query("vacuum into ?").run(to);
  } finally {
    client.close();
  }
}

/** Changes a file that nobody else has open; what is deleted leaves no trace in it. */
export function reviseSqliteFile(path: string, statements: readonly string[]): void {
  const client = new BunSqlite(path, { readwrite: true, strict: true });
  try {
    client.run("pragma secure_delete = on");
    for (const statement of statements) client.run(statement);
  } finally {
    client.close();
  }
}

/** Folds the write-ahead log into the file, which is the whole database from here on; false: another program holds it. */
export function foldSqliteLog(path: string): boolean {
  const client = new BunSqlite(path, { readwrite: true, strict: true });
  try {
    client.run(`pragma busy_timeout = ${BUSY_MS}`);
    return client.query<{ busy: number }, []>("pragma wal_checkpoint(truncate)").get()?.busy === 0;
  } finally {
    client.close();
  }
}

/** What SQLite itself finds wrong with a file, the first line of it; undefined for a sound one. */
export function damageIn(path: string): string | undefined {
  try {
    const client = new BunSqlite(path, { readonly: true, strict: true });
    try {
      const row = client.query<{ quick_check: string }, []>("pragma quick_check(1)").get();
      return row?.quick_check === "ok" ? undefined : (row?.quick_check ?? "no answer");
    } finally {
      client.close();
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * "write": of this process alone, which looks after the write-ahead log too. "read" and "guest": another process may be serving
 * the file, and does that. A guest that folded the log away would keep every writer out until the oldest reader has gone.
 */
export function sqliteDatabase(
  client: BunSqlite,
  path: string,
  mode: "read" | "guest" | "write" = "write",
): Database {
  let beforeQuery = () => {};
  // From here on the event loop has others to serve.
  client.run(`pragma busy_timeout = ${SHORT_BUSY_MS}`);
  const queue = createBusyQueue(client);
  // drizzle tells its logger of every query just before it runs; inside an atomic block the block itself was told.
  const logger = { logQuery: () => void (queue.isInside || beforeQuery()) };
  const orm = patientOrm(client, queue, logger);
  const reader = startReaders(path, () => beforeQuery());
  const checkpoints = mode === "write" ? startCheckpoints(client, () => reader.checkpoint()) : undefined;

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
    bulkReader: reader.bulk,
    readerUntil: (signal, isBulk) => reader.until(signal, isBulk),
    async giveBack(pages) {
      client.run(`pragma incremental_vacuum(${pages})`);
      return (
        client.query<{ pages: number }, []>("select freelist_count as pages from pragma_freelist_count").get()
          ?.pages ?? 0
      );
    },
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
    carryChanges: () => {},
    onChange: async () => {},
    beforeQuery(hook) {
      beforeQuery = hook;
    },
    onAnswer: () => {},
    use() {
      lookAround.use();
      return undefined;
    },
    ping: async () => {
      client.query("select 1").get();
      return true;
    },
    close: async () => {
      // Whoever asked in this very turn of the event loop may get into the queue while it is looked at.
      do await queue.settled();
      while (!queue.isEmpty);
      checkpoints?.stop();
      reader.close();
      client.run(`pragma busy_timeout = ${BUSY_MS}`);
      // Folds the write-ahead log back so that the single file is complete for a copy.
      if (mode === "write") client.run("pragma wal_checkpoint(truncate)");
      client.close();
    },
  };
}

/** Pages in the write-ahead log that are not in the file yet, 16 MB of them. */
const CHECKPOINT_PAGES = 4000;
const CHECKPOINT_LOOK_MS = 500;
const CHECKPOINT_REST_MS = 2500;
/** So many looks without a write, ten seconds, and the page cache is given back: the system has the same pages. */
const QUIET_LOOKS = 20;

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
  const checkpoint = (): void => {
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
  };
  const stop = lookEvery(CHECKPOINT_LOOK_MS, checkpoint, CHECKPOINT_REST_MS);
  return {
    stop() {
      stop();
      // An open statement would keep the last checkpoint from folding the log away.
      look.finalize();
    },
  };
}
