// How long the answers are that somebody gets from a model, by their last calls in the usage log.
import { and, desc, eq } from "drizzle-orm";
import { LogType } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";

/** The last calls of one model that decide. */
const CALLS = 50;
/** Rows of the user that are looked through for them: who calls many models must not make a quote slow. */
const MOST_ROWS = 1000;

/** Median of the output tokens of the user's last 50 charged calls of the model; undefined: there were none lately. */
export async function medianOutput(
  { db }: Pick<Deps, "db">,
  userId: number,
  model: string,
): Promise<number | undefined> {
  const { logs } = db.t;
  const rows = await db.orm
    .select({ model: logs.modelName, tokens: logs.completionTokens })
    .from(logs)
    .where(and(eq(logs.userId, userId), eq(logs.type, LogType.consume)))
    .orderBy(desc(logs.createdAt))
    .limit(MOST_ROWS);
  const tokens = rows
    .filter((row) => row.model === model)
    .slice(0, CALLS)
    .map((row) => row.tokens)
    .sort((a, b) => a - b);
  const middle = tokens.length >> 1;
  if (tokens.length === 0) return undefined;
  return tokens.length % 2 === 1
    ? tokens[middle]
    : Math.round(((tokens[middle - 1] ?? 0) + (tokens[middle] ?? 0)) / 2);
}
