// Journal entries into PostgreSQL's tables, a batch in one transaction. Refuses to enter anything twice: the node's mark
// moves in the same transaction as the sums.
import { fixedQuery, q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { sqlState } from "../../db/sql-state.ts";
import type { BalanceWatch, Deps, LedgerAccounts } from "../deps.ts";
import { within } from "../kit/deadline.ts";
import { endPending, sumUp } from "./items.ts";
import type { BatchSums, LedgerItem } from "./items.ts";
import { JournalDamaged } from "./journal/journal.ts";
import type { Journal } from "./journal/journal.ts";
import type { JournalEntry } from "./journal/waiting.ts";
import type { NodeLease } from "./node-lease.ts";
import { createOneStatement } from "./postgres-batch.ts";
import type { OneStatement } from "./postgres-batch.ts";
import {
  CHECK_FAILED,
  checked,
  enterAtOnce,
  enterBatch,
  insertTexts,
  ZoneMoved,
} from "./postgres-statements.ts";
import type { Batch, InsertTexts, MarkStep } from "./postgres-statements.ts";
import { chargedBalances, setEntryAside } from "./store.ts";
import type { Figures, MarkMove } from "./store.ts";

export interface PostgresApplierDeps extends Pick<Deps, "db" | "clock" | "logger"> {
  lease: NodeLease;
  journal: Journal<LedgerItem>;
  accounts: LedgerAccounts;
  /** Longest wait for one answer of the database, in milliseconds. */
  databaseWaitMs: number;
  balances?: BalanceWatch;
  /** Called after each commit. */
  answered?: () => void;
  /** Called when the tables were found in an older state. */
  fellBack?: (fall: Fall) => void;
}

/** The tables were set back under a running process: to an older dump, or to a standby that lacked the last commits. */
export interface Fall {
  /** Positions of this node's journal from here on were in them, and are entered again. */
  from: number;
  /** Below `from`: nothing of this node is missing. */
  to: number;
  /** False where the journal no longer has all of that: nothing more is answered before a person has decided. */
  isReplayed: boolean;
  /** Found by a start, which goes on: whoever put the older state there has decided. */
  goesOn?: true;
}

/** The mark moved without this process: the last commit succeeded unheard, or an older file was put back. */
export class PositionMoved extends Error {}

export interface PostgresApplier {
  /** Position up to which PostgreSQL has everything. */
  readonly applied: number;
  start(applied: number): Promise<void>;
  /** Entries from here on were queued by this process and count in the memory of its accounts. */
  ownBegin(firstOwn: number): void;
  /** The next entries behind `applied`; throws PositionMoved, or what the database said. */
  apply(entries: JournalEntry<LedgerItem>[]): Promise<void>;
  /** The mark is looked up before the next entries are applied. */
  doubtMark(): void;
  /** Looks it up now, and goes back where the tables did; tells of it also where they lack nothing of this node. */
  checkMark(): Promise<void>;
}

type Entries = readonly JournalEntry<LedgerItem>[];

/** A commit of PostgreSQL has been synced when it is answered. */
const durableAlready = () => Promise.resolve();

/** Data that PostgreSQL will never take (class 22) or a broken constraint (class 23): waiting does not help. */
function isContentError(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error));
}

export function createPostgresApplier(deps: PostgresApplierDeps): PostgresApplier {
  const { db, logger, accounts, journal, lease, databaseWaitMs } = deps;
  const texts = insertTexts(db.t);
  const one = createOneStatement(deps, texts, MOVE_MARK_CHECKED);
  let applied = 0;
  let firstOwn = 0;
  /** Up to here memory has followed: what is entered anew after the tables fell back counts there no second time. */
  let ended = 0;
  let isMarkKnown = false;
  /** Whose days the coarse sums have, as of the last batch. */
  let zone = "UTC";

  /** False where the entries were read behind another mark, or are in the tables already. */
  async function confirmMark(entries: Entries): Promise<boolean> {
    const mark = await within(databaseWaitMs, lease.look());
    if (mark < applied) goBack(mark);
    isMarkKnown = true;
    if (mark < (entries[0]?.position ?? 0) - 1) return false;
    const known = entries.filter((entry) => entry.position <= mark);
    if (known.length > 0) acknowledge(known);
    return known.length === 0;
  }

  /** An older state was put back: what it lacks is entered again, or nothing more is answered; told here and not again. */
  function goBack(mark: number): void {
    const fall = { from: mark + 1, to: applied };
    lease.takeOlder();
    logger.error("the database fell back: what it lacks is entered again from the journal", fall);
    try {
      journal.rewind(mark);
      applied = mark;
      deps.fellBack?.({ ...fall, isReplayed: true });
    } catch (error) {
      if (error instanceof JournalDamaged) {
        lease.lose("missing", error.message);
        deps.fellBack?.({ ...fall, isReplayed: false });
      }
      throw error;
    }
  }

  /** The entries are in the tables already, only the answer was lost: memory follows. */
  function acknowledge(entries: Entries): void {
    moved(entries);
    endOwn(entries);
    reread(deps, entries);
  }

  function moved(entries: Entries): void {
    applied = entries.at(-1)?.position ?? applied;
    journal.trim(applied, durableAlready);
  }

  function endOwn(entries: Entries): void {
    for (const { position, item } of entries)
      if (position >= firstOwn && position > ended) endPending(accounts, item);
    ended = Math.max(ended, entries.at(-1)?.position ?? 0);
  }

  async function applyBatch(entries: Entries): Promise<void> {
    const sums = sumUp(entries.map((entry) => entry.item));
    const ids = idsOf(sums);
    const endWrite = accounts.beginWrite(ids.userIds, ids.tokenIds);
    try {
      // Should it be committed after the deadline, the next try finds the mark moved.
      const figures = await within(
        databaseWaitMs,
        enter(deps, { texts, one }, entries, { sums, ...ids, zone }),
      );
      deps.answered?.();
      moved(entries);
      for (const each of figures.users) Object.assign(accounts.cachedUser(each.id) ?? {}, each);
      for (const each of figures.tokens) Object.assign(accounts.cachedToken(each.id) ?? {}, each);
      endOwn(entries);
      deps.balances?.charged(chargedBalances(figures.users, sums.users));
    } catch (error) {
      if (error instanceof ZoneMoved) {
        ({ zone } = error);
        await applyBatch(entries);
        return;
      }
      if (!isContentError(error)) throw error;
      if (entries.length > 1) for (const entry of entries) await applyBatch([entry]);
      else {
        await within(databaseWaitMs, db.atomic(setAside(deps, entries, error)));
        moved(entries);
      }
    } finally {
      endWrite();
    }
  }

  return {
    get applied() {
      return applied;
    },
    start(position) {
      applied = position;
      return one.prepare();
    },
    ownBegin(position) {
      firstOwn = position;
    },
    async apply(entries) {
      if (isMarkKnown || (await confirmMark(entries))) await applyBatch(entries);
    },
    doubtMark() {
      isMarkKnown = false;
    },
    async checkMark() {
      const mark = await within(databaseWaitMs, lease.look());
      if (mark < applied) goBack(mark);
      else if (lease.takeOlder()) {
        logger.error("the database fell back: nothing of this node is missing in it", { mark });
        deps.fellBack?.({ from: applied + 1, to: applied, isReplayed: true });
      }
    },
  };
}

const MOVE_MARK = `update nodes set mark = $1, journaled = $2, entered = entered + $3, set_aside = set_aside + $4,
    skipped = skipped + $5
  where node_id = $6 and incarnation = $7 and mark = $8
  returning mark`;
const MOVE_MARK_CHECKED = `with moved as (${MOVE_MARK}) select ${checked("count(*) = 1")} from moved`;

/** The lease is this process's and the tables end right before the batch, or nothing of it is entered. */
function moveMark(
  tx: Orm,
  { lease, journal }: PostgresApplierDeps,
  { first, last, setAside, skipped }: MarkMove,
): MarkStep {
  const entered = last - first + 1 - setAside - skipped;
  const { nodeId, incarnation } = lease;
  const values = [last, journal.lastPosition, entered, setAside, skipped, nodeId, incarnation, first - 1];
  return {
    query: fixedQuery(tx, MOVE_MARK, values),
    checkedQuery: fixedQuery(tx, MOVE_MARK_CHECKED, values),
    values,
    assertMoved(moved) {
      if (moved.length === 0) throw new PositionMoved();
    },
  };
}

/** In one go where that is possible; what it stumbles over is looked at step by step. */
async function enter(
  deps: PostgresApplierDeps,
  { texts, one }: { texts: InsertTexts; one: OneStatement },
  entries: Entries,
  batch: Batch,
): Promise<Figures> {
  const { db } = deps;
  const move = (tx: Orm) =>
    moveMark(tx, deps, { ...spanOf(entries), setAside: 0, skipped: batch.sums.skipped });
  const body = (await one.bodyOf(batch, move)) ?? enterAtOnce(texts, batch, move);
  try {
    if (body) return await db.atomic(body, "at once");
  } catch (error) {
    if (sqlState(error) !== CHECK_FAILED && !one.isGone(error)) throw error;
  }
  return await db.atomic((tx) => enterBatch(tx, texts, batch, move(tx)));
}

/** Moves the mark past entries that the tables refuse: without it every start would meet them again. */
function setAside(deps: PostgresApplierDeps, entries: Entries, error: unknown) {
  let isTold = false;
  return function* (tx: Orm): Steps<void> {
    const { query, assertMoved } = moveMark(tx, deps, { ...spanOf(entries), setAside: 1, skipped: 0 });
    assertMoved(yield* q(query));
    // Before the commit, and only for entries that are this process's to give up.
    if (!isTold) for (const entry of entries) setEntryAside(deps, entry, error);
    isTold = true;
  };
}

/** Users and keys whose figures the lost answer would have brought. */
function reread({ accounts, logger }: PostgresApplierDeps, entries: Entries): void {
  const { userIds, tokenIds } = idsOf(sumUp(entries.map((entry) => entry.item)));
  const users = [...userIds].filter((id) => accounts.cachedUser(id));
  const tokens = [...tokenIds].filter((id) => accounts.cachedToken(id));
  for (const read of [accounts.usersCharged(users), ...tokens.map((id) => accounts.tokenCharged(id))])
    read.catch((error: unknown) => {
      logger.warn("accounts could not be re-read", { users, tokens, error: String(error) });
    });
}

function spanOf(entries: Entries): Pick<MarkMove, "first" | "last"> {
  return { first: entries[0]?.position ?? 0, last: entries.at(-1)?.position ?? 0 };
}

/** Whose rows a batch changes. */
function idsOf(sums: BatchSums): { userIds: Set<number>; tokenIds: Set<number> } {
  const userIds = new Set([...sums.users.keys(), ...sums.holds.map((hold) => hold.userId)]);
  const tokenIds = new Set([...sums.tokens.keys(), ...sums.holds.map((hold) => hold.tokenId)]);
  tokenIds.delete(0);
  return { userIds, tokenIds };
}
