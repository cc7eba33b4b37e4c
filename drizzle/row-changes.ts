// What notes on PostgreSQL whose rows were written: a table that nobody but its reader (src/db/row-changes.ts) knows, and
// the triggers that fill it. drizzle-kit cannot say it; scripts/generate-migrations.ts writes it.
// Refuses to tell of charges row by row: a column that every settlement moved would have to stand in an index, and each charge
// would then write all indexes of its account anew.
import { getTableColumns } from "drizzle-orm";
import { schema } from "./postgres.ts";

/** What a statement changed beyond that is noted as "many". */
const MOST_IDS = 5000;

/**
 * The kind of one row that stays while the table lasts, with the moment in microseconds when a reader wrote it. PostgreSQL
 * empties a table that is not logged when one of its processes is killed, and goes on as the same server: then there is no
 * mark, and later another one.
 */
export const MARK_KIND = "mark";

/** Tables whose statements note their rows together; the kind is the table's name. Rows that are new are in nobody's memory. */
const BY_STATEMENT = ["users", "tokens"] as const;
/** Each event has its own name for the rows that it touched. */
const EVENTS = { update: "new", delete: "old" } as const;

/**
 * Tables whose rows note themselves: the kind, the column with the id that is told, and the columns that tell nothing, because
 * charges or signs of life write them and nobody keeps them.
 */
export const BY_ROW = {
  channels: {
    kind: "channels",
    id: "id",
    silent: ["usedQuota", "goneKeysQuota", "testTime", "responseTime", "balance", "balanceUpdatedTime"],
  },
  channelKeys: {
    kind: "channels",
    id: "channel_id",
    silent: ["usedQuota", "lastUsed", "probes", "nextProbe"],
  },
  channelCosts: { kind: "costs", id: "channel_id", silent: [] },
  inboxItems: { kind: "inbox", id: "id", silent: [] },
} as const satisfies Partial<
  Record<keyof typeof schema, { kind: string; id: string; silent: readonly string[] }>
>;

const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Columns of such a table whose writing is told, as the database names them. */
export function toldColumns(table: keyof typeof BY_ROW): string[] {
  const silent: readonly string[] = BY_ROW[table].silent;
  return Object.keys(getTableColumns(schema[table]))
    .filter((name) => !silent.includes(name))
    .map(snake);
}

/**
 * Statements for a migration. `row_changes` has a row for each statement that wrote accounts (`users`) or keys (`tokens`), and
 * for each channel (`channels`, its keys too), cost (`costs`) or item of the inbox (`inbox`) that was written: ids, null for many, and the transaction. It
 * is not logged: what a crash takes from it is noticed by the mark in it, which is gone then too.
 */
export function rowChangeStatements(): string[] {
  return [
    `CREATE UNLOGGED TABLE "row_changes" (
\t"xact" xid8 DEFAULT pg_current_xact_id() NOT NULL,
\t"kind" text NOT NULL,
\t"ids" bigint[]
);`,
    'CREATE INDEX "row_changes_xact" ON "row_changes" USING btree ("xact");',
    `CREATE UNIQUE INDEX "row_changes_mark" ON "row_changes" USING btree ("kind") WHERE "kind" = '${MARK_KIND}';`,
    `CREATE FUNCTION "note_changed_rows"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
\tINSERT INTO "row_changes" ("kind", "ids")
\t\tSELECT TG_TABLE_NAME, CASE WHEN count(*) <= ${MOST_IDS} THEN array_agg("id") END FROM "changed" HAVING count(*) > 0;
\tRETURN NULL;
END $$;`,
    `CREATE FUNCTION "note_changed_row"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
\tINSERT INTO "row_changes" ("kind", "ids") VALUES (TG_ARGV[0],
\t\tARRAY[((CASE WHEN TG_OP = 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END) ->> TG_ARGV[1])::bigint]);
\tRETURN NULL;
END $$;`,
    ...BY_STATEMENT.flatMap((table) =>
      Object.entries(EVENTS).map(
        ([event, rows]) =>
          `CREATE TRIGGER "${table}_${event}_noted" AFTER ${event.toUpperCase()} ON "${table}" ` +
          `REFERENCING ${rows.toUpperCase()} TABLE AS "changed" FOR EACH STATEMENT EXECUTE FUNCTION "note_changed_rows"();`,
      ),
    ),
    ...(Object.keys(BY_ROW) as (keyof typeof BY_ROW)[]).map((table) => {
      const { kind, id } = BY_ROW[table];
      const columns = toldColumns(table)
        .map((column) => `"${column}"`)
        .join(", ");
      return (
        `CREATE TRIGGER "${snake(table)}_noted" AFTER INSERT OR DELETE OR UPDATE OF ${columns} ON "${snake(table)}" ` +
        `FOR EACH ROW EXECUTE FUNCTION "note_changed_row"('${kind}', '${id}');`
      );
    }),
  ];
}
