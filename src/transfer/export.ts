// The whole site as lines, out of one moment of either database: the same books are the same bytes, whichever keeps them.
// Refuses numbers that no file can hold exactly.
import type { RawRow } from "../db/database.ts";
import type { Snapshot } from "../db/snapshot.ts";
import { FORMAT, Proofs, rowLine, TransferRefused } from "./format.ts";
import type { Cell, End, Head, TableProof, TransferRow } from "./format.ts";
import { CARRIED, isMarkLeft, SCHEMA_ID } from "./tables.ts";
import type { TransferColumn, TransferTable } from "./tables.ts";

/** What open calls near zero hold: it left the balances before the calls, whose end is not in the books. */
interface Holds {
  users: ReadonlyMap<number, number>;
  tokens: ReadonlyMap<number, number>;
}

export interface ExportOptions {
  release: string;
  key: Head["key"];
}

const quoted = (name: string): string => `"${name}"`;

async function all(snapshot: Snapshot, statement: string): Promise<RawRow[]> {
  const rows: RawRow[] = [];
  for await (const page of snapshot.pages(statement)) rows.push(...page);
  return rows;
}

async function numberOf(snapshot: Snapshot, statement: string): Promise<number> {
  const [row] = await all(snapshot, statement);
  return Number(Object.values(row ?? {})[0] ?? 0);
}

/** The last id that the table has given out, deleted rows included; 0: none. */
async function counterOf(snapshot: Snapshot, { sqlName }: TransferTable): Promise<number> {
  if (snapshot.kind === "sqlite")
    return numberOf(snapshot, `select seq from sqlite_sequence where name = '${sqlName}'`);
  const [found] = await all(
    snapshot,
    `select quote_ident(n.nspname) || '.' || quote_ident(c.relname) as name from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      where c.oid = pg_get_serial_sequence('${quoted(sqlName)}', 'id')::regclass`,
  );
  return numberOf(
    snapshot,
    `select case when is_called then last_value else 0 end as value from ${String(found?.["name"])}`,
  );
}

async function headOf(snapshot: Snapshot, { release, key }: ExportOptions): Promise<Head> {
  const counters: Record<string, number> = {};
  for (const table of CARRIED)
    if (table.isCounted) counters[table.sqlName] = await counterOf(snapshot, table);
  const database = await numberOf(snapshot, `select value from marks where key = 'database'`);
  return { weir: "export", format: FORMAT, schema: SCHEMA_ID, release, database, counters, key };
}

async function heldIn(snapshot: Snapshot): Promise<Holds> {
  const sums = async (column: "user_id" | "token_id"): Promise<Map<number, number>> => {
    const statement = `select ${column} as id, sum(amount) as amount from reservations group by ${column}`;
    return new Map((await all(snapshot, statement)).map(({ id, amount }) => [Number(id), Number(amount)]));
  };
  return { users: await sums("user_id"), tokens: await sums("token_id") };
}

function cellOf({ name, kind }: TransferColumn, value: Cell | undefined): Cell {
  if (value === null || value === undefined) return null;
  if (kind === "bool") return Boolean(value);
  // PostgreSQL can hold neither: files go into either database.
  if (kind === "text") return String(value).toWellFormed().replaceAll("\0", "");
  const number = Number(value);
  const isExact = kind === "whole" ? Number.isSafeInteger(number) : Number.isFinite(number);
  if (!isExact) throw new TransferRefused(`${name} is ${String(value)}, which no file holds exactly`);
  return number;
}

function rowOf({ sqlName, columns }: TransferTable, found: RawRow, { users, tokens }: Holds): TransferRow {
  const id = Number(found["id"]);
  const given: Record<string, Cell> = { ...found };
  if (sqlName === "users") given["quota"] = Number(found["quota"]) + (users.get(id) ?? 0);
  if (sqlName === "tokens") given["remain_quota"] = Number(found["remain_quota"]) + (tokens.get(id) ?? 0);
  // No process holds a node of a copy, and nobody is to wait for what only its journal had: that is not in the file.
  if (sqlName === "nodes") Object.assign(given, { lease_until: 0, journaled: found["mark"] });
  const row: Record<string, Cell> = {};
  for (const column of columns) row[column.name] = cellOf(column, given[column.name]);
  return row;
}

function statementFor({ sqlName, columns, key }: TransferTable, kind: Snapshot["kind"]): string {
  // Bytes in order, as the embedded database has them, and not the words of some language.
  const order = key.map((each) =>
    each.kind === "text" && kind === "postgres" ? `${quoted(each.name)} collate "C"` : quoted(each.name),
  );
  const names = columns.map(({ name }) => quoted(name));
  return `select ${names.join(", ")} from ${quoted(sqlName)} order by ${order.join(", ")}`;
}

/** What an export tells while it is made. */
export interface ExportedPart {
  /** Whole lines. */
  text: string;
  rows: number;
}

/** The lines of the file, some thousands at a time; `done` is called with the proofs of its tables before the last. */
export async function* exportLines(
  snapshot: Snapshot,
  options: ExportOptions,
  done: (tables: Record<string, TableProof>) => void = () => undefined,
): AsyncGenerator<ExportedPart> {
  yield { text: `${JSON.stringify(await headOf(snapshot, options))}\n`, rows: 0 };
  const holds = await heldIn(snapshot);
  const proofs = new Proofs();
  for (const table of CARRIED)
    for await (const page of snapshot.pages(statementFor(table, snapshot.kind))) {
      let text = "";
      for (const found of page) {
        if (table.sqlName === "marks" && isMarkLeft(String(found["key"]))) continue;
        const line = rowLine(table, rowOf(table, found, holds));
        proofs.add(table, line);
        text += line;
      }
      if (text !== "") yield { text, rows: page.length };
    }
  const tables = proofs.end();
  done(tables);
  const end: End = { end: { tables } };
  yield { text: `${JSON.stringify(end)}\n`, rows: 0 };
}
