// Finds accounts: at once where memory has them, by a read that everybody shares who asks meanwhile where it does not.
import type { Clock, Deps, TokenAccount, UserAccount } from "../deps.ts";
import type { InSilence } from "../kit/database-failure.ts";
import { within } from "../kit/deadline.ts";
import { sha256Hex } from "../kit/seal.ts";
import {
  addMiss,
  askedNow,
  doubt,
  dropToken,
  dropUser,
  isCurrent,
  markChanged,
  putToken,
  putUser,
  use,
} from "./account-cache.ts";
import type { AccountCache, TokenEntry, UserEntry } from "./account-cache.ts";
import { MAX_READS } from "./account-queries.ts";
import type { AccountQueries } from "./account-queries.ts";
import type { ReadsInFlight } from "./account-reads.ts";
import type { TokenRow } from "./account-rows.ts";

const MISS_LIFE_MS = 1000;
export const MAX_KEY_LENGTH = 256;

export interface AccountLookupsDeps {
  cache: AccountCache;
  reads: ReadsInFlight;
  queries: AccountQueries;
  clock: Pick<Clock, "monotonicMs" | "nowMs">;
  /** Other nodes write the same rows. */
  isShared: boolean;
  /** Ends and begins periods of the user's plans; tells of the change as any writer does. */
  renewPlans: (userId: number) => Promise<void>;
  /** Longest wait for that, in milliseconds. */
  renewWaitMs: number;
  logger: Pick<Deps["logger"], "warn">;
}

export function createAccountLookups(deps: AccountLookupsDeps) {
  const { cache, reads, queries, clock, isShared } = deps;
  const { users, tokensByHash, tokensById, misses } = cache;
  const { loadUser, loadsOf } = createUserLoads(deps);
  const tokenLoads = new Map<string, Promise<TokenAccount | undefined>>();
  const { isPlanDue, renewed } = createRenewals(deps, loadUser);
  const { keptToken, rereadToken } = createTokenReads(deps, user);
  /**
   * False on PostgreSQL for an account that was written elsewhere since it was read, or of which that is not known, unless
   * the database is away anyway and memory may decide.
   */
  function isFresh(entry: UserEntry): boolean {
    entry.touched = true;
    // Whether or not its row can be read: where the database is away rounds fail for it, and then memory decides.
    if (isShared) use(cache, entry);
    return !isPlanDue(entry.account) && (!isShared || isCurrent(cache, entry));
  }

  const keptUser = (id: number): UserAccount | undefined => {
    const entry = users.get(id);
    return entry && isCurrent(cache, entry) ? entry.account : undefined;
  };

  const keptKey = (hash: string): TokenAccount | undefined => {
    const entry = tokensByHash.get(hash);
    return entry && isCurrent(cache, entry.owner) && isCurrent(cache, entry) ? entry.account : undefined;
  };

  /** Whoever is kept waits for the round that fails: memory decides then, and nobody need be refused. */
  function user(
    id: number,
    inSilence: InSilence = "waits",
  ): UserAccount | undefined | Promise<UserAccount | undefined> {
    const entry = users.get(id);
    if (entry && isFresh(entry)) return entry.account;
    if (entry && isPlanDue(entry.account)) return orKept(cache, renewed(id), () => keptUser(id));
    const load = loadUser(id, entry && !cache.isStale ? "waits" : inSilence).then((account) =>
      account && isPlanDue(account) ? renewed(id) : account,
    );
    return entry ? orKept(cache, load, () => keptUser(id)) : load;
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
    const entry = await keptToken(() => queries.token(hash));
    if (entry && !isOver(entry, hash)) return entry.account;
    const known = tokensByHash.get(hash);
    // The row may have another key by now: its account stays, this key does not.
    if (known && known !== entry) await rereadToken(known);
    addMiss(cache, hash, clock.monotonicMs() + MISS_LIFE_MS);
    return undefined;
  }

  /** The hash is that of the key before, whose time is over. */
  function isOver(entry: TokenEntry, hash: string): boolean {
    return entry.previousHash === hash && entry.previousUntil * 1000 <= clock.nowMs();
  }

  function tokenByKey(key: string): TokenAccount | undefined | Promise<TokenAccount | undefined> {
    if (key === "" || key.length > MAX_KEY_LENGTH) return undefined;
    const hash = sha256Hex(key);
    const entry = tokensByHash.get(hash);
    if (entry) {
      entry.touched = true;
      if (entry.previousHash !== "" && isOver(entry, hash)) return undefined;
      const isKnown = isFresh(entry.owner) && (!isShared || isCurrent(cache, entry));
      return isKnown ? entry.account : orKept(cache, loadToken(hash), () => keptKey(hash));
    }
    const until = misses.get(hash);
    if (until !== undefined) {
      if (clock.monotonicMs() < until) return undefined;
      misses.delete(hash);
    }
    return loadToken(hash);
  }

  /** After a change. A load that began before it may be under way: it is awaited, then the row is read once more. */
  async function reloadUser(id: number, change: Change = "told"): Promise<void> {
    reads.wroteUser(id);
    for (const load of loadsOf(id)) await outdate(cache, users.get(id), { load, change });
    if (users.has(id)) await loadUser(id);
  }

  async function reloadToken(id: number, change: Change = "told"): Promise<void> {
    reads.wroteToken(id);
    misses.clear();
    const entry = tokensById.get(id);
    if (!entry) return;
    for (const hash of [entry.hash, entry.previousHash])
      await outdate(cache, entry, { load: tokenLoads.get(hash), change });
    await rereadToken(entry);
  }

  return { user, tokenByKey, reloadUser, reloadToken };
}

/** Reads of keys with their owners. */
function createTokenReads(
  { cache, reads, queries }: Pick<AccountLookupsDeps, "cache" | "reads" | "queries">,
  user: (id: number) => unknown,
) {
  /**
   * The row's entry, with its owner's; undefined for what is deleted. Read again where it was written before its owner was there:
   * nobody else would do it for a key that memory does not have.
   */
  async function keptToken(read: () => Promise<TokenRow | undefined>): Promise<TokenEntry | undefined> {
    for (let tries = 1; ; tries++) {
      const asked = askedNow(cache);
      const found = await reads.track(async (overtaken) => {
        const row = await read();
        if (row?.deletedAt === null) await user(row.userId);
        // For a key that is not there yet, any change may be its creation.
        const isOld = row ? overtaken.token(row.id) : overtaken.anyToken();
        if (isOld && tries < MAX_READS) return "again";
        const owner = row?.deletedAt === null ? cache.users.get(row.userId) : undefined;
        const entry = row && owner && putToken(cache, row, owner, asked);
        if (entry && isOld) doubt(cache, entry);
        return entry;
      });
      if (found !== "again") return found;
    }
  }

  async function rereadToken(entry: TokenEntry): Promise<void> {
    if (!(await keptToken(() => queries.tokenById(entry.account.id)))) dropToken(cache, entry);
  }

  return { keptToken, rereadToken };
}

/** Reads of users, one for all who ask meanwhile and would wait alike: nobody is refused by another's, or kept by it. */
function createUserLoads({ cache, reads, queries }: Pick<AccountLookupsDeps, "cache" | "reads" | "queries">) {
  const newLoads = () => new Map<number, Promise<UserAccount | undefined>>();
  const userLoads = { waits: newLoads(), "is refused": newLoads() };

  function loadUser(id: number, inSilence: InSilence = "waits"): Promise<UserAccount | undefined> {
    const loads = userLoads[inSilence];
    let load = loads.get(id);
    if (!load) {
      load = findUser(id, inSilence).finally(() => loads.delete(id));
      loads.set(id, load);
    }
    return load;
  }

  async function findUser(id: number, inSilence: InSilence): Promise<UserAccount | undefined> {
    const asked = askedNow(cache);
    const row = await queries.user(id, inSilence);
    if (!row || row.deletedAt !== null) {
      dropUser(cache, id);
      return undefined;
    }
    if (!reads.isUserBusy(id)) cache.uncertain.delete(id);
    return putUser(cache, row, asked).account;
  }

  /** Those that are under way: nothing where there is none. */
  const loadsOf = (id: number) => Object.values(userLoads).map((loads) => loads.get(id));
  return { loadUser, loadsOf };
}

/**
 * What the load brings; or what is kept, as soon as a round has failed while it waits: the database counts as away then, and
 * memory decides for whoever comes next as well.
 */
function orKept<T>({ waiting }: AccountCache, load: Promise<T>, kept: () => T): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const tell = (): void => {
    const found = kept();
    if (found !== undefined) resolve(found);
  };
  waiting.add(tell);
  void load.then(resolve, reject).finally(() => waiting.delete(tell));
  return promise;
}

/** What an account is read again for: a charge or credit of this process, or what else its writer told of, which may be that it is disabled. */
export type Change = "charged" | "told";

/**
 * What is known of it decides nothing from here on: who asks waits for the row, however busy the database is. Nor does what
 * a load brings that began before. Where its writer told of the change not even a database that is away lets memory decide.
 */
async function outdate(
  cache: AccountCache,
  entry: UserEntry | TokenEntry | undefined,
  { load, change }: { load: Promise<unknown> | undefined; change: Change },
): Promise<void> {
  const mark = (): void => {
    if (entry) markOutdated(cache, entry, change);
  };
  mark();
  if (!load) return;
  await load.catch(() => undefined);
  mark();
}

function markOutdated(cache: AccountCache, entry: UserEntry | TokenEntry, change: Change): void {
  if (change === "told") markChanged(cache, entry);
  else doubt(cache, entry);
}

/** Of many at once, before the first of them is read again by `reloadUser`: as `outdate` does. */
export function outdateUsers(
  { cache, reads }: Pick<AccountLookupsDeps, "cache" | "reads">,
  ids: readonly number[],
  change: Change,
): void {
  for (const id of ids) {
    reads.wroteUser(id);
    const entry = cache.users.get(id);
    if (entry) markOutdated(cache, entry, change);
  }
}

/**
 * Accounts whose plans have a moment behind them are brought up to now before anybody gets them. Where somebody holds the account's
 * row for longer than is waited, calls go on with the account as it is, until the renewal that waits for it has come to its end.
 */
function createRenewals(
  {
    cache,
    clock,
    renewPlans,
    renewWaitMs,
    logger,
  }: Pick<AccountLookupsDeps, "cache" | "clock" | "renewPlans" | "renewWaitMs" | "logger">,
  loadUser: (id: number) => Promise<UserAccount | undefined>,
) {
  const renewals = new Map<number, Promise<UserAccount | undefined>>();
  /** Whose renewal nobody waits for any more: another one would only wait for the same row, with a connection more. */
  const late = new Set<number>();

  async function renew(id: number): Promise<UserAccount | undefined> {
    let isOver = false;
    const renewing = renewPlans(id).finally(() => {
      isOver = true;
      late.delete(id);
    });
    try {
      await within(renewWaitMs, renewing);
    } catch (error) {
      if (!isOver) late.add(id);
      logger.warn("plans could not be renewed", { user: id, error: String(error) });
    }
    return loadUser(id);
  }

  return {
    /** Who has no plan never gets past the first question. While the database is away memory decides. */
    isPlanDue: ({ id, planUntil }: UserAccount): boolean =>
      planUntil !== 0 && planUntil * 1000 <= clock.nowMs() && !cache.isStale && !late.has(id),
    /** Once for all who ask meanwhile. The account as it is then, also where its plans could not be renewed. */
    renewed: (id: number): Promise<UserAccount | undefined> => {
      let renewal = renewals.get(id);
      if (!renewal) {
        renewal = renew(id).finally(() => renewals.delete(id));
        renewals.set(id, renewal);
      }
      return renewal;
    },
  };
}
