// The columns of the rows that a batch writes, read from the schema: the statements of both databases are built from
// them, so that a column added to drizzle/schema.ts is written by both.
import { getTableColumns } from "drizzle-orm";
import type { Table } from "drizzle-orm";
import { CasingCache } from "drizzle-orm/casing";
import type { Database } from "../../db/database.ts";
import type { RemoteObject } from "../deps.ts";
import type { LogRow } from "../logs/rows.ts";
import { ROLLUP_KEY } from "../logs/coarse-sums.ts";
import type { CoarseTable, DatedSum, RollupSum } from "../logs/coarse-sums.ts";
import { AFFINITY_KEY, OBJECT_KEY } from "./items.ts";
import type { AffinitySum } from "./items.ts";

export interface RowColumn<Row> {
  /** The row's property. */
  field: keyof Row & string;
  /** As the database knows it, quoted. */
  name: string;
  /** In the words of the database that the table was built for. */
  type: string;
}

function columnsOf<Row>(table: Table): RowColumn<Row>[] {
  const casing = new CasingCache("snake_case");
  return Object.entries(getTableColumns(table)).map(([field, column]) => ({
    field: field as keyof Row & string,
    name: `"${casing.getColumnCasing(column)}"`,
    type: column.getSQLType(),
  }));
}

/** Without the id, which the database gives. */
export function logColumns({ logs }: Database["t"]): RowColumn<LogRow>[] {
  return columnsOf<LogRow & { id: number }>(logs).flatMap(({ field, ...column }) =>
    field === "id" ? [] : [{ field, ...column }],
  );
}

export function rollupColumns({ rollups }: Database["t"]): RowColumn<RollupSum>[] {
  return columnsOf<RollupSum>(rollups);
}

export function objectColumns({ remoteObjects }: Database["t"]): RowColumn<RemoteObject>[] {
  return columnsOf<RemoteObject>(remoteObjects);
}

export function namesOf(columns: readonly RowColumn<never>[]): string {
  return columns.map(({ name }) => name).join(", ");
}

/** What an insert of sums ends with: where the hour is known already, everything that is no key is added to it. */
export function addToKnownHour(columns: readonly RowColumn<RollupSum>[]): string {
  return addToKnown("rollups", ROLLUP_KEY, columns);
}

export function affinityColumns({ affinitySums }: Database["t"]): RowColumn<AffinitySum>[] {
  return columnsOf<AffinitySum>(affinitySums);
}

/** What an insert of a rule's sums ends with. */
export function addToKnownRule(columns: readonly RowColumn<AffinitySum>[]): string {
  return addToKnown("affinity_sums", AFFINITY_KEY, columns);
}

/** The same for any table of sums, whose key's fields are given. */
function addToKnown<Row>(
  table: string,
  key: readonly (keyof Row & string)[],
  columns: readonly RowColumn<Row>[],
): string {
  const isKey = ({ field }: RowColumn<Row>) => key.includes(field);
  const sums = columns.filter((column) => !isKey(column));
  const added = sums.map(({ name }) => `${name} = ${table}.${name} + excluded.${name}`);
  const names = columns.filter(isKey).map(({ name }) => name);
  return `on conflict (${names.join(", ")}) do update set ${added.join(", ")}`;
}

/** The columns of a table of coarse sums, and what its insert ends with. */
export function coarseColumns(
  t: Database["t"],
  { table, name, key }: CoarseTable,
): { columns: RowColumn<DatedSum>[]; end: string } {
  const columns = columnsOf<DatedSum>(t[table]);
  return { columns, end: addToKnown<DatedSum>(name, key, columns) };
}

/** What an insert of providers' objects ends with: the newest word on an id counts. */
export function replaceKnownObject(columns: readonly RowColumn<RemoteObject>[]): string {
  const isKey = ({ field }: RowColumn<RemoteObject>) => OBJECT_KEY.some((key) => key === field);
  const values = columns.filter((column) => !isKey(column));
  return `on conflict (${namesOf(columns.filter(isKey))}) do update set ${values
    .map(({ name }) => `${name} = excluded.${name}`)
    .join(", ")}`;
}
