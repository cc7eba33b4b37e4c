// Tells a database that is away for a while from one that refuses, and repeats a read until it is back.
// Refuses to repeat writes: whoever lost an answer does not know whether it was committed.
import { sqlState } from "./sql-state.ts";

/** A connection broke that was there, or may have been. */
const BROKEN = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);
const CODES = new Set([
  ...BROKEN,
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  // A name that is not known yet, as while containers start.
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
  "DATABASE_SILENT",
]);
/**
 * Connection errors, a standby that only reads as long as nobody has promoted it, too few resources, "takes no connections",
 * going down or coming up; as the ledger counts them.
 */
const STATES = /^(08|25006|53|55000|57P)/;
/**
 * Poolers call everything that goes wrong behind them a violation of the protocol. What is one, or was refused for good (an
 * unknown parameter, a wrong password), does not get better by waiting.
 */
const POOLER_STATE = "08P01";
const POOLER_AWAY =
  /query_wait_timeout|client_login_timeout|no more connections|server login|connect to server|server conn|server disconnect|shut/i;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 250;

/** Coming again helps. Give it errors of the driver only: other sockets break with the same codes. */
export function isAway(error: unknown): boolean {
  const state = sqlState(error);
  if (state === POOLER_STATE) return POOLER_AWAY.test(textOf(error));
  return CODES.has(state) || STATES.test(state);
}

/** The answer may have been lost on its way, so what was asked for may be done. Give it errors of the driver only. */
export function isAnswerLost(error: unknown): boolean {
  return BROKEN.has(sqlState(error));
}

/** What the error and its causes say. */
function textOf(error: unknown): string {
  let text = "";
  for (let e: unknown = error; e instanceof Error; e = e.cause) text += `${e.message}\n`;
  return text;
}

/** It answers, and takes nothing that is written: a standby, or a server without room on its disk. */
export function refusesWrites(error: unknown): boolean {
  return /^(25006|53100)$/.test(sqlState(error));
}

/** The driver's own words, and nobody else's: a transaction whose connection is lost between two queries ends with them. */
const OF_DRIVER = new Set(["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "CONNECT_TIMEOUT"]);

/** For whoever meets errors of any origin: those of a query carry it. */
export function isQueryAway(error: unknown): boolean {
  if (!isAway(error)) return false;
  if (OF_DRIVER.has(sqlState(error))) return true;
  for (let e: unknown = error; typeof e === "object" && e !== null; e = (e as { cause?: unknown }).cause)
    if ("query" in e || (e as { code?: unknown }).code === "DATABASE_SILENT") return true;
  return false;
}

/** Reads again while the database is away, after errors that are `worth` it; after the time its last error is thrown. */
export async function readWhenBack<T>(
  waitMs: number,
  read: () => PromiseLike<T>,
  worth: (error: unknown) => boolean = isAway,
): Promise<T> {
  const until = performance.now() + waitMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await read();
    } catch (error) {
      const leftMs = until - performance.now();
      if (leftMs <= 0 || !worth(error)) throw error;
      await Bun.sleep(Math.min(pauseMs, leftMs));
    }
  }
}
