// The books of either database: what the ledger asks of them, the mark that ties them to the journal, and what follows in
// memory once a batch is in. Refuses to know a database: ledger-sqlite.ts and ledger-postgres.ts do.
import { LogType } from "../shared/enums.ts";
import type { LedgerAccounts } from "./accounts.ts";
import { pendingOfToken, pendingOfUser } from "./ledger-items.ts";
import type { BatchSums, LedgerItem } from "./ledger-items.ts";
import type { ChargedBalance } from "./low-quota.ts";

/** The tables that everything in the journal ends up in, on either database. */
export interface Books {
  /** Takes the journal up where the tables end. Call once, before the first entry of this process. */
  start(): Promise<void>;
  /** New entries are in the journal. */
  wake(): void;
  /** Tries at once to bring everything in; resolves when that is done or the database refused. */
  drain(): Promise<void>;
  /** Entries that are durable but not in the tables yet. */
  backlog(): number;
  close(): void;
}

/** Key of the mark in which the tables remember the last position of a node's journal. */
export function journalMark(nodeId: string): string {
  return `journal:${nodeId}`;
}

/** The new balances with what the batch took from each. */
export function chargedBalances(
  figures: readonly { id: number; quota: number }[],
  sums: BatchSums["users"],
): ChargedBalance[] {
  return figures.map(({ id, quota }) => ({ id, quota, charge: sums.get(id)?.charge ?? 0 }));
}

/** The charge is part of the balance now: it leaves the sum of what is held back in memory. */
export function endPending(accounts: LedgerAccounts, item: LedgerItem): void {
  const { row } = item;
  if (row?.type !== LogType.consume) return;
  const user = accounts.cachedUser(row.userId);
  if (user) user.reserved = Math.max(0, user.reserved - pendingOfUser(item));
  if (row.tokenId === 0) return;
  const token = accounts.cachedToken(row.tokenId);
  if (token) token.reserved = Math.max(0, token.reserved - pendingOfToken(item));
}
