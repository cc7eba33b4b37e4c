// A transaction of PostgreSQL whose statements need nothing of each other's answers: two ways to the server and back for all
// of it, where the driver's own way takes three and more; one where it is one statement.
// Refuses to send anything before the transaction has begun: a BEGIN that was cancelled would leave what follows it to be
// committed statement by statement.
import type { ReservedSql, Sql } from "postgres";
import type { Query, RawRow } from "./database.ts";

/**
 * Runs the statements and commits behind the last one without waiting for their answers, which it resolves with. The first
 * that fails is what it rejects with: PostgreSQL refuses what stands behind it, and takes the COMMIT as ROLLBACK. After a lost
 * connection nobody knows whether it was committed.
 */
export async function sendAtOnce(client: Sql, parts: readonly Query<RawRow[]>[]): Promise<RawRow[][]> {
  const connection = await client.reserve();
  try {
    const [only] = parts;
    if (only && parts.length === 1) return [await sentAlone(connection, only)];
    await connection.unsafe("begin", [], { prepare: true });
    const queries = parts.map((part) => part.toSQL());
    const sent = queries.map(({ sql, params }) =>
      connection.unsafe<RawRow[]>(sql, params as string[], { prepare: true }).execute(),
    );
    const committed = connection.unsafe("commit", [], { prepare: true }).execute();
    // All of them: the connection is given back with nothing on its way.
    const answers = await Promise.allSettled(sent);
    const [end] = await Promise.allSettled([committed]);
    for (const each of [...answers, end]) if (each.status === "rejected") throw each.reason;
    if (end.status === "fulfilled" && end.value.command !== "COMMIT")
      throw new Error("the transaction was rolled back");
    return answers.map((each) => (each.status === "fulfilled" ? each.value : []));
  } finally {
    connection.release();
  }
}

/** A statement outside of a transaction is one. */
async function sentAlone(connection: ReservedSql, part: Query<RawRow[]>): Promise<RawRow[]> {
  const { sql, params } = part.toSQL();
  return await connection.unsafe<RawRow[]>(sql, params as string[], { prepare: true });
}
