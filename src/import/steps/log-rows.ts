// The log comes first and by pages: each commits with its rows, its sums, how far it came and what it noted.
// Refuses to read a row twice: a run goes on behind the last key that the database has.
import type { Database, Orm, Steps } from "../../db/database.ts";
import type { ImportContext } from "../context.ts";
import { insertRows, rowsFor } from "../insert.ts";
import type { NewRow } from "../insert.ts";
import { gathered, HOUR, LOG_COLUMNS, mapLog, mapQuotaData, ROLLUP_SUMS } from "../mapping/logs.ts";
import type { LogFacts } from "../mapping/logs.ts";
import { namesGoneSteps } from "../../core/logs/key-names.ts";
import { ensureImportedParts } from "../parts.ts";
import type { SourceDatabase, SourceRow } from "../source.ts";
import { moveMark, writeState } from "../state.ts";
import type { ImportState } from "../state.ts";
import type { Sum, Sums } from "../target.ts";
import { textOf, wholeOf } from "../values.ts";

const DAY = 86_400;
/** Its mark is the last key of the log that the database has. */
export const LOG_STEP = "logs";

/** Keys by `<user>:<name>`; a name that a user gave twice says nothing. */
async function tokenIdsByName(source: SourceDatabase): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  const doubled = new Set<string>();
  for await (const page of source.pages("tokens", { columns: ["id", "user_id", "name"] })) {
    for (const row of page) {
      const name = `${wholeOf(row, "user_id")}:${textOf(row, "name")}`;
      if (found.has(name)) doubled.add(name);
      found.set(name, wholeOf(row, "id"));
    }
  }
  for (const name of doubled) found.delete(name);
  return found;
}

function* addSums(db: Database, tx: Orm, sums: readonly NewRow<"rollups">[]): Steps<void> {
  yield* insertRows(db, tx, rowsFor("rollups", sums), ROLLUP_SUMS);
}

/** In a dry run no table adds up: the sums that openings are made of are kept in memory, by user, key and channel. */
export interface DrySums extends Sums {
  add(sums: readonly NewRow<"rollups">[], firsts: readonly { userId: number; createdAt: number }[]): void;
}

export function createDrySums(): DrySums {
  const user = new Map<number, Sum>();
  const token = new Map<number, Sum>();
  const channel = new Map<number, Sum>();
  const grow = (sums: Map<number, Sum>, id: number, first: number, quota: number, count: number): void => {
    const known = sums.get(id);
    if (!known) sums.set(id, { quota, count, first });
    else {
      known.quota += quota;
      known.count += count;
      known.first = Math.min(known.first, first);
    }
  };
  return {
    user,
    token,
    channel,
    add(sums, firsts) {
      for (const sum of sums) {
        const { hour, quota = 0, count = 0 } = sum;
        // An hour of errors alone; their rows are among the firsts.
        if (count === 0) continue;
        grow(user, sum.userId, hour, quota, count);
        grow(token, sum.tokenId, hour, quota, count);
        grow(channel, sum.channelId, hour, quota, count);
      }
      for (const { userId, createdAt } of firsts) grow(user, userId, createdAt, 0, 0);
    },
  };
}

/** What a running program may still write with a smaller key than the last one: it is left to the next run. */
const SETTLING_SECONDS = 300;

/**
 * `state` is written with each page, its notes among it. `until`: the old program still runs, and it is now (Unix
 * milliseconds): the newest rows are left to a later run.
 */
export async function importLogs(
  context: ImportContext,
  {
    logs,
    state,
    dry,
    until,
    mark,
  }: {
    logs: SourceDatabase;
    state: ImportState;
    dry: DrySums | undefined;
    until: number | undefined;
    /** Of LOG_STEP, read before `state` was: what another run has brought since then is met by its mark. */
    mark: number;
  },
): Promise<void> {
  const { family, notes, target, settings, now } = context;
  const { db } = target;
  const facts: LogFacts = {
    family,
    notes,
    tokenIds: logs.has("logs", "token_id") ? new Map() : await tokenIdsByName(context.source),
    keptFrom: settings.logDays > 0 ? now - settings.logDays * DAY : 0,
  };
  const parts = db ? ensureImportedParts(db, now) : undefined;
  let after = mark;
  const newest = until === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(until / 1000) - SETTLING_SECONDS;
  const query = { columns: LOG_COLUMNS, ...(after === 0 ? {} : { after }) };
  for await (const found of logs.pages("logs", query)) {
    const tooNew = found.findIndex((row) => wholeOf(row, "created_at") > newest);
    const page = tooNew === -1 ? found : found.slice(0, tooNew);
    if (page.length === 0) return;
    const mapped = page.map((row) => mapLog(row, facts));
    const rows = mapped.flatMap(({ row }) => (row ? [row] : []));
    const sums = gathered(mapped.flatMap(({ sum }) => (sum ? [sum] : [])));
    for (const { hour, count } of sums)
      // A row without a time says nothing of when the log begins.
      if (count && hour > 0 && (state.firstCall === 0 || hour < state.firstCall)) state.firstCall = hour;
    const from = after;
    after = wholeOf(page.at(-1) as SourceRow, "id");
    dry?.add(sums, rows);
    if (db) {
      await parts?.(rows.map(({ createdAt }) => createdAt));
      const last = after;
      state.logNotes = { tables: notes.tables, findings: notes.findings };
      await db.atomic(function* (tx) {
        yield* moveMark(db, tx, LOG_STEP, { from, to: last });
        yield* insertRows(db, tx, rowsFor("logs", rows));
        yield* addSums(db, tx, sums);
        // Keys that the source has no longer.
        yield* namesGoneSteps(db, tx, now);
        yield* writeState(db, tx, state);
      });
    }
    context.advance("logs", page.length);
    if (tooNew !== -1) return;
  }
}

/** Hours that the log does not reach back to any more, from the sums that the old program kept for its charts. */
export async function importQuotaData(
  context: ImportContext,
  { firstCall, dry }: { firstCall: number; dry: DrySums | undefined },
): Promise<void> {
  const { source, notes, target } = context;
  const before = firstCall === 0 ? Number.MAX_SAFE_INTEGER : firstCall;
  const step = await target.begin("quota_data");
  for await (const page of source.pages("quota_data")) {
    notes.read("quota_data", page.length);
    const found = page.flatMap((row) => {
      const sum = mapQuotaData(row);
      if (!sum) notes.rejected("quota_data", "log_without_user", textOf(row, "id"));
      return sum && sum.hour + HOUR <= before ? [sum] : [];
    });
    notes.carried("quota_data", found.length);
    const sums = gathered(found);
    dry?.add(sums, []);
    await step.write([], (db, tx) => addSums(db, tx, sums));
    context.advance("quota_data", page.length);
  }
}
