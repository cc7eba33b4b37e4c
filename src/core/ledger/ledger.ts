// The ledger: the only writer of balances. Reserves, settles exactly once, credits, and writes log rows.
// Refuses a call that balance or key cannot pay; never refuses to record what was delivered.
import { and, eq, lt, ne, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { readWhenBack } from "../../db/away.ts";
import { lookAround } from "../../db/look-around.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { TokenStatus } from "../../shared/enums.ts";
import { IndexedSet } from "../../shared/indexed-set.ts";
import { within } from "../kit/deadline.ts";
import type { BalanceWatch, Credit, Deps, Ledger, LedgerAccounts, LogEntry, TokenAccount } from "../deps.ts";
import { openCoarse } from "../logs/coarse-state.ts";
import { entryRow } from "../logs/rows.ts";
import { creditSteps, tokenQuotaSteps } from "./credits.ts";
import { createCommitGate } from "./durability.ts";
import type { CommitGate, Durability } from "./durability.ts";
import { withEnteredNote } from "./entered-note.ts";
import { createGroupCommit } from "./group-commit.ts";
import type { GroupCommit } from "./group-commit.ts";
import { endPending } from "./items.ts";
import type { LedgerItem } from "./items.ts";
import { KEEP_MINUTES, openJournal } from "./journal/journal.ts";
import type { Journal } from "./journal/journal.ts";
import { watchJournal } from "./journal/watched.ts";
import type { WatchedJournal } from "./journal/watched.ts";
import { createLedgerHealth } from "./ledger-health.ts";
import type { LedgerHealth } from "./ledger-health.ts";
import type { LimitBook } from "../limits/limits.ts";
import { takeLease } from "./node-lease.ts";
import type { LossReason, NodeLease } from "./node-lease.ts";
import { createOutageWatch, OUTAGE_MS } from "./outage.ts";
import type { OutageWatch } from "./outage.ts";
import type { Fall } from "./postgres-apply.ts";
import { createPostgresStore, START_WAIT_MS } from "./postgres-store.ts";
import { ledgerDown, refusalOf } from "./refusals.ts";
import type { HoldKeeper } from "./reservation.ts";
import { startUpkeep } from "./reservation-upkeep.ts";
import { availableTo, reserve } from "./reserve.ts";
import { createSharedReservations } from "./shared-reservations.ts";
import type { SharedReservations } from "./shared-reservations.ts";
import { createSqliteStore } from "./sqlite-store.ts";
import type { LedgerStore } from "./store.ts";

const DATABASE_WAIT_MS = 10_000;
/** So long after one node found the database in an older state the others have found it too, and entered what it lacks. */
const FALL_MS = 2000;
/** So soon a step looks again whether open holds are taken. */
const AGAIN_MS = 100;
const LONE_NODE = { nodes: 1, rank: 0 };

/** The ledger with what the process itself needs of it. */
export interface LedgerService extends Ledger {
  /** Call when a key is met whose time is over: its status becomes expired, durably and at once in memory. */
  tokenExpired(token: TokenAccount): Promise<void>;
  /** Returns abandoned reservations, renews leases. Runs by timer; tests call it. */
  maintain(): Promise<void>;
  /** Settlements that are durable in the journal but not yet in the tables. */
  backlog(): number;
  /** For the inbox: whether calls can be recorded, what was lost since the start, how long the database is silent. */
  condition(): {
    canRecord: boolean;
    lost: number;
    silentMs: number;
    /** Why this process answers no calls any more, until it is started again; undefined: it does. */
    stoppedBy: LossReason | undefined;
  };
  /**
   * For those who watch: what waits for the tables and for how long, what was lost or refused since the
   * start, how many answers left before the commit that they should have waited for (DURABILITY=database), and how often the
   * database was found in an older state.
   */
  lag(): { waiting: number; oldestMs: number; refused: number; early: number; falls: number };
}

export interface LedgerDeps extends Pick<Deps, "db" | "clock" | "logger" | "options" | "dataDir" | "nodeId"> {
  accounts: LedgerAccounts;
  /** The one of the data directory when absent. */
  journal?: Journal<LedgerItem>;
  /** How long applied journal files stay; 15 minutes when absent. */
  journalKeepMinutes?: number;
  /** PostgreSQL only; 10 seconds when absent. */
  databaseWaitMs?: number;
  /** What answers wait for; "journal" when absent, and always on SQLite, whose journal lies on the same disk. */
  durability?: Durability;
  /** The system's clock that nobody sets, when absent. */
  monotonicMs?: () => number;
  /** Budgets and limits beside the balances. */
  limits?: LimitBook;
  /** Told of every balance that changed, after the commit. */
  balances?: BalanceWatch;
  /** What the node tells of itself (node-lease.ts). */
  figures?: () => Promise<string | undefined>;
  /** Told when the database was found in an older state than it had been. */
  fellBack?: (fall: Fall) => void;
  /** Told how long each durable write to the journal took. */
  synced?: (ms: number) => void;
}

/** Resolves after what an earlier run left in the journal has been applied. */
export async function createLedger(deps: LedgerDeps): Promise<LedgerService> {
  const { db, clock, logger, options, accounts, dataDir } = deps;
  const databaseWaitMs = deps.databaseWaitMs ?? DATABASE_WAIT_MS;
  const keepMs = (deps.journalKeepMinutes ?? KEEP_MINUTES) * 60_000;
  const opened = deps.journal ?? openJournal<LedgerItem>(dataDir, logger, { keepMs });
  const monotonicMs = deps.monotonicMs ?? (() => performance.now());
  const journal = watchJournal(opened, { monotonicMs, synced: deps.synced ?? (() => undefined) });
  const lease = await takeLease(deps);
  const outage = db.client ? undefined : createOutageWatch({ ...deps, monotonicMs });
  const open: HoldKeeper["open"] = new IndexedSet();
  const falls = createFalls(monotonicMs);
  const fellBack = (fall: Fall): void => {
    deps.fellBack?.(fall);
    falls.saw(shared?.takeAgain(open));
  };
  const { store, gate, doubt } = openStore(
    { ...deps, databaseWaitMs, monotonicMs, fellBack },
    { lease, journal, outage },
  );
  const { limits } = deps;
  const available: Ledger["available"] = (payers) => availableTo(payers, outage);
  const shared =
    outage &&
    createSharedReservations({
      ...deps,
      databaseWaitMs,
      outage,
      drain,
      available,
      fall: {
        applied: () => journal.lastPosition - store.backlog(),
        writtenAt: () => lease.writtenAt,
        noticed: doubt,
        waitMs: falls.waitMs,
      },
      refusal: (shortage, least) => refusalOf(options, shortage, least),
    });
  await atStart(() => openCoarse(db, options.get("site.time_zone")));
  await store.start();
  const health = createLedgerHealth({ db, clock, logger, dataDir, lease, journal });
  if (outage) {
    db.onAnswer(() => outage.answered());
    deps.accounts.hearBy(() => ({ silentMs: outage.silentMs(), aloneMs: outage.aloneMs() }));
  }
  if (outage) await atStart(() => outage.start());
  if (shared) await atStart(() => shared.releaseOwn());

  let isClosed = false;
  const ofQueue = { accounts, logger, journal, lease, store, health, open, isClosed: () => isClosed };
  const queue = createSettlementQueue(ofQueue);
  const keeper = createKeeper({ clock, options }, { open, queue, shared, available, gate });
  const reserveDeps = { db, options, accounts, health, keeper, outage, limits, shared, gate };
  const upkeep = startUpkeep({ keeper, shared, clock, logger });
  const endWork = lookAround.restUnless(() => open.size > 0 || store.backlog() > 0);

  /** Everything that has been settled so far comes to the tables. */
  async function drain(): Promise<void> {
    await queue.written();
    await store.drain();
  }

  /** An outage is waited for once: when it is known, what is settled is not held up by it. */
  async function entered(): Promise<void> {
    const waitMs = outage ? OUTAGE_MS - outage.silentMs() : 0;
    if (waitMs > 0) await within(waitMs, store.drain()).catch(() => undefined);
  }

  limits?.readAfter(entered);
  limits?.watch(open);
  limits?.placeBy(() => outage?.place() ?? LONE_NODE);

  async function flush(): Promise<void> {
    await queue.flush();
    await store.drain();
  }

  return {
    ready: (payers) => limits?.ready(payers),
    available: (payers) => (limits ? Math.min(available(payers), limits.free(payers)) : available(payers)),
    reserve: (request) => reserve(reserveDeps, request),
    ...balanceWrites(deps),
    log: (entry: LogEntry) => queue.add({ row: entryRow(entry, clock.nowMs()) }),
    bear: (entry, cost) => queue.add({ row: entryRow(entry, clock.nowMs()), logged: false, cost }),
    *logSteps(tx, entry) {
      const { logs } = db.t;
      yield* q(tx.insert(logs).values(entryRow(entry, clock.nowMs())).returning({ id: logs.id }));
    },
    maintain: () => upkeep.run(),
    backlog: () => store.backlog(),
    condition: () => ({
      canRecord: health.canRecord(),
      lost: queue.lost(),
      silentMs: outage?.silentMs() ?? 0,
      stoppedBy: lease.lostBy,
    }),
    lag() {
      const waiting = store.backlog();
      const oldestMs = journal.oldestMs(journal.lastPosition - waiting);
      const refused = queue.lost() + journal.refused();
      return { waiting, oldestMs, refused, early: gate?.early() ?? 0, falls: falls.count() };
    },
    place: () => outage?.place() ?? LONE_NODE,
    entered,
    flush,
    async close() {
      upkeep.stop();
      endWork();
      await flush();
      const isWhole = store.backlog() === 0;
      health.close();
      store.close();
      isClosed = true;
      await outage?.close();
      journal.close();
      await lease.release(isWhole);
    },
  };
}

/** How often the database was found in an older state, and how long nobody may take of balances that lack what was spent since. */
function createFalls(monotonicMs: () => number) {
  let count = 0;
  let seenAtMs = -Infinity;
  let takingAgain = 0;
  return {
    count: () => count,
    /** `again`: until what open holds had taken is taken again. */
    saw(again: Promise<void> | undefined): void {
      count++;
      seenAtMs = monotonicMs();
      if (!again) return;
      takingAgain++;
      void again.finally(() => takingAgain--);
    },
    waitMs: () => Math.max(takingAgain > 0 ? AGAIN_MS : 0, seenAtMs + FALL_MS - monotonicMs()),
  };
}

/** A server that has just come up may go down once more. For steps of which each may be taken twice. */
function atStart(step: () => Promise<void>): Promise<void> {
  return readWhenBack(START_WAIT_MS, step);
}

/** Where what is durable in the journal goes, and what answers wait for there. */
function openStore(
  deps: LedgerDeps & {
    databaseWaitMs: number;
    monotonicMs: () => number;
    fellBack: (fall: Fall) => void;
  },
  {
    lease,
    journal,
    outage,
  }: { lease: NodeLease; journal: WatchedJournal<LedgerItem>; outage: OutageWatch | undefined },
): { store: LedgerStore; gate: CommitGate | undefined; doubt: () => void } {
  const { client } = deps.db;
  const watched = (each: LedgerStore) => withEnteredNote(each, { ...deps, lease, journal });
  if (client) {
    const store = createSqliteStore(client, { ...deps, lease, journal });
    return { store: watched(store), gate: undefined, doubt() {} };
  }
  const store = createPostgresStore({ ...deps, lease, journal, answered: () => outage?.answered() });
  const doubt = (): void => store.doubt();
  if (deps.durability !== "database" || !outage) return { store: watched(store), gate: undefined, doubt };
  const gate = createCommitGate({
    ...deps,
    store,
    outage,
    waitMs: deps.databaseWaitMs,
    lastPosition: () => journal.lastPosition,
    oldestMs: () => journal.oldestMs(journal.lastPosition - store.backlog()),
  });
  return { store: watched(store), gate, doubt };
}

/** Settlements become durable in the journal together; the store is woken for them. */
function createSettlementQueue({
  accounts,
  logger,
  journal,
  lease,
  store,
  health,
  open,
  isClosed,
}: Pick<LedgerDeps, "accounts" | "logger"> & {
  journal: Journal<LedgerItem>;
  lease: NodeLease;
  store: LedgerStore;
  health: LedgerHealth;
  open: HoldKeeper["open"];
  /** The process ends: the journal takes nothing more. */
  isClosed: () => boolean;
}): GroupCommit<LedgerItem> & { lost(): number } {
  let lostCount = 0;
  const commit = createGroupCommit<LedgerItem>({
    write: (items) => {
      health.assertLeaseHeld();
      journal.append(items);
      store.wake();
    },
    writeLater: async (items) => {
      if (lease.isStale()) await lease.confirm();
      health.assertLeaseHeld();
      await journal.appendLater(items);
      store.wake();
    },
    lost(items, error) {
      if (isClosed() && items.every((item) => !item.row)) {
        // As in an outage, which a take near zero outlived: its row stands, and the next start finds it.
        const text = "the process has ended: the next start of this node gives back what a call had reserved";
        logger.info(text, { reservations: items.length });
        for (const item of items) endPending(accounts, item);
        return ledgerDown();
      }
      health.writeFailed();
      lostCount += items.length;
      logger.error("settlements could not be written", { rows: items.length, error: String(error) });
      // Their callers get the failure: they are not charged.
      for (const item of items) endPending(accounts, item);
      return ledgerDown();
    },
    // What must be confirmed first is written off the event loop, a lone call's too.
    running: () => open.size || (lease.isStale() ? 1 : 0),
  });
  return { ...commit, lost: () => lostCount };
}

function createKeeper(
  { clock, options }: Pick<LedgerDeps, "clock" | "options">,
  parts: {
    open: HoldKeeper["open"];
    queue: GroupCommit<LedgerItem>;
    shared: SharedReservations | undefined;
    available: Ledger["available"];
    gate: CommitGate | undefined;
  },
): HoldKeeper {
  const { open, queue, shared, available, gate } = parts;
  const keeper: HoldKeeper = {
    open,
    // What is only given back was promised to nobody.
    add: (item) => (gate && item.row ? queue.add(item).then(() => gate.committed()) : queue.add(item)),
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
  return keeper;
}

/** Unix seconds by the database's clock: this machine's may be ahead of it. */
const nowOf = ({ kind }: Pick<Deps["db"], "kind">) =>
  kind === "postgres" ? sql`floor(extract(epoch from now()))::bigint` : sql`unixepoch()`;

/** A key that is not over by the database's clock is not looked at again before. */
const EXPIRY_AGAIN_MS = 5000;
const MOST_EXPIRIES = 10_000;

/** Whose turn it is to look whether a key is over: one at a time, and not again for some seconds. */
function expiryTurns(monotonicMs: () => number) {
  /** When the last look ended, by key; Infinity: it goes on. */
  const looks = new Map<number, number>();
  return {
    begins(tokenId: number): boolean {
      if (monotonicMs() - (looks.get(tokenId) ?? -Infinity) < EXPIRY_AGAIN_MS) return false;
      const [oldest] = looks.keys();
      if (looks.size >= MOST_EXPIRIES && oldest !== undefined) looks.delete(oldest);
      looks.set(tokenId, Infinity);
      return true;
    },
    ended(tokenId: number): void {
      looks.set(tokenId, monotonicMs());
    },
  };
}

/** What changes balances and keys beside calls; whoever holds the account in memory reads it anew. */
function balanceWrites({
  db,
  clock,
  logger,
  accounts,
  balances,
}: LedgerDeps): Pick<LedgerService, "atomic" | "changed" | "setTokenQuota" | "tokenExpired"> {
  const { t } = db;
  /** Of transactions that are under way. */
  const changedIn = new WeakMap<Orm, Set<number>>();
  const expiries = expiryTurns(() => clock.monotonicMs());

  /** What is known here may be old: a row whose time was extended meanwhile stays as it is, and is read again. */
  async function expireToken(id: number): Promise<boolean> {
    const { tokens } = t;
    const isOver = and(ne(tokens.expiredTime, -1), lt(tokens.expiredTime, nowOf(db)));
    const ended = await db.orm
      .update(tokens)
      .set({ status: TokenStatus.expired })
      .where(and(eq(tokens.id, id), eq(tokens.status, TokenStatus.enabled), isOver))
      .returning({ id: tokens.id });
    return ended.length > 0;
  }

  return {
    async atomic(body) {
      let credited = new Set<number>();
      let changed = new Set<number>();
      function* credit(tx: Orm, entry: Credit): Steps<void> {
        yield* creditSteps(tx, t, entry, clock.nowMs());
        credited.add(entry.userId);
      }
      const result = await db.atomic((tx) => {
        [credited, changed] = [new Set(), new Set()];
        changedIn.set(tx, changed);
        return body(tx, (entry) => credit(tx, entry));
      });
      const charged = [...credited].filter((id) => !changed.has(id));
      // All are marked before the first row is asked for. The transaction stands: a failed re-read must not look like a failed credit.
      const told = await Promise.allSettled([
        accounts.usersChanged([...changed]),
        accounts.usersCharged(charged),
      ]);
      const failed = told.find((each) => each.status === "rejected");
      if (failed) {
        const users = [...changed, ...charged].join(",");
        logger.warn("changed accounts could not be re-read", { users, error: String(failed.reason) });
      }
      balances?.credited(credited);
      return result;
    },
    changed(tx, userId) {
      changedIn.get(tx)?.add(userId);
    },
    setTokenQuota: (tx, tokenId, remainQuota) => tokenQuotaSteps(tx, t, tokenId, remainQuota),
    async tokenExpired(token) {
      if (token.status !== TokenStatus.enabled || !expiries.begins(token.id)) return;
      token.status = TokenStatus.expired;
      try {
        const isOver = await expireToken(token.id);
        await (isOver ? accounts.tokenChanged(token.id) : accounts.tokenCharged(token.id));
      } finally {
        expiries.ended(token.id);
      }
    },
  };
}
