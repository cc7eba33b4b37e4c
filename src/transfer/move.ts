// A whole site into an empty database, out of another one or out of a file, proved before a server may start on it.
// Refuses to begin beside a server, and while calls that were settled wait in a journal; the source is only read.
import { findNodeId } from "../core/ledger/installation.ts";
import { countWaiting } from "../core/ledger/journal/journal.ts";
import { ROTATION_KEY } from "../core/options/seal-keys.ts";
import { connect, SQLITE_FILE } from "../db/connect.ts";
import type { ConnectSettings } from "../db/connect.ts";
import type { RawRow } from "../db/database.ts";
import { openSnapshot } from "../db/snapshot.ts";
import type { Snapshot } from "../db/snapshot.ts";
import { booksOf, prove } from "./books.ts";
import type { Books } from "./books.ts";
import { enterLines, refuseSchema, release } from "./enter.ts";
import type { EnterProgress } from "./enter.ts";
import { exportLines } from "./export.ts";
import type { ExportOptions } from "./export.ts";
import { readHead, TransferRefused } from "./format.ts";
import type { Head, TableProof } from "./format.ts";
import { linesOf } from "./lines.ts";
import { CARRIED } from "./tables.ts";

export interface TransferTarget extends ConnectSettings {
  /** Of the embedded database, until it is whole. */
  file: string;
}

export interface Transferred {
  head: Head;
  rows: Readonly<Record<string, number>>;
  books: Books;
}

async function rowsOf(snapshot: Snapshot, statement: string): Promise<RawRow[]> {
  const rows: RawRow[] = [];
  for await (const page of snapshot.pages(statement)) rows.push(...page);
  return rows;
}

/**
 * Settled calls that no table has yet: in the journals of these directories as they are, in those of other nodes as the database
 * last heard of them.
 */
export async function waitingIn(snapshot: Snapshot, directories: readonly string[]): Promise<number> {
  const own = new Map(directories.map((directory) => [findNodeId(directory), directory]));
  const nodes = await rowsOf(snapshot, "select node_id, history, mark, journaled from nodes");
  return nodes
    .map(({ node_id: id, history, mark, journaled }) => {
      const position = { history: String(history), mark: Number(mark), journaled: Number(journaled) };
      const directory = own.get(String(id));
      // What a journal has lost is waited for, too: the start that would name it is another one's after a move.
      const heard = Math.max(0, position.journaled - position.mark);
      return directory === undefined ? heard : Math.max(heard, countWaiting(directory, position));
    })
    .reduce((sum, waiting) => sum + waiting, 0);
}

/** Throws TransferRefused where a server runs on it, or something has begun that must end first. The directory's lock is the caller's. */
export async function refuseBusy(snapshot: Snapshot, directories: readonly string[]): Promise<void> {
  if (snapshot.kind === "postgres") {
    const [living] = await rowsOf(
      snapshot,
      "select node_id from nodes where lease_until > floor(extract(epoch from now()))",
    );
    if (living)
      throw new TransferRefused(
        `a server runs on the source (node ${String(living["node_id"])}): stop every node first; one that was killed counts as dead after 30 seconds`,
      );
  }
  const waiting = await waitingIn(snapshot, directories);
  if (waiting > 0)
    throw new TransferRefused(
      `${waiting} settled calls stand in a journal and not in the tables: run weir settle where that journal is, then move`,
    );
  const rotating = await rowsOf(snapshot, `select key from options where key = '${ROTATION_KEY}'`);
  if (rotating.length > 0)
    throw new TransferRefused("the encryption key is being changed: end weir rotate first");
}

/** Rows that an export will have, more or less: what progress is told by. */
export async function countRows(snapshot: Snapshot): Promise<number> {
  let total = 0;
  for (const { sqlName } of CARRIED) {
    const [row] = await rowsOf(snapshot, `select count(*) as rows from "${sqlName}"`);
    total += Number(row?.["rows"] ?? 0);
  }
  return total;
}

export interface TransferHow {
  options: ExportOptions;
  tell: EnterProgress;
  /** All of it is there and proved; what belongs beside it is put there before a server may start. */
  onProved?: () => void;
}

async function into(
  target: TransferTarget,
  lines: AsyncIterable<string>,
  { books, options, tell, onProved }: TransferHow & { books: Books | undefined },
): Promise<Transferred> {
  const db = await connect(target, undefined, undefined, target.file);
  try {
    const { head, tables } = await enterLines(db, lines, tell);
    tell("reading the target again, and auditing it", 0);
    const snapshot = await openSnapshot(target, target.file);
    try {
      const own = await prove(snapshot, { tables, books, options });
      onProved?.();
      await release(db, { isDraft: target.databaseUrl === "" && target.file !== SQLITE_FILE });
      return { head, rows: rowCounts(tables), books: own };
    } finally {
      await snapshot.close();
    }
  } finally {
    await db.close();
  }
}

function rowCounts(tables: Readonly<Record<string, TableProof>>): Record<string, number> {
  return Object.fromEntries(Object.entries(tables).map(([name, { rows }]) => [name, rows]));
}

async function* texts(parts: AsyncIterable<{ text: string }>): AsyncGenerator<string> {
  for await (const { text } of parts) yield text;
}

/** Throws TransferRefused. */
export async function moveSite(
  source: Snapshot,
  target: TransferTarget,
  how: TransferHow,
): Promise<Transferred> {
  const books = await booksOf(source);
  return into(target, linesOf(texts(exportLines(source, how.options))), { ...how, books });
}

async function* goOn(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}

/** Of a file, or whatever gives its text; its head is judged before the target is opened. Throws TransferRefused. */
export async function bringIn(
  pieces: AsyncIterable<string>,
  target: TransferTarget,
  { judge, ...how }: TransferHow & { judge: (head: Head) => Promise<void> },
): Promise<Transferred> {
  const lines = linesOf(pieces);
  const first = await lines.next();
  if (first.done) throw new TransferRefused("the export is empty");
  const head = readHead(first.value);
  refuseSchema(head);
  await judge(head);
  return into(target, goOn(first.value, lines), { ...how, books: undefined });
}
