// Many rows into one table by one statement and one parameter, on either database: JSON that the database takes apart itself.
// Refuses a row that lacks a value which the schema has no default for.
import { getTableColumns, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { q } from "../db/database.ts";
import type { Database, Orm, Steps } from "../db/database.ts";
import type { Schema } from "../../drizzle/schema.ts";

export type TableName = keyof Schema;
export type NewRow<T extends TableName> = Schema[T]["$inferInsert"];

/** Rows for one table. */
export interface RowsFor {
  table: TableName;
  rows: readonly Record<string, unknown>[];
}

export function rowsFor<T extends TableName>(table: T, rows: readonly NewRow<T>[]): RowsFor {
  return { table, rows: rows as readonly Record<string, unknown>[] };
}

/** SQLite keeps a parameter of some megabytes without trouble; so many rows of the widest table make one. */
const ROWS_PER_STATEMENT = 2000;

function cellsOf(columns: readonly [string, PgColumn][], row: Record<string, unknown>): unknown[] {
  return columns.map(([field, column]) => {
    const value = row[field] === undefined ? column.default : row[field];
    if (value === undefined && column.notNull) throw new Error(`no value for ${field}`);
    return value ?? null;
  });
}

/** The rows as a select whose columns are in the schema's order. */
function selectOf(kind: Database["kind"], columns: readonly [string, PgColumn][], json: string): SQL {
  if (kind === "sqlite") {
    const cells = columns.map((_, at) => sql.raw(`value ->> ${at}`));
    // Without a condition SQLite would read a following ON as part of a join.
    return sql`select ${sql.join(cells, sql`, `)} from json_each(${json}) where true`;
  }
  const cells = columns.map(([, column], at) => sql.raw(`cast(value ->> ${at} as ${column.getSQLType()})`));
  return sql`select ${sql.join(cells, sql`, `)} from jsonb_array_elements(cast(cast(${json} as text) as jsonb))`;
}

/** Within a transaction. `sums`: columns that are added up where the row's key is there already. */
export function* insertRows(
  db: Database,
  tx: Orm,
  { table, rows }: RowsFor,
  sums?: { key: readonly string[]; fields: readonly string[] },
): Steps<void> {
  const into = db.t[table] as unknown as PgTable;
  const all = getTableColumns(into) as Record<string, PgColumn>;
  const columns = Object.entries(all);
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
    const part = rows.slice(from, from + ROWS_PER_STATEMENT).map((row) => cellsOf(columns, row));
    const query = tx.insert(into).select(selectOf(db.kind, columns, JSON.stringify(part)) as never);
    if (!sums) {
      yield* q(query);
      continue;
    }
    yield* q(
      query.onConflictDoUpdate({
        target: sums.key.map((field) => all[field] as PgColumn),
        set: Object.fromEntries(
          sums.fields.map((field) => [field, sql`${all[field]} + excluded.${sql.identifier(snake(field))}`]),
        ),
      }),
    );
  }
}

const snake = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
