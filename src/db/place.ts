// Which server and which of its databases this is, the same for every node, through a pooler too, and after a standby took over:
// a standby has its server's identifier, a dump that was put back elsewhere has not.
// Refuses to name a server that keeps its identifier to itself: then the database alone is named.
import { sql } from "drizzle-orm";
import type { Database } from "./database.ts";
import { rawQuery } from "./database.ts";
import { sqlState } from "./sql-state.ts";

const FORBIDDEN = "42501";

/** Some letters; empty for SQLite, whose file has nothing that a copy of it has not. */
export async function databasePlace({ kind, orm }: Database): Promise<string> {
  if (kind !== "postgres") return "";
  const [database] = await rawQuery(
    orm,
    sql`select oid::text as oid from pg_database where datname = current_database()`,
  );
  const server = await rawQuery(orm, sql`select system_identifier::text as id from pg_control_system()`).then(
    ([row]) => row?.["id"],
    (error: unknown) => {
      if (sqlState(error) === FORBIDDEN) return undefined;
      throw error;
    },
  );
  const words = [server, database?.["oid"]].filter((word) => word !== undefined);
  return words.map((word) => BigInt(word).toString(36)).join(".");
}
