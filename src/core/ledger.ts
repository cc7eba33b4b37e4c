// The ledger: the only writer of balances. Reserves, settles exactly once, credits, and writes log rows.
// Refuses a call that balance or key cannot pay; never refuses to record what was delivered.
import { and, eq, sql } from "drizzle-orm";
import { q, sumOf } from "../db/database.ts";
import type { Orm, Steps } from "../db/database.ts";
import { TokenStatus } from "../shared/enums.ts";
import { Failure, refuse } from "../shared/failures.ts";
import { isQuota, MAX_QUOTA, shortQuotaText } from "../shared/money.ts";
import type { LedgerAccounts } from "./accounts.ts";
import type { Credit, Deps, Ledger, LogEntry, ReserveRequest, TokenAccount } from "./deps.ts";
import { openJournal } from "./journal.ts";
import type { Journal } from "./journal.ts";
import { createGroupCommit } from "./ledger-batch.ts";
import { endPending } from "./ledger-books.ts";
import { Hold } from "./ledger-hold.ts";
import type { HoldKeeper } from "./ledger-hold.ts";
import type { LedgerItem } from "./ledger-items.ts";
import { createPostgresBooks } from "./ledger-postgres.ts";
import { createSharedHolds } from "./ledger-shared.ts";
import { createSqliteBooks } from "./ledger-sqlite.ts";
import { entryRow } from "./log-rows.ts";
import type { BalanceWatch } from "./low-quota.ts";
import { quotaDisplay } from "./options.ts";

/** A reservation that nobody closed is given back after this time; a later settlement still charges in full. */
const HOLD_LIFE_MS = 2 * 60 * 60 * 1000;
/** After a write that failed nobody is let through for this long: an upstream would be paid for what cannot be recorded. */
const DOWN_MS = 1000;
const MAINTENANCE_MS = 30_000;
const DATABASE_WAIT_MS = 10_000;

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
  /** PostgreSQL only; 10 seconds when absent. */
  databaseWaitMs?: number;
  /** Told of every balance that changed, after the commit. */
  balances?: BalanceWatch;
}

/** Resolves after what an earlier run left in the journal has been applied. */
export async function createLedger(deps: LedgerDeps): Promise<LedgerService> {
  const { db, clock, logger, options, accounts, dataDir } = deps;
  const { t } = db;
  let downUntilMs = 0;
  const databaseWaitMs = deps.databaseWaitMs ?? DATABASE_WAIT_MS;
  const journal = deps.journal ?? openJournal<LedgerItem>(dataDir, logger);
  const books = db.client
    ? createSqliteBooks(db.client, { ...deps, journal })
    : createPostgresBooks({ ...deps, journal, databaseWaitMs });
  const shared =
    db.kind === "postgres"
      ? createSharedHolds({ ...deps, databaseWaitMs, drain: () => books.drain() })
      : undefined;
  await books.start();
  await shared?.releaseOwn();

  const queue = createGroupCommit<LedgerItem>({
    write: (items) => {
      journal.append(items);
      books.wake();
    },
    writeLater: async (items) => {
      await journal.appendLater(items);
      books.wake();
    },
    lost(items, error) {
      downUntilMs = clock.nowMs() + DOWN_MS;
      logger.error("settlements could not be written", { rows: items.length, error: String(error) });
      // Their callers are told of the failure: they are not charged.
      for (const item of items) endPending(accounts, item);
      return cannotRecord();
    },
    running: () => keeper.open.size,
  });

  const keeper: HoldKeeper = {
    open: new Set(),
    add: (item) => queue.add(item),
    nowMs: () => clock.nowMs(),
    consumeLogged: () => options.get("LogConsumeEnabled"),
  };

  function quotaText(quota: number): string {
    return shortQuotaText(quota, quotaDisplay(options));
  }

  const cannotRecord = () => new Failure("internal", "ledger_down", { status: 503 });

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

  function reserve(request: ReserveRequest): Hold | Promise<Hold> {
    const { amount } = request;
    if (clock.nowMs() < downUntilMs) throw cannotRecord();
    if (!isQuota(amount) || amount < 0) throw refuse("quota_out_of_range");
    const user = accounts.keepUser(request.user);
    const token = request.token && accounts.keepToken(request.token);
    const available = user.quota - user.reserved;
    const limited = token && !token.unlimitedQuota ? token : undefined;
    const tokenAvailable = limited ? limited.remainQuota - limited.reserved : MAX_QUOTA;
    if (shared && amount > 0 && shared.isNearZero(Math.min(available, tokenAvailable), amount)) {
      return shared.hold(
        { requestId: request.requestId, user, token, amount },
        keeper,
        userShort,
        tokenShort,
      );
    }
    if (available <= 0 || available < amount) throw userShort(available, amount);
    if (tokenAvailable <= 0 || tokenAvailable < amount) throw tokenShort(tokenAvailable, amount);
    return new Hold(keeper, request.requestId, amount, user, token, undefined);
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
    const since = clock.nowMs() - HOLD_LIFE_MS;
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

  async function flush(): Promise<void> {
    await queue.flush();
    await books.drain();
  }

  return {
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
    backlog: () => books.backlog(),
    flush,
    async close() {
      clearInterval(timer);
      await flush();
      books.close();
      journal.close();
    },
  };
}
