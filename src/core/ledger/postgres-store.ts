// Settlement on PostgreSQL: what is durable in the local journal is applied in order and in batches.
// Refuses to apply an entry twice: the node's position moves in the same transaction as the sums.
import type { SQL } from "drizzle-orm";
import { sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Query, Steps } from "../../db/database.ts";
import { sqlState } from "../../db/sql-state.ts";
import { TokenStatus } from "../../shared/enums.ts";
import type { LedgerAccounts, Deps, BalanceWatch } from "../deps.ts";
import { within } from "../kit/deadline.ts";
import { JournalDamaged } from "./journal.ts";
import type { Journal, JournalEntry } from "./journal.ts";
import { MAX_BATCH } from "./group-commit.ts";
import { chargedBalances } from "./store.ts";
import type { Books } from "./store.ts";
import { endPending, sumUp } from "./items.ts";
import type { BatchSums, DurableHold, LedgerItem } from "./items.ts";
import type { NodeSeat } from "./node-lease.ts";

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5000;
/** So often within one run the mark may have moved without this process. */
const MAX_MOVES = 2;

export interface PostgresBooksDeps extends Pick<Deps, "db" | "clock" | "logger"> {
  seat: NodeSeat;
  journal: Journal<LedgerItem>;
  accounts: LedgerAccounts;
  /** Longest wait for one answer of the database, in milliseconds. */
  databaseWaitMs: number;
  balances?: BalanceWatch;
  /** Told of each commit. */
  answered?: () => void;
}

/** The mark moved without this process: the last commit succeeded unheard, or an older file was put back. */
class PositionMoved extends Error {}

interface Figures {
  users: { id: number; quota: number; usedQuota: number; requestCount: number }[];
  tokens: { id: number; remainQuota: number; usedQuota: number; status: number }[];
}

/** Runs raw SQL inside an atomic body; PostgreSQL's 64-bit numbers arrive as text. */
export function* rows(tx: Orm, statement: SQL): Steps<Record<string, string | number>[]> {
  const executor = tx as unknown as { execute(statement: SQL): Query<Record<string, string | number>[]> };
  return yield* q(executor.execute(statement));
}

/** Locks the rows in the order of their ids, so that batches and reservations of several nodes cannot deadlock. */
export function* lockRows(
  tx: Orm,
  table: "users" | "tokens" | "channels",
  ids: Iterable<number>,
): Steps<void> {
  const list = JSON.stringify([...ids]);
  if (list === "[]") return;
  yield* rows(
    tx,
    sql`select id from ${sql.identifier(table)}
      where id = any(array(select value::bigint from json_array_elements_text(${list}::json)))
      order by id for no key update`,
  );
}

export function createPostgresBooks(deps: PostgresBooksDeps): Books {
  const { db, clock, logger, accounts, journal, seat, databaseWaitMs } = deps;
  /** Position up to which PostgreSQL has everything. */
  let applied = 0;
  /** Entries from here on were queued by this process and count in the memory of its accounts. */
  let firstOwn = 0;
  /** Up to here memory has followed: what is entered anew after the books fell back counts there no second time. */
  let ended = 0;
  let isMarkKnown = false;
  let failures = 0;
  let isClosed = false;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let draining: Promise<void> | undefined;
  /** The journal's last position at the last look. */
  let lookedAt = 0;
  /** Told when the books have come to their position, or could not. */
  let waiters: { position: number; resolve(): void }[] = [];

  async function applyNext(entries: JournalEntry<LedgerItem>[]): Promise<void> {
    if (!isMarkKnown) {
      const mark = await within(databaseWaitMs, seat.look());
      if (mark < applied) goBack(mark);
      isMarkKnown = true;
      // The entries were read behind another mark.
      if (mark < (entries[0]?.position ?? 0) - 1) return;
      const known = entries.filter((entry) => entry.position <= mark);
      if (known.length > 0) return acknowledge(known);
    }
    await applyBatch(entries);
  }

  /** An older state of the database was put back: what it lacks is entered again, or nothing more is answered. */
  function goBack(mark: number): void {
    logger.error("the database fell back: what it lacks is entered again from the journal", {
      from: applied,
      to: mark,
    });
    try {
      journal.rewind(mark);
      applied = mark;
    } catch (error) {
      if (error instanceof JournalDamaged) seat.lose(error.message);
      throw error;
    }
  }

  /** The entries are in the books already, only the answer was lost: memory follows. */
  function acknowledge(entries: JournalEntry<LedgerItem>[]): void {
    applied = entries.at(-1)?.position ?? applied;
    journal.trim(applied, durableAlready);
    endOwn(entries);
    const ids = new Set(entries.flatMap(({ item }) => (item.row ? [item.row.userId] : [])));
    for (const id of ids) {
      if (!accounts.cachedUser(id)) continue;
      accounts.userChanged(id).catch((error: unknown) => {
        logger.warn("account could not be re-read", { user: id, error: String(error) });
      });
    }
  }

  function endOwn(entries: JournalEntry<LedgerItem>[]): void {
    for (const { position, item } of entries)
      if (position >= firstOwn && position > ended) endPending(accounts, item);
    ended = Math.max(ended, entries.at(-1)?.position ?? 0);
  }

  async function applyBatch(entries: JournalEntry<LedgerItem>[]): Promise<void> {
    const sums = sumUp(entries.map((entry) => entry.item));
    const first = entries[0]?.position ?? 0;
    const last = entries.at(-1)?.position ?? 0;
    const userIds = new Set([...sums.users.keys(), ...sums.holds.map((hold) => hold.userId)]);
    const tokenIds = new Set([...sums.tokens.keys(), ...sums.holds.map((hold) => hold.tokenId)]);
    tokenIds.delete(0);
    const endWrite = accounts.beginWrite(userIds, tokenIds);
    try {
      // Should it be committed after the deadline, the next try finds the mark moved.
      const figures = await within(
        databaseWaitMs,
        db.atomic((tx) => settleSteps(tx, sums, userIds, tokenIds, first, last)),
      );
      applied = last;
      deps.answered?.();
      journal.trim(last, durableAlready);
      for (const each of figures.users) Object.assign(accounts.cachedUser(each.id) ?? {}, each);
      for (const each of figures.tokens) Object.assign(accounts.cachedToken(each.id) ?? {}, each);
      endOwn(entries);
      deps.balances?.charged(chargedBalances(figures.users, sums.users));
    } catch (error) {
      if (!isContentError(error)) throw error;
      if (entries.length > 1) for (const entry of entries) await applyBatch([entry]);
      else {
        logger.error("a settlement was refused by the database and set aside", {
          requestId: entries[0]?.item.row?.requestId,
          error: String(error),
        });
        for (const entry of entries) journal.setAside(entry, String(error), clock.nowMs());
        // Without it every start would meet the entry again.
        await within(
          databaseWaitMs,
          db.atomic((tx) => moveMark(tx, first, last, 1, 0)),
        );
        applied = last;
        journal.trim(last, durableAlready);
      }
    } finally {
      endWrite();
    }
  }

  /** The seat is this process's and the books end right before the batch, or nothing of it is entered. */
  function* moveMark(tx: Orm, first: number, last: number, setAside: number, skipped: number): Steps<void> {
    const entered = last - first + 1 - setAside - skipped;
    const moved = yield* rows(
      tx,
      sql`update nodes set mark = ${last}, journaled = ${journal.lastPosition}, entered = entered + ${entered},
          set_aside = set_aside + ${setAside}, skipped = skipped + ${skipped}
        where node_id = ${seat.nodeId} and incarnation = ${seat.incarnation} and mark = ${first - 1}
        returning mark`,
    );
    if (moved.length === 0) throw new PositionMoved();
  }

  function* settleSteps(
    tx: Orm,
    sums: BatchSums,
    userIds: Iterable<number>,
    tokenIds: Iterable<number>,
    first: number,
    last: number,
  ): Steps<Figures> {
    yield* moveMark(tx, first, last, 0, sums.skipped);
    yield* lockRows(tx, "users", userIds);
    yield* lockRows(tx, "tokens", tokenIds);
    yield* lockRows(tx, "channels", sums.channels.keys());
    const closed = yield* closeHolds(tx, sums.holds);
    const figures = {
      users: yield* chargeUsers(tx, sums, closed),
      tokens: yield* chargeTokens(tx, sums, closed),
    };
    yield* chargeChannels(tx, sums);
    yield* insertLogs(tx, sums);
    yield* addRollups(tx, sums);
    return figures;
  }

  async function drainAll(): Promise<void> {
    let moves = 0;
    while (!isClosed && seat.isHeld) {
      const entries = journal.read(applied, MAX_BATCH);
      lookedAt = journal.lastPosition;
      if (entries.length === 0) break;
      try {
        await applyNext(entries);
      } catch (error) {
        // Whose the books are now is asked at once: until then calls are answered that may belong to nobody.
        if (!(error instanceof PositionMoved) || ++moves > MAX_MOVES) throw error;
        isMarkKnown = false;
        continue;
      }
      failures = 0;
      tellWaiters(applied);
    }
    tellWaiters(Infinity);
  }

  function tellWaiters(upTo: number): void {
    const told = waiters.filter((waiter) => waiter.position <= upTo);
    if (told.length === 0) return;
    waiters = waiters.filter((waiter) => waiter.position > upTo);
    for (const waiter of told) waiter.resolve();
  }

  /** What was answered in the moments before the loss was noticed is kept: the files are not touched any more. */
  function tellOfTheLost(): void {
    if (journal.lastPosition <= applied) return;
    logger.error("settlements of this process stand in its journal and in no book", {
      from: applied + 1,
      to: journal.lastPosition,
    });
  }

  /** Never rejects: a failure is tried again later, in growing intervals. */
  function kick(): Promise<void> {
    clearTimeout(retry);
    retry = undefined;
    draining ??= drainAll()
      .catch((error: unknown) => {
        isMarkKnown = false;
        failures++;
        tellWaiters(Infinity);
        const level = error instanceof PositionMoved ? "info" : failures === 1 ? "error" : "debug";
        logger[level]("settlements wait for the database", {
          waiting: journal.lastPosition - applied,
          error: String(error),
        });
        if (!seat.isHeld) tellOfTheLost();
        if (isClosed || !seat.isHeld) return;
        retry = setTimeout(() => void kick(), Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS));
        retry.unref();
      })
      .finally(() => {
        draining = undefined;
        if (isClosed) tellWaiters(Infinity);
        // Entries, or somebody who waits, that came after the last look.
        else if (waiters.length > 0 || (failures === 0 && seat.isHeld && journal.lastPosition > lookedAt))
          void kick();
      });
    return draining;
  }

  return {
    async start() {
      journal.resume(seat.books);
      applied = seat.books.mark;
      await drainAll();
      firstOwn = journal.lastPosition + 1;
      seat.watchMark((mark) => {
        if (mark >= applied || draining !== undefined) return;
        isMarkKnown = false;
        void kick();
      });
    },
    wake() {
      if (retry === undefined) void kick();
    },
    async drain() {
      const position = journal.lastPosition;
      // After a refusal connections may still be gone that nobody has tried since: then a second run finds new ones.
      for (let runs = draining || retry ? 2 : 1; runs > 0 && position > applied && !isClosed; runs--) {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiters.push({ position, resolve });
        void kick();
        await promise;
      }
    },
    backlog: () => Math.max(0, journal.lastPosition - applied),
    close() {
      isClosed = true;
      clearTimeout(retry);
      tellWaiters(Infinity);
    },
  };
}

/** A commit of PostgreSQL has been synced when it is answered. */
const durableAlready = () => Promise.resolve();

/** Data that PostgreSQL will never take (class 22) or a broken constraint (class 23): waiting does not help. */
function isContentError(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error));
}

/** Rows that are still open; one that its lease has already returned is charged in full instead. */
function* closeHolds(tx: Orm, holds: DurableHold[]): Steps<DurableHold[]> {
  if (holds.length === 0) return [];
  const keys = JSON.stringify(holds.map((hold) => hold.key));
  const found = yield* rows(
    tx,
    sql`delete from reservations
      where request_id in (select value from json_array_elements_text(${keys}::json))
      returning request_id, user_id, token_id, amount`,
  );
  return found.map(holdOf);
}

export function holdOf(row: Record<string, string | number>): DurableHold {
  return {
    key: String(row.request_id),
    userId: Number(row.user_id),
    tokenId: Number(row.token_id),
    amount: Number(row.amount),
  };
}

/** What is given back, by user or by token. */
export function givenBack(holds: DurableHold[], of: "userId" | "tokenId"): Map<number, number> {
  const sums = new Map<number, number>();
  for (const hold of holds) if (hold[of] !== 0) sums.set(hold[of], (sums.get(hold[of]) ?? 0) + hold.amount);
  return sums;
}

function* chargeUsers(tx: Orm, sums: BatchSums, closed: DurableHold[]): Steps<Figures["users"]> {
  const back = givenBack(closed, "userId");
  const changes = [...new Set([...sums.users.keys(), ...back.keys()])].map((id) => {
    const { charge, count } = sums.users.get(id) ?? { charge: 0, count: 0 };
    return { id, take: charge - (back.get(id) ?? 0), charge, count };
  });
  if (changes.length === 0) return [];
  const found = yield* rows(
    tx,
    sql`update users set quota = users.quota - v.take, used_quota = users.used_quota + v.charge,
        request_count = users.request_count + v.count
      from json_to_recordset(${JSON.stringify(changes)}::json)
        as v(id bigint, take bigint, charge bigint, count bigint)
      where users.id = v.id
      returning users.id, users.quota, users.used_quota, users.request_count`,
  );
  return found.map((row) => ({
    id: Number(row.id),
    quota: Number(row.quota),
    usedQuota: Number(row.used_quota),
    requestCount: Number(row.request_count),
  }));
}

/** A limited key is exhausted when nothing is left, not even in reservations that may still be given back. */
function* chargeTokens(tx: Orm, sums: BatchSums, closed: DurableHold[]): Steps<Figures["tokens"]> {
  const back = givenBack(closed, "tokenId");
  const changes = [...new Set([...sums.tokens.keys(), ...back.keys()])].map((id) => {
    const { charge, accessedTime } = sums.tokens.get(id) ?? { charge: 0, accessedTime: 0 };
    return { id, take: charge - (back.get(id) ?? 0), charge, accessed: accessedTime };
  });
  if (changes.length === 0) return [];
  const found = yield* rows(
    tx,
    sql`update tokens set remain_quota = tokens.remain_quota - v.take, used_quota = tokens.used_quota + v.charge,
        accessed_time = greatest(tokens.accessed_time, v.accessed),
        status = case when not tokens.unlimited_quota and tokens.status = ${TokenStatus.enabled}
          and tokens.remain_quota - v.take + coalesce(
            (select sum(r.amount) from reservations r where r.token_id = tokens.id), 0) <= 0
          then ${TokenStatus.exhausted}::integer else tokens.status end
      from json_to_recordset(${JSON.stringify(changes)}::json)
        as v(id bigint, take bigint, charge bigint, accessed bigint)
      where tokens.id = v.id
      returning tokens.id, tokens.remain_quota, tokens.used_quota, tokens.status`,
  );
  return found.map((row) => ({
    id: Number(row.id),
    remainQuota: Number(row.remain_quota),
    usedQuota: Number(row.used_quota),
    status: Number(row.status),
  }));
}

function* chargeChannels(tx: Orm, sums: BatchSums): Steps<void> {
  const changes = [...sums.channels].map(([id, charge]) => ({ id, charge }));
  if (changes.length === 0) return;
  yield* rows(
    tx,
    sql`update channels set used_quota = channels.used_quota + v.charge
      from json_to_recordset(${JSON.stringify(changes)}::json) as v(id bigint, charge bigint)
      where channels.id = v.id`,
  );
}

function* insertLogs(tx: Orm, sums: BatchSums): Steps<void> {
  if (sums.logs.length === 0) return;
  yield* rows(
    tx,
    sql`insert into logs (created_at, type, user_id, channel_id, token_id, quota, prompt_tokens, completion_tokens,
        use_time_ms, is_stream, request_id, model_name, username, token_name, "group", content, other)
      select * from json_to_recordset(${JSON.stringify(sums.logs)}::json) as v("createdAt" bigint, type integer,
        "userId" bigint, "channelId" bigint, "tokenId" bigint, quota bigint, "promptTokens" bigint,
        "completionTokens" bigint, "useTimeMs" bigint, "isStream" boolean, "requestId" text, "modelName" text,
        username text, "tokenName" text, "group" text, content text, other text)`,
  );
}

function* addRollups(tx: Orm, sums: BatchSums): Steps<void> {
  if (sums.rollups.length === 0) return;
  yield* rows(
    tx,
    sql`insert into rollups as r (hour, user_id, model_name, channel_id, token_id, "group", count, quota,
        prompt_tokens, completion_tokens, use_time_ms, logged_count, logged_quota)
      select * from json_to_recordset(${JSON.stringify(sums.rollups)}::json) as v(hour bigint, "userId" bigint,
        "modelName" text, "channelId" bigint, "tokenId" bigint, "group" text, count bigint, quota bigint,
        "promptTokens" bigint, "completionTokens" bigint, "useTimeMs" bigint, "loggedCount" bigint,
        "loggedQuota" bigint)
      order by 1, 2, 3, 4, 5, 6
      on conflict (hour, user_id, model_name, channel_id, token_id, "group") do update set
        count = r.count + excluded.count, quota = r.quota + excluded.quota,
        prompt_tokens = r.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = r.completion_tokens + excluded.completion_tokens,
        use_time_ms = r.use_time_ms + excluded.use_time_ms,
        logged_count = r.logged_count + excluded.logged_count,
        logged_quota = r.logged_quota + excluded.logged_quota`,
  );
}
