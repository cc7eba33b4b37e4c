// Re-reads active accounts in rounds: on PostgreSQL the safety net beside the announcements of other nodes. A row that is
// being written is left to its writer, who brings the new figures.
import type { Logger } from "../deps.ts";
import { dropToken, dropUser, putToken } from "./account-cache.ts";
import type { AccountCache, UserEntry } from "./account-cache.ts";
import type { AccountQueries } from "./account-queries.ts";
import type { Overtaken, ReadsInFlight } from "./account-reads.ts";
import { refreshUser } from "./account-rows.ts";
import type { TokenRow, UserRow } from "./account-rows.ts";

/** Accounts that nobody used for this many rounds are re-read on their next use instead. */
const ACTIVE_ROUNDS = 40;
const REFRESH_CHUNK = 10_000;

export interface AccountRefreshDeps {
  cache: AccountCache;
  reads: ReadsInFlight;
  queries: AccountQueries;
  logger: Logger;
}

/** Runs one round unless one runs already; never rejects. */
export function createAccountRefresh({ cache, reads, queries, logger }: AccountRefreshDeps) {
  let isRunning = false;

  async function refreshAll(): Promise<void> {
    const { active } = cache;
    cache.round++;
    for (const entry of active) if (cache.round - entry.usedRound > ACTIVE_ROUNDS) active.delete(entry);
    const entries = [...active];
    for (let from = 0; from < entries.length; from += REFRESH_CHUNK) {
      await refreshChunk(entries.slice(from, from + REFRESH_CHUNK));
    }
  }

  async function refreshChunk(entries: readonly UserEntry[]): Promise<void> {
    const readIn = cache.round;
    await reads.track(async (overtaken) => {
      const cached = entries.flatMap((entry) => [...entry.tokens]);
      const [userRows, tokenRows] = await queries.many(
        entries.map((entry) => entry.account.id),
        cached.map((token) => token.account.id),
      );
      updateUsers(entries, userRows, overtaken, readIn);
      const tokenRowsById = new Map(tokenRows.map((row) => [row.id, row]));
      for (const token of cached) {
        const { id } = token.account;
        if (cache.tokensById.get(id) !== token || overtaken.tokens.has(id) || reads.isTokenBusy(id)) continue;
        const row: TokenRow | undefined = tokenRowsById.get(id);
        if (row && row.deletedAt === null) putToken(cache, row, token.owner);
        else dropToken(cache, token);
      }
    });
  }

  function updateUsers(
    entries: readonly UserEntry[],
    rows: readonly UserRow[],
    overtaken: Overtaken,
    readIn: number,
  ): void {
    const rowsById = new Map(rows.map((row) => [row.id, row]));
    for (const entry of entries) {
      const { id } = entry.account;
      if (cache.users.get(id) !== entry) continue;
      entry.readRound = readIn;
      if (overtaken.users.has(id) || reads.isUserBusy(id)) continue;
      const row = rowsById.get(id);
      if (row && row.deletedAt === null) {
        refreshUser(entry.account, row);
        cache.uncertain.delete(id);
      } else dropUser(cache, id);
    }
  }

  return async function refresh(): Promise<void> {
    if (isRunning) return;
    isRunning = true;
    try {
      await refreshAll();
      cache.isStale = false;
    } catch (error) {
      if (!cache.isStale) logger.warn("accounts could not be re-read", { error: String(error) });
      cache.isStale = true;
    } finally {
      isRunning = false;
    }
  };
}
