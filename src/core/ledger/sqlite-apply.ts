// Journal entries into the embedded database's tables, a batch in one transaction. Refuses part of a batch, and to enter
// anything twice: the position stands in the same transaction.
import type { Database as BunSqlite } from "bun:sqlite";
import { sqlState } from "../../db/sql-state.ts";
import type { BalanceWatch, Deps, LedgerAccounts } from "../deps.ts";
import { endPending, sumUp } from "./items.ts";
import type { LedgerItem } from "./items.ts";
import type { Journal } from "./journal/journal.ts";
import type { JournalEntry } from "./journal/waiting.ts";
import { LeaseLost } from "./node-lease.ts";
import type { NodeLease } from "./node-lease.ts";
import { enterSums, prepareStatements } from "./sqlite-statements.ts";
import { chargedBalances, setEntryAside } from "./store.ts";
import type { Figures, MarkMove } from "./store.ts";

export interface SqliteApplierDeps extends Pick<Deps, "db" | "clock" | "logger"> {
  lease: NodeLease;
  journal: Journal<LedgerItem>;
  accounts: LedgerAccounts;
  balances?: BalanceWatch;
}

export interface SqliteApplier {
  /** Position up to which the tables have everything. */
  readonly applied: number;
  /** The tables end here; entries from `firstOwn` on were queued by this process and count in its accounts' memory. */
  start(applied: number, firstOwn: number): void;
  /** The batch, or its rows one by one where one of them is the reason that it fails. */
  apply(entries: readonly JournalEntry<LedgerItem>[]): void;
}

/** Data that the tables will never take: waiting does not help. */
function isContentError(error: unknown): boolean {
  return /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/.test(sqlState(error));
}

export function createSqliteApplier(client: BunSqlite, deps: SqliteApplierDeps): SqliteApplier {
  const { journal, accounts, balances, lease } = deps;
  const statements = prepareStatements(client, deps.db.t);
  let applied = 0;
  let firstOwn = 0;

  /** The lease is this process's and the tables end where it left them, or nothing of the batch is entered. */
  function moveMark({ first, last, setAside, skipped }: MarkMove): void {
    const { nodeId, incarnation } = lease;
    const entered = last - first + 1 - setAside - skipped;
    const moved = statements.moveMark.run(
      last,
      journal.lastPosition,
      entered,
      setAside,
      skipped,
      nodeId,
      incarnation,
      first - 1,
    );
    if (moved.changes === 0) throw new LeaseLost();
  }

  /** One transaction; memory follows. */
  function applyBatch(entries: readonly JournalEntry<LedgerItem>[]): void {
    const sums = sumUp(entries.map((entry) => entry.item));
    const last = entries.at(-1)?.position ?? applied;
    let figures: Figures;
    statements.begin.run();
    try {
      figures = enterSums(statements, sums);
      moveMark({ first: applied + 1, last, setAside: 0, skipped: sums.skipped });
      statements.commit.run();
    } catch (error) {
      if (client.inTransaction) client.run("rollback");
      throw error;
    }
    applied = last;
    accounts.beginWrite(sums.users.keys(), sums.tokens.keys())();
    for (const user of figures.users) {
      const account = accounts.cachedUser(user.id);
      if (account) Object.assign(account, user);
    }
    for (const token of figures.tokens) {
      const account = accounts.cachedToken(token.id);
      if (account) Object.assign(account, token);
    }
    for (const { position, item } of entries) if (position >= firstOwn) endPending(accounts, item);
    balances?.charged(chargedBalances(figures.users, sums.users));
  }

  function apply(entries: readonly JournalEntry<LedgerItem>[]): void {
    try {
      applyBatch(entries);
    } catch (error) {
      const [entry] = entries;
      if (entry === undefined || !isContentError(error)) throw error;
      if (entries.length > 1) for (const each of entries) apply([each]);
      else {
        setEntryAside(deps, entry, error);
        moveMark({ first: applied + 1, last: entry.position, setAside: 1, skipped: 0 });
        applied = entry.position;
      }
    }
  }

  return {
    get applied() {
      return applied;
    },
    start(position, own) {
      applied = position;
      firstOwn = own;
    },
    apply,
  };
}
