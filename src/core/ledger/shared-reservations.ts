// Reservations of several nodes on one PostgreSQL: near zero the amount leaves the balance durably before the call.
// Refuses to trust memory there: the guarded update decides, and a lease returns what a dead node held.
import { randomBytes } from "node:crypto";
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Orm, Steps } from "../../db/database.ts";
import { sqlState } from "../../db/sql-state.ts";
import { Failure } from "../../shared/failures.ts";
import { MAX_QUOTA } from "../../shared/money.ts";
import type { LedgerAccounts, Deps, Ledger, ReserveRequest, TokenAccount, UserAccount } from "../deps.ts";
import { DeadlineExceeded, within } from "../kit/deadline.ts";
import { Hold } from "./reservation.ts";
import type { HoldKeeper } from "./reservation.ts";
import { beginPending } from "./items.ts";
import type { DurableHold } from "./items.ts";
import { OUTAGE_MS } from "./outage.ts";
import type { OutageWatch } from "./outage.ts";
import { givenBack, holdOf, lockRows, rows } from "./postgres-statements.ts";

/**
 * Memory is trusted while the balance pays for this many more calls of the same size: another node's spending is
 * unknown here for at most about a second, and one user does not make a thousand calls a second on one other node.
 */
const TRUSTED_CALLS = 1000;
/** One US dollar at the default unit: a single long answer may cost that much more than what was reserved for it. */
const TRUST_FLOOR = 500_000;
/** How long a reservation stands without a sign of life from its node, which renews twice a minute. */
const LEASE_SECONDS = 600;
const SWEEP_ROWS = 500;
/** The answer was lost on its way, so the commit may stand. */
const LOST_ANSWERS = new Set(["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "ECONNRESET", "EPIPE"]);
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;
/** How often a step looks again after what was on its way has arrived. */
const MAX_LOOKS = 8;
const FULL_LOOKS = 2;
const OPEN_SUM_MS = 1000;
const MAX_OPEN_SUMS = 10_000;

/** What was found short of the amount, as Shortage tells it. Thrown out of the transaction, which it rolls back. */
class Short extends Error {
  constructor(readonly shortage: Shortage) {
    super("short");
  }
}

/** What is free of user and key, and what would be free without the open holds. */
export interface Shortage {
  userFree: number;
  userWithoutHolds: number;
  /** Both MAX_QUOTA for a key without a limit. */
  tokenFree: number;
  tokenWithoutHolds: number;
}

export interface SharedReservations {
  isNearZero(available: number, amount: number): boolean;
  /** Throws what `refusal` makes of the figures that were found. */
  hold(request: ReserveRequest, keeper: HoldKeeper): Promise<Hold>;
  /** Lengthens the hold durably; where the database stays silent memory decides. Never rejects. */
  lengthen(hold: Hold, more: number, keeper: HoldKeeper): Promise<number>;
  renew(keys: readonly string[]): Promise<void>;
  /** Gives back what an earlier run of this node held: call before the first reservation. */
  releaseOwn(): Promise<void>;
  /** Gives back what any dead node held. */
  releaseExpired(): Promise<void>;
}

export interface SharedReservationsDeps extends Pick<Deps, "db" | "clock" | "nodeId"> {
  accounts: LedgerAccounts;
  /** Longest wait for one answer of the database, in milliseconds. */
  databaseWaitMs: number;
  /** Applies what is settled here but not yet in the database. */
  drain: () => Promise<void>;
  outage: OutageWatch;
  /** What memory may trust, as the ledger sees it. */
  available: Ledger["available"];
  refusal: (shortage: Shortage, least: number) => Failure;
}

/** One step to be decided by the rows: the first of a hold, or one that lengthens it. */
interface Step {
  row: DurableHold;
  more: number;
  least: number;
}

interface Taken {
  amount: number;
  quota: number;
  remainQuota: number | undefined;
}

export function createSharedReservations(deps: SharedReservationsDeps): SharedReservations {
  const { db, clock, nodeId, accounts, databaseWaitMs, drain, outage } = deps;
  const prefix = `${nodeId}.${randomBytes(4).toString("hex")}`;
  let count = 0;
  /** Amounts whose reservation is being written: memory holds them back, the guard must not count them twice. */
  const underway = new Map<UserAccount | TokenAccount, number>();
  /** What open holds of all nodes took from users whose balance is used up, and until when that is believed. */
  const openSums = new Map<number, { untilMs: number; sum: Promise<number> }>();

  function begin(account: UserAccount | TokenAccount, amount: number): void {
    account.reserved += amount;
    underway.set(account, (underway.get(account) ?? 0) + amount);
  }

  function end(account: UserAccount | TokenAccount, amount: number): void {
    account.reserved -= amount;
    const left = (underway.get(account) ?? 0) - amount;
    if (left > 0) underway.set(account, left);
    else underway.delete(account);
  }

  /** What memory holds back and the database does not know: open holds in memory and charges in the journal. */
  function unknownToDatabase(account: UserAccount | TokenAccount): number {
    return Math.max(0, account.reserved - (underway.get(account) ?? 0));
  }

  function isOnItsWay(account: UserAccount | TokenAccount | undefined): boolean {
    return account !== undefined && account.pending + account.returning > 0;
  }

  function newRow(requestId: string, user: UserAccount, limited: TokenAccount | undefined): DurableHold {
    return {
      key: `${prefix}.${++count}.${requestId}`,
      amount: 0,
      userId: user.id,
      tokenId: limited?.id ?? 0,
    };
  }

  /** Whatever the row holds in the database goes back; memory counts what it knows to have left. */
  function giveBack(
    keeper: HoldKeeper,
    hold: DurableHold,
    user: UserAccount,
    limited: TokenAccount | undefined,
  ): void {
    beginPending({ hold }, user, limited);
    // Where even that cannot be written its lease returns it.
    keeper.add({ hold }).catch(() => undefined);
  }

  /** By the database's clock, which all nodes share. */
  const leaseEnd = sql`floor(extract(epoch from now()))::bigint + ${LEASE_SECONDS}::bigint`;

  function* openHolds(tx: Orm, column: "user_id" | "token_id", id: number): Steps<number> {
    const [row] = yield* rows(
      tx,
      sql`select coalesce(sum(amount), 0) as amount from reservations where ${sql.identifier(column)} = ${id}`,
    );
    return Number(row?.amount ?? 0);
  }

  /** Takes as much of `more` as the rows have, all or nothing where that is below `least`. */
  function* takeSteps(
    tx: Orm,
    step: Step,
    user: UserAccount,
    limited: TokenAccount | undefined,
  ): Steps<Taken> {
    const { row, more, least } = step;
    const { userId, tokenId } = row;
    const userHeld = unknownToDatabase(user);
    const tokenHeld = limited ? unknownToDatabase(limited) : 0;
    // What holds nothing back waits for nobody.
    const lock = more > 0 ? sql`for no key update` : sql``;
    const [userRow] = yield* rows(
      tx,
      sql`select quota from users where id = ${userId} and deleted_at is null ${lock}`,
    );
    const quota = Number(userRow?.quota ?? 0);
    let remainQuota: number | undefined;
    if (tokenId !== 0) {
      const [tokenRow] = yield* rows(
        tx,
        sql`select remain_quota from tokens where id = ${tokenId} and deleted_at is null ${lock}`,
      );
      remainQuota = Number(tokenRow?.remain_quota ?? 0);
    }
    const userFree = quota - userHeld;
    const tokenFree = remainQuota === undefined ? MAX_QUOTA : remainQuota - tokenHeld;
    const amount = Math.min(more, userFree, tokenFree);
    if (amount < least || userFree <= 0 || tokenFree <= 0) {
      throw new Short({
        userFree,
        userWithoutHolds: quota + (yield* openHolds(tx, "user_id", userId)) - user.pending,
        tokenFree,
        tokenWithoutHolds:
          remainQuota === undefined
            ? MAX_QUOTA
            : remainQuota + (yield* openHolds(tx, "token_id", tokenId)) - (limited?.pending ?? 0),
      });
    }
    if (amount === 0) return { amount, quota, remainQuota };
    yield* rows(tx, sql`update users set quota = quota - ${amount}::bigint where id = ${userId}`);
    if (tokenId !== 0)
      yield* rows(
        tx,
        sql`update tokens set remain_quota = remain_quota - ${amount}::bigint where id = ${tokenId}`,
      );
    // A row that its lease has returned meanwhile is begun anew: its settlement gives back what stands there.
    yield* rows(
      tx,
      sql`insert into reservations as r (request_id, user_id, token_id, amount, node_id, expires_at)
        values (${row.key}, ${userId}, ${tokenId}, ${amount}, ${nodeId}, ${leaseEnd})
        on conflict (request_id) do update set amount = r.amount + excluded.amount`,
    );
    return {
      amount,
      quota: quota - amount,
      remainQuota: remainQuota === undefined ? undefined : remainQuota - amount,
    };
  }

  /**
   * Rejects with Short, or with what the database said last when the time is over. `astray` is told of a row that a lost
   * answer or a late commit may have left, and answers the row to go on with.
   */
  async function take(
    step: Step,
    user: UserAccount,
    limited: TokenAccount | undefined,
    waitMs: number,
    astray: (row: DurableHold) => DurableHold,
  ): Promise<{ row: DurableHold; amount: number }> {
    const until = performance.now() + waitMs;
    begin(user, step.more);
    if (limited) begin(limited, step.more);
    const endWrite = accounts.beginWrite([user.id], limited ? [limited.id] : []);
    let { row } = step;
    let pauseMs = FIRST_PAUSE_MS;
    try {
      for (let looks = 1; ;) {
        const mayChange = isOnItsWay(user) || isOnItsWay(limited);
        // Less than asked is taken only after what comes back was waited for.
        const least = mayChange && looks <= FULL_LOOKS ? step.more : step.least;
        const now = { row, more: step.more, least };
        let isWaiting = true;
        try {
          const writing = db.atomic((tx) => takeSteps(tx, now, user, limited));
          writing.then(
            () => void (isWaiting || astray(now.row)),
            () => undefined,
          );
          const taken = await within(Math.max(1, until - performance.now()), writing);
          outage.answered();
          user.quota = taken.quota;
          if (limited && taken.remainQuota !== undefined) limited.remainQuota = taken.remainQuota;
          return { row, amount: taken.amount };
        } catch (error) {
          if (error instanceof Short) {
            outage.answered();
            if (!mayChange || looks++ >= MAX_LOOKS) throw error;
            // What is being given back counts, and a charge that arrived during the query was counted twice.
            await drain();
            continue;
          }
          if (error instanceof DeadlineExceeded || isRefused(error)) throw error;
          if (LOST_ANSWERS.has(sqlState(error))) row = astray(row);
          const leftMs = until - performance.now();
          if (leftMs <= 0) throw error;
          await Bun.sleep(Math.min(pauseMs, leftMs));
          pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
        } finally {
          isWaiting = false;
        }
      }
    } finally {
      endWrite();
      end(user, step.more);
      if (limited) end(limited, step.more);
    }
  }

  /** A second's memory, so that someone without any balance costs no transaction per call. */
  async function sumOfOpen(userId: number): Promise<number> {
    const nowMs = clock.monotonicMs();
    let known = openSums.get(userId);
    if (!known || known.untilMs <= nowMs) {
      if (openSums.size >= MAX_OPEN_SUMS) openSums.clear();
      const sum = within(
        databaseWaitMs,
        db.atomic((tx) => openHolds(tx, "user_id", userId)),
      ).catch(() => 0);
      openSums.set(userId, (known = { untilMs: nowMs + OPEN_SUM_MS, sum }));
    }
    return known.sum;
  }

  async function releaseWhere(condition: SQL): Promise<void> {
    for (;;) {
      const changed = await db.atomic(function* (tx) {
        const found = yield* rows(
          tx,
          sql`select request_id, user_id, token_id, amount from reservations where ${condition} limit ${SWEEP_ROWS}`,
        );
        if (found.length === 0) return [];
        const seen = found.map(holdOf);
        yield* lockRows(tx, "users", new Set(seen.map((hold) => hold.userId)));
        yield* lockRows(tx, "tokens", new Set(seen.map((hold) => hold.tokenId)));
        const keys = JSON.stringify(seen.map((hold) => hold.key));
        const removed = yield* rows(
          tx,
          sql`delete from reservations
            where request_id in (select value from json_array_elements_text(${keys}::json)) and ${condition}
            returning request_id, user_id, token_id, amount`,
        );
        const holds = removed.map(holdOf);
        const ofUsers = entries(givenBack(holds, "userId"));
        yield* rows(
          tx,
          sql`update users set quota = users.quota + v.amount
            from json_to_recordset(${ofUsers}::json) as v(id bigint, amount bigint) where users.id = v.id`,
        );
        const ofTokens = entries(givenBack(holds, "tokenId"));
        yield* rows(
          tx,
          sql`update tokens set remain_quota = tokens.remain_quota + v.amount
            from json_to_recordset(${ofTokens}::json) as v(id bigint, amount bigint) where tokens.id = v.id`,
        );
        return holds;
      });
      for (const id of new Set(changed.map((hold) => hold.userId))) await accounts.userChanged(id);
      for (const id of new Set(changed.map((hold) => hold.tokenId)))
        if (id !== 0) await accounts.tokenChanged(id);
      if (changed.length === 0) return;
    }
  }

  return {
    isNearZero: (available, amount) => available < Math.max(TRUSTED_CALLS * amount, TRUST_FLOOR),

    async hold({ requestId, user, token, amount, least = amount }, keeper) {
      const limited = token && !token.unlimitedQuota ? token : undefined;
      const userFree = user.quota - unknownToDatabase(user);
      if (userFree + user.returning <= 0 && accounts.isCertain(user.id)) {
        // Memory knows the holds of this node only, and not those that are rows.
        const open = outage.silentMs() < OUTAGE_MS ? await sumOfOpen(user.id) : 0;
        const userWithoutHolds = user.quota + open - user.pending;
        throw deps.refusal(
          { userFree, userWithoutHolds, tokenFree: MAX_QUOTA, tokenWithoutHolds: MAX_QUOTA },
          least,
        );
      }
      const first = newRow(requestId, user, limited);
      try {
        const step = { row: first, more: amount, least };
        const taken = await take(step, user, limited, databaseWaitMs, (astray) => {
          // Nobody has it: it goes back at once rather than with its lease.
          giveBack(keeper, astray, user, limited);
          return newRow(requestId, user, limited);
        });
        const durable = taken.amount > 0 ? { ...taken.row, amount: taken.amount } : undefined;
        return new Hold(keeper, requestId, taken.amount, user, token, durable);
      } catch (error) {
        if (error instanceof Short) throw deps.refusal(error.shortage, least);
        throw new Failure("internal", "ledger_down", { status: 503, cause: error });
      }
    },

    async lengthen(hold, more, keeper) {
      const { user, token } = hold;
      const limited = token && !token.unlimitedQuota ? token : undefined;
      const row = hold.durable ?? newRow(hold.requestId, user, limited);
      // The whole outage counts: a stream waits it out once, not at every step.
      const waitMs = databaseWaitMs - outage.silentMs();
      if (waitMs > 0) {
        try {
          const { amount } = await take({ row, more, least: 1 }, user, limited, waitMs, (astray) => {
            // The settlement gives back whatever the row holds; one that is on its way already may not know the row.
            if (hold.isClosed) giveBack(keeper, astray, user, limited);
            else hold.durable ??= astray;
            return astray;
          });
          if (!hold.isClosed) {
            hold.extendDurably(row, amount);
            return amount;
          }
          giveBack(keeper, { ...row, amount }, user, limited);
          return 0;
        } catch (error) {
          if (error instanceof Short) return 0;
        }
      }
      if (hold.isClosed) return 0;
      const trusted = Math.max(0, Math.min(more, deps.available({ user, token })));
      hold.extend(trusted);
      return trusted;
    },

    async renew(keys) {
      if (keys.length === 0) return;
      await db.atomic(function* (tx) {
        yield* rows(
          tx,
          sql`update reservations set expires_at = ${leaseEnd}
            where request_id in (select value from json_array_elements_text(${JSON.stringify(keys)}::json))`,
        );
      });
    },
    releaseOwn: () => releaseWhere(sql`node_id = ${nodeId}`),
    releaseExpired: () => releaseWhere(sql`expires_at < floor(extract(epoch from now()))`),
  };
}

/** The database answered, and not that it is on its way down or up: waiting does not help. */
function isRefused(error: unknown): boolean {
  const state = sqlState(error);
  return /^[0-9A-Z]{5}$/.test(state) && !/^(08|53|55|57|E)/.test(state);
}

function entries(sums: Map<number, number>): string {
  return JSON.stringify([...sums].map(([id, amount]) => ({ id, amount })));
}
