// Reads accounts again that other processes wrote, in rounds: on PostgreSQL triggers tell which (db/row-changes.ts), beside
// the announcements, so that a charge needs none. A row that is being written here is left to its writer, who brings the new
// figures, and looked at again in the next round.
// Refuses to read what nobody asks for: accounts that were not used lately are read on their next use, but for those that may have been
// changed without a word, which no outage could serve until then.
import type { RowChanges } from "../../db/row-changes.ts";
import type { Logger } from "../deps.ts";
import { READ_WAIT_MS } from "../kit/database-failure.ts";
import { within } from "../kit/deadline.ts";
import {
  askedNow,
  disown,
  doubt,
  dropToken,
  dropUser,
  isInCall,
  isUnread,
  NEVER,
  putToken,
  wasRead,
} from "./account-cache.ts";
import type { AccountCache, Asked, TokenEntry, UserEntry } from "./account-cache.ts";
import type { AccountQueries } from "./account-queries.ts";
import type { Overtaken, ReadsInFlight } from "./account-reads.ts";
import { refreshUser } from "./account-rows.ts";
import type { TokenRow, UserRow } from "./account-rows.ts";

/** Accounts that nobody used for this many rounds are re-read on their next use instead. */
const ACTIVE_ROUNDS = 40;
const REFRESH_CHUNK = 10_000;
/** Of those whom nobody uses: a question that is answered soon, also by a slow database. */
const IDLE_CHUNK = 1000;

/** Whose rows are read. */
interface Wanted {
  users: Iterable<UserEntry>;
  tokens: Iterable<TokenEntry>;
}

type AccountChanges = RowChanges<"users" | "tokens">;

export interface AccountRefreshDeps {
  cache: AccountCache;
  reads: ReadsInFlight;
  queries: AccountQueries;
  /** Undefined on SQLite, where a round reads all that is active: nobody else writes, and only tests ask for one. */
  changes: AccountChanges | undefined;
  /** Of the database and its nodes, as last heard. */
  lastHeard: () => LastHeard;
  logger: Logger;
}

interface LastHeard {
  /** Milliseconds since the database answered. */
  silentMs: number;
  /** For how long no other process can have spent from the same rows; 0: one does. */
  aloneMs: number;
}

/**
 * Runs one round unless one runs already. That one counts once, however long it takes: if what is kept grew older meanwhile, every
 * call would read its rows from a database that is slow already. Never rejects.
 */
export function createAccountRefresh(deps: AccountRefreshDeps) {
  const { cache, reads, queries, changes, lastHeard, logger } = deps;
  const { users, tokensById, active, pending } = cache;
  let isRunning = false;

  async function refreshAll(round: number): Promise<void> {
    const askedMs = cache.monotonicMs();
    for (const entry of active) {
      // Also by a call that takes longer, whose own charge would be noted as somebody else's.
      if (isInCall(entry.account)) entry.usedRound = cache.round;
      if (cache.round - entry.usedRound > ACTIVE_ROUNDS) rest(cache, entry);
    }
    // Nobody asks: what is written meanwhile is told in the first round with somebody. Where the last word was that the database
    // is away, memory decides until a round has been answered.
    if (active.size === 0 && !isUnread(cache)) return;
    const wasLost = cache.isLost;
    cache.isLost = false;
    try {
      const told = changes && (await within(READ_WAIT_MS, changes.next()));
      if (told) note(cache, reads, told);
      const readsAll = !told || wasLost;
      if (readsAll) wantActive(cache);
      await inChunks(cache.pending, REFRESH_CHUNK, refreshChunk);
      // Whoever forgets what was told meanwhile means this round, too.
      cache.toldRound = round;
      cache.answeredMs = askedMs;
      cache.isStale = false;
      if (readsAll) await readIdle();
    } catch (error) {
      // What an answer told that came too late is told to nobody.
      cache.isLost = true;
      throw error;
    }
  }

  /**
   * Whom nobody uses, where it may have been changed. Calls wait for none of them: what cannot be read in time, or fails, is left to
   * the next round, and those in use are as current as they are.
   */
  async function readIdle(): Promise<void> {
    const untilMs = cache.monotonicMs() + READ_WAIT_MS;
    try {
      const isInTime = () => cache.monotonicMs() <= untilMs;
      if (!(await inChunks(wantChanged(cache), IDLE_CHUNK, refreshChunk, isInTime))) cache.isLost = true;
    } catch (error) {
      cache.isLost = true;
      logger.debug("accounts that nobody uses could not be re-read", { error: String(error) });
    }
  }

  async function refreshChunk(entries: readonly UserEntry[], cached: readonly TokenEntry[]): Promise<void> {
    const asked = askedNow(cache);
    await reads.track(async (overtaken) => {
      const [userRows, tokenRows] = await queries.many(
        entries.map((entry) => entry.account.id),
        cached.map((token) => token.account.id),
      );
      updateUsers(entries, userRows, overtaken, asked);
      const tokenRowsById = new Map(tokenRows.map((row) => [row.id, row]));
      for (const token of cached) {
        const { id } = token.account;
        if (tokensById.get(id) !== token) pending.tokens.delete(token);
        if (overtaken.token(id) || reads.isTokenBusy(id) || !pending.tokens.delete(token)) continue;
        const row: TokenRow | undefined = tokenRowsById.get(id);
        if (row && row.deletedAt === null) putToken(cache, row, token.owner, asked);
        else dropToken(cache, token);
      }
    });
  }

  function updateUsers(
    entries: readonly UserEntry[],
    rows: readonly UserRow[],
    overtaken: Overtaken,
    asked: Asked,
  ): void {
    const rowsById = new Map(rows.map((row) => [row.id, row]));
    for (const entry of entries) {
      const { id } = entry.account;
      if (users.get(id) !== entry) pending.users.delete(entry);
      // Used again while it rested, or gone to rest meanwhile: whoever asks for it next reads it.
      if (!pending.users.has(entry)) continue;
      if (overtaken.user(id) || reads.isUserBusy(id)) {
        // What decides nothing since the read began is not made current by an old row.
        if (entry.readRound !== NEVER) entry.readRound = asked.round;
        continue;
      }
      wasRead(entry, asked);
      pending.users.delete(entry);
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
    const round = ++cache.round;
    try {
      await refreshAll(round);
    } catch (error) {
      // It was asked before a rest, or before this process stood still, which made its answer late: the next round knows.
      if (cache.round !== round) return;
      if (!cache.isStale) logger.warn("accounts could not be re-read", { error: String(error) });
      letMemoryDecide(cache, lastHeard());
    } finally {
      isRunning = false;
    }
  };
}

/** One question after the other, each of which begins while there is time; false: some were not asked for. */
async function inChunks(
  wanted: Wanted,
  size: number,
  refreshChunk: (users: readonly UserEntry[], tokens: readonly TokenEntry[]) => Promise<void>,
  isInTime = () => true,
): Promise<boolean> {
  const [users, tokens] = [[...wanted.users], [...wanted.tokens]];
  const most = Math.max(users.length, tokens.length);
  for (let from = 0; from < most; from += size) {
    if (!isInTime()) return false;
    await refreshChunk(users.slice(from, from + size), tokens.slice(from, from + size));
  }
  return true;
}

/** From here on, as far as it may; those who wait for a row it has are told. */
function letMemoryDecide(cache: AccountCache, { silentMs, aloneMs }: LastHeard): void {
  const nowMs = cache.monotonicMs();
  // While the database is slow some answers come: what was current when the first round failed stays so.
  if (!cache.isStale) cache.awayFromMs = nowMs - silentMs;
  cache.aloneFromMs = nowMs - aloneMs;
  cache.isStale = true;
  for (const tell of cache.waiting) tell();
}

/** Whom nobody uses is read on its next use. */
function wantActive(cache: AccountCache): void {
  const { users, active, pending } = cache;
  for (const entry of users.values()) {
    if (active.has(entry)) continue;
    doubt(cache, entry);
    for (const token of entry.tokens) doubt(cache, token);
  }
  // Left from a round that could not read them: those in use come first.
  for (const entry of pending.users) if (!active.has(entry)) pending.users.delete(entry);
  for (const token of pending.tokens) if (!active.has(token.owner)) pending.tokens.delete(token);
  for (const entry of active) {
    pending.users.add(entry);
    for (const token of entry.tokens) pending.tokens.add(token);
  }
}

/** Whom nobody uses, where it may have been changed: unread, memory would refuse it in the next outage. */
function wantChanged({ users, active, pending }: AccountCache): Wanted {
  const idle = [...users.values()].filter((entry) => !active.has(entry));
  const idleUsers = idle.filter(({ isChanged }) => isChanged);
  const idleTokens = idle.flatMap(({ tokens }) => [...tokens].filter(({ isChanged }) => isChanged));
  for (const entry of idleUsers) pending.users.add(entry);
  for (const token of idleTokens) pending.tokens.add(token);
  return { users: idleUsers, tokens: idleTokens };
}

/** Not used lately: what is pending of it is read when it is. */
function rest(cache: AccountCache, entry: UserEntry): void {
  const { active, pending } = cache;
  active.delete(entry);
  if (pending.users.delete(entry)) doubt(cache, entry);
  for (const token of entry.tokens) if (pending.tokens.delete(token)) doubt(cache, token);
}

type ChangedAccounts = NonNullable<Awaited<ReturnType<AccountChanges["next"]>>>;

/** Reads that are on their way may bring what stood there before. */
function note(cache: AccountCache, reads: ReadsInFlight, told: ChangedAccounts): void {
  const { users, tokensById, active, pending } = cache;
  for (const id of told.users) {
    reads.wroteUser(id);
    const entry = users.get(id);
    if (entry && active.has(entry)) pending.users.add(entry);
    else if (entry) disown(entry);
  }
  for (const id of told.tokens) {
    reads.wroteToken(id);
    const entry = tokensById.get(id);
    if (entry && active.has(entry.owner)) pending.tokens.add(entry);
    else if (entry) disown(entry);
  }
}
