// In-memory accounts: users and API keys as the hot path reads them, filled on first use, bounded, kept true by every
// write here and on other nodes. Refuses to let an older read overwrite a balance that was written meanwhile.
import { and, eq, isNull, sql } from "drizzle-orm";
import { isAway, readWhenBack } from "../../db/away.ts";
import { createFlights } from "./account-reads.ts";
import { refreshToken, refreshUser, tokenAccount, userAccount } from "./account-rows.ts";
import type { TokenRow, UserRow } from "./account-rows.ts";
import { databaseDown } from "../kit/database-failure.ts";
import { within } from "../kit/deadline.ts";
import type { Deps, LedgerAccounts, TokenAccount, UserAccount } from "../deps.ts";
import { sha256Hex } from "../kit/seal.ts";

export interface AccountLimits {
  maxTokens: number;
  maxUsers: number;
  maxMisses: number;
}

const LIMITS: AccountLimits = { maxTokens: 200_000, maxUsers: 200_000, maxMisses: 10_000 };
const MISS_LIFE_MS = 1000;
const REFRESH_MS = 750;
/** Accounts that nobody used for this many rounds are re-read on their next use instead. */
const ACTIVE_ROUNDS = 40;
const REFRESH_CHUNK = 10_000;
const MAX_READS = 5;
const MAX_KEY_LENGTH = 256;
const READ_WAIT_MS = 5000;
/** So long a call with an account that is not in memory waits for a database that is away. */
const AWAY_WAIT_MS = 10_000;

interface UserEntry {
  account: UserAccount;
  tokens: Set<TokenEntry>;
  touched: boolean;
  usedRound: number;
  readRound: number;
}

interface TokenEntry {
  account: TokenAccount;
  owner: UserEntry;
  hash: string;
  touched: boolean;
}

export interface AccountsDeps extends Pick<Deps, "db" | "clock" | "logger"> {
  /** Not read here: keys are found by their hash. Taken so that all services are built from the same bundle. */
  seal?: Deps["seal"];
  limits?: Partial<AccountLimits>;
  /** How often active accounts are re-read on PostgreSQL; 0 = only when `refresh` is called. */
  refreshMs?: number;
  /** Longest wait for a database that is away, in milliseconds. */
  databaseWaitMs?: number;
}

export async function createAccounts({
  db,
  clock,
  logger,
  limits,
  refreshMs = REFRESH_MS,
  databaseWaitMs = AWAY_WAIT_MS,
}: AccountsDeps): Promise<LedgerAccounts> {
  const { maxTokens, maxUsers, maxMisses } = { ...LIMITS, ...limits };
  const users = new Map<number, UserEntry>();
  const tokensByHash = new Map<string, TokenEntry>();
  const tokensById = new Map<number, TokenEntry>();
  /** Unknown key hashes and when (steady clock) they may be looked up again. */
  const misses = new Map<string, number>();
  const userLoads = new Map<number, Promise<UserAccount | undefined>>();
  const tokenLoads = new Map<string, Promise<TokenAccount | undefined>>();
  const flights = createFlights();
  const uncertain = new Set<number>();
  const isShared = db.kind === "postgres";
  const active = new Set<UserEntry>();
  let round = 0;
  let refreshFailed = false;

  /** A query that never comes back must not block its key for ever. */
  function once<T>(query: PromiseLike<T>): PromiseLike<T> {
    return isShared ? within(READ_WAIT_MS, Promise.resolve(query)) : query;
  }

  /** For what no memory knows: waits for the database, then its caller is told 503. */
  async function answer<T>(query: () => PromiseLike<T>): Promise<T> {
    if (!isShared) return query();
    try {
      return await readWhenBack(databaseWaitMs, () => once(query()));
    } catch (error) {
      if (!isAway(error)) throw error;
      throw databaseDown(error);
    }
  }

  /** Reads until nothing was written during the read. */
  async function readUser(id: number): Promise<UserRow | undefined> {
    const table = db.t.users;
    for (let reads = 1; ; reads++) {
      const { row, isOld } = await flights.during(async (flight) => {
        const rows = await answer(() => db.orm.select().from(table).where(eq(table.id, id)));
        return { row: rows[0], isOld: flight.users.has(id) };
      });
      if (!isOld || reads >= MAX_READS) return row;
    }
  }

  async function readToken(hash: string): Promise<TokenRow | undefined> {
    const table = db.t.tokens;
    for (let reads = 1; ; reads++) {
      const { row, isOld } = await flights.during(async (flight) => {
        const rows = await answer(() => db.orm.select().from(table).where(eq(table.keyHash, hash)));
        const row = rows[0];
        // For a key that is not there yet, any change may be its creation.
        return { row, isOld: row ? flight.tokens.has(row.id) : flight.tokens.size > 0 };
      });
      if (!isOld || reads >= MAX_READS) return row;
    }
  }

  // --- the maps -----------------------------------------------------------------------------------------------------

  function putUser(row: UserRow): UserEntry {
    if (!flights.isUserBusy(row.id)) uncertain.delete(row.id);
    const found = users.get(row.id);
    if (found) {
      refreshUser(found.account, row);
      found.readRound = round;
      active.add(found);
      return found;
    }
    const entry: UserEntry = {
      account: userAccount(row),
      tokens: new Set(),
      touched: true,
      usedRound: round,
      readRound: round,
    };
    users.set(row.id, entry);
    active.add(entry);
    if (users.size > maxUsers) evictUsers();
    return entry;
  }

  function dropUser(id: number): void {
    const entry = users.get(id);
    if (!entry) return;
    entry.account.deleted = true;
    removeUser(entry);
  }

  function removeUser(entry: UserEntry): void {
    uncertain.delete(entry.account.id);
    users.delete(entry.account.id);
    active.delete(entry);
    for (const token of entry.tokens) dropToken(token);
  }

  function putToken(row: TokenRow, owner: UserEntry): TokenEntry {
    const found = tokensById.get(row.id);
    if (found && found.hash === row.keyHash && found.owner === owner) {
      refreshToken(found.account, row);
      return found;
    }
    if (found) dropToken(found);
    const account = tokenAccount(row, owner.account);
    const entry: TokenEntry = { account, owner, hash: row.keyHash, touched: true };
    tokensByHash.set(entry.hash, entry);
    tokensById.set(account.id, entry);
    owner.tokens.add(entry);
    if (tokensByHash.size > maxTokens) evictTokens();
    return entry;
  }

  function dropToken(entry: TokenEntry): void {
    if (tokensByHash.get(entry.hash) === entry) tokensByHash.delete(entry.hash);
    if (tokensById.get(entry.account.id) === entry) tokensById.delete(entry.account.id);
    entry.owner.tokens.delete(entry);
  }

  /** Second chance from the oldest on; an account with open reservations stays, its sums are only here. */
  function evictTokens(): void {
    let looks = 2 * tokensByHash.size;
    for (const [hash, entry] of tokensByHash) {
      if (tokensByHash.size <= maxTokens || looks-- <= 0) return;
      if (!entry.touched && !isHeld(entry.account)) dropToken(entry);
      else {
        entry.touched = false;
        tokensByHash.delete(hash);
        tokensByHash.set(hash, entry);
      }
    }
  }

  function evictUsers(): void {
    let looks = 2 * users.size;
    for (const [id, entry] of users) {
      if (users.size <= maxUsers || looks-- <= 0) return;
      const isUsed = isHeld(entry.account) || [...entry.tokens].some((token) => isHeld(token.account));
      if (!entry.touched && !isUsed) removeUser(entry);
      else {
        entry.touched = false;
        users.delete(id);
        users.set(id, entry);
      }
    }
  }

  // --- lookups ------------------------------------------------------------------------------------------------------

  /** False on PostgreSQL for an account that was not re-read lately, unless the database is away anyway. */
  function isFresh(entry: UserEntry): boolean {
    entry.touched = true;
    if (!isShared) return true;
    entry.usedRound = round;
    if (round - entry.readRound > 2 && !refreshFailed) return false;
    active.add(entry);
    return true;
  }

  function loadUser(id: number): Promise<UserAccount | undefined> {
    let load = userLoads.get(id);
    if (!load) {
      load = readUser(id)
        .then((row) => {
          if (row && row.deletedAt === null) return putUser(row).account;
          dropUser(id);
          return undefined;
        })
        .finally(() => userLoads.delete(id));
      userLoads.set(id, load);
    }
    return load;
  }

  function user(id: number): UserAccount | undefined | Promise<UserAccount | undefined> {
    const entry = users.get(id);
    return entry && isFresh(entry) ? entry.account : loadUser(id);
  }

  function loadToken(hash: string): Promise<TokenAccount | undefined> {
    let load = tokenLoads.get(hash);
    if (!load) {
      load = findToken(hash).finally(() => tokenLoads.delete(hash));
      tokenLoads.set(hash, load);
    }
    return load;
  }

  async function findToken(hash: string): Promise<TokenAccount | undefined> {
    const row = await readToken(hash);
    if (row && row.deletedAt === null) {
      await user(row.userId);
      const owner = users.get(row.userId);
      if (owner) return putToken(row, owner).account;
    }
    const known = tokensByHash.get(hash);
    if (known) dropToken(known);
    if (misses.size >= maxMisses) misses.clear();
    misses.set(hash, clock.monotonicMs() + MISS_LIFE_MS);
    return undefined;
  }

  function tokenByKey(key: string): TokenAccount | undefined | Promise<TokenAccount | undefined> {
    if (key === "" || key.length > MAX_KEY_LENGTH) return undefined;
    const hash = sha256Hex(key);
    const entry = tokensByHash.get(hash);
    if (entry) {
      entry.touched = true;
      return isFresh(entry.owner) ? entry.account : loadToken(hash);
    }
    const until = misses.get(hash);
    if (until !== undefined) {
      if (clock.monotonicMs() < until) return undefined;
      misses.delete(hash);
    }
    return loadToken(hash);
  }

  // --- changes ------------------------------------------------------------------------------------------------------

  /** A load that began before the change may be under way: it is awaited, then the row is read once more. */
  async function reloadUser(id: number): Promise<void> {
    flights.wroteUser(id);
    await userLoads.get(id)?.catch(() => undefined);
    if (users.has(id)) await loadUser(id);
  }

  async function reloadToken(id: number): Promise<void> {
    flights.wroteToken(id);
    misses.clear();
    const entry = tokensById.get(id);
    if (!entry) return;
    await tokenLoads.get(entry.hash)?.catch(() => undefined);
    await loadToken(entry.hash);
  }

  async function refresh(): Promise<void> {
    round++;
    for (const entry of active) if (round - entry.usedRound > ACTIVE_ROUNDS) active.delete(entry);
    const entries = [...active];
    for (let from = 0; from < entries.length; from += REFRESH_CHUNK) {
      await refreshChunk(entries.slice(from, from + REFRESH_CHUNK));
    }
  }

  async function refreshChunk(entries: UserEntry[]): Promise<void> {
    const readIn = round;
    await flights.during(async (flight) => {
      const { users: userTable, tokens: tokenTable } = db.t;
      const ids = entries.map((entry) => entry.account.id);
      const cached = entries.flatMap((entry) => [...entry.tokens]);
      const tokenIds = cached.map((token) => token.account.id);
      const readUsers = db.orm
        .select()
        .from(userTable)
        .where(sql`${userTable.id} in ${idList(ids)}`);
      const readTokens = db.orm
        .select()
        .from(tokenTable)
        .where(sql`${tokenTable.id} in ${idList(tokenIds)}`);
      const [userRows, tokenRows] = await once(Promise.all([readUsers, readTokens]));
      const usersById = new Map(userRows.map((row) => [row.id, row]));
      const tokenRowsById = new Map(tokenRows.map((row) => [row.id, row]));
      for (const entry of entries) {
        const { id } = entry.account;
        if (users.get(id) !== entry) continue;
        const row = usersById.get(id);
        entry.readRound = readIn;
        // A row that is being written is skipped: its writer brings the new figures itself.
        if (flight.users.has(id) || flights.isUserBusy(id)) continue;
        if (row && row.deletedAt === null) {
          refreshUser(entry.account, row);
          uncertain.delete(id);
        } else dropUser(id);
      }
      for (const token of cached) {
        const { id } = token.account;
        if (tokensById.get(id) !== token || flight.tokens.has(id) || flights.isTokenBusy(id)) continue;
        const row = tokenRowsById.get(id);
        if (row && row.deletedAt === null && row.keyHash === token.hash) refreshToken(token.account, row);
        else dropToken(token);
      }
    });
  }

  /** One text parameter, so that the statement stays the same whatever the number of ids. */
  function idList(ids: readonly number[]) {
    return isShared
      ? sql`(select value::bigint from json_array_elements_text(${JSON.stringify(ids)}::json))`
      : sql`(select value from json_each(${JSON.stringify(ids)}))`;
  }

  // --- other nodes --------------------------------------------------------------------------------------------------

  const reading = (reload: (id: number) => Promise<void>) => (ids: readonly string[]) => {
    for (const id of ids)
      reload(Number(id)).catch((error: unknown) => {
        logger.warn("account could not be re-read", { id, error: String(error) });
      });
  };
  /** Whatever is kept here is re-read: active accounts now, the others on their next use. */
  const lost = (): void => {
    misses.clear();
    for (const id of users.keys()) flights.wroteUser(id);
    for (const id of tokensById.keys()) flights.wroteToken(id);
    for (const entry of users.values()) entry.readRound = Number.NEGATIVE_INFINITY;
    void refreshQuietly();
  };
  await db.onChange("users", { changed: reading(reloadUser), lost });
  await db.onChange("tokens", { changed: reading(reloadToken), lost });

  let isRefreshing = false;
  async function refreshQuietly(): Promise<void> {
    if (isRefreshing) return;
    isRefreshing = true;
    try {
      await refresh();
      refreshFailed = false;
    } catch (error) {
      if (!refreshFailed) logger.warn("accounts could not be re-read", { error: String(error) });
      refreshFailed = true;
    } finally {
      isRefreshing = false;
    }
  }
  const timer = isShared && refreshMs > 0 ? setInterval(() => void refreshQuietly(), refreshMs) : undefined;
  timer?.unref();

  return {
    tokenByKey,
    user,
    async userByAccessToken(accessToken) {
      if (accessToken === "" || accessToken.length > MAX_KEY_LENGTH) return undefined;
      const table = db.t.users;
      const rows = await db.orm
        .select({ id: table.id })
        .from(table)
        .where(and(eq(table.accessTokenHash, sha256Hex(accessToken)), isNull(table.deletedAt)));
      return rows[0] ? user(rows[0].id) : undefined;
    },
    async userChanged(id) {
      await reloadUser(id);
      await db.announce("users", [id]);
    },
    async tokenChanged(id) {
      await reloadToken(id);
      await db.announce("tokens", [id]);
    },
    keepUser(account) {
      const entry = users.get(account.id);
      if (entry) return entry.account;
      if (account.deleted) return account;
      const put: UserEntry = { account, tokens: new Set(), touched: true, usedRound: round, readRound: 0 };
      users.set(account.id, put);
      active.add(put);
      return account;
    },
    keepToken: (account) => tokensById.get(account.id)?.account ?? account,
    cachedUser: (id) => users.get(id)?.account,
    cachedToken: (id) => tokensById.get(id)?.account,
    beginWrite(userIds, tokenIds) {
      const ids = [...userIds];
      for (const id of ids) if (flights.isUserBusy(id) && users.has(id)) uncertain.add(id);
      return flights.beginWrite(ids, [...tokenIds]);
    },
    isCertain: (id) => !uncertain.has(id),
    refresh: refreshQuietly,
    close() {
      clearInterval(timer);
    },
  };
}

/** Sums that stand in this process only. */
function isHeld(account: UserAccount | TokenAccount): boolean {
  return account.reserved + account.pending + account.returning !== 0;
}
