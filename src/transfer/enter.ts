// An export into an empty database: batches that commit with how far they came, so that a run which was killed goes on there.
// Refuses a database that has anything in it, an export that differs from the one it began with, and one that does not end as
// its last line says.
import { eq, inArray, sql } from "drizzle-orm";
import { TRANSFER_KEY } from "../core/ledger/installation.ts";
import { NUMBER_KEY } from "../core/ledger/node-lease.ts";
import { createLogPart } from "../core/logs/retention.ts";
import { setCounters } from "../db/counters.ts";
import { q, rawQuery } from "../db/database.ts";
import type { Database, Orm, Steps } from "../db/database.ts";
import { insertRows } from "../import/insert.ts";
import { Proofs, readHead, readLine, rowLine, TransferRefused } from "./format.ts";
import type { Head, TableProof, TransferRow } from "./format.ts";
import { ALL_TABLES, CARRIED, SCHEMA_ID } from "./tables.ts";
import type { TableName, TransferTable } from "./tables.ts";

/** Beside the mark of how many lines are there: which export it is. */
const EXPORT = "transfer:export";

const BATCH_ROWS = 2000;
const BATCH_CHARS = 4 * 1024 * 1024;
/** Rows of other years lie in the rest: slips of a clock are not worth a part. */
const FIRST_YEAR = 2023;
const LAST_YEAR = 2100;

async function markOf(db: Database, key: string): Promise<number | undefined> {
  const { marks } = db.t;
  const [row] = await db.orm.select({ value: marks.value }).from(marks).where(eq(marks.key, key));
  return row?.value;
}

function* writeMark(db: Database, tx: Orm, key: string, value: number): Steps<void> {
  const { marks } = db.t;
  yield* q(
    tx
      .insert(marks)
      .values({ key, value })
      .onConflictDoUpdate({ target: marks.key, set: { value } })
      .returning({ key: marks.key }),
  );
}

/** A table that has rows; undefined: nobody has used the database. */
async function usedTable(db: Database): Promise<string | undefined> {
  for (const name of ALL_TABLES) {
    const table = db.t[name as TableName];
    const [row] = await db.orm
      .select({ one: sql<number>`1` })
      .from(table)
      .limit(1);
    if (row) return name;
  }
  return undefined;
}

/**
 * How many lines the database has already; all of them where it was released (`release` of a draft). 48 bits of the head tell
 * whether it is the same export.
 */
async function begin(db: Database, headLine: string): Promise<number> {
  const digest = new Bun.CryptoHasher("sha256").update(headLine).digest();
  const number = digest.readUIntBE(0, 6);
  const known = await markOf(db, EXPORT);
  if (known !== undefined) {
    if (known !== number)
      throw new TransferRefused(
        "another export has begun to go into this database, or what it came from has changed since: take an empty database",
      );
    return (await markOf(db, TRANSFER_KEY)) ?? Infinity;
  }
  const used = await usedTable(db);
  if (used !== undefined)
    throw new TransferRefused(
      `the target has been used (${used} has rows): an export goes into a database in which no server was ever started`,
    );
  await db.atomic(function* (tx) {
    yield* writeMark(db, tx, EXPORT, number);
    yield* writeMark(db, tx, TRANSFER_KEY, 0);
  });
  return 0;
}

/** PostgreSQL keeps the log by months. */
function partMaker(db: Database): (rows: readonly TransferRow[]) => Promise<void> {
  const made = new Set<string>();
  return async (rows) => {
    for (const { created_at: at } of rows) {
      const date = new Date(Number(at) * 1000);
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + 1];
      const name = `${year} ${month}`;
      if (!(year >= FIRST_YEAR && year < LAST_YEAR) || made.has(name)) continue;
      made.add(name);
      await createLogPart(db, year, month);
    }
  };
}

interface Batch {
  table: TransferTable;
  rows: TransferRow[];
  chars: number;
}

async function writeBatch(db: Database, { table, rows }: Batch, lines: number): Promise<void> {
  const fields = table.columns.map(({ field, name }) => [field, name] as const);
  const made = rows.map((row) => Object.fromEntries(fields.map(([field, name]) => [field, row[name]])));
  await db.atomic(function* (tx) {
    yield* insertRows(db, tx, { table: table.name, rows: made });
    yield* writeMark(db, tx, TRANSFER_KEY, lines);
  });
}

/** Ids go on behind the last one that the source has given out. */
async function goOnBehind(db: Database, { counters, database }: Head): Promise<void> {
  const ids = CARRIED.flatMap(({ isCounted, sqlName }) => {
    const last = counters[sqlName] ?? 0;
    return isCounted && last > 0 ? [{ name: sqlName, last }] : [];
  });
  await setCounters(db, ids);
  if (database > 0) await db.atomic((tx) => writeMark(db, tx, NUMBER_KEY, database));
  // Its planner knows nothing of rows that came just now.
  if (db.kind === "postgres") await db.atomic((tx) => q(rawQuery(tx, sql`analyze`)));
}

/**
 * The database is whole and proved: servers may start on it. `isDraft`: what has not taken its name yet remembers whose it is, so
 * that a run which is killed before that finds all of it there.
 */
export async function release(db: Database, { isDraft = false } = {}): Promise<void> {
  const { marks } = db.t;
  await db.orm.delete(marks).where(inArray(marks.key, isDraft ? [TRANSFER_KEY] : [TRANSFER_KEY, EXPORT]));
}

/** Throws TransferRefused for rows that are not like this release's. */
export function refuseSchema({ schema, release: made }: Head): void {
  if (schema !== SCHEMA_ID)
    throw new TransferRefused(
      `the export is of release ${made}, whose tables are others than this one's: bring it in with that release`,
    );
}

export interface Entered {
  head: Head;
  /** Of the rows as they went in. */
  tables: Readonly<Record<string, TableProof>>;
}

/**
 * The row as it goes in. Files of earlier builds tell of a node how far its journal was, which is not in them: nobody is to wait for that,
 * and what comes out of the target says so.
 */
function enteredRow({ sqlName }: TransferTable, row: TransferRow): TransferRow {
  const { mark, journaled } = row;
  return sqlName === "nodes" && mark !== undefined && journaled !== mark ? { ...row, journaled: mark } : row;
}

/** Told after each batch; without rows it is a sentence. */
export type EnterProgress = (table: string, rows: number) => void;

/** Throws TransferRefused. What was entered before it threw stays, and is gone on from; `release` ends it. */
export async function enterLines(
  db: Database,
  lines: AsyncIterable<string>,
  tell: EnterProgress = () => undefined,
): Promise<Entered> {
  const ensureParts = db.kind === "postgres" ? partMaker(db) : undefined;
  const proofs = new Proofs();
  const nodes = new Proofs();
  let head: Head | undefined;
  let known = 0;
  let number = 0;
  let batch: Batch | undefined;
  let end: Entered["tables"] | undefined;
  const flush = async (): Promise<void> => {
    const full = batch;
    batch = undefined;
    if (!full) return;
    if (full.table.name === "logs") await ensureParts?.(full.rows);
    // The line that is being looked at is not in it.
    await writeBatch(db, full, number - 1);
    tell(full.table.sqlName, full.rows.length);
  };
  for await (const line of lines) {
    number++;
    if (!head) {
      head = readHead(line);
      refuseSchema(head);
      known = await begin(db, line);
      continue;
    }
    if (end) throw new TransferRefused("the export goes on behind its end");
    const read = readLine(line, number);
    if ("tables" in read) {
      await flush();
      end = read.tables;
      continue;
    }
    const { table } = read;
    const row = enteredRow(table, read.row);
    proofs.add(table, line);
    if (table.name === "nodes") nodes.add(table, row === read.row ? line : rowLine(table, row));
    if (number <= known) continue;
    if (batch && (batch.table !== table || batch.rows.length >= BATCH_ROWS || batch.chars >= BATCH_CHARS))
      await flush();
    batch ??= { table, rows: [], chars: 0 };
    batch.rows.push(row);
    batch.chars += line.length;
  }
  if (!head || !end) throw new TransferRefused("the export has no end: it was cut off");
  const tables = proofs.end();
  const wrong = Object.keys(tables).find((name) => tables[name]?.sha256 !== end?.[name]?.sha256);
  if (wrong !== undefined)
    throw new TransferRefused(`the export is damaged: ${wrong} is not what its last line says`);
  await goOnBehind(db, head);
  const { nodes: entered } = nodes.end();
  return { head, tables: entered ? { ...tables, nodes: entered } : tables };
}
