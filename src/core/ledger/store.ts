// The books of either database: what the ledger asks of them, the mark that ties them to the journal, and the
// balances that a batch leaves. Refuses to know a database: ledger-sqlite.ts and ledger-postgres.ts do.
import type { BatchSums } from "./items.ts";
import type { ChargedBalance } from "../deps.ts";

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

/** The new balances with what the batch took from each. */
export function chargedBalances(
  figures: readonly { id: number; quota: number }[],
  sums: BatchSums["users"],
): ChargedBalance[] {
  return figures.map(({ id, quota }) => ({ id, quota, charge: sums.get(id)?.charge ?? 0 }));
}
