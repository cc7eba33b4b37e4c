// The file of `weir export --everything`: JSON lines, described in docs/export.md. A head, a line for each row, an end that
// proves the whole.
// Refuses, by the number of the line, what is none of that.
import type { WrappedKey } from "../core/kit/key-wrap.ts";
import { CARRIED } from "./tables.ts";
import type { TransferColumn, TransferTable } from "./tables.ts";

/** Shown to whoever runs the command; nothing else was done. */
export class TransferRefused extends Error {}

/** Raised when a reader of the old form could misread the new one. */
export const FORMAT = 1;

export interface Head {
  weir: "export";
  format: number;
  /** Of the rows (tables.ts). */
  schema: string;
  /** The release that wrote it. */
  release: string;
  /** The database's own number, which its data directories know it by; 0: it never served. */
  database: number;
  /** The last id that each table has given out: ids of deleted rows are not given again. */
  counters: Readonly<Record<string, number>>;
  /** What opens the sealed texts. */
  key: {
    /** "" where the key was not at hand. */
    fingerprint: string;
    /** With `--with-key`. */
    wrapped?: WrappedKey;
  };
}

/** SHA-256 (hex) over the lines of a table, each with its line feed. */
export interface TableProof {
  rows: number;
  sha256: string;
}

export interface End {
  end: { tables: Readonly<Record<string, TableProof>> };
}

export type Cell = string | number | boolean | null;
export type TransferRow = Readonly<Record<string, Cell>>;

/** The line of a row, with its line feed; members in the order of the schema, so that equal rows are equal bytes. */
export function rowLine({ sqlName }: TransferTable, row: TransferRow): string {
  return `{"table":${JSON.stringify(sqlName)},"row":${JSON.stringify(row)}}\n`;
}

/** Counts the rows of each table, and hashes their lines. */
export class Proofs {
  readonly #tables = new Map<string, { rows: number; hash: Bun.CryptoHasher }>();

  add({ sqlName }: TransferTable, line: string): void {
    let table = this.#tables.get(sqlName);
    if (!table) this.#tables.set(sqlName, (table = { rows: 0, hash: new Bun.CryptoHasher("sha256") }));
    table.rows++;
    table.hash.update(line);
  }

  /** Every table; ends the counting. */
  end(): Record<string, TableProof> {
    return Object.fromEntries(
      CARRIED.map(({ sqlName }) => {
        const table = this.#tables.get(sqlName) ?? { rows: 0, hash: new Bun.CryptoHasher("sha256") };
        return [sqlName, { rows: table.rows, sha256: table.hash.digest("hex") }];
      }),
    );
  }
}

/** Tables in which two exports are not alike. */
export function apart(a: End["end"]["tables"], b: End["end"]["tables"]): string[] {
  return CARRIED.map(({ sqlName }) => sqlName).filter((name) => a[name]?.sha256 !== b[name]?.sha256);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The first line of such a file; whatever else it is throws. */
export function readHead(line: string): Head {
  let head: unknown;
  try {
    head = JSON.parse(line);
  } catch {
    head = undefined;
  }
  if (!isObject(head) || head["weir"] !== "export")
    throw new TransferRefused("this is no export of weir: its first line is not the head of one");
  if (head["format"] !== FORMAT)
    throw new TransferRefused(
      `the export has format ${JSON.stringify(head["format"])}, and this program reads ${FORMAT}`,
    );
  if (!isObject(head["counters"]) || !isObject(head["key"]))
    throw new TransferRefused("the head of the export is damaged");
  return head as unknown as Head;
}

const BY_NAME: ReadonlyMap<string, TransferTable> = new Map(CARRIED.map((table) => [table.sqlName, table]));

const FITS: Readonly<Record<TransferColumn["kind"], (value: unknown) => boolean>> = {
  whole: (value) => Number.isSafeInteger(value),
  real: (value) => typeof value === "number",
  bool: (value) => typeof value === "boolean",
  text: (value) => typeof value === "string",
};

/** A row, or the end. `number`: of the line, from 1. Throws with that number. */
export function readLine(
  line: string,
  number: number,
): { table: TransferTable; row: TransferRow } | End["end"] {
  let read: unknown;
  try {
    read = JSON.parse(line);
  } catch {
    throw new TransferRefused(`line ${number} of the export is damaged`);
  }
  if (isObject(read) && isObject(read["end"]) && isObject(read["end"]["tables"]))
    return (read as unknown as End).end;
  const table = isObject(read) ? BY_NAME.get(String(read["table"])) : undefined;
  const row = isObject(read) ? read["row"] : undefined;
  if (!table || !isObject(row))
    throw new TransferRefused(`line ${number} of the export names no table of this release`);
  for (const { name, kind, isNullable } of table.columns)
    if (row[name] === null ? !isNullable : !FITS[kind](row[name]))
      throw new TransferRefused(
        `line ${number} of the export: ${table.sqlName}.${name} is not what it should be`,
      );
  return { table, row: row as TransferRow };
}
