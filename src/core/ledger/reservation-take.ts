// One step of a reservation near zero, carried through: tried again while the database is away or while what is given
// back is still on its way, until the time is over.
import { isAnswerLost } from "../../db/away.ts";
import type { Database } from "../../db/database.ts";
import { sqlState } from "../../db/sql-state.ts";
import type { LedgerAccounts, TokenAccount, UserAccount } from "../deps.ts";
import { DeadlineExceeded, within } from "../kit/deadline.ts";
import type { DurableHold } from "./items.ts";
import type { OutageWatch } from "./outage.ts";
import { BalanceShort, TablesFell, takeSteps } from "./reservation-rows.ts";
import type { Payers, Step, Taken } from "./reservation-rows.ts";

const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;
/** How often a step looks again after what was on its way has arrived. */
const MAX_LOOKS = 8;
const FULL_LOOKS = 2;

/** Whether the tables stand where this process knows them to. */
interface FallWatch {
  /** What of this node's journal they have at least. */
  applied(): number;
  /** When they had this node's row written last, by their own clock. */
  writtenAt(): number;
  /** They were seen to have less: what they lack is entered again. */
  noticed(): void;
  /** So long the other nodes may still need for that, in milliseconds; 0: balances are what they were. */
  waitMs(): number;
}

export interface TakerDeps {
  db: Database;
  nodeId: string;
  accounts: LedgerAccounts;
  /** Applies what is settled here but not yet in the database. */
  drain: () => Promise<void>;
  outage: OutageWatch;
  fall: FallWatch;
}

interface TakeRequest {
  step: Step;
  payers: Payers;
  waitMs: number;
  /** Is handed a row that a lost answer or a late commit may have left, and answers the row to go on with. */
  onStray: (row: DurableHold) => DurableHold;
}

export interface Taker {
  /** What memory holds back and the database does not know: open holds in memory and charges in the journal. */
  unknownToDatabase(account: UserAccount | TokenAccount): number;
  /** Rejects with BalanceShort, or with what the database said last when the time is over. */
  take(request: TakeRequest): Promise<{ row: DurableHold; amount: number }>;
}

/**
 * One after the other for each account: the row is held by one of them anyway, and whoever waits for it in PostgreSQL has a
 * connection meanwhile. A few accounts near zero had all of them, and nobody else's statement came through.
 */
function createTurns() {
  const last = new Map<number, Promise<unknown>>();
  return async function inTurn<T>(userId: number, limitMs: number, work: () => Promise<T>): Promise<T> {
    const before = last.get(userId);
    const { promise, resolve } = Promise.withResolvers<void>();
    const turn = Promise.all([before, promise]).then(() => {
      if (last.get(userId) === turn) last.delete(userId);
    });
    last.set(userId, turn);
    try {
      if (before) await within(limitMs, before);
      return await work();
    } finally {
      resolve();
    }
  };
}

export function createTaker(deps: TakerDeps): Taker {
  const { db, nodeId, accounts, outage, drain, fall } = deps;
  const written = createAmountsBeingWritten();
  const inTurn = createTurns();

  /** One try; `onStray` also hears of a commit that comes after the deadline. */
  async function attempt({ payers, onStray }: TakeRequest, step: Step, untilMs: number): Promise<Taken> {
    const { user, limited } = payers;
    let isWaiting = true;
    try {
      // What memory holds is looked at when the transaction begins, and again when it is repeated.
      const writing = db.atomic((tx) => {
        // It may have been noticed since this one's turn came: what is known of the tables is what they have left then.
        if (fall.waitMs() > 0) throw new TablesFell();
        return takeSteps(tx, nodeId, step, payers, {
          user: written.unknownToDatabase(user),
          token: limited ? written.unknownToDatabase(limited) : 0,
          applied: fall.applied(),
          writtenAt: fall.writtenAt(),
          leftMs: untilMs - performance.now(),
        });
      });
      writing.then(
        () => void (isWaiting || onStray(step.row)),
        () => undefined,
      );
      return await within(Math.max(1, untilMs - performance.now()), writing);
    } finally {
      isWaiting = false;
    }
  }

  async function takeUntil(
    request: TakeRequest,
    untilMs: number,
  ): Promise<{ row: DurableHold; amount: number }> {
    const { step, payers, onStray } = request;
    const { user, limited } = payers;
    let { row } = step;
    let pauseMs = FIRST_PAUSE_MS;
    const isComing = () => isInTransit(user) || isInTransit(limited);
    for (let looks = 1; ;) {
      let mayChange = false;
      try {
        // An older state was put back: the balances lack what was spent since, until every node has entered it again.
        if (fall.waitMs() > 0)
          await Bun.sleep(Math.max(0, Math.min(fall.waitMs(), untilMs - performance.now())));
        if (untilMs <= performance.now()) throw new DeadlineExceeded(request.waitMs);
        const leftMs = Math.max(1, untilMs - performance.now());
        const taken = await inTurn(user.id, leftMs, () => {
          // Now that it is this one's turn: whoever was before it may have settled meanwhile.
          mayChange = isComing();
          // Less than everything is taken only after what comes back was waited for.
          const least = mayChange && looks <= FULL_LOOKS ? step.more : step.least;
          return attempt(request, { row, more: step.more, least }, untilMs);
        });
        outage.answered();
        user.quota = taken.quota;
        if (limited && taken.remainQuota !== undefined) limited.remainQuota = taken.remainQuota;
        return { row, amount: taken.amount };
      } catch (error) {
        if (error instanceof BalanceShort) {
          outage.answered();
          // The row may have been waited for in PostgreSQL too, behind another node.
          if (!(mayChange || isComing()) || looks++ >= MAX_LOOKS) throw error;
          // What is being given back counts, and a charge that arrived during the query was counted twice.
          await drain();
          continue;
        }
        if (error instanceof DeadlineExceeded || isRefused(error)) throw error;
        if (error instanceof TablesFell) fall.noticed();
        // The commit may stand.
        if (isAnswerLost(error)) row = onStray(row);
        const leftMs = untilMs - performance.now();
        if (leftMs <= 0) throw error;
        await Bun.sleep(Math.min(pauseMs, leftMs));
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
      }
    }
  }

  return {
    unknownToDatabase: written.unknownToDatabase,
    async take(request) {
      const { step, payers, waitMs } = request;
      const { user, limited } = payers;
      const untilMs = performance.now() + waitMs;
      written.begin(user, step.more);
      if (limited) written.begin(limited, step.more);
      const endWrite = accounts.beginWrite([user.id], limited ? [limited.id] : []);
      try {
        return await takeUntil(request, untilMs);
      } finally {
        endWrite();
        written.end(user, step.more);
        if (limited) written.end(limited, step.more);
      }
    },
  };
}

/** Amounts whose row is being written: memory holds them back, the guard must not count them twice. */
function createAmountsBeingWritten() {
  const amounts = new Map<UserAccount | TokenAccount, number>();
  return {
    begin(account: UserAccount | TokenAccount, amount: number): void {
      account.reserved += amount;
      amounts.set(account, (amounts.get(account) ?? 0) + amount);
    },
    end(account: UserAccount | TokenAccount, amount: number): void {
      account.reserved -= amount;
      const left = (amounts.get(account) ?? 0) - amount;
      if (left > 0) amounts.set(account, left);
      else amounts.delete(account);
    },
    unknownToDatabase: (account: UserAccount | TokenAccount): number =>
      Math.max(0, account.reserved - (amounts.get(account) ?? 0)),
  };
}

function isInTransit(account: UserAccount | TokenAccount | undefined): boolean {
  return account !== undefined && account.pending + account.returning > 0;
}

/** The database answered, and not that it is on its way down or up: waiting does not help. */
function isRefused(error: unknown): boolean {
  const state = sqlState(error);
  return /^[0-9A-Z]{5}$/.test(state) && !/^(08|25006|53|55|57|E)/.test(state);
}
