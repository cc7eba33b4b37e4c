// What an audit keeps of months that it has read: a row a month, in a table of each kind of audit.
// Refuses to fail for a busy server: it keeps the next audit from being quicker, nothing else.
import { inArray } from "drizzle-orm";
import { DatabaseBusy, q } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import type { AuditedDatabase } from "./audit-months.ts";

type MonthTable = Database["t"]["auditMonths" | "auditSums"];

/**
 * Writes what was learned of months over what was known of them, and drops those that are gone, in one block. Months are keys
 * of the table; without a way to write nothing happens.
 */
export async function rememberMonths<Table extends MonthTable>(
  { atomic }: Pick<AuditedDatabase, "atomic">,
  table: Table,
  learned: ReadonlyMap<number, Omit<Table["$inferInsert"], "month"> & { checkedAt: number }>,
  gone: number[],
): Promise<void> {
  if (!atomic || learned.size + gone.length === 0) return;
  const target: MonthTable = table;
  const memories: ReadonlyMap<number, { checkedAt: number }> = learned;
  await atomic(function* (tx) {
    for (const [month, memory] of memories)
      yield* q(
        tx
          .insert(target)
          .values({ month, ...memory })
          .onConflictDoUpdate({ target: target.month, set: memory }),
      );
    if (gone.length > 0) yield* q(tx.delete(target).where(inArray(target.month, gone)));
  }).catch((error: unknown) => {
    if (!(error instanceof DatabaseBusy)) throw error;
  });
}
