// The ledger: the only writer of balances. Reserves, settles exactly once, credits, and writes log rows.
// Refuses a call that balance or key cannot pay; never refuses to record what was delivered.
import { and, eq, sql } from "drizzle-orm";
import { q, sumOf } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { TokenStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import { IndexedSet } from "../../shared/indexed-set.ts";
import { isQuota, MAX_QUOTA, shortQuotaText } from "../../shared/money.ts";
import type {
  LedgerAccounts,
  Credit,
  Deps,
  Ledger,
  LogEntry,
  ReserveRequest,
  TokenAccount,
  BalanceWatch,
} from "../deps.ts";
import { KEEP_MINUTES, openJournal } from "./journal.ts";
import type { Journal } from "./journal.ts";
import { createGroupCommit } from "./group-commit.ts";
import { createLedgerHealth } from "./ledger-health.ts";
import { Hold } from "./reservation.ts";
import type { HoldKeeper } from "./reservation.ts";
import { endPending } from "./items.ts";
import type { LedgerItem } from "./items.ts";
import { createOutageWatch, OUTAGE_MS } from "./outage.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { createSharedReservations } from "./shared-reservations.ts";
import type { Shortage } from "./shared-reservations.ts";
import { createSqliteStore } from "./sqlite-store.ts";
import { entryRow } from "../logs/rows.ts";
import { takeLease } from "./node-lease.ts";
import { quotaDisplay } from "../options/store.ts";

/** A reservation that nobody closed is given back after this time; a later settlement still charges in full. */
const HOLD_LIFE_MS = 2 * 60 * 60 * 1000;
const MAINTENANCE_MS = 30_000;
const DATABASE_WAIT_MS = 10_000;
/** Holds of calls end within seconds. */
const HELD_RETRY_SECONDS = 2;

/** The ledger with what the process itself needs of it. */
export interface LedgerService extends Ledger {
  /** Call when a key is met whose time is over: its status becomes expired, durably and at once in memory. */
  tokenExpired(token: TokenAccount): Promise<void>;
  /** Returns abandoned reservations, renews leases. Runs by timer; tests call it. */
  maintain(): Promise<void>;
  /** Settlements that are durable in the journal but not yet in the tables. */
  backlog(): number;
}

export interface LedgerDeps extends Pick<Deps, "db" | "clock" | "logger" | "options" | "dataDir" | "nodeId"> {
  accounts: LedgerAccounts;
  /** The one of the data directory when absent. */
  journal?: Journal<LedgerItem>;
  /** How long applied journal files stay; 15 minutes when absent. */
  journalKeepMinutes?: number;
  /** PostgreSQL only; 10 seconds when absent. */
  databaseWaitMs?: number;
  /** The system's clock that nobody sets, when absent. */
  monotonicMs?: () => number;
  /** Told of every balance that changed, after the commit. */
  balances?: BalanceWatch;
}

/** Resolves after what an earlier run left in the journal has been applied. */
export async function createLedger(deps: LedgerDeps): Promise<LedgerService> {
  const { db, clock, logger, options, accounts, dataDir } = deps;
  const { t } = db;
  const databaseWaitMs = deps.databaseWaitMs ?? DATABASE_WAIT_MS;
  const keepMs = (deps.journalKeepMinutes ?? KEEP_MINUTES) * 60_000;
  const journal = deps.journal ?? openJournal<LedgerItem>(dataDir, logger, { keepMs });
  const lease = await takeLease(deps);
  const outage = db.client
    ? undefined
    : createOutageWatch({ ...deps, monotonicMs: deps.monotonicMs ?? (() => performance.now()) });
  const store = db.client
    ? createSqliteStore(db.client, { ...deps, lease, journal })
    : createPostgresStore({ ...deps, lease, journal, databaseWaitMs, answered: () => outage?.answered() });
  const shared =
    outage && createSharedReservations({ ...deps, databaseWaitMs, outage, drain, available, refusal });
  await store.start();
  const gate = createLedgerHealth({ db, clock, logger, dataDir, lease, journal });
  await outage?.start();
  await shared?.releaseOwn();

  const queue = createGroupCommit<LedgerItem>({
    write: (items) => {
      gate.assertHeld();
      journal.append(items);
      store.wake();
    },
    writeLater: async (items) => {
      if (lease.isStale()) await lease.confirm();
      gate.assertHeld();
      await journal.appendLater(items);
      store.wake();
    },
    lost(items, error) {
      gate.failed();
      logger.error("settlements could not be written", { rows: items.length, error: String(error) });
      // Their callers are told of the failure: they are not charged.
      for (const item of items) endPending(accounts, item);
      return cannotRecord();
    },
    // What must be confirmed first is written off the event loop, a lone call's too.
    running: () => keeper.open.size || (lease.isStale() ? 1 : 0),
  });

  const keeper: HoldKeeper = {
    open: new IndexedSet(),
    add: (item) => queue.add(item),
    lengthen(hold, more) {
      const free = available(hold);
      if (shared?.isNearZero(free, more)) return shared.lengthen(hold, more, keeper);
      const added = Math.max(0, Math.min(more, free));
      hold.extend(added);
      return added;
    },
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
    consumeLogged: () => options.get("LogConsumeEnabled"),
  };

  function cannotRecord(): Failure {
    return new Failure("internal", "ledger_down", { status: 503 });
  }

  function quotaText(quota: number): string {
    return shortQuotaText(quota, quotaDisplay(options));
  }

  function userShort(available: number, amount: number): Failure {
    const wireCode = "insufficient_user_quota";
    if (available <= 0) return new Failure("quota", "user_quota_empty", { wireCode });
    const params = { A: quotaText(available), B: quotaText(amount) };
    return new Failure("quota", "user_quota_short", { wireCode, params });
  }

  function tokenShort(available: number, amount: number): Failure {
    const params = { A: quotaText(available), B: quotaText(amount) };
    return new Failure("quota", "token_quota_short", { wireCode: "pre_consume_token_quota_failed", params });
  }

  /** Where open holds alone are in the way, coming again helps. */
  function refusal(shortage: Shortage, least: number): Failure {
    const isShort = (free: number) => free <= 0 || free < least;
    const { userFree, userWithoutHolds, tokenFree, tokenWithoutHolds } = shortage;
    if (isShort(userFree) && isShort(userWithoutHolds)) return userShort(userFree, least);
    if (isShort(tokenFree) && isShort(tokenWithoutHolds)) return tokenShort(tokenFree, least);
    return new Failure("limit", "quota_held", { retryAfterSeconds: HELD_RETRY_SECONDS });
  }

  /** In an outage other nodes spend unseen: each may spend its share of what was last known. */
  function shareOf(quota: number): number {
    if (!outage || quota <= 0 || outage.silentMs() < OUTAGE_MS) return quota;
    return Math.floor(quota / outage.nodesAlive());
  }

  function available({ user, token }: Pick<ReserveRequest, "user" | "token">): number {
    const ofUser = shareOf(user.quota) - user.reserved + user.returning;
    if (!token || token.unlimitedQuota) return ofUser;
    return Math.min(ofUser, shareOf(token.remainQuota) - token.reserved + token.returning);
  }

  function reserve(request: ReserveRequest): Hold | Promise<Hold> {
    const { requestId, amount } = request;
    const least = request.least ?? amount;
    if (!gate.isOpen()) throw cannotRecord();
    if (!isQuota(amount) || amount < 0 || !(least >= 0 && least <= amount))
      throw refuse("quota_out_of_range");
    const user = accounts.keepUser(request.user);
    const token = request.token && accounts.keepToken(request.token);
    const free = available({ user, token });
    if (shared?.isNearZero(free, amount))
      return shared.hold({ requestId, user, token, amount, least }, keeper);
    if (free <= 0 || free < least) {
      const limited = token && !token.unlimitedQuota ? token : undefined;
      throw refusal(
        {
          userFree: user.quota - user.reserved,
          userWithoutHolds: user.quota - user.pending,
          tokenFree: limited ? limited.remainQuota - limited.reserved : MAX_QUOTA,
          tokenWithoutHolds: limited ? limited.remainQuota - limited.pending : MAX_QUOTA,
        },
        least,
      );
    }
    return new Hold(keeper, requestId, Math.min(amount, free), user, token, undefined);
  }

  function* creditSteps(tx: Orm, entry: Credit, changed: Set<number>): Steps<void> {
    if (!isQuota(entry.amount)) throw refuse("quota_out_of_range");
    yield* q(
      tx
        .insert(t.credits)
        .values({
          userId: entry.userId,
          amount: entry.amount,
          kind: entry.kind,
          ref: entry.ref ?? "",
          createdAt: Math.floor(clock.nowMs() / 1000),
        })
        .returning({ id: t.credits.id }),
    );
    const [user] = yield* q(
      tx
        .update(t.users)
        .set({ quota: sql`${t.users.quota} + ${entry.amount}` })
        .where(eq(t.users.id, entry.userId))
        .returning({ quota: t.users.quota }),
    );
    if (!user) throw refuse("user_missing");
    if (Math.abs(user.quota) > MAX_QUOTA) throw refuse("quota_out_of_range");
    changed.add(entry.userId);
  }

  async function maintain(): Promise<void> {
    const since = clock.monotonicMs() - HOLD_LIFE_MS;
    for (const hold of keeper.open) {
      if (hold.openedAtMs >= since) continue;
      logger.warn("a reservation was never closed and is given back", { requestId: hold.requestId });
      hold.abandon();
    }
    if (!shared) return;
    const keys = [...keeper.open].flatMap((hold) => (hold.durable ? [hold.durable.key] : []));
    await shared.renew(keys);
    await shared.releaseExpired();
  }

  let isMaintaining = false;
  async function maintainQuietly(): Promise<void> {
    if (isMaintaining) return;
    isMaintaining = true;
    try {
      await maintain();
    } catch (error) {
      logger.warn("reservations could not be maintained", { error: String(error) });
    } finally {
      isMaintaining = false;
    }
  }
  const timer = setInterval(() => void maintainQuietly(), MAINTENANCE_MS);
  timer.unref();

  /** Everything that has been settled so far comes to the tables. */
  async function drain(): Promise<void> {
    await queue.written();
    await store.drain();
  }

  async function flush(): Promise<void> {
    await queue.flush();
    await store.drain();
  }

  return {
    available,
    reserve,
    async atomic(body) {
      let changed = new Set<number>();
      const result = await db.atomic((tx) => {
        changed = new Set();
        return body(tx, (entry) => creditSteps(tx, entry, changed));
      });
      for (const id of changed) {
        // The transaction stands: a failed re-read must not look like a failed credit.
        await accounts.userChanged(id).catch((error: unknown) => {
          logger.warn("credit was not announced", { user: id, error: String(error) });
        });
      }
      deps.balances?.credited(changed);
      return result;
    },
    *setTokenQuota(tx, tokenId, remainQuota) {
      if (!isQuota(remainQuota)) throw refuse("quota_out_of_range");
      // Locks the row first, so that no reservation slips in between the sum and the update.
      yield* q(
        tx
          .update(t.tokens)
          .set({ remainQuota })
          .where(eq(t.tokens.id, tokenId))
          .returning({ id: t.tokens.id }),
      );
      const [held] = yield* q(
        tx
          .select({ amount: sumOf(t.reservations.amount) })
          .from(t.reservations)
          .where(eq(t.reservations.tokenId, tokenId)),
      );
      yield* q(
        tx
          .update(t.tokens)
          .set({ quotaBase: sql`${t.tokens.usedQuota} + ${remainQuota + (held?.amount ?? 0)}` })
          .where(eq(t.tokens.id, tokenId))
          .returning({ id: t.tokens.id }),
      );
    },
    log: (entry: LogEntry) => queue.add({ row: entryRow(entry, clock.nowMs()) }),
    *logSteps(tx, entry) {
      yield* q(tx.insert(t.logs).values(entryRow(entry, clock.nowMs())).returning({ id: t.logs.id }));
    },
    async tokenExpired(token) {
      if (token.status !== TokenStatus.enabled) return;
      token.status = TokenStatus.expired;
      await db.orm
        .update(t.tokens)
        .set({ status: TokenStatus.expired })
        .where(and(eq(t.tokens.id, token.id), eq(t.tokens.status, TokenStatus.enabled)));
      await accounts.tokenChanged(token.id);
    },
    maintain,
    backlog: () => store.backlog(),
    flush,
    async close() {
      clearInterval(timer);
      await flush();
      gate.close();
      store.close();
      await outage?.close();
      journal.close();
      await lease.release();
    },
  };
}
