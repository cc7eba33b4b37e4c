// Every table of the schema, and whether an export carries it; its columns as files have them, the same for both databases.
// Refuses a table that nobody classified: it does not compile, and test/transfer/tables.test.ts says so.
import { getTableColumns } from "drizzle-orm";
import { CasingCache } from "drizzle-orm/casing";
import { getTableConfig } from "drizzle-orm/pg-core";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Schema } from "../../drizzle/schema.ts";
import { schema } from "../../drizzle/postgres.ts";

export type TableName = keyof Schema;

/** `carried`: it belongs to the site. `left`: it tells of running processes, or is found again from the rest. */
const TABLES: Readonly<Record<TableName, "carried" | "left">> = {
  users: "carried",
  identities: "carried",
  sessions: "carried",
  userDevices: "carried",
  authFlows: "carried",
  totps: "carried",
  backupCodes: "carried",
  passkeys: "carried",
  customProviders: "carried",
  outbox: "carried",
  userBulks: "carried",
  userBulkItems: "carried",
  userImportRows: "carried",
  priceOrigins: "carried",
  tokens: "carried",
  channels: "carried",
  channelKeys: "carried",
  abilities: "carried",
  options: "carried",
  sessionSecrets: "carried",
  redemptions: "carried",
  logs: "carried",
  rollups: "carried",
  rollupsByModel: "carried",
  rollupsByUser: "carried",
  rollupsByUserModel: "carried",
  rollupsByToken: "carried",
  rollupsByChannel: "carried",
  rollupDays: "carried",
  modelDays: "carried",
  affinitySums: "carried",
  channelCosts: "carried",
  costImports: "carried",
  costBills: "carried",
  credits: "carried",
  openings: "carried",
  // Holds of calls whose end is not in the books: what they took stands in the balances again (export.ts).
  reservations: "left",
  // What nodes told each other within the last minute.
  limitUses: "left",
  orders: "carried",
  plans: "carried",
  userPlans: "carried",
  planPeriods: "carried",
  paymentEvents: "carried",
  drawings: "carried",
  tasks: "carried",
  remoteObjects: "carried",
  priceRevisions: "carried",
  priceDrafts: "carried",
  setups: "carried",
  nodes: "carried",
  // What an audit has seen of this database: another one is looked at anew.
  auditMonths: "left",
  auditSums: "left",
  marks: "carried",
  inboxItems: "carried",
};

/** Marks of one database or of running processes: its number stands in the head, the others begin anew. */
const LEFT_MARKS = /^(?:database$|version:|node:|transfer:)/;

export function isMarkLeft(key: string): boolean {
  return LEFT_MARKS.test(key);
}

type ColumnKind = "whole" | "real" | "bool" | "text";

export interface TransferColumn {
  /** In the schema, and in the database and the file. */
  field: string;
  name: string;
  kind: ColumnKind;
  isNullable: boolean;
}

export interface TransferTable {
  name: TableName;
  /** In the database and the file. */
  sqlName: string;
  columns: readonly TransferColumn[];
  /** By which rows are put in order: no two are alike. */
  key: readonly TransferColumn[];
  /** Its ids are counted up by the database. */
  isCounted: boolean;
}

const KINDS: Readonly<Record<string, ColumnKind>> = {
  bigint: "whole",
  integer: "whole",
  "double precision": "real",
  boolean: "bool",
  text: "text",
};

function tableOf(name: TableName): TransferTable {
  const table = schema[name] as unknown as PgTable;
  const casing = new CasingCache("snake_case");
  const config = getTableConfig(table);
  const all = Object.entries(getTableColumns(table)) as [string, PgColumn][];
  const columns = all.map(([field, column]): TransferColumn => {
    const kind = KINDS[column.getSQLType()];
    if (!kind) throw new Error(`${name}.${field} is of a type that no file has: ${column.getSQLType()}`);
    return { field, name: casing.getColumnCasing(column), kind, isNullable: !column.notNull };
  });
  const [together] = config.primaryKeys;
  const alone = all.filter(([, column]) => column.primary).map(([, column]) => column.name);
  const names = together ? together.columns.map(({ name: part }) => part) : alone;
  const key = names.flatMap((part) => {
    const own = columns[all.findIndex(([, column]) => column.name === part)];
    return own ? [own] : [];
  });
  if (key.length === 0) throw new Error(`${name} has no primary key to put its rows in order by`);
  const isCounted = all.some(([, column]) => column.generatedIdentity !== undefined);
  return { name, sqlName: config.name, columns, key, isCounted };
}

/** In the order of the file. */
export const CARRIED: readonly TransferTable[] = (Object.keys(TABLES) as TableName[])
  .filter((name) => TABLES[name] === "carried")
  .map(tableOf);

/** Of all tables, whether they are carried or not. */
export const ALL_TABLES: readonly string[] = Object.keys(TABLES);

/** Names what rows are like: files of another schema are told apart by it. Sixteen hex digits. */
export const SCHEMA_ID: string = new Bun.CryptoHasher("sha256")
  .update(
    JSON.stringify(
      CARRIED.map(({ sqlName, columns }) => [sqlName, columns.map(({ name, kind }) => [name, kind])]),
    ),
  )
  .digest("hex")
  .slice(0, 16);
