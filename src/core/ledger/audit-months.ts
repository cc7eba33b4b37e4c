// The audit of the log's rows, calls and errors, month by month (UTC): user by user and hour by hour they add up to what the
// hourly sums say was logged. A month that is over and agreed is closed: what its sums and its rows were like stays in `audit_months`.
// Nothing has to re-open it: a late settlement, a refund, an import or a clearing changes the sums, or which hours count, and
// so the sums' digest, which every audit compares; then the rows are read again. Who changes rows alone is found by
// `weir audit --full`, or within a month: a closed month is read again after that time, one an audit.
// Refuses to believe what it remembers of a month that has differed until it agrees again.
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { systemClock } from "../kit/clock.ts";
import { readLines } from "./audit-lines.ts";
import type { Differences } from "./audit-lines.ts";
import { rememberMonths } from "./audit-memory.ts";

export interface MonthsOptions {
  /** Closed months are read as well. */
  isFull?: boolean;
  /** Nothing is learned: the database is a copy, or somebody else's. */
  isReadOnly?: boolean;
  nowMs?: number;
  /** So many differences are listed, the first that are found; some when absent. */
  mostDifferences?: number;
}

/** What an audit reads; without a way to write it remembers nothing. */
export type AuditedDatabase = Pick<Database, "bulkReader" | "t"> & Partial<Pick<Database, "atomic">>;

interface MonthsReport {
  read: number;
  remembered: number;
}

/** Seconds of Unix time: the first of a month, and of the next one. */
interface Month {
  from: number;
  to: number;
}

/** What is kept of a month. `checkedAt` 0: it has differed since. */
interface Memory {
  sums: number;
  rows: number;
  checkedAt: number;
}

const HOUR = 3600;
const DAY = 24 * HOUR;
/** Most of what comes late has come by then; what comes later still is noticed by the sums. */
const CLOSED_AFTER_SECONDS = DAY;
const READ_AGAIN_SECONDS = 30 * DAY;
const DIGEST = "figure:digest";

/** Digests are sums modulo this prime, so that products of two remainders stay within 64 bits. */
const PRIME = 2_147_483_647;
const COLUMNS = ["id", "user_id", "created_at", "quota", "prompt_tokens", "completion_tokens"];

const raw = (text: string): SQL => sql.raw(text);
const remainder = (text: string): string => `((${text}) % ${PRIME})`;

const CALL = raw(String(LogType.consume));
const ERROR = raw(String(LogType.error));
/** A row's money and place as one number; what names people, which erasing takes out, is not in it. */
const ROW_MIX = raw(
  COLUMNS.slice(1).reduce(
    (mixed, name) => remainder(`${mixed} * 1000003 + ${remainder(name)}`),
    remainder("id"),
  ),
);
/** What an hour's sums of a model say was logged; 0 where nothing was. */
const SUM_MIX = raw(
  remainder(
    `${remainder(`hour / ${HOUR}`)} * ${remainder(`logged_quota % ${PRIME} * 7 + logged_count + error_count * 13`)}`,
  ),
);

/** Hours that were cleared, even in part, have sums without their rows. */
const FIRST_HOUR = raw(`(select coalesce(max(value), 0) + ${HOUR - 1}
  - (coalesce(max(value), 0) + ${HOUR - 1}) % ${HOUR} from marks where key = 'logs:clearedBefore')`);

const sumsIn = (table: string, { from, to }: Month): SQL =>
  sql`from ${raw(table)} where hour >= ${from} and hour < ${to} and hour >= ${FIRST_HOUR}`;

/**
 * The digest of the month's sums: of those by model, because what changes an hourly sum changes these in the same
 * transaction; made of the hourly ones while these are being filled.
 */
function digestOfSums(month: Month): SQL {
  const isWhole = raw("(select coalesce(max(from_hour), 1) from rollup_days) = 0");
  const sums = raw(
    "sum(logged_quota) as logged_quota, sum(logged_count) as logged_count, sum(error_count) as error_count",
  );
  return sql`(select cast(coalesce(sum(${SUM_MIX}), 0) % ${raw(String(PRIME))} as bigint) from (
      select hour, logged_quota, logged_count, error_count ${sumsIn("rollups_by_model", month)} and ${isWhole}
      union all select hour, ${sums} ${sumsIn("rollups", month)} and not ${isWhole} group by hour, model_name) as by_hour)`;
}

/** Differences by user and hour, and a line with the digests of sums and rows: all of one snapshot. */
function comparison(month: Month): SQL {
  const { from, to } = month;
  const zero = raw("cast(0 as bigint)");
  const line = (what: string, expected: string, found: string) =>
    sql`select ${raw(`'${what}'`)} as what, cast(user_id as text) || '@' || cast(hour as text) as id,
      cast(${raw(expected)} as bigint) as expected, cast(${raw(found)} as bigint) as found from sides
      where ${raw(expected)} <> ${raw(found)}`;
  return sql`with sides as materialized (
      select user_id, hour, sum(rolled_quota) as rolled_quota, sum(rolled_count) as rolled_count,
        sum(rolled_errors) as rolled_errors, sum(row_errors) as row_errors,
        sum(row_quota) as row_quota, sum(row_count) as row_count, sum(row_mix) as row_mix
      from (
        select user_id, hour, logged_quota as rolled_quota, logged_count as rolled_count,
          error_count as rolled_errors,
          ${zero} as row_quota, ${zero} as row_count, ${zero} as row_errors, ${zero} as row_mix ${sumsIn("rollups", month)}
        union all
        select user_id, created_at - created_at % ${raw(String(HOUR))}, 0, 0, 0,
          case when type = ${CALL} then quota else 0 end, case when type = ${CALL} then 1 else 0 end,
          case when type = ${CALL} then 0 else 1 end, ${ROW_MIX} from logs
          where type in (${CALL}, ${ERROR}) and created_at >= ${from} and created_at < ${to}
            and created_at >= ${FIRST_HOUR}
      ) as both_sides group by user_id, hour
    )
    ${line("logs.quota", "rolled_quota", "row_quota")}
    union all ${line("logs.count", "rolled_count", "row_count")}
    union all ${line("logs.errors", "rolled_errors", "row_errors")}
    union all select ${raw(`'${DIGEST}'`)}, '', ${digestOfSums(month)},
      cast(coalesce(sum(row_mix), 0) % ${raw(String(PRIME))} as bigint) from sides`;
}

async function compare(
  db: Pick<Database, "bulkReader">,
  month: Month,
  differences: Differences,
): Promise<{ sums: number; rows: number }> {
  const [digest] = await readLines(db, comparison(month), differences);
  return { sums: digest?.expected ?? 0, rows: digest?.found ?? 0 };
}

/** The digest of the month's sums alone. */
async function digestNow({ bulkReader }: Pick<Database, "bulkReader">, month: Month): Promise<number> {
  const [found] = await bulkReader
    .select({ sums: sql`d.sums`.mapWith(Number) })
    .from(sql`(select ${digestOfSums(month)} as sums) as d`);
  return found?.sums ?? 0;
}

/** The first month from the moment on that has sums or rows. */
async function monthFrom(
  { bulkReader }: Pick<Database, "bulkReader">,
  from: number,
): Promise<Month | undefined> {
  const [found] = await bulkReader.select({ at: sql<string | number | null>`min(d.moment)` }).from(
    sql`(select min(hour) as moment from rollups where hour >= ${from} and hour >= ${FIRST_HOUR}
        union all select min(created_at) from logs where created_at >= ${from} and created_at >= ${FIRST_HOUR}) as d`,
  );
  if (found?.at == null) return undefined;
  const at = new Date(Number(found.at) * 1000);
  const first = (ahead: number) => Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + ahead, 1) / 1000;
  return { from: first(0), to: first(1) };
}

async function memories(db: AuditedDatabase): Promise<Map<number, Memory>> {
  const { auditMonths: table } = db.t;
  const found = await db.bulkReader.select().from(table);
  return new Map(found.map(({ month, ...memory }) => [month, memory]));
}

/** Forgets what was remembered of closed months: what their rows are like now is believed where the sums agree. */
export async function forgetMonths(db: Database): Promise<void> {
  await db.orm.delete(db.t.auditMonths);
  await db.orm.delete(db.t.auditSums);
}

/** Adds what it finds to the differences. Times default to the machine's. */
export async function auditMonths(
  db: AuditedDatabase,
  differences: Differences,
  { isFull = false, isReadOnly = false, nowMs = systemClock.nowMs() }: MonthsOptions,
): Promise<MonthsReport> {
  const now = Math.floor(nowMs / 1000);
  const known = await memories(db);
  // Those that differ are read anyway: they take no other month's turn.
  const closed = [...known].filter(([, { checkedAt }]) => checkedAt > 0);
  const [oldest] = closed.toSorted(([, a], [, b]) => a.checkedAt - b.checkedAt);
  const due = oldest && oldest[1].checkedAt < now - READ_AGAIN_SECONDS ? oldest[0] : undefined;
  const report: MonthsReport = { read: 0, remembered: 0 };
  const learned = new Map<number, Memory>();
  const unseen = new Set(known.keys());
  for (let month = await monthFrom(db, 0); month; month = await monthFrom(db, month.to)) {
    const { from } = month;
    const memory = known.get(from);
    unseen.delete(from);
    const isTrusted = memory && memory.checkedAt > 0 && !isFull && from !== due;
    if (isTrusted && memory.sums === (await digestNow(db, month))) {
      report.remembered++;
      continue;
    }
    report.read++;
    const before = differences.total;
    const { sums, rows } = await compare(db, month, differences);
    // The same sums were made of other rows.
    if (memory && memory.sums === sums && memory.rows !== rows) {
      const id = new Date(from * 1000).toISOString().slice(0, 7);
      differences.add({ what: "logs.rows", id, expected: memory.rows, found: rows });
    }
    if (differences.total > before) {
      if (memory) learned.set(from, { ...memory, checkedAt: 0 });
    } else if (month.to + CLOSED_AFTER_SECONDS <= now) learned.set(from, { sums, rows, checkedAt: now });
  }
  if (!isReadOnly) await rememberMonths(db, db.t.auditMonths, learned, [...unseen]);
  return report;
}
