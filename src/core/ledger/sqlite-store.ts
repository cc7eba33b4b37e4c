// The embedded database's books: what is durable in the journal, brought in by larger batches with prepared statements.
// Refuses part of a batch, and to bring an entry in twice: the position stands in the same transaction.
import type { Database as BunSqlite } from "bun:sqlite";
import { closeSync, fdatasync, openSync } from "node:fs";
import { sqlState } from "../../db/sql-state.ts";
import { TokenStatus } from "../../shared/enums.ts";
import type { LedgerAccounts, Deps, BalanceWatch } from "../deps.ts";
import type { Journal, JournalEntry } from "./journal.ts";
import { chargedBalances } from "./store.ts";
import type { Books } from "./store.ts";
import { endPending, sumUp } from "./items.ts";
import type { LedgerItem } from "./items.ts";
import { SeatLost } from "./node-lease.ts";
import type { NodeSeat } from "./node-lease.ts";

interface UserFigures {
  id: number;
  quota: number;
  usedQuota: number;
  requestCount: number;
}

interface TokenFigures {
  id: number;
  remainQuota: number;
  usedQuota: number;
  status: number;
}

export interface SqliteBooksDeps extends Pick<Deps, "db" | "clock" | "logger"> {
  seat: NodeSeat;
  journal: Journal<LedgerItem>;
  accounts: LedgerAccounts;
  balances?: BalanceWatch;
}

/**
 * How long an entry waits for others: a batch of fifty costs a twentieth of fifty transactions. Nobody sees the wait,
 * because every query of this process brings in first what is there.
 */
const GATHER_MS = 50;
/** No more at once while calls run: about half a millisecond of the event loop. */
const MAX_ROWS = 64;
const RETRY_MS = 250;

/** Data that the tables will never take: waiting does not help. */
function isContentError(error: unknown): boolean {
  return /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/.test(sqlState(error));
}

export function createSqliteBooks(client: BunSqlite, deps: SqliteBooksDeps): Books {
  const { db, clock, logger, journal, accounts, balances, seat } = deps;
  let logFile: number | undefined;
  let applied = 0;
  /** Entries from here on were queued by this process and count in the memory of its accounts. */
  let firstOwn = 0;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isRushed = false;
  let isEntering = false;
  const begin = client.prepare("begin immediate");
  const commit = client.prepare("commit");
  const insertLog = client.prepare(
    `insert into logs (created_at, type, user_id, channel_id, token_id, quota, prompt_tokens, completion_tokens,
      use_time_ms, is_stream, request_id, model_name, username, token_name, "group", content, other)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const chargeUser = client.prepare<UserFigures, number[]>(
    `update users set quota = quota - ?1, used_quota = used_quota + ?1, request_count = request_count + ?2
     where id = ?3
     returning id, quota, used_quota as usedQuota, request_count as requestCount`,
  );
  const chargeToken = client.prepare<TokenFigures, number[]>(
    `update tokens set remain_quota = remain_quota - ?1, used_quota = used_quota + ?1,
       accessed_time = max(accessed_time, ?2),
       status = case when unlimited_quota = 0 and status = ${TokenStatus.enabled} and remain_quota - ?1 <= 0
         then ${TokenStatus.exhausted} else status end
     where id = ?3
     returning id, remain_quota as remainQuota, used_quota as usedQuota, status`,
  );
  const chargeChannel = client.prepare("update channels set used_quota = used_quota + ?1 where id = ?2");
  const addRollup = client.prepare(
    `insert into rollups (hour, user_id, model_name, channel_id, token_id, "group", count, quota, prompt_tokens,
      completion_tokens, use_time_ms, logged_count, logged_quota)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (hour, user_id, model_name, channel_id, token_id, "group") do update set
       count = count + excluded.count, quota = quota + excluded.quota,
       prompt_tokens = prompt_tokens + excluded.prompt_tokens,
       completion_tokens = completion_tokens + excluded.completion_tokens,
       use_time_ms = use_time_ms + excluded.use_time_ms,
       logged_count = logged_count + excluded.logged_count, logged_quota = logged_quota + excluded.logged_quota`,
  );
  const putMark = client.prepare(
    `update nodes set mark = ?1, journaled = ?2, entered = entered + ?3, set_aside = set_aside + ?4,
       skipped = skipped + ?5
     where node_id = ?6 and incarnation = ?7 and mark = ?8`,
  );

  /** The seat is this process's and the books end where it left them, or nothing of the batch is entered. */
  function moveMark(last: number, setAside: number, skipped: number): void {
    const { nodeId, incarnation } = seat;
    const { lastPosition } = journal;
    const entered = last - applied - setAside - skipped;
    const moved = putMark.run(last, lastPosition, entered, setAside, skipped, nodeId, incarnation, applied);
    if (moved.changes === 0) throw new SeatLost();
  }

  /** One transaction; memory follows. */
  function applyBatch(entries: readonly JournalEntry<LedgerItem>[]): void {
    const sums = sumUp(entries.map((entry) => entry.item));
    const last = entries.at(-1)?.position ?? applied;
    const userFigures: UserFigures[] = [];
    const tokenFigures: TokenFigures[] = [];
    begin.run();
    try {
      for (const row of sums.logs) {
        insertLog.run(
          row.createdAt,
          row.type,
          row.userId,
          row.channelId,
          row.tokenId,
          row.quota,
          row.promptTokens,
          row.completionTokens,
          row.useTimeMs,
          row.isStream ? 1 : 0,
          row.requestId,
          row.modelName,
          row.username,
          row.tokenName,
          row.group,
          row.content,
          row.other,
        );
      }
      for (const [id, sum] of sums.users) {
        const figures = chargeUser.get(sum.charge, sum.count, id);
        if (figures) userFigures.push(figures);
      }
      for (const [id, sum] of sums.tokens) {
        const figures = chargeToken.get(sum.charge, sum.accessedTime, id);
        if (figures) tokenFigures.push(figures);
      }
      for (const [id, charge] of sums.channels) if (charge > 0) chargeChannel.run(charge, id);
      for (const sum of sums.rollups) {
        addRollup.run(
          sum.hour,
          sum.userId,
          sum.modelName,
          sum.channelId,
          sum.tokenId,
          sum.group,
          sum.count,
          sum.quota,
          sum.promptTokens,
          sum.completionTokens,
          sum.useTimeMs,
          sum.loggedCount,
          sum.loggedQuota,
        );
      }
      moveMark(last, 0, sums.skipped);
      commit.run();
    } catch (error) {
      if (client.inTransaction) client.run("rollback");
      throw error;
    }
    applied = last;
    accounts.beginWrite(sums.users.keys(), sums.tokens.keys())();
    for (const figures of userFigures) {
      const user = accounts.cachedUser(figures.id);
      if (user) Object.assign(user, figures);
    }
    for (const figures of tokenFigures) {
      const token = accounts.cachedToken(figures.id);
      if (token) Object.assign(token, figures);
    }
    for (const { position, item } of entries) if (position >= firstOwn) endPending(accounts, item);
    balances?.charged(chargedBalances(userFigures, sums.users));
  }

  /** The batch, or its rows one by one where one of them is the reason that it fails. */
  function applyEntries(entries: readonly JournalEntry<LedgerItem>[]): void {
    try {
      applyBatch(entries);
    } catch (error) {
      const [entry] = entries;
      if (entry === undefined || !isContentError(error)) throw error;
      if (entries.length > 1) for (const each of entries) applyEntries([each]);
      else {
        logger.error("a settlement was refused by the database and set aside", {
          requestId: entry.item.row?.requestId,
          error: String(error),
        });
        journal.setAside(entry, String(error), clock.nowMs());
        moveMark(entry.position, 1, 0);
        applied = entry.position;
      }
    }
  }

  /** Brings in everything there is. Never throws: what the database would not take is tried again later. */
  function catchUp(): void {
    clearTimeout(timer);
    timer = undefined;
    // Whoever is told of a batch may query, and would enter the rest of it a second time.
    if (isEntering || journal.lastPosition <= applied || !seat.isHeld) return;
    isEntering = true;
    // The journal is durable: the transaction need not be. Whoever holds the file is waited for a moment, by the connection.
    client.run("pragma synchronous = normal");
    try {
      while (journal.lastPosition > applied) applyEntries(journal.read(applied, MAX_ROWS));
      failures = 0;
    } catch (error) {
      failures++;
      if (error instanceof SeatLost)
        seat.lose(
          "another process writes to the database file. Stop this one; each needs a DATA_DIR of its own",
        );
      logger[failures === 1 ? "error" : "debug"]("settlements wait for the database", {
        waiting: journal.lastPosition - applied,
        error: String(error),
      });
      timer = setTimeout(catchUp, RETRY_MS);
      timer.unref();
    } finally {
      isEntering = false;
      client.run("pragma synchronous = full");
      journal.trim(applied, sync);
    }
  }

  /** The log file lives as long as the connection; the same call that FULL makes, in the thread pool. */
  function sync(): Promise<void> {
    logFile ??= openSync(`${client.filename}-wal`, "r");
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    fdatasync(logFile, (error) => (error ? reject(error) : resolve()));
    return promise;
  }

  return {
    async start() {
      journal.resume(seat.books);
      applied = seat.books.mark;
      firstOwn = journal.lastPosition + 1;
      catchUp();
      db.beforeQuery(() => {
        if (failures === 0) catchUp();
      });
    },
    wake() {
      if (failures > 0) return;
      timer ??= setTimeout(catchUp, GATHER_MS);
      timer.unref();
      if (isRushed || journal.lastPosition - applied < MAX_ROWS) return;
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
    backlog: () => journal.lastPosition - applied,
    close() {
      clearTimeout(timer);
      if (logFile !== undefined) closeSync(logFile);
    },
  };
}
