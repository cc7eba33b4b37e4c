// Rows of `reservations`: amounts that left a balance durably before the call. What a step takes is decided by the rows
// of user and key under a lock; a lease returns what a dead node held.
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { fixedQuery, flightOf, q, rawQuery } from "../../db/database.ts";
import type { Database, Orm, Query, RawRow, Steps } from "../../db/database.ts";
import { MAX_QUOTA } from "../../shared/money.ts";
import type { LedgerAccounts, TokenAccount, UserAccount } from "../deps.ts";
import type { DurableHold } from "./items.ts";
import { givenBack, holdOf, lockRows, rows } from "./postgres-statements.ts";

/** How long a reservation stands without a sign of life from its node, which renews twice a minute. */
const LEASE_SECONDS = 600;
const SWEEP_ROWS = 500;
/** Of a transaction near zero, below the ten seconds that its likes wait for their turn. */
const MAX_STILL_MS = 8000;

/** By the database's clock, which all nodes share. */
const LEASE_END = sql`floor(extract(epoch from now()))::bigint + ${LEASE_SECONDS}::bigint`;

/** What is free of user and key, and what would be free without the open holds. */
export interface Shortage {
  userFree: number;
  userWithoutHolds: number;
  /** Of the balance what a plan without overflow keeps from calls; not part of the two. */
  planFloor: number;
  /** Both MAX_QUOTA for a key without a limit. */
  tokenFree: number;
  tokenWithoutHolds: number;
}

/** The rows are short of the amount. Thrown out of the transaction, which it rolls back. */
export class BalanceShort extends Error {
  constructor(readonly shortage: Shortage) {
    super("short");
  }
}

/** The tables end before what this process brought into them: an older state was put back, whose balances are too high. */
export class TablesFell extends Error {
  constructor() {
    super("the database fell back");
  }
}

/** One step to be decided by the rows: the first of a hold, or one that lengthens it. */
export interface Step {
  row: DurableHold;
  /** As much of this as there is; all or nothing where that is below `least`. */
  more: number;
  least: number;
}

/** Whose balances a step is taken from. */
export interface Payers {
  user: UserAccount;
  /** Undefined where the key has no limit of its own. */
  limited: TokenAccount | undefined;
}

/** As it is when the transaction begins, and again when it is repeated. */
export interface AtBegin {
  /** What memory holds back of either and the database does not know. */
  user: number;
  token: number;
  /** What of this node's journal the tables have at least. */
  applied: number;
  /** When this node's row was written last, by the database's clock. */
  writtenAt: number;
  /** As long as anybody waits for the answer. */
  leftMs: number;
}

export interface Taken {
  amount: number;
  quota: number;
  remainQuota: number | undefined;
}

export function* sumOfRows(tx: Orm, column: "user_id" | "token_id", id: number): Steps<number> {
  const [row] = yield* rows(
    tx,
    sql`select coalesce(sum(amount), 0) as amount from reservations where ${sql.identifier(column)} = ${id}`,
  );
  return Number(row?.amount ?? 0);
}

/** Throws BalanceShort, or TablesFell. */
export function* takeSteps(
  tx: Orm,
  nodeId: string,
  { row, more, least }: Step,
  { user, limited }: Payers,
  held: AtBegin,
): Steps<Taken> {
  const { userId, tokenId } = row;
  const { quota, planFloor, remainQuota, mark, writtenAt } = yield* readBalances(
    tx,
    nodeId,
    row,
    more > 0 ? boundWait(tx, held.leftMs) : undefined,
  );
  // A node that settled nothing since has its mark in the older state, too; its row was written since.
  if (mark < held.applied || writtenAt < held.writtenAt) throw new TablesFell();
  const userFree = quota - planFloor - held.user;
  const tokenFree = remainQuota === undefined ? MAX_QUOTA : remainQuota - held.token;
  const amount = Math.min(more, userFree, tokenFree);
  if (amount < least || userFree <= 0 || tokenFree <= 0) {
    throw new BalanceShort({
      userFree,
      userWithoutHolds: quota - planFloor + (yield* sumOfRows(tx, "user_id", userId)) - user.pending,
      planFloor,
      tokenFree,
      tokenWithoutHolds:
        remainQuota === undefined
          ? MAX_QUOTA
          : remainQuota + (yield* sumOfRows(tx, "token_id", tokenId)) - (limited?.pending ?? 0),
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
  yield* rows(tx, addToRow(nodeId, { ...row, amount }));
  return {
    amount,
    quota: quota - amount,
    remainQuota: remainQuota === undefined ? undefined : remainQuota - amount,
  };
}

/**
 * Takes what open holds took before an older state of the database was put back, as far as that does not have it: their rows are
 * written again, and their amounts leave the balances again. `isOpen` is asked when the accounts are locked: what is settled by
 * then closes no row any more.
 */
export function* takeAgainSteps(
  tx: Orm,
  nodeId: string,
  holds: readonly DurableHold[],
  isOpen: (key: string) => boolean,
): Steps<void> {
  yield* lockRows(tx, "users", new Set(holds.map((hold) => hold.userId)));
  yield* lockRows(tx, "tokens", new Set(holds.flatMap((hold) => hold.tokenId || [])));
  const open = holds.filter((hold) => isOpen(hold.key));
  const keys = JSON.stringify(open.map((hold) => hold.key));
  const found = yield* rows(
    tx,
    sql`select request_id, user_id, token_id, amount from reservations
      where request_id in (select value from json_array_elements_text(${keys}::json))`,
  );
  const there = new Map(found.map(holdOf).map((hold) => [hold.key, hold.amount]));
  for (const { key, amount, userId, tokenId } of open) {
    const missing = amount - (there.get(key) ?? 0);
    if (missing <= 0) continue;
    yield* rows(tx, sql`update users set quota = quota - ${missing}::bigint where id = ${userId}`);
    if (tokenId !== 0)
      yield* rows(
        tx,
        sql`update tokens set remain_quota = remain_quota - ${missing}::bigint where id = ${tokenId}`,
      );
    yield* rows(tx, addToRow(nodeId, { key, amount: missing, userId, tokenId }));
  }
}

/** Adds the amount to the row, which is made where there is none. */
function addToRow(nodeId: string, { key, amount, userId, tokenId }: DurableHold): SQL {
  return sql`insert into reservations as r (request_id, user_id, token_id, amount, node_id, expires_at)
    values (${key}, ${userId}, ${tokenId}, ${amount}, ${nodeId}, ${LEASE_END})
    on conflict (request_id) do update set amount = r.amount + excluded.amount`;
}

/**
 * Nobody's connection waits for a row longer than its caller does. The transaction itself must not stand still longer than
 * others wait for it, which a session through a pooler was not told when it was opened (db/postgres.ts).
 */
function boundWait(tx: Orm, leftMs: number): Query<RawRow[]> {
  const lockMs = Math.min(MAX_STILL_MS, Math.max(1, Math.ceil(leftMs)));
  return fixedQuery(
    tx,
    `select set_config('lock_timeout', $1, true),
      set_config('idle_in_transaction_session_timeout', '${MAX_STILL_MS}', true)`,
    [String(lockMs)],
  );
}

const NODE_MARK = "select mark, updated_at from nodes where node_id = $1";

/**
 * The balances as the rows have them, which are locked where the wait for that is bound; what holds nothing back waits for
 * nobody. With them how much of this node's journal is in these tables, and when its row was written.
 */
function* readBalances(
  tx: Orm,
  nodeId: string,
  { userId, tokenId }: DurableHold,
  bound: Query<RawRow[]> | undefined,
): Steps<Pick<Taken, "quota" | "remainQuota"> & { planFloor: number; mark: number; writtenAt: number }> {
  const lock = bound ? sql`for no key update` : sql``;
  const ofUser = rawQuery(
    tx,
    sql`select quota, case when plan_strict then greatest(0, plan_wallet) else 0 end as plan_floor
      from users where id = ${userId} and deleted_at is null ${lock}`,
  );
  const ofNode = fixedQuery(tx, NODE_MARK, [nodeId]);
  const answers = yield* q(flightOf(bound ? [bound, ofNode, ofUser] : [ofNode, ofUser]));
  const userRow = answers.at(-1)?.[0];
  const node = answers.at(-2)?.[0];
  const mark = Number(node?.["mark"] ?? 0);
  const writtenAt = Number(node?.["updated_at"] ?? 0);
  const quota = Number(userRow?.quota ?? 0);
  const planFloor = Number(userRow?.plan_floor ?? 0);
  if (tokenId === 0) return { quota, planFloor, remainQuota: undefined, mark, writtenAt };
  const [tokenRow] = yield* rows(
    tx,
    sql`select remain_quota from tokens where id = ${tokenId} and deleted_at is null ${lock}`,
  );
  return { quota, planFloor, remainQuota: Number(tokenRow?.remain_quota ?? 0), mark, writtenAt };
}

export async function renewLeases(db: Database, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  await db.atomic(function* (tx) {
    yield* rows(
      tx,
      sql`update reservations set expires_at = ${LEASE_END}
        where request_id in (select value from json_array_elements_text(${JSON.stringify(keys)}::json))`,
    );
  });
}

/** Of this node's earlier runs. */
export function isOfNode(nodeId: string): SQL {
  return sql`node_id = ${nodeId}`;
}

/**
 * Past its lease and renewed by nobody: of this node itself, which renews its own before it asks, or of one that is gone. After
 * an outage those of nodes that live have not been renewed yet.
 */
export function isExpired(nodeId: string): SQL {
  return sql`expires_at < floor(extract(epoch from now())) and (node_id = ${nodeId} or not exists (
    select 1 from nodes where nodes.node_id = reservations.node_id
      and nodes.lease_until >= floor(extract(epoch from now()))))`;
}

/** As `isExpired`, asked by itself: nearly always there are none, and no transaction is begun. */
const ANY_EXPIRED = "select 1 from reservations where expires_at < floor(extract(epoch from now())) limit 1";

export async function areAnyExpired(orm: Orm): Promise<boolean> {
  return (await fixedQuery(orm, ANY_EXPIRED, [])).length > 0;
}

/** Gives back what the rows hold for which the condition is true, some hundreds in a transaction. */
export async function returnReservations(
  { db, accounts }: { db: Database; accounts: LedgerAccounts },
  condition: SQL,
): Promise<void> {
  for (;;) {
    const returned = await db.atomic((tx) => returnSteps(tx, condition));
    await accounts.usersCharged([...new Set(returned.map((hold) => hold.userId))]);
    for (const id of new Set(returned.map((hold) => hold.tokenId)))
      if (id !== 0) await accounts.tokenCharged(id);
    if (returned.length === 0) return;
  }
}

function* returnSteps(tx: Orm, condition: SQL): Steps<DurableHold[]> {
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
  yield* rows(
    tx,
    sql`update users set quota = users.quota + v.amount
      from json_to_recordset(${amountList(givenBack(holds, "userId"))}::json) as v(id bigint, amount bigint)
      where users.id = v.id`,
  );
  yield* rows(
    tx,
    sql`update tokens set remain_quota = tokens.remain_quota + v.amount
      from json_to_recordset(${amountList(givenBack(holds, "tokenId"))}::json) as v(id bigint, amount bigint)
      where tokens.id = v.id`,
  );
  return holds;
}

function amountList(sums: Map<number, number>): string {
  return JSON.stringify([...sums].map(([id, amount]) => ({ id, amount })));
}
