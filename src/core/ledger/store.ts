// The ledger store: the tables of either database as the ledger sees them, filled from the journal.
import type { BatchSums, LedgerItem } from "./items.ts";
import type { ChargedBalance, Deps } from "../deps.ts";
import type { Journal } from "./journal/journal.ts";
import type { JournalEntry } from "./journal/waiting.ts";

/** The tables that everything in the journal ends up in, on either database. */
export interface LedgerStore {
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

/** A store that can be waited for, as far as it has come. */
export interface CommittingStore extends LedgerStore {
  /** True once the tables have everything up to the position; false when this process may not bring it in any more. */
  whenApplied(position: number): Promise<boolean>;
  /** Somebody saw the tables end before that: they are looked at before anything else is entered. */
  doubt(): void;
  /** The last try to bring something in failed, and none has succeeded since. */
  isFailing(): boolean;
}

/** What a batch leaves of the users and keys that it charged. */
export interface Figures {
  users: { id: number; quota: number; usedQuota: number; requestCount: number }[];
  tokens: { id: number; remainQuota: number; usedQuota: number; status: number }[];
}

/** How the node's row moves with a batch: positions `first` to `last`, some of them not entered. */
export interface MarkMove {
  first: number;
  last: number;
  setAside: number;
  skipped: number;
}

/** The new balances with what the batch took from each. */
export function chargedBalances(figures: Figures["users"], sums: BatchSums["users"]): ChargedBalance[] {
  return figures.map(({ id, quota }) => ({ id, quota, charge: sums.get(id)?.charge ?? 0 }));
}

/** Keeps a person's copy of an entry that the database refuses for its content. */
export function setEntryAside(
  { journal, logger, clock }: Pick<Deps, "logger" | "clock"> & { journal: Journal<LedgerItem> },
  entry: JournalEntry<LedgerItem>,
  error: unknown,
): void {
  logger.error("a settlement was refused by the database and set aside", {
    request_id: entry.item.row?.requestId,
    error: String(error),
  });
  journal.setAside(entry, String(error), clock.nowMs());
}
