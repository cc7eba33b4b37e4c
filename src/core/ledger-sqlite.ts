// Writes a batch of settlements into the embedded database: one transaction, prepared statements, each row once.
// Refuses part of a batch: whatever throws rolls everything back.
import type { Database as BunSqlite } from "bun:sqlite";
import { closeSync, fdatasync, openSync } from "node:fs";
import { LogType, TokenStatus } from "../shared/enums.ts";
import type { LedgerAccounts } from "./accounts.ts";
import { pendingOfToken, pendingOfUser, sumUp } from "./ledger-items.ts";
import type { BatchSums, LedgerItem } from "./ledger-items.ts";
import type { SpoolMark } from "./ledger-spool.ts";
import type { BalanceWatch, ChargedBalance } from "./low-quota.ts";

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

export interface SqliteBooks {
  /** Applies the items and lets memory follow. `isOwn` false: they were queued by an earlier process. */
  apply(items: readonly LedgerItem[], mark?: SpoolMark, isOwn?: boolean, later?: boolean): void;
  /** Makes durable what was applied `later`. */
  sync(): Promise<void>;
  close(): void;
  readMark(key: string): number;
  dropMark(key: string): void;
}

export function createSqliteBooks(
  client: BunSqlite,
  accounts: LedgerAccounts,
  balances?: BalanceWatch,
): SqliteBooks {
  let logFile: number | undefined;
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
    "insert into marks (key, value) values (?1, ?2) on conflict (key) do update set value = excluded.value",
  );

  return {
    apply(items, mark, isOwn = true, later = false) {
      const sums = sumUp(items);
      const userFigures: UserFigures[] = [];
      const tokenFigures: TokenFigures[] = [];
      // NORMAL writes the log without syncing it; sync() below does that off the event loop. Others stay FULL.
      if (later) client.run("pragma synchronous = normal");
      try {
        begin.run();
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
        if (mark) putMark.run(mark.key, mark.value);
        commit.run();
      } catch (error) {
        if (client.inTransaction) client.run("rollback");
        throw error;
      } finally {
        if (later) client.run("pragma synchronous = full");
      }
      accounts.beginWrite(sums.users.keys(), sums.tokens.keys())();
      for (const figures of userFigures) {
        const user = accounts.cachedUser(figures.id);
        if (user) Object.assign(user, figures);
      }
      for (const figures of tokenFigures) {
        const token = accounts.cachedToken(figures.id);
        if (token) Object.assign(token, figures);
      }
      if (isOwn) for (const item of items) endPending(accounts, item);
      balances?.charged(chargedBalances(userFigures, sums.users));
    },
    sync() {
      // The log file lives as long as the connection; the same call that FULL makes, in the thread pool.
      logFile ??= openSync(`${client.filename}-wal`, "r");
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      fdatasync(logFile, (error) => (error ? reject(error) : resolve()));
      return promise;
    },
    close() {
      if (logFile !== undefined) closeSync(logFile);
      logFile = undefined;
    },
    readMark: (key) =>
      client.query<{ value: number }, [string]>("select value from marks where key = ?").get(key)?.value ?? 0,
    dropMark: (key) => void client.run("delete from marks where key = ?", [key]),
  };
}

/** The new balances with what the batch took from each. */
export function chargedBalances(
  figures: readonly { id: number; quota: number }[],
  sums: BatchSums["users"],
): ChargedBalance[] {
  return figures.map(({ id, quota }) => ({ id, quota, charge: sums.get(id)?.charge ?? 0 }));
}

/** The charge is part of the balance now: it leaves the sum of what is held back in memory. */
export function endPending(accounts: LedgerAccounts, item: LedgerItem): void {
  const { row } = item;
  if (row?.type !== LogType.consume) return;
  const user = accounts.cachedUser(row.userId);
  if (user) user.reserved = Math.max(0, user.reserved - pendingOfUser(item));
  if (row.tokenId === 0) return;
  const token = accounts.cachedToken(row.tokenId);
  if (token) token.reserved = Math.max(0, token.reserved - pendingOfToken(item));
}
