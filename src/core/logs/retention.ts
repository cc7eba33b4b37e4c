// Lets go of calls and errors that are older than LOG_RETENTION_DAYS. Their sums stay, and so does every other row: where
// balances came from and who did what (identity.md, section 8). Small steps on the embedded database; on PostgreSQL a month
// is one part of the table, which is dropped.
// Refuses to hold up anybody: no step is longer than some milliseconds, and PostgreSQL's locks are given up after a moment.
import { and, gte, inArray, lt, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { q, rawQuery } from "../../db/database.ts";
import type { Database, Orm, RawRow, Steps } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";
import { clearedSteps } from "./list.ts";

type RetentionDeps = Pick<Deps, "db" | "clock">;
type Pause = (ms: number) => Promise<unknown>;

const DAY = 86_400;
/** What goes; all else stays. */
const GOING_TYPES = [LogType.consume, LogType.error];
const ROWS_PER_STEP = 500;
const PAUSE_MS = 20;
/** Pages that a step gives back to the disk. */
const PAGES_PER_STEP = 128;
/** Fewer free pages are taken up by the next rows. */
const FREE_PAGES_LEFT = 4096;

/** Parts of the table: `logs_2026_11`; everything else lies in this one. */
const REST = "logs_rest";
const PART = /^logs_(\d{4})_(\d{2})$/;
/** This month and so many more have parts. */
const MONTHS_AHEAD = 2;

/** Start of a month of UTC, Unix seconds; months beyond 12 are of the next years. */
const startOf = (year: number, month: number): number => Date.UTC(year, month - 1, 1) / 1000;

/** Deletes what is older than so many days; 0: nothing. Answers how many rows went, or on PostgreSQL months. */
export async function retainLogs(
  deps: RetentionDeps,
  days: number,
  pause: Pause = Bun.sleep,
): Promise<number> {
  if (days <= 0) return 0;
  const oldest = deps.clock.nowMs() - days * DAY * 1000;
  if (deps.db.kind === "sqlite") return deleteOld(deps, Math.floor(oldest / 1000), pause);
  // Whole months go, so that figures and rows end at the same moment.
  const month = new Date(oldest);
  const before = startOf(month.getUTCFullYear(), month.getUTCMonth() + 1);
  const months = await dropMonths(deps, before);
  // On PostgreSQL these are rows that came without a part of their own.
  return months + (await deleteOld(deps, before, pause));
}

/** Rows before the moment, of no month's part. */
async function deleteOld({ db }: RetentionDeps, before: number, pause: Pause): Promise<number> {
  const { logs } = db.t;
  const isPostgres = db.kind === "postgres";
  const table = isPostgres ? sql.identifier(REST) : sql.identifier("logs");
  let deleted = 0;
  /** What stays before it is not looked at again. */
  let from = 0;
  for (;;) {
    const batch = await db.reader
      .select({
        id: sql<number>`id`.mapWith(Number).as("id"),
        createdAt: sql<number>`created_at`.mapWith(Number).as("at"),
      })
      .from(sql`${table}`)
      .where(
        sql`created_at >= ${from} and created_at < ${before} and type in (${LogType.consume}, ${LogType.error})`,
      )
      .orderBy(sql`created_at`)
      .limit(ROWS_PER_STEP);
    const last = batch.at(-1);
    if (!last) break;
    from = last.createdAt;
    if (deleted === 0) await db.atomic((tx) => clearedSteps(db, tx, before));
    const ids = batch.map(({ id }) => id);
    const isOld = and(gte(logs.createdAt, 0), lt(logs.createdAt, before), inArray(logs.id, ids));
    const gone = await db.orm.delete(logs).where(isOld).returning({ id: logs.id });
    deleted += gone.length;
    await pause(PAUSE_MS);
  }
  if (deleted > 0) while ((await db.giveBack(PAGES_PER_STEP)) > FREE_PAGES_LEFT) await pause(PAUSE_MS);
  return deleted;
}

function* rows(tx: Orm, statement: SQL): Steps<RawRow[]> {
  return yield* q(rawQuery(tx, statement));
}

/** The parts by months, oldest first: PostgreSQL only. */
function* partsOf(tx: Orm): Steps<{ name: string; from: number; to: number }[]> {
  const found = yield* rows(
    tx,
    sql`select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'logs'::regclass order by 1`,
  );
  return found.flatMap(({ name }) => {
    const [, year, month] = PART.exec(String(name)) ?? [];
    if (year === undefined || month === undefined) return [];
    const [y, m] = [Number(year), Number(month)];
    return [{ name: String(name), from: startOf(y, m), to: startOf(y, m + 1) }];
  });
}

/** A busy table is left alone until the job comes round again. */
const patient = sql`set local lock_timeout = '2s'`;

/** Detaches the months that ended before the moment, keeps their other rows in the rest, and drops them. */
async function dropMonths({ db }: RetentionDeps, before: number): Promise<number> {
  const old = (await db.atomic((tx) => partsOf(tx))).filter(({ to }) => to <= before);
  for (const { name, to } of old) {
    const part = sql.identifier(name);
    await db.atomic(function* (tx) {
      yield* rows(tx, patient);
      yield* clearedSteps(db, tx, to);
      yield* rows(tx, sql`alter table logs detach partition ${part}`);
      yield* rows(
        tx,
        sql`insert into ${sql.identifier(REST)} select * from ${part}
          where type not in (${sql.join([...GOING_TYPES], sql`, `)})`,
      );
      yield* rows(tx, sql`drop table ${part}`);
    });
  }
  return old.length;
}

/**
 * PostgreSQL: this month and the next two have parts of their own. Rows of theirs that came before their part did (a node
 * that was off for months) are moved into it. Nothing to do on the embedded database.
 */
export async function ensureLogParts({ db, clock }: RetentionDeps): Promise<void> {
  if (db.kind !== "postgres") return;
  const now = new Date(clock.nowMs());
  for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead++) {
    const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead, 1));
    await createLogPart(db, first.getUTCFullYear(), first.getUTCMonth() + 1);
  }
}

/** PostgreSQL: the part of one month, where it is not there yet. */
export async function createLogPart(db: Database, year: number, month: number): Promise<void> {
  const name = `logs_${year}_${String(month).padStart(2, "0")}`;
  const known = await db.atomic((tx) => partsOf(tx));
  if (known.some((part) => part.name === name)) return;
  const part = sql.identifier(name);
  const rest = sql.identifier(REST);
  const [from, to] = [startOf(year, month), startOf(year, month + 1)].map((at) => sql.raw(String(at)));
  await db.atomic(function* (tx) {
    yield* rows(tx, patient);
    // Nobody adds to the table until the part is there. Of the whole, not of the rest alone: whoever has been told already
    // that a row goes into the rest waits for that one, and afterwards the rest no longer takes it (23514).
    yield* rows(tx, sql`lock table logs in exclusive mode`);
    yield* rows(tx, sql`create table ${part} (like logs including defaults including constraints)`);
    yield* rows(
      tx,
      sql`with moved as (delete from ${rest} where created_at >= ${from} and created_at < ${to} returning *)
        insert into ${part} select * from moved`,
    );
    yield* rows(tx, sql`alter table logs attach partition ${part} for values from (${from}) to (${to})`);
  });
}
