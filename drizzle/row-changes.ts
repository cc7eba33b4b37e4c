// What notes on PostgreSQL whose accounts and keys were written: a table that nobody but its reader (src/db/row-changes.ts)
// knows, and the triggers that fill it. drizzle-kit cannot say it; scripts/generate-migrations.ts writes it.
// Refuses to tell of rows one by one: a column that every settlement moved would have to stand in an index, and each charge
// would then write all indexes of its account anew.

/** What a statement changed beyond that is noted as "many". */
const MOST_IDS = 5000;

const TABLES = ["users", "tokens"] as const;
/** Each event has its own name for the rows that it touched. Rows that are new are in nobody's memory yet. */
const EVENTS = { update: "new", delete: "old" } as const;

/**
 * Statements for a migration. `account_changes` has a row for each statement that wrote accounts (`users`) or keys
 * (`tokens`): their ids, null for many, and the transaction. It is not logged: what a crash takes from it is noticed by the
 * server's new start time.
 */
export function rowChangeStatements(): string[] {
  return [
    `CREATE UNLOGGED TABLE "account_changes" (
\t"xact" xid8 DEFAULT pg_current_xact_id() NOT NULL,
\t"kind" text NOT NULL,
\t"ids" bigint[]
);`,
    'CREATE INDEX "account_changes_xact" ON "account_changes" USING btree ("xact");',
    `CREATE FUNCTION "note_account_changes"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
\tINSERT INTO "account_changes" ("kind", "ids")
\t\tSELECT TG_TABLE_NAME, CASE WHEN count(*) <= ${MOST_IDS} THEN array_agg("id") END FROM "changed" HAVING count(*) > 0;
\tRETURN NULL;
END $$;`,
    ...TABLES.flatMap((table) =>
      Object.entries(EVENTS).map(
        ([event, rows]) =>
          `CREATE TRIGGER "${table}_${event}_noted" AFTER ${event.toUpperCase()} ON "${table}" ` +
          `REFERENCING ${rows.toUpperCase()} TABLE AS "changed" FOR EACH STATEMENT EXECUTE FUNCTION "note_account_changes"();`,
      ),
    ),
  ];
}
