// The local file in which settlements are durable before PostgreSQL has them: entries in order, each with its position.
// Refuses a second process on the same file, and to reuse a position that PostgreSQL has already applied.
import { Database as BunSqlite } from "bun:sqlite";
import { join } from "node:path";
import type { SpoolMark } from "./ledger-spool.ts";

export const OUTBOX_FILE = "outbox.sqlite";

export interface OutboxEntry<T> {
  position: number;
  item: T;
}

export interface Outbox<T> {
  /** Durable when it returns; all or a throw. The mark belongs to a replayed spool line. */
  append(items: readonly T[], mark?: SpoolMark): void;
  /** The oldest entries behind a position. */
  read(after: number, limit: number): OutboxEntry<T>[];
  /** Forgets what PostgreSQL has applied. */
  trim(upTo: number): void;
  /** New positions come after this one too: the file may be older than what PostgreSQL has applied. */
  startAfter(position: number): void;
  /** Sets an entry aside that PostgreSQL refuses for its content. */
  bury(position: number, reason: string, nowMs: number): void;
  readonly lastPosition: number;
  readMark(key: string): number;
  dropMark(key: string): void;
  close(): void;
}

/** Waits that long for another process to let go of the file (a restart that overlaps), then throws. */
export function openOutbox<T>(dataDir: string, waitMs = 5000): Outbox<T> {
  const client = new BunSqlite(join(dataDir, OUTBOX_FILE), { create: true, readwrite: true, strict: true });
  client.run(`pragma busy_timeout = ${waitMs}`);
  client.run("pragma locking_mode = exclusive");
  client.run("pragma journal_mode = wal");
  client.run("pragma synchronous = full");
  client.run("create table if not exists entries (position integer primary key, body text not null)");
  client.run("create table if not exists marks (key text primary key, value integer not null)");
  client.run(
    "create table if not exists buried (position integer, body text not null, reason text, buried_at_ms integer)",
  );

  const begin = client.prepare("begin immediate");
  const commit = client.prepare("commit");
  const insert = client.prepare("insert into entries (position, body) values (?1, ?2)");
  const select = client.prepare<{ position: number; body: string }, number[]>(
    "select position, body from entries where position > ?1 order by position limit ?2",
  );
  const selectNewest = client.prepare<{ position: number | null }, []>(
    "select max(position) as position from entries",
  );
  const remove = client.prepare("delete from entries where position <= ?1");
  const putMark = client.prepare(
    "insert into marks (key, value) values (?1, ?2) on conflict (key) do update set value = excluded.value",
  );
  const selectMark = client.prepare<{ value: number }, [string]>("select value from marks where key = ?1");
  const statements = [begin, commit, insert, select, selectNewest, remove, putMark, selectMark];
  const newest = selectNewest.get();
  let last = newest?.position ?? 0;
  /** Trimming waits for the next append, which has to sync the file anyway. */
  let trimmable = 0;

  function inTransaction(body: () => void): void {
    begin.run();
    try {
      body();
      commit.run();
    } catch (error) {
      if (client.inTransaction) client.run("rollback");
      throw error;
    }
  }

  return {
    append(items, mark) {
      let position = last;
      inTransaction(() => {
        for (const item of items) insert.run(++position, JSON.stringify(item));
        if (mark) putMark.run(mark.key, mark.value);
        if (trimmable > 0) remove.run(trimmable);
      });
      last = position;
      trimmable = 0;
    },
    read: (after, limit) =>
      select.all(after, limit).map(({ position, body }) => ({ position, item: JSON.parse(body) as T })),
    trim(upTo) {
      trimmable = upTo;
    },
    startAfter(position) {
      last = Math.max(last, position);
    },
    bury(position, reason, nowMs) {
      inTransaction(() => {
        client.run("insert into buried select position, body, ?2, ?3 from entries where position = ?1", [
          position,
          reason,
          nowMs,
        ]);
        client.run("delete from entries where position = ?1", [position]);
      });
    },
    get lastPosition() {
      return last;
    },
    readMark: (key) => selectMark.get(key)?.value ?? 0,
    dropMark: (key) => void client.run("delete from marks where key = ?", [key]),
    close() {
      if (trimmable > 0) remove.run(trimmable);
      client.run("pragma wal_checkpoint(truncate)");
      // A statement that is still open would keep the file, and its lock, beyond the close.
      for (const statement of statements) statement.finalize();
      client.close(true);
    },
  };
}
