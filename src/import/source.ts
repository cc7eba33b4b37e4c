// An old site's database as the import reads it: which tables and columns there are, rows by pages of their key.
// Refuses to write: every way in is read-only.
import type { SourceAddress, SourceEngine } from "./dsn.ts";
import { openNetworkSource } from "./sources/network.ts";
import { openSqliteSource } from "./sources/sqlite.ts";

/** As the drivers give it; read by values.ts, never directly: whole numbers, flags and JSON differ between engines. */
export type SourceRow = Record<string, unknown>;

interface PageQuery {
  /** Column of the key that pages go by; a whole number, unique. */
  key?: string;
  /** Only rows whose key is greater. */
  after?: number;
  /** All columns where it is absent; those that the source lacks are left out. */
  columns?: readonly string[];
  /** Rows of a page. */
  size?: number;
}

export interface SourceDatabase {
  readonly engine: SourceEngine;
  /** Columns by table, both in lower case. */
  readonly tables: ReadonlyMap<string, ReadonlySet<string>>;
  has: (table: string, column?: string) => boolean;
  /** Pages in the order of the key; nothing where the table is missing. */
  pages(table: string, query?: PageQuery): AsyncGenerator<SourceRow[]>;
  /** All rows of a small table that has no number as its key; none where it is missing. */
  all(table: string): Promise<SourceRow[]>;
  /** 0 where the table is missing. */
  count(table: string): Promise<number>;
  /** Of a column of whole numbers: rows, greatest value, sum; as texts, so that any size compares. */
  figures(table: string, column: string): Promise<string>;
  /** Calls of the log as `day` (Unix seconds), `model`, `n` and `total` quota: those that an import counts. */
  callsByDay(): Promise<SourceRow[]>;
  close(): Promise<void>;
}

/** What an engine adds to the common reader. */
export interface SourceDriver {
  engine: SourceEngine;
  quote: '"' | "`";
  tables: Map<string, Set<string>>;
  query(text: string, parameters?: readonly (string | number)[]): Promise<SourceRow[]>;
  close(): Promise<void>;
}

const PAGE_ROWS = 5000;

/** The reader over an engine's queries. */
function createSource(driver: SourceDriver): SourceDatabase {
  const { tables, quote } = driver;
  const name = (text: string): string => `${quote}${text}${quote}`;
  const has = (table: string, column?: string): boolean => {
    const columns = tables.get(table);
    return columns !== undefined && (column === undefined || columns.has(column));
  };
  // Numbers are written into the text: an engine that counts its parameters differently has none to count.
  async function* pages(table: string, query: PageQuery = {}): AsyncGenerator<SourceRow[]> {
    const { key = "id", size = PAGE_ROWS } = query;
    if (!has(table, key)) return;
    const wanted = query.columns?.filter((column) => has(table, column));
    const columns = wanted ? wanted.map(name).join(", ") : "*";
    let after = query.after ?? Number.MIN_SAFE_INTEGER;
    for (;;) {
      const rows = await driver.query(
        `select ${columns} from ${name(table)} where ${name(key)} > ${after} order by ${name(key)} limit ${size}`,
      );
      if (rows.length > 0) yield rows;
      const last = rows.at(-1);
      if (!last || rows.length < size) return;
      after = Number(last[key]);
    }
  }
  return {
    engine: driver.engine,
    tables,
    has,
    pages,
    all: async (table) => (has(table) ? driver.query(`select * from ${name(table)}`) : []),
    async count(table) {
      if (!has(table)) return 0;
      const [row] = await driver.query(`select count(*) as n from ${name(table)}`);
      return Number(row?.["n"] ?? 0);
    },
    async figures(table, column) {
      if (!has(table, column)) return "";
      const of = name(column);
      const [row] = await driver.query(
        `select count(*) as n, max(${of}) as top, sum(${of}) as total from ${name(table)}`,
      );
      return [row?.["n"], row?.["top"], row?.["total"]].map(String).join("/");
    },
    callsByDay() {
      const model = "rtrim(coalesce(model_name, ''))";
      // MySQL would take names for one that differ in the case of their letters.
      const exact = driver.engine === "mysql" ? `cast(${model} as binary)` : model;
      return driver.query(
        `select created_at - created_at % 86400 as day, ${exact} as model, count(*) as n, sum(quota) as total
         from logs where type = 2 and user_id > 0 and coalesce(quota, 0) >= 0 group by 1, 2`,
      );
    },
    close: () => driver.close(),
  };
}

/** Throws SourceRefused where nothing can be read there. */
export async function openSource(address: SourceAddress): Promise<SourceDatabase> {
  return createSource(
    address.engine === "sqlite" ? openSqliteSource(address.path) : await openNetworkSource(address),
  );
}
