// A source in a SQLite file, opened read-only: the old program may still be writing it.
// Refuses a file that is no database.
import { Database } from "bun:sqlite";
import { SourceRefused } from "../dsn.ts";
import type { SourceDriver, SourceRow } from "../source.ts";

/** Other programs hold their own locks for a moment. */
const BUSY_MS = 10_000;

export function openSqliteSource(path: string): SourceDriver {
  // Never as an immutable file: pages that change under the reader would be read as rows that were never there.
  const tables = new Map<string, Set<string>>();
  let client: Database | undefined;
  try {
    const file = new Database(path, { readonly: true, safeIntegers: true });
    client = file;
    file.run(`pragma busy_timeout = ${BUSY_MS}`);
    file.run("pragma query_only = on");
    const found = file
      .query<{ name: string }, []>(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'",
      )
      .all();
    for (const { name } of found) {
      const columns = file
        .query<{ name: string }, [string]>("select name from pragma_table_info(?)")
        .all(name);
      tables.set(name.toLowerCase(), new Set(columns.map((column) => column.name.toLowerCase())));
    }
    return {
      engine: "sqlite",
      quote: '"',
      tables,
      query: async (text) => file.prepare<SourceRow, []>(text).all(),
      close: async () => file.close(),
    };
  } catch (error) {
    client?.close();
    throw new SourceRefused(
      `${path} cannot be read as a SQLite database: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
