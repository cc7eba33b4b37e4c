// The maps in which accounts are found: users by id, keys by hash and id, bounded by second chance from the oldest on.
// Refuses to drop an account with open reservations: those sums stand in this process only.
import { refreshToken, refreshUser, tokenAccount, userAccount } from "./account-rows.ts";
import type { TokenRow, UserRow } from "./account-rows.ts";
import type { TokenAccount, UserAccount } from "../deps.ts";

export interface AccountLimits {
  maxTokens: number;
  maxUsers: number;
  maxMisses: number;
}

/** How far what is kept of a row can be relied on. */
export interface Reading {
  /** `NEVER`: written elsewhere since, to be read on its next use. */
  readRound: number;
  /**
   * Steady clock: it was as the table had it then. Later moments are told by `answeredMs`, while `readRound` counts. `NEVER`: known
   * to be written elsewhere, or never read.
   */
  currentMs: number;
  /** Somebody told that its row was changed, other than by a charge, and it has not been read since: memory must not decide. */
  isChanged: boolean;
}

/** When a row was asked for: the round, and the moment by the steady clock. */
export interface Asked {
  round: number;
  ms: number;
}

export const askedNow = (cache: AccountCache): Asked => ({ round: cache.round, ms: cache.monotonicMs() });

export interface UserEntry extends Reading {
  account: UserAccount;
  tokens: Set<TokenEntry>;
  /** Used since the last look for something to drop. */
  touched: boolean;
  usedRound: number;
}

export const NEVER = Number.NEGATIVE_INFINITY;

export interface TokenEntry extends Reading {
  account: TokenAccount;
  owner: UserEntry;
  hash: string;
  /** Of a rotated key: the hash before, found here too until `previousUntil` (Unix seconds); empty: none. */
  previousHash: string;
  previousUntil: number;
  touched: boolean;
}

export interface AccountCache {
  readonly limits: AccountLimits;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicMs: () => number;
  readonly users: Map<number, UserEntry>;
  readonly tokensByHash: Map<string, TokenEntry>;
  readonly tokensById: Map<number, TokenEntry>;
  /** Users that were used lately: on PostgreSQL, what is written of them elsewhere is read in the next round. */
  readonly active: Set<UserEntry>;
  /** Of active users, what was written and has not been read since. */
  readonly pending: { readonly users: Set<UserEntry>; readonly tokens: Set<TokenEntry> };
  /** Users whose overlapping writes leave their figures in doubt, until the next clean read. */
  readonly uncertain: Set<number>;
  /** Unknown key hashes and when (steady clock) they may be looked up again. */
  readonly misses: Map<string, number>;
  /** Counts the rounds in which PostgreSQL is asked for what was written. */
  round: number;
  /** The last one in which it was known: whatever stands here and was not told of is as it is in the table. */
  toldRound: number;
  /** When the last answered round asked, by the steady clock. */
  answeredMs: number;
  /** Announcements or a round's answers are missing: the next round reads all active accounts. */
  isLost: boolean;
  /** The last round failed. */
  isStale: boolean;
  /** While `isStale`: the last answer of the database before the first round that failed, by the steady clock. */
  awayFromMs: number;
  /** While `isStale`: since then no other process has spent from the same rows, as last heard, by the steady clock; now where one does. */
  aloneFromMs: number;
  /** Of those who wait for a row of what stands here: told when a round fails. */
  readonly waiting: Set<() => void>;
}

export function createAccountCache(limits: AccountLimits, monotonicMs: () => number): AccountCache {
  return {
    limits,
    monotonicMs,
    users: new Map(),
    tokensByHash: new Map(),
    tokensById: new Map(),
    active: new Set(),
    pending: { users: new Set(), tokens: new Set() },
    uncertain: new Set(),
    misses: new Map(),
    round: 0,
    toldRound: NEVER,
    answeredMs: NEVER,
    isLost: false,
    isStale: false,
    awayFromMs: NEVER,
    aloneFromMs: NEVER,
    waiting: new Set(),
  };
}

/** A round takes half a second; together with the reading what was written elsewhere is in force within a second. */
const MAX_UNTOLD_ROUNDS = 2;

/** What was read is as the table has it: since then it was known what is written, or that was just now. */
export function isCurrent(cache: AccountCache, reading: Reading): boolean {
  const { round, toldRound } = cache;
  const { readRound } = reading;
  const isTold = readRound !== NEVER && round - toldRound <= MAX_UNTOLD_ROUNDS;
  return isTold || round - readRound <= MAX_UNTOLD_ROUNDS || isMemoryEnough(cache, reading);
}

/** Older figures may have been spent on other nodes long before the database went away. */
const MAX_AGE_IN_OUTAGE_MS = 60_000;

/**
 * The database is away, and what is kept stands in for the row: it has not been told as changed, and was current shortly before.
 * Where nobody else spends from it any age will do that nobody else has lived in: a node that is gone by now spent it all the same.
 * So the nodes spend a balance once each, at most (operations R2.8).
 */
function isMemoryEnough(cache: AccountCache, reading: Reading): boolean {
  const { isStale, aloneFromMs, awayFromMs } = cache;
  if (!isStale || reading.isChanged || reading.currentMs === NEVER) return false;
  const currentMs = lastCurrentMs(cache, reading);
  return currentMs >= aloneFromMs || awayFromMs - currentMs <= MAX_AGE_IN_OUTAGE_MS;
}

/** Whatever was read and not told of was confirmed by each round that was answered since. */
function lastCurrentMs({ answeredMs }: AccountCache, { readRound, currentMs }: Reading): number {
  return readRound === NEVER ? currentMs : Math.max(currentMs, answeredMs);
}

/** Something is to be read by a round, whether or not anybody calls; the process does not rest before. */
export function isUnread({ isStale, isLost, pending }: AccountCache): boolean {
  return isStale || isLost || pending.users.size + pending.tokens.size > 0;
}

/** Somebody changed it: memory never decides again before it was read. */
export function markChanged(cache: AccountCache, reading: Reading): void {
  doubt(cache, reading);
  reading.isChanged = true;
}

/** To be read before it decides again, unless the database is away. */
export function doubt(cache: AccountCache, reading: Reading): void {
  reading.currentMs = lastCurrentMs(cache, reading);
  reading.readRound = NEVER;
}

/** The same for what is known to have been written elsewhere while nobody used it here: its balance may be spent. */
export function disown(reading: Reading): void {
  reading.currentMs = NEVER;
  reading.readRound = NEVER;
}

/** The row was read as it stood then. */
export function wasRead(reading: Reading, { round, ms }: Asked): void {
  reading.readRound = round;
  reading.currentMs = ms;
  reading.isChanged = false;
}

/** What is written of it from here on is read in the next round, and not taken for a stranger's spending. */
export function use({ active, round }: AccountCache, entry: UserEntry): void {
  entry.usedRound = round;
  active.add(entry);
}

/** What was read or told until now is older than any round says: the process has rested since. */
export function forgetTold(cache: AccountCache): void {
  cache.round += MAX_UNTOLD_ROUNDS + 1;
}

/** The user's one object in the process, brought up to the row. */
export function putUser(cache: AccountCache, row: UserRow, asked: Asked): UserEntry {
  const { users } = cache;
  const found = users.get(row.id);
  if (found) {
    refreshUser(found.account, row);
    wasRead(found, asked);
    // Also where nobody called: the next round may tell of the very write that was read here.
    use(cache, found);
    return found;
  }
  const entry = addUser(cache, userAccount(row), asked);
  if (users.size > cache.limits.maxUsers) evictUsers(cache);
  return entry;
}

/** Also for a user that was evicted while somebody held it, who was read in no round that counts: without `asked`. */
export function addUser(cache: AccountCache, account: UserAccount, asked?: Asked): UserEntry {
  const { users, active, pending, round } = cache;
  const reading: Reading = {
    readRound: asked?.round ?? NEVER,
    currentMs: asked?.ms ?? NEVER,
    isChanged: false,
  };
  const entry: UserEntry = { account, tokens: new Set(), touched: true, usedRound: round, ...reading };
  users.set(account.id, entry);
  active.add(entry);
  if (!asked) pending.users.add(entry);
  return entry;
}

/** The account is gone from the database. */
export function dropUser(cache: AccountCache, id: number): void {
  const entry = cache.users.get(id);
  if (!entry) return;
  entry.account.deleted = true;
  removeUser(cache, entry);
}

function removeUser(cache: AccountCache, entry: UserEntry): void {
  cache.uncertain.delete(entry.account.id);
  cache.users.delete(entry.account.id);
  cache.active.delete(entry);
  cache.pending.users.delete(entry);
  for (const token of entry.tokens) dropToken(cache, token);
}

/** `asked`: where its answer may have been long on its way. */
export function putToken(
  cache: AccountCache,
  row: TokenRow,
  owner: UserEntry,
  asked: Asked = askedNow(cache),
): TokenEntry {
  const { tokensById, tokensByHash, limits } = cache;
  const found = tokensById.get(row.id);
  if (found && found.owner === owner) {
    refreshToken(found.account, row);
    wasRead(found, asked);
    nameToken(cache, found, row);
    return found;
  }
  if (found) dropToken(cache, found);
  const account = tokenAccount(row, owner.account);
  const entry: TokenEntry = {
    account,
    owner,
    hash: "",
    previousHash: "",
    previousUntil: 0,
    touched: true,
    readRound: asked.round,
    currentMs: asked.ms,
    isChanged: false,
  };
  tokensById.set(account.id, entry);
  owner.tokens.add(entry);
  nameToken(cache, entry, row);
  if (tokensByHash.size > limits.maxTokens) evictTokens(cache);
  return entry;
}

/** Under the hashes of its row: a rotated key is the same account, with what its open calls hold. */
function nameToken({ tokensByHash }: AccountCache, entry: TokenEntry, row: TokenRow): void {
  const previousHash = row.previousKeyHash ?? "";
  entry.previousUntil = row.previousUntil;
  if (entry.hash === row.keyHash && entry.previousHash === previousHash) return;
  for (const hash of [entry.hash, entry.previousHash])
    if (tokensByHash.get(hash) === entry) tokensByHash.delete(hash);
  entry.hash = row.keyHash;
  entry.previousHash = previousHash;
  tokensByHash.set(entry.hash, entry);
  if (previousHash !== "") tokensByHash.set(previousHash, entry);
}

export function dropToken({ tokensByHash, tokensById, pending }: AccountCache, entry: TokenEntry): void {
  pending.tokens.delete(entry);
  for (const hash of [entry.hash, entry.previousHash])
    if (tokensByHash.get(hash) === entry) tokensByHash.delete(hash);
  if (tokensById.get(entry.account.id) === entry) tokensById.delete(entry.account.id);
  entry.owner.tokens.delete(entry);
}

/** Remembers that no key has this hash. */
export function addMiss({ misses, limits }: AccountCache, hash: string, untilMs: number): void {
  if (misses.size >= limits.maxMisses) misses.clear();
  misses.set(hash, untilMs);
}

function evictTokens(cache: AccountCache): void {
  const { tokensByHash, limits } = cache;
  let looks = 2 * tokensByHash.size;
  for (const [hash, entry] of tokensByHash) {
    if (tokensByHash.size <= limits.maxTokens || looks-- <= 0) return;
    if (!entry.touched && !hasOpenSums(entry.account)) dropToken(cache, entry);
    else {
      entry.touched = false;
      tokensByHash.delete(hash);
      tokensByHash.set(hash, entry);
    }
  }
}

function evictUsers(cache: AccountCache): void {
  const { users, limits } = cache;
  let looks = 2 * users.size;
  for (const [id, entry] of users) {
    if (users.size <= limits.maxUsers || looks-- <= 0) return;
    const isUsed = isInCall(entry.account) || [...entry.tokens].some((token) => hasOpenSums(token.account));
    if (!entry.touched && !isUsed) removeUser(cache, entry);
    else {
      entry.touched = false;
      users.delete(id);
      users.set(id, entry);
    }
  }
}

/** Calls of it are under way, whether memory holds something for them or its balance, or their charges. */
export function isInCall(user: UserAccount): boolean {
  return user.openCalls > 0 || hasOpenSums(user);
}

function hasOpenSums(account: UserAccount | TokenAccount): boolean {
  return account.reserved + account.pending + account.returning !== 0;
}
