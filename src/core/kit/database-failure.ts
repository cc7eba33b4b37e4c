// The refusal for callers whose query met a database that is away, or a file that another process holds: 503, come again.
// Refuses errors of anything but a query: other connections break with the same codes.
import { isAway, isQueryAway, readWhenBack } from "../../db/away.ts";
import { isSilent } from "../../db/deadline.ts";
import { DatabaseBusy } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { Failure } from "../../shared/failures.ts";
import { within } from "./deadline.ts";

/** Longest wait for one answer: a query that never comes back must not block its caller for ever. */
export const READ_WAIT_MS = 5000;
const BUSY_RETRY_SECONDS = 5;

function databaseDown(cause: unknown): Failure {
  return new Failure("internal", "database_down", { status: 503, cause });
}

/** The embedded database: whoever holds the file did so for longer than the query waited. */
function databaseBusy(cause: DatabaseBusy): Failure {
  return new Failure("internal", "database_busy", {
    status: 503,
    retryAfterSeconds: BUSY_RETRY_SECONDS,
    cause,
  });
}

/** Nothing when the error tells of something else. */
export function databaseFailure(error: unknown): Failure | undefined {
  // What a hook throws while a body is read arrives inside another error.
  const busy = error instanceof Error && error.cause instanceof DatabaseBusy ? error.cause : error;
  if (busy instanceof DatabaseBusy) return databaseBusy(busy);
  return isQueryAway(error) ? databaseDown(error) : undefined;
}

/**
 * What a read does at which nobody answers where PostgreSQL should be: calls wait for it, since they are paid for; the console is refused,
 * as by all that it reads besides.
 */
export type InSilence = "waits" | "is refused";

/**
 * A read that no memory can stand in for: waits `waitMs` milliseconds for a PostgreSQL that is away, in silence only where that is asked
 * for, then throws 503 database_down.
 */
export async function readOrRefuse<T>(
  { kind }: Pick<Database, "kind">,
  waitMs: number,
  query: () => PromiseLike<T>,
  inSilence: InSilence = "waits",
): Promise<T> {
  const isWorth = (error: unknown): boolean =>
    isAway(error) && !(inSilence === "is refused" && isSilent(error));
  if (kind !== "postgres") return query();
  try {
    return await readWhenBack(waitMs, () => within(READ_WAIT_MS, Promise.resolve(query())), isWorth);
  } catch (error) {
    if (!isAway(error)) throw error;
    throw databaseDown(error);
  }
}
