// Replays every charge in the log that was made at the prices in force, for suites that have made many kinds of calls.
import { eq } from "drizzle-orm";
import type { Deps } from "../../src/core/deps.ts";
import { fingerprintOf } from "../../src/core/prices/price-book.ts";
import { comparePrices, replay } from "../../src/core/prices/replay.ts";
import { LogType } from "../../src/shared/enums.ts";

interface Difference {
  model: string;
  quota: number;
  replayed: number;
  trust: string;
}

/** How many charges were replayed, and those whose replay is not to the unit what the row says. */
export async function replayLog({
  db,
  ledger,
  prices,
}: Pick<Deps, "db" | "ledger" | "prices">): Promise<{ replayed: number; differences: Difference[] }> {
  await ledger.flush();
  const { logs } = db.t;
  const rows = await db.orm.select().from(logs).where(eq(logs.type, LogType.consume));
  const tables = prices.tables();
  const inForce = fingerprintOf(tables);
  const comparison = comparePrices(tables, tables);
  const found = rows.flatMap((row) => {
    const other = JSON.parse(row.other) as { cost?: { revision?: string } } & Record<string, unknown>;
    if (other.cost?.revision !== inForce) return [];
    const { modelName: model, group, quota } = row;
    const counts = { prompt_tokens: row.promptTokens, completion_tokens: row.completionTokens };
    const startMs = row.createdAt * 1000 - row.useTimeMs;
    const { old, trust } = replay({ model, group, quota, startMs, ...counts, other }, comparison);
    return [{ model, quota, replayed: old, trust }];
  });
  return {
    replayed: found.length,
    differences: found.filter(({ quota, replayed, trust }) => quota !== replayed || trust !== "exact"),
  };
}
