// The database as the rest of the program sees it: one query builder type, one atomic block, for both databases.
// Refuses drizzle's own transaction call: with an async callback SQLite would commit at its first await.
import type { Database as BunSqlite } from "bun:sqlite";
import type { SQL } from "drizzle-orm";
import { sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import type { Schema } from "../../drizzle/schema.ts";
import type { ChangeCarrier } from "./changes.ts";

/** The query builder; PostgreSQL's types are the master. `transaction` and raw calls are hidden on purpose. */
export type Orm = Omit<PostgresJsDatabase, "transaction" | "execute" | "refreshMaterializedView">;

/** A built query: the only thing an atomic body may yield. */
export type Query<T> = PromiseLike<T> & { toSQL(): { sql: string; params: unknown[] } };

export type Steps<T> = Generator<Query<unknown>, T, unknown>;

/** Runs one query inside an atomic body: `const [row] = yield* q(tx.select()...)`. */
export function* q<T>(query: Query<T>): Steps<T> {
  return (yield query) as T;
}

/** A row of a statement by hand; PostgreSQL's 64-bit numbers arrive as text. */
export type RawRow = Record<string, string | number>;

/** A statement by hand, on PostgreSQL alone: the builder's type hides it, because no schema checks what it answers. */
export function rawQuery(orm: Orm, statement: SQL): Query<RawRow[]> {
  const executor = orm as unknown as { execute(statement: SQL): Query<RawRow[]> };
  return executor.execute(statement);
}

/**
 * A statement by hand whose text never changes, on PostgreSQL alone: the builder makes nothing of it anew. Numbers its values
 * $1, $2, …
 */
export function fixedQuery(orm: Orm, text: string, params: readonly (string | number)[]): Query<RawRow[]> {
  const { client } = (orm as unknown as { session: { client: FixedClient } }).session;
  return {
    toSQL: () => ({ sql: text, params: [...params] }),
    // oxlint-disable-next-line unicorn/no-thenable -- as the builder's own queries do, it runs when it is waited for.
    then: (resolve, reject) => client.unsafe(text, [...params], { prepare: true }).then(resolve, reject),
  };
}

/** What of the driver runs such a statement. */
interface FixedClient {
  unsafe(text: string, params: (string | number)[], options: { prepare: true }): PromiseLike<RawRow[]>;
}

/** Statements that are sent in one go, and answered in their order. */
export interface Flight extends Query<RawRow[][]> {
  readonly parts: readonly Query<RawRow[]>[];
}

/**
 * Statements of one atomic block that need nothing of each other's answers, on PostgreSQL alone: one way to the database and
 * back for all of them. The first that fails is what it rejects with.
 */
export function flightOf(parts: readonly Query<RawRow[]>[]): Flight {
  return {
    parts,
    toSQL: () => ({ sql: parts.map((part) => part.toSQL().sql).join(";\n"), params: [] }),
    // oxlint-disable-next-line unicorn/no-thenable -- as above.
    then: (resolve, reject) => Promise.all(parts).then(resolve, reject),
  };
}

/** The embedded database was held by another process for longer than anybody waits; nothing was done. */
export class DatabaseBusy extends Error {
  constructor() {
    super(
      "another process has long held the database file in a transaction of its own: end it, or its transaction",
    );
  }
}

/** Announced in place of ids: all of the kind. */
export const EVERYTHING = "*";

/** What nodes keep in memory and tell each other about; prices are options. */
export type ChangeKind = "users" | "tokens" | "channels" | "options" | "sessions" | "inbox" | "costs";

/** Where what is returned rejects, `lost` is called in the next round that the database answers, and again until it does not. */
export interface ChangeListener {
  /** These rows were written elsewhere: re-read them alone. */
  changed(ids: readonly string[]): void | Promise<void>;
  /** Announcements are missing: everything of the kind may have changed. */
  lost(): void | Promise<void>;
}

export interface Database {
  readonly kind: "sqlite" | "postgres";
  readonly t: Schema;
  readonly orm: Orm;
  /** For reports, exports and searches over raw rows: never blocks the event loop (a Worker on SQLite). */
  readonly reader: Orm;
  /** The same for what reads very much (exports, the audit): lists do not queue behind it. */
  readonly bulkReader: Orm;
  /**
   * The reader for somebody who may leave: what has not begun by then is dropped, PostgreSQL is told to stop what runs, and
   * nobody waits for what SQLite's thread is still at. Queries reject with the signal's reason.
   */
  readerUntil(signal: AbortSignal, isBulk: boolean): Orm;
  /** Free pages of the embedded file go back to the disk, so many at most; answers how many are left. 0 on PostgreSQL. */
  giveBack(pages: number): Promise<number>;
  /**
   * Runs the body as one transaction: all of it or nothing. On SQLite it runs in one synchronous go, so no other
   * request can interleave; a file that another process holds is waited for beside the event loop, then DatabaseBusy is
   * thrown. On PostgreSQL it is retried on deadlock and serialisation failure, so the body must be repeatable. Never
   * catch and go on inside: PostgreSQL has aborted the transaction after a failed statement.
   * `at once`, on PostgreSQL: the body yields one flight and nothing else, which is sent with its commit. It goes on after that:
   * what must stop it must be an error of a statement.
   */
  atomic<T>(body: (tx: Orm) => Steps<T>, way?: "at once"): Promise<T>;
  /**
   * Tells other nodes what changed, by its ids; call it after the commit. Nothing to do on SQLite, which has one
   * process. Each announcement raises the kind's version, so that a lost one is noticed within a second.
   */
  announce(kind: ChangeKind, ids: readonly (string | number)[]): Promise<void>;
  /** The same as part of a transaction: the change and its announcement, or neither. */
  announceSteps(tx: Orm, kind: ChangeKind, ids: readonly (string | number)[]): Steps<void>;
  /** Announcements go this way, too, after their commit, and are heard on it. Nothing to do on SQLite. */
  carryChanges(carrier: ChangeCarrier): void;
  /** Called with what other nodes announce. Wait for it before the first read, so that no change falls in between. */
  onChange(kind: ChangeKind, listener: ChangeListener): Promise<void>;
  /**
   * Called before every query and atomic block of the embedded database: the ledger brings in what it has accepted, so
   * that nobody reads older books than were answered for. On PostgreSQL, which other nodes write too, never called.
   */
  beforeQuery(hook: () => void): void;
  /** Called whenever PostgreSQL has answered the change feed, once or twice a second while all is well; one listener. */
  onAnswer(listener: () => void): void;
  /**
   * Somebody needs what this process keeps of the tables. Undefined while it is in use anyway; on PostgreSQL, where the process has rested
   * until now, what resolves once it keeps what was committed before, or the database has not answered in time. Never rejects.
   */
  use(): Promise<void> | undefined;
  /** The SQLite connection, for the ledger's prepared batch statements only; undefined on PostgreSQL. */
  readonly client: BunSqlite | undefined;
  /** True when the database answers. */
  ping(): Promise<boolean>;
  close(): Promise<void>;
}

/** A sum as a JavaScript number, 0 for no rows, on both databases. */
export function sumOf(column: PgColumn | SQL): SQL<number> {
  return sql`coalesce(sum(${column}), 0)`.mapWith(Number);
}

/** A row count as a JavaScript number. */
export function countRows(): SQL<number> {
  return sql`count(*)`.mapWith(Number);
}

/** Escapes the wildcards of LIKE; use with `contains`, never paste a search term into a pattern yourself. */
export function escapeLike(term: string): string {
  return term.replace(/[\\%_]/g, (c) => `\\${c}`);
}

/** Case-insensitive "contains" that treats % and _ in the term as themselves. */
export function contains(column: PgColumn, term: string): SQL {
  return sql`lower(${column}) like ${`%${escapeLike(term.toLowerCase())}%`} escape '\\'`;
}

/** Case-insensitive "starts with". */
export function startsWith(column: PgColumn, term: string): SQL {
  return sql`lower(${column}) like ${`${escapeLike(term.toLowerCase())}%`} escape '\\'`;
}
