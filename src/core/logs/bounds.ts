// How far back rows are read where no sum and no index knows what is asked: the newest 120,000, some 150 ms, and it is told.
// Refuses to read rows for a name that no key bears or has borne (key-names.ts); one that keys bear becomes their ids, which
// the sums know.
import { and, desc, eq, max, sql } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";
import { countsOverTime } from "./coarse.ts";
import {
  END_OF_TIME,
  HOUR_SECONDS,
  isRareScan,
  isSummed,
  UNCOUNTED_TYPES,
  wantsUncounted,
} from "./filter.ts";
import type { LogFilter } from "./filter.ts";
import { isKeyless, namesGoneUntil } from "./key-names.ts";

/** Rows that are read at most to find some that match. */
export const MOST_READ = 120_000;
/** Of each type that no sum counts. */
const MOST_RARE_READ = 100_000;
/** Beyond this many keys of a name each stretch of the log has some of them. */
const MOST_KEYS = 50;
const DAY = 24 * HOUR_SECONDS;

export interface BoundedFilter {
  /** What is read. */
  filter: LogFilter;
  /** Older rows of the range were left out. */
  isCut: boolean;
}

type BoundDeps = Pick<Deps, "db">;

/** The filter by what the sums know, else with a beginning behind which MOST_READ rows lie. */
export async function bounded(deps: BoundDeps, filter: LogFilter): Promise<BoundedFilter> {
  if (filter.requestId !== undefined) return { filter, isCut: false };
  const known = await withTokenIds(deps, filter);
  const from = await (isSummed(known) ? rareFrom(deps, known) : rawFrom(deps, known));
  return from > known.from ? { filter: { ...known, from }, isCut: true } : { filter: known, isCut: false };
}

async function withTokenIds({ db }: BoundDeps, filter: LogFilter): Promise<LogFilter> {
  const { tokenName, ...rest } = filter;
  if (tokenName === undefined) return filter;
  const { tokens } = db.t;
  const own = filter.userId === undefined ? undefined : eq(tokens.userId, filter.userId);
  const found = await db.orm
    .select({ id: tokens.id, userId: tokens.userId })
    .from(tokens)
    .where(and(eq(tokens.name, tokenName), own))
    .limit(MOST_KEYS + 1);
  if (found.length === 0) return ofNoKey(db, filter, tokenName);
  if (found.length > MOST_KEYS) return filter;
  const owners = [...new Set(found.map(({ userId }) => userId))];
  const tokenIds = found.map(({ id }) => id);
  const [owner, ...others] = owners;
  return others.length === 0 && owner !== undefined
    ? { ...rest, tokenIds, userId: owner }
    : { ...rest, tokenIds, owners };
}

/** A name that no row of a key bears now: what an earlier time may have left, or the console itself; else no row at all. */
async function ofNoKey(db: Database, filter: LogFilter, name: string): Promise<LogFilter> {
  if (isKeyless(name)) return filter;
  const to = Math.min(filter.to, await namesGoneUntil(db));
  if (to > filter.from) return { ...filter, to };
  const { tokenName: _, ...rest } = filter;
  return { ...rest, tokenIds: [], to: filter.from };
}

/** The hour in which the MOST_READth newest row of the user's, or of all, lies. */
async function rawFrom({ db }: BoundDeps, { userId, from, to }: LogFilter): Promise<number> {
  const { rollups } = db.t;
  const filter: LogFilter = { type: 0, from, to, ...(userId === undefined ? {} : { userId }) };
  const own = userId === undefined ? undefined : eq(rollups.userId, userId);
  const [newest] = await db.reader
    .select({ hour: max(rollups.hour) })
    .from(rollups)
    .where(own);
  let end = Math.min(Math.ceil(to / HOUR_SECONDS) * HOUR_SECONDS, Number(newest?.hour ?? 0) + HOUR_SECONDS);
  const first = from - (from % HOUR_SECONDS);
  let read = 0;
  for (let days = 1; end > first; days *= 4) {
    const start = Math.max(first, end - days * DAY);
    const hours = await countsOverTime(db, { filter, from: start, to: end, isHourly: true });
    for (const { at, calls, errors } of hours.sort((a, b) => b.at - a.at)) {
      read += calls + errors;
      if (read >= MOST_READ) return at;
    }
    end = start;
  }
  return 0;
}

/** Types of which some rows are in no sum as the filter asks for them. */
function typesOf({ type, modelName }: LogFilter): readonly number[] {
  if (type !== 0) return [type];
  return modelName === undefined ? UNCOUNTED_TYPES : [...UNCOUNTED_TYPES, LogType.error];
}

/** The moment of the MOST_RARE_READth newest row of a type that no sum counts, where these would have to be read one by one. */
async function rareFrom({ db }: BoundDeps, filter: LogFilter): Promise<number> {
  if (!wantsUncounted(filter) || !isRareScan(filter)) return 0;
  const { logs } = db.t;
  const to = Math.min(filter.to, END_OF_TIME);
  const found = await Promise.all(
    typesOf(filter).map((type) =>
      db.reader
        .select({ at: logs.createdAt })
        .from(logs)
        .where(and(sql`${logs.type} <> 2`, eq(logs.type, type), sql`${logs.createdAt} < ${to}`))
        .orderBy(desc(logs.createdAt))
        .limit(1)
        .offset(MOST_RARE_READ),
    ),
  );
  return Math.max(...found.map(([row]) => row?.at ?? 0));
}
