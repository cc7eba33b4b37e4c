// In-memory accounts: users and API keys as the hot path reads them, filled on first use, bounded, kept true by every
// write here and on other nodes. Refuses to let an older read overwrite a balance that was written meanwhile.
import { addUser, createAccountCache, forgetTold, isUnread, markChanged, use } from "./account-cache.ts";
import type { AccountCache, AccountLimits, Reading } from "./account-cache.ts";
import { createAccountLookups, MAX_KEY_LENGTH, outdateUsers } from "./account-lookups.ts";
import type { Change } from "./account-lookups.ts";
import { createAccountQueries } from "./account-queries.ts";
import { createReadsInFlight } from "./account-reads.ts";
import type { ReadsInFlight } from "./account-reads.ts";
import { lookAround } from "../../db/look-around.ts";
import type { Look, LookAround } from "../../db/look-around.ts";
import { createRowChanges } from "../../db/row-changes.ts";
import { createAccountRefresh } from "./account-refresh.ts";
import type { Deps, LedgerAccounts } from "../deps.ts";
import { sha256Hex } from "../kit/seal.ts";

const LIMITS: AccountLimits = { maxTokens: 200_000, maxUsers: 200_000, maxMisses: 10_000 };
const REFRESH_MS = 500;
/** A process that rests has no account in use, so that nothing is asked. */
const REST_MS = 2500;
/** So long a call with an account that is not in memory waits for a database that is away. */
const AWAY_WAIT_MS = 10_000;

export interface AccountsDeps extends Pick<Deps, "db" | "clock" | "logger"> {
  /** Not read here: keys are found by their hash. Taken so that all services are built from the same bundle. */
  seal?: Deps["seal"];
  limits?: Partial<AccountLimits>;
  /** How often PostgreSQL is asked for what was written, in milliseconds; 0 = only when `refresh` is called. */
  refreshMs?: number;
  /** Longest wait for a database that is away, in milliseconds. */
  databaseWaitMs?: number;
  /** Whose timer brings the rounds; the process's own when absent. */
  around?: LookAround;
}

export async function createAccounts({
  db,
  clock,
  logger,
  limits,
  refreshMs = REFRESH_MS,
  databaseWaitMs = AWAY_WAIT_MS,
  around = lookAround,
}: AccountsDeps): Promise<LedgerAccounts> {
  const isShared = db.kind === "postgres";
  const cache = createAccountCache({ ...LIMITS, ...limits }, () => clock.monotonicMs());
  const { users, tokensById, uncertain } = cache;
  const reads = createReadsInFlight();
  const queries = createAccountQueries(db, reads, databaseWaitMs);
  /** Nobody else is known of until the ledger has counted. */
  let lastHeard: Parameters<LedgerAccounts["hearBy"]>[0] = () => ({ silentMs: 0, aloneMs: Infinity });
  let renewPlans: Parameters<LedgerAccounts["onPlanDue"]>[0] = () => Promise.resolve();
  const lookups = createAccountLookups({
    cache,
    reads,
    queries,
    clock,
    isShared,
    renewPlans: (id) => renewPlans(id),
    renewWaitMs: databaseWaitMs,
    logger,
  });
  const changes = isShared
    ? createRowChanges(db.orm, ["users", "tokens"], () => clock.monotonicMs())
    : undefined;
  const refresh = createAccountRefresh({
    cache,
    reads,
    queries,
    changes,
    lastHeard: () => lastHeard(),
    logger,
  });

  const lost = (): void => {
    loseTrack(cache, reads);
    void refresh();
  };
  await hearChanges(db, { cache, lookups, logger, lost });

  const stop = isShared && refreshMs > 0 ? startRounds({ around, cache, refresh }, refreshMs) : undefined;

  const { user, tokenByKey } = inUse(db, lookups);

  /** Marks all of them before the first row is asked for: the database may be away by now. */
  function reloadUsers(ids: readonly number[], change: Change): Promise<void> {
    outdateUsers({ cache, reads }, ids, change);
    return reloadEach(ids, (id) => lookups.reloadUser(id, change));
  }

  return {
    tokenByKey,
    user,
    async userByAccessToken(accessToken) {
      if (accessToken === "" || accessToken.length > MAX_KEY_LENGTH) return undefined;
      const id = await queries.userIdByAccessToken(sha256Hex(accessToken));
      return id === undefined ? undefined : user(id);
    },
    // Other nodes need not wait until this one has read it again.
    async userChanged(id) {
      await Promise.all([db.announce("users", [id]), lookups.reloadUser(id)]);
    },
    async usersChanged(ids) {
      const read = reloadUsers(ids, "told");
      await Promise.all([db.announce("users", ids), read]);
    },
    async tokenChanged(id) {
      await Promise.all([db.announce("tokens", [id]), lookups.reloadToken(id)]);
    },
    usersCharged: (ids) => reloadUsers(ids, "charged"),
    tokenCharged: (id) => lookups.reloadToken(id, "charged"),
    hearBy(hear) {
      lastHeard = hear;
    },
    keepUser(account) {
      const entry = users.get(account.id);
      if (entry) return entry.account;
      if (!account.deleted) addUser(cache, account);
      return account;
    },
    keepToken: (account) => tokensById.get(account.id)?.account ?? account,
    cachedUser: (id) => users.get(id)?.account,
    cachedToken: (id) => tokensById.get(id)?.account,
    beginWrite(userIds, tokenIds) {
      const ids = [...userIds];
      for (const id of ids) {
        const entry = users.get(id);
        if (!entry) continue;
        // The tables tell of this write, too: it is no other node's.
        if (isShared) use(cache, entry);
        if (!reads.isUserBusy(id)) continue;
        uncertain.add(id);
        // Also where neither write is committed, so that nobody tells of it.
        cache.pending.users.add(entry);
      }
      return reads.beginWrite(ids, [...tokenIds]);
    },
    onPlanDue(renew) {
      renewPlans = renew;
    },
    isCertain: (id) => !uncertain.has(id),
    refresh,
    close() {
      stop?.();
    },
  };
}

/**
 * Only changes are announced, so somebody was changed, and nobody heard who: whatever is kept here decides nothing until it was read
 * again, active accounts first in the next round, the others behind them.
 */
function loseTrack(cache: AccountCache, reads: ReadsInFlight): void {
  cache.misses.clear();
  reads.wroteSome();
  for (const entry of cache.users.values()) markChanged(cache, entry);
  for (const entry of cache.tokensById.values()) markChanged(cache, entry);
  cache.isLost = true;
}

/** So many accounts are read again at the same time. */
const RELOAD_CHUNK = 100;

/** Each of them, whatever becomes of the others; rejects with the first failure, once all have been tried. */
async function reloadEach(ids: readonly number[], reload: (id: number) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  for (let from = 0; from < ids.length; from += RELOAD_CHUNK) {
    const done = await Promise.allSettled(ids.slice(from, from + RELOAD_CHUNK).map(reload));
    for (const each of done) if (each.status === "rejected") failures.push(each.reason);
  }
  if (failures.length > 0) throw failures[0];
}

/** It was changed, and could not be read: a round does, and until then memory does not decide. */
function keepUnread<T extends Reading>(cache: AccountCache, entry: T | undefined, pending: Set<T>): void {
  if (!entry) return;
  markChanged(cache, entry);
  pending.add(entry);
}

async function hearChanges(
  db: Pick<Deps["db"], "onChange">,
  {
    cache,
    lookups,
    logger,
    lost,
  }: {
    cache: AccountCache;
    lookups: Pick<ReturnType<typeof createAccountLookups>, "reloadUser" | "reloadToken">;
    logger: Deps["logger"];
    lost: () => void;
  },
): Promise<void> {
  const { users, tokensById, pending } = cache;
  const unreadUser = (id: number): void => keepUnread(cache, users.get(id), pending.users);
  const unreadToken = (id: number): void => keepUnread(cache, tokensById.get(id), pending.tokens);
  await db.onChange("users", {
    changed: rereading(logger, (id) => lookups.reloadUser(id), unreadUser),
    lost,
  });
  await db.onChange("tokens", {
    changed: rereading(logger, (id) => lookups.reloadToken(id), unreadToken),
    lost,
  });
}

/**
 * What another node changed is read again. Who could not be read is known, and is left to the rounds: to say that announcements
 * are missing would take all the others out of memory's hands, too.
 */
function rereading(
  logger: Deps["logger"],
  reload: (id: number) => Promise<void>,
  leave: (id: number) => void,
): (ids: readonly string[]) => Promise<void> {
  return async (list) => {
    const ids = list.map(Number);
    const done = await Promise.allSettled(ids.map(reload));
    const failed = done.find((each) => each.status === "rejected");
    if (!failed) return;
    done.forEach(({ status }, at) => {
      if (status === "rejected") leave(ids[at] ?? 0);
    });
    logger.warn("accounts could not be re-read", { ids, error: String(failed.reason) });
  };
}

/** Look-ups as those ask whom the process is for: a call that ends its rest waits until all that is kept is as new. */
function inUse(
  db: Pick<Deps["db"], "use">,
  lookups: ReturnType<typeof createAccountLookups>,
): Pick<LedgerAccounts, "user" | "tokenByKey"> {
  return {
    user(id) {
      const caughtUp = db.use();
      const found = lookups.user(id, "is refused");
      return caughtUp ? both(found, caughtUp) : found;
    },
    tokenByKey(key) {
      const caughtUp = db.use();
      const found = lookups.tokenByKey(key);
      const answer = caughtUp ? both(found, caughtUp) : found;
      // Who only looks whether the account is there at once drops the promise (relay/realtime): its refusal is nobody's then.
      if (answer instanceof Promise) answer.catch(() => undefined);
      return answer;
    },
  };
}

/** Rounds as long as accounts are in use; the first of those that come after a rest waits for its row. Returns what ends them. */
function startRounds(
  { around, cache, refresh }: { around: LookAround; cache: AccountCache; refresh: () => Promise<void> },
  refreshMs: number,
): () => void {
  const come = ({ isWaking }: Look): void => {
    if (isWaking) forgetTold(cache);
    void refresh();
  };
  // While memory decides nobody rests: rows are to decide again as soon as the database is back.
  const isAtWork = (): boolean => cache.active.size > 0 || isUnread(cache);
  const ends = [around.lookEvery(refreshMs, come, REST_MS), around.restUnless(isAtWork)];
  return () => ends.forEach((end) => end());
}

/** The account, once what else its call goes by is as new: channels, options, sessions. */
async function both<T>(found: T | Promise<T>, caughtUp: Promise<void>): Promise<T> {
  const [account] = await Promise.all([found, caughtUp]);
  return account;
}
