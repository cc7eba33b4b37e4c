// Reservations of several nodes on one PostgreSQL: near zero the amount leaves the balance durably before the call.
// Refuses to trust memory there: the guarded update decides, and a lease returns what a dead node held.
import { randomBytes } from "node:crypto";
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Orm, Steps } from "../db/database.ts";
import { Failure } from "../shared/failures.ts";
import type { LedgerAccounts } from "./accounts.ts";
import { within } from "./deadline.ts";
import type { Deps, ReserveRequest, TokenAccount, UserAccount } from "./deps.ts";
import { Hold } from "./ledger-hold.ts";
import type { HoldKeeper } from "./ledger-hold.ts";
import type { DurableHold } from "./ledger-items.ts";
import { givenBack, holdOf, lockRows, rows } from "./ledger-postgres.ts";

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

/** Rolls the reservation back: the row's figure did not suffice. */
class Short extends Error {
  constructor(
    readonly what: "user" | "token",
    readonly found: number,
  ) {
    super(`${what} short`);
  }
}

export interface SharedHolds {
  isNearZero(available: number, amount: number): boolean;
  /** Throws what `userShort` or `tokenShort` make of the figure that was found. */
  hold(
    request: ReserveRequest,
    keeper: HoldKeeper,
    userShort: (available: number, amount: number) => Failure,
    tokenShort: (available: number, amount: number) => Failure,
  ): Promise<Hold>;
  renew(keys: readonly string[]): Promise<void>;
  /** Gives back what an earlier run of this node held: call before the first reservation. */
  releaseOwn(): Promise<void>;
  /** Gives back what any dead node held. */
  releaseExpired(): Promise<void>;
}

export interface SharedHoldsDeps extends Pick<Deps, "db" | "clock" | "nodeId"> {
  accounts: LedgerAccounts;
  /** Longest wait for one answer of the database, in milliseconds. */
  databaseWaitMs: number;
  /** Applies what is settled here but not yet in the database. */
  drain: () => Promise<void>;
}

export function createSharedHolds(deps: SharedHoldsDeps): SharedHolds {
  const { db, clock, nodeId, accounts, databaseWaitMs, drain } = deps;
  const prefix = `${nodeId}.${randomBytes(4).toString("hex")}`;
  let count = 0;
  /** Amounts whose reservation is being written: memory holds them back, the guard must not count them twice. */
  const underway = new Map<UserAccount | TokenAccount, number>();

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

  function leaseEnd(): number {
    return Math.floor(clock.nowMs() / 1000) + LEASE_SECONDS;
  }

  function* holdSteps(tx: Orm, hold: DurableHold, userHeld: number, tokenHeld: number): Steps<HeldFigures> {
    const { amount, userId, tokenId } = hold;
    const [user] = yield* rows(
      tx,
      sql`update users set quota = quota - ${amount}
        where id = ${userId} and quota >= ${amount + userHeld} and deleted_at is null returning quota`,
    );
    if (!user) {
      const [row] = yield* rows(tx, sql`select quota from users where id = ${userId} and deleted_at is null`);
      throw new Short("user", Number(row?.quota ?? 0) - userHeld);
    }
    let remainQuota: number | undefined;
    if (tokenId !== 0) {
      const [token] = yield* rows(
        tx,
        sql`update tokens set remain_quota = remain_quota - ${amount}
          where id = ${tokenId} and remain_quota >= ${amount + tokenHeld} and deleted_at is null
          returning remain_quota`,
      );
      if (!token) {
        const [row] = yield* rows(tx, sql`select remain_quota from tokens where id = ${tokenId}`);
        throw new Short("token", Number(row?.remain_quota ?? 0) - tokenHeld);
      }
      remainQuota = Number(token.remain_quota);
    }
    yield* rows(
      tx,
      sql`insert into reservations (request_id, user_id, token_id, amount, node_id, expires_at)
        values (${hold.key}, ${userId}, ${tokenId}, ${amount}, ${nodeId}, ${leaseEnd()})`,
    );
    return { quota: Number(user.quota), remainQuota };
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

    async hold({ requestId, user, token, amount }, keeper, userShort, tokenShort) {
      const limited = token && !token.unlimitedQuota ? token : undefined;
      // Someone without any balance must not cost a transaction per call.
      const known = user.quota - unknownToDatabase(user);
      if (known <= 0 && accounts.isCertain(user.id)) throw userShort(known, amount);

      const tokenId = limited?.id ?? 0;
      begin(user, amount);
      if (limited) begin(limited, amount);
      const endWrite = accounts.beginWrite([user.id], tokenId === 0 ? [] : [tokenId]);
      try {
        for (let tries = 1; ; tries++) {
          const hold = { key: `${prefix}.${++count}.${requestId}`, amount, userId: user.id, tokenId };
          const userHeld = unknownToDatabase(user);
          const tokenHeld = limited ? unknownToDatabase(limited) : 0;
          try {
            // Committed after the deadline it has no holder, and its lease returns it.
            const writing = db.atomic((tx) => holdSteps(tx, hold, userHeld, tokenHeld));
            const figures = await within(databaseWaitMs, writing);
            user.quota = figures.quota;
            if (limited && figures.remainQuota !== undefined) limited.remainQuota = figures.remainQuota;
            return new Hold(keeper, requestId, amount, user, token, hold);
          } catch (error) {
            if (!(error instanceof Short)) {
              throw new Failure("internal", "ledger_down", { status: 503, cause: error });
            }
            // A charge that reached the database during the query was counted twice: look again without it.
            if (tries === 1 && (userHeld > 0 || tokenHeld > 0)) await drain();
            else
              throw error.what === "user" ? userShort(error.found, amount) : tokenShort(error.found, amount);
          }
        }
      } finally {
        endWrite();
        end(user, amount);
        if (limited) end(limited, amount);
      }
    },

    async renew(keys) {
      if (keys.length === 0) return;
      await db.atomic(function* (tx) {
        yield* rows(
          tx,
          sql`update reservations set expires_at = ${leaseEnd()}
            where request_id in (select value from json_array_elements_text(${JSON.stringify(keys)}::json))`,
        );
      });
    },
    releaseOwn: () => releaseWhere(sql`node_id = ${nodeId}`),
    releaseExpired: () => releaseWhere(sql`expires_at < ${Math.floor(clock.nowMs() / 1000)}`),
  };
}

interface HeldFigures {
  quota: number;
  remainQuota: number | undefined;
}

function entries(sums: Map<number, number>): string {
  return JSON.stringify([...sums].map(([id, amount]) => ({ id, amount })));
}
