// What two databases are compared by once one was made of the other: every row by its bytes, the sums that people look at, and
// what an audit finds. Refuses to be content with counts.
import { audit } from "../core/ledger/audit.ts";
import type { AuditReport } from "../core/ledger/audit.ts";
import type { Snapshot } from "../db/snapshot.ts";
import { exportLines } from "./export.ts";
import type { ExportOptions } from "./export.ts";
import { apart, TransferRefused } from "./format.ts";
import type { TableProof } from "./format.ts";

/** Sums of whole units, and row counts. */
const FIGURES = {
  users: "select count(*) from users",
  balance: "select coalesce(sum(quota), 0) from users",
  used: "select coalesce(sum(used_quota), 0) from users",
  requests: "select coalesce(sum(request_count), 0) from users",
  keys: "select count(*) from tokens",
  keys_used: "select coalesce(sum(used_quota), 0) from tokens",
  channels: "select count(*) from channels",
  channels_used: "select coalesce(sum(used_quota), 0) from channels",
  credits: "select coalesce(sum(amount), 0) from credits",
  held: "select coalesce(sum(amount), 0) from reservations",
  orders_money: "select coalesce(sum(money_minor), 0) from orders",
  log_rows: "select count(*) from logs",
  log_quota: "select coalesce(sum(quota), 0) from logs",
  summed_quota: "select coalesce(sum(quota), 0) from rollups",
  cost_nanos: "select coalesce(sum(cost_nanos), 0) from rollups",
} as const;

type Figures = Record<keyof typeof FIGURES, number>;

export interface Books {
  figures: Figures;
  differences: AuditReport["differences"];
}

/** All of one moment; nothing is remembered of it. */
export async function booksOf(snapshot: Snapshot): Promise<Books> {
  const figures = {} as Figures;
  for (const [name, statement] of Object.entries(FIGURES))
    for await (const [row] of snapshot.pages(statement))
      figures[name as keyof Figures] = Number(Object.values(row ?? {})[0]);
  // What open calls hold has left the balances, and stands in them again in an export.
  figures.balance += figures.held;
  figures.held = 0;
  const { differences } = await audit(
    { t: snapshot.t, bulkReader: snapshot.bulkReader },
    // All of them: of a part nobody knows which it is.
    { isFull: true, isReadOnly: true, mostDifferences: Number.MAX_SAFE_INTEGER },
  );
  // The databases are free to find them in any order.
  const inOrder = differences.toSorted((a, b) => (`${a.what} ${a.id}` < `${b.what} ${b.id}` ? -1 : 1));
  return { figures, differences: inOrder };
}

export interface ToProve {
  /** What went in. */
  tables: Readonly<Record<string, TableProof>>;
  /** Of the source; undefined: it is a file, whose rows are all that it says. */
  books: Books | undefined;
  options: ExportOptions;
}

/** Throws TransferRefused with what is not alike. Answers the target's books. */
export async function prove(target: Snapshot, { tables, books, options }: ToProve): Promise<Books> {
  let found: Readonly<Record<string, TableProof>> = {};
  const parts = exportLines(target, options, (made) => (found = made));
  while (!(await parts.next()).done);
  const unlike = apart(tables, found);
  if (unlike.length > 0)
    throw new TransferRefused(
      `the target is not what it was made of: ${unlike.join(", ")} differ; begin with an empty database`,
    );
  const own = await booksOf(target);
  if (books && !Bun.deepEquals(own, books))
    throw new TransferRefused(
      `sums or audit of the target are others than the source's: ${JSON.stringify({ source: books, target: own })}`,
    );
  return own;
}
