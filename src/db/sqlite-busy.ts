// What happens while another process holds the embedded database's file: queries wait in a queue, the event loop does not.
// Refuses after the patience that a blocking wait had, with nothing done; refuses to wait inside an atomic block.
import type { Database as BunSqlite, Statement } from "bun:sqlite";
import type { Logger, Query } from "drizzle-orm";
import { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { PreparedQuery, SQLiteBunSession } from "drizzle-orm/bun-sqlite/session";
import { SQLiteSyncDialect } from "drizzle-orm/sqlite-core";
import type { PreparedQueryConfig } from "drizzle-orm/sqlite-core";
import { DatabaseBusy } from "./database.ts";
import { sqlState } from "./sql-state.ts";

/** How long anything waits for another process that holds the file. */
export const BUSY_MS = 5000;
/** Of that on the event loop, at the first try: most others hold the file for a moment only. */
export const SHORT_BUSY_MS = 3;
const RETRY_MS = 10;

/** Another process writes: nothing of the statement, or of the transaction that it was to begin, was done. */
export function isBusy(error: unknown): boolean {
  return sqlState(error).startsWith("SQLITE_BUSY");
}

/** Those who met a held file, first come, first served. */
export interface BusyQueue {
  /** A transaction is open, in the one synchronous go in which its body runs: a statement of it cannot wait. */
  isInside: boolean;
  /** False while somebody waits: a write that came later goes behind them, and costs the event loop no try. */
  readonly isEmpty: boolean;
  /** The error of a try, when it is worth waiting; anything else is thrown on. */
  assertBusy(error: unknown): void;
  /** Tries again and again off the event loop; throws DatabaseBusy when the patience ends. */
  wait<T>(attempt: () => T): Promise<T>;
  /** Resolves when nobody waits any more. */
  settled(): Promise<void>;
}

interface Waiter {
  /** Makes one try and tells its outcome; false when the file is held still. */
  try(): boolean;
  refuse(): void;
  untilMs: number;
}

export function createBusyQueue(client: BunSqlite): BusyQueue {
  const waiting: Waiter[] = [];
  let serving: Promise<void> | undefined;

  async function serve(): Promise<void> {
    // From here on the pauses are the waiting.
    client.run("pragma busy_timeout = 0");
    for (let first = waiting[0]; first; first = waiting[0]) {
      // The turn of the event loop in between is for everybody else.
      await Bun.sleep(first.try() ? 0 : RETRY_MS);
    }
    client.run(`pragma busy_timeout = ${SHORT_BUSY_MS}`);
    serving = undefined;
  }

  function wait<T>(attempt: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      waiting.push({
        untilMs: performance.now() + BUSY_MS,
        refuse: () => reject(new DatabaseBusy()),
        try() {
          try {
            resolve(attempt());
          } catch (error) {
            if (isBusy(error)) {
              // Each has the same patience, so whoever came first loses it first.
              const nowMs = performance.now();
              while (waiting[0] && waiting[0].untilMs <= nowMs) waiting.shift()?.refuse();
              return false;
            }
            reject(error);
          }
          waiting.shift();
          return true;
        },
      });
      serving ??= Bun.sleep(RETRY_MS).then(serve);
    });
  }

  return {
    isInside: false,
    get isEmpty() {
      return serving === undefined;
    },
    assertBusy(error) {
      if (!isBusy(error)) throw error;
    },
    wait,
    async settled() {
      // A query of this very turn makes its first try, and perhaps gets into the queue, in a microtask that comes later.
      await new Promise<void>((resolve) => setImmediate(resolve));
      while (serving) await serving;
    },
  };
}

/**
 * A query whose try may have to wait. It is synchronous otherwise, as drizzle's own: the builder's `then` takes a value
 * as well as a promise of one.
 */
class PatientQuery extends PreparedQuery {
  constructor(
    readonly queue: BusyQueue,
    readonly isWrite: boolean,
    ...rest: ConstructorParameters<typeof PreparedQuery>
  ) {
    super(...rest);
  }

  override run(values?: Record<string, unknown>): ReturnType<PreparedQuery["run"]> {
    const { queue } = this;
    if (queue.isInside) return super.run(values);
    if (queue.isEmpty || !this.isWrite) {
      try {
        return super.run(values);
      } catch (error) {
        queue.assertBusy(error);
      }
    }
    return queue.wait(() => super.run(values)) as unknown as ReturnType<PreparedQuery["run"]>;
  }

  override all(values?: Record<string, unknown>): unknown {
    const { queue } = this;
    if (queue.isInside) return super.all(values);
    if (queue.isEmpty || !this.isWrite) {
      try {
        return super.all(values);
      } catch (error) {
        queue.assertBusy(error);
      }
    }
    return queue.wait(() => super.all(values));
  }
}

type SessionParameters = Parameters<SQLiteBunSession<never, never>["prepareQuery"]>;
type NoSchema = Record<string, never>;

class PatientSession extends SQLiteBunSession<NoSchema, NoSchema> {
  constructor(
    readonly connection: BunSqlite,
    readonly busyLine: BusyQueue,
    readonly queryLogger: Logger,
    queryDialect: SQLiteSyncDialect,
  ) {
    super(connection, queryDialect, undefined, { logger: queryLogger });
  }

  override prepareQuery<T extends Omit<PreparedQueryConfig, "run">>(
    query: Query,
    fields: SessionParameters[1],
    executeMethod: SessionParameters[2],
    isResponseInArrayMode: boolean,
    customResultMapper?: SessionParameters[4],
    metadata?: { type: string },
  ): PreparedQuery<T> {
    return new PatientQuery(
      this.busyLine,
      metadata?.type !== "select",
      this.connection.prepare(query.sql) as Statement,
      query,
      this.queryLogger,
      fields,
      executeMethod,
      isResponseInArrayMode,
      customResultMapper,
    ) as unknown as PreparedQuery<T>;
  }
}

/** drizzle's own, but that its queries wait in the queue. */
export function patientOrm(client: BunSqlite, queue: BusyQueue, logger: Logger): BunSQLiteDatabase {
  const dialect = new SQLiteSyncDialect({ casing: "snake_case" });
  return new BunSQLiteDatabase(
    "sync",
    dialect,
    new PatientSession(client, queue, logger, dialect),
    undefined,
  );
}
