// How long an open task waits until its upstream is polled again; that stands in the row, so it survives a restart.
// Refuses to poll a silent or unreachable upstream as often as one that has news.
import { gt, lte, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Moment } from "../../db/moments.ts";

const ROUND_MS = 15_000;
/** Looks are never exactly a round apart: what is due a moment later need not wait for the next one. */
const SLACK_MS = 1_000;
const MAX_WAIT_MS = 300_000;
/** A picture takes a minute or two: so long every round polls. */
const PATIENT_ROUNDS = 8;

export type PollOutcome = "news" | "quiet" | "unreachable";

interface PollState {
  /** Polls without news. */
  polls: number;
  /** Unix milliseconds. */
  nextPollMs: number;
}

/** News: the next round. Quiet: every round for two minutes, then doubling. Unreachable: doubling at once; five minutes at most. */
export function nextPoll(polls: number, outcome: PollOutcome, nowMs: number): PollState {
  if (outcome === "news") return { polls: 0, nextPollMs: nowMs + ROUND_MS - SLACK_MS };
  const doublings = outcome === "quiet" ? Math.max(0, polls + 1 - PATIENT_ROUNDS) : polls;
  const waitMs = Math.min(MAX_WAIT_MS, ROUND_MS * 2 ** Math.min(doublings, 10));
  return { polls: polls + 1, nextPollMs: nowMs + waitMs - SLACK_MS };
}

/** Due rows; one that would wait longer than any wait was given its moment before the clock was set back. */
export function isDue(column: PgColumn, nowMs: Moment): SQL | undefined {
  return or(lte(column, nowMs), gt(sql`${column} - ${sql.raw(String(MAX_WAIT_MS))}`, nowMs));
}

/** Rows that wait alike, so that one statement serves them all. */
export function byPolls<Row extends { id: number; polls: number }>(
  rows: readonly Row[],
): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  for (const { id, polls } of rows) groups.set(polls, [...(groups.get(polls) ?? []), id]);
  return groups;
}
