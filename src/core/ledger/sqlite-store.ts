// The ledger store on the embedded database: when what is durable in the journal is brought into the tables, and how it
// goes on after a failure.
import type { Database as BunSqlite } from "bun:sqlite";
import { closeSync, fdatasync, openSync } from "node:fs";
import { LeaseLost } from "./node-lease.ts";
import { createSqliteApplier } from "./sqlite-apply.ts";
import type { SqliteApplierDeps } from "./sqlite-apply.ts";
import type { LedgerStore } from "./store.ts";

/**
 * How long an entry waits for others: a batch of fifty costs a twentieth of fifty transactions, and few calls are worth
 * one of their own. Nobody sees the wait, because every query of this process brings in first what is there.
 */
const GATHER_MS = 250;
/** No more at once while calls run: about half a millisecond of the event loop. */
const MAX_ROWS = 64;
const RETRY_MS = 250;

export function createSqliteStore(client: BunSqlite, deps: SqliteApplierDeps): LedgerStore {
  const { db, logger, journal, lease } = deps;
  const applier = createSqliteApplier(client, deps);
  const wal = createWalSync(client);
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isRushed = false;
  let isEntering = false;

  /** Brings in everything there is. Never throws: what the database would not take is tried again later. */
  function catchUp(): void {
    clearTimeout(timer);
    timer = undefined;
    // Whoever hears of a batch may query, and would enter the rest of it a second time.
    if (isEntering || journal.lastPosition <= applier.applied || !lease.isHeld) return;
    isEntering = true;
    // The journal is durable: the transaction need not be. Whoever holds the file is waited for a moment, by the connection.
    client.run("pragma synchronous = normal");
    try {
      while (journal.lastPosition > applier.applied) applier.apply(journal.read(applier.applied, MAX_ROWS));
      failures = 0;
    } catch (error) {
      retryLater(error);
    } finally {
      isEntering = false;
      client.run("pragma synchronous = full");
      journal.trim(applier.applied, wal.sync);
    }
  }

  function retryLater(error: unknown): void {
    failures++;
    if (error instanceof LeaseLost)
      lease.lose(
        "taken",
        "another process writes to the database file. Stop this one; each needs a DATA_DIR of its own",
      );
    logger[failures === 1 ? "error" : "debug"]("settlements wait for the database", {
      waiting: journal.lastPosition - applier.applied,
      error: String(error),
    });
    timer = setTimeout(catchUp, RETRY_MS);
    timer.unref();
  }

  return {
    async start() {
      journal.resume(lease.position);
      applier.start(lease.position.mark, journal.lastPosition + 1);
      catchUp();
      db.beforeQuery(() => {
        if (failures === 0) catchUp();
      });
    },
    wake() {
      if (failures > 0) return;
      timer ??= setTimeout(catchUp, GATHER_MS);
      timer.unref();
      if (isRushed || journal.lastPosition - applier.applied < MAX_ROWS) return;
      isRushed = true;
      // After the answers that wait for the entries which are durable now.
      setImmediate(() => {
        isRushed = false;
        catchUp();
      });
    },
    async drain() {
      catchUp();
    },
    backlog: () => journal.lastPosition - applier.applied,
    close() {
      clearTimeout(timer);
      wal.close();
    },
  };
}

/** Makes durable what has been committed; the same call that FULL makes, in the thread pool. */
function createWalSync(client: BunSqlite): { sync: () => Promise<void>; close: () => void } {
  /** Lives as long as the connection. */
  let file: number | undefined;
  return {
    sync() {
      file ??= openSync(`${client.filename}-wal`, "r");
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      fdatasync(file, (error) => (error ? reject(error) : resolve()));
      return promise;
    },
    close() {
      if (file !== undefined) closeSync(file);
    },
  };
}
