// The audit of the hourly sums, month by month in the site's zone: the coarse sums add up to what the hourly ones do, and each
// hourly sum is sound. A month that is over and agreed is closed: a digest of its coarse sums stays in `audit_sums`. Whatever
// adds to an hourly sum adds to the coarse ones in the same transaction, so that the digest tells of it and the month is read
// again; it costs a look at the coarse sums alone. Who changes hourly sums of a closed month alone is found by
// `weir audit --full`, or within a month: a closed month is read again after that time, one an audit.
// Refuses to compare coarse sums that are being filled: hours before `rollup_days.from_hour` are not there yet.
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { dayOf, hoursOfDay } from "../logs/coarse-days.ts";
import { COARSE, isSum } from "../logs/coarse-sums.ts";
import { systemClock } from "../kit/clock.ts";
import { readLines } from "./audit-lines.ts";
import type { Differences } from "./audit-lines.ts";
import { rememberMonths } from "./audit-memory.ts";
import type { AuditedDatabase, MonthsOptions } from "./audit-months.ts";
import { rollupColumns } from "./row-columns.ts";

interface SumsReport {
  /** Months whose hourly sums were read, and those whose coarse sums are as they were when it was done. */
  read: number;
  remembered: number;
  /** Hourly sums that were read. */
  rollups: number;
}

/** A month of a zone: its hours in Unix seconds, its days as the coarse sums count them. */
interface Month {
  hours: { from: number; to: number };
  days: { from: number; to: number };
}

/** What is kept of a month. `checkedAt` 0: it has differed since. */
interface Memory {
  digest: number;
  checkedAt: number;
}

const DAY = 86_400;
const CLOSED_AFTER_SECONDS = DAY;
const READ_AGAIN_SECONDS = 30 * DAY;
/** Digests are sums modulo this prime, so that products of two remainders stay within 64 bits. */
const PRIME = 2_147_483_647;
/** Names of the lines that carry figures of the month instead of differences. */
const DIGEST = "figure:digest";
const COUNT = "figure:count";

/** What a month's coarse sums are told apart by: the days of one zone cannot be told in SQL alike on both databases. */
const IDS = {
  rollups_by_model: { key: "hour, model_name", id: "hour || '@' || model_name" },
  rollups_by_user: { key: "user_id", id: "cast(user_id as text)" },
  rollups_by_user_model: { key: "user_id, model_name", id: "user_id || '@' || model_name" },
  rollups_by_token: { key: "token_id, user_id", id: "token_id || '@' || user_id" },
  rollups_by_channel: {
    key: `model_name, channel_id, "group"`,
    id: `channel_id || '@' || model_name || '@' || "group"`,
  },
} as const;

const raw = (text: string): SQL => sql.raw(text);

/** True while the coarse sums have the zone's days and all of them. */
const isWhole = (zone: string): SQL => sql`(select max(from_hour) from rollup_days where zone = ${zone}) = 0`;

/** Every column of the schema that sums of calls have, those of later versions too. */
function sumNames(db: Pick<AuditedDatabase, "t">): string[] {
  return rollupColumns(db.t)
    .filter(({ field }) => isSum(field))
    .map(({ name }) => name.replaceAll('"', ""));
}

const rangeOf = (time: string, { hours, days }: Month): SQL => {
  const { from, to } = time === "day" ? days : hours;
  return sql`${raw(time)} >= ${from} and ${raw(time)} < ${to}`;
};

/** A coarse table's rows of the month, each as one number; texts are in it by their length. */
function digestOf(
  { name, key }: (typeof COARSE)[number],
  sums: readonly string[],
  month: Month,
  zone: string,
): SQL {
  const place = key.map((field, at) => {
    const value =
      field === "modelName" ? "length(model_name)" : field === "group" ? `length("group")` : snake(field);
    return `${value} % ${PRIME} * ${7 ** (at + 1)}`;
  });
  const values = sums.map((sum, at) => `${sum} % ${PRIME} * ${2 * at + 3}`);
  return sql`select sum((${raw(place.join(" + "))}) % ${raw(String(PRIME))} * ((${raw(values.join(" + "))}) % ${raw(String(PRIME))})
    % ${raw(String(PRIME))}) as mix from ${raw(name)} where ${rangeOf(key[0], month)} and ${isWhole(zone)}`;
}

const snake = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The digest of the month's coarse sums as a number that fits 53 bits. */
function digest(sums: readonly string[], month: Month, zone: string): SQL {
  const parts = sql.join(
    COARSE.map((table) => digestOf(table, sums, month, zone)),
    sql` union all `,
  );
  return sql`(select cast(sum(coalesce(mix, 0) % ${raw(String(PRIME))}) as bigint) from (${parts}) as mixes)`;
}

/** Differences of each coarse table, unsound hourly sums, and the figures of the month: all of one snapshot. */
function comparison(sums: readonly string[], month: Month, zone: string): SQL {
  const side = (from: SQL, time: string, key: string, letter: string): SQL =>
    sql`select ${raw(key)}, ${raw(
      ["f", "g"]
        .flatMap((each) => sums.map((sum) => `${each === letter ? sum : 0} as ${each}_${sum}`))
        .join(", "),
    )} from ${from} where ${rangeOf(time, month)} and ${isWhole(zone)}`;
  const added = raw(
    ["f", "g"].flatMap((each) => sums.map((sum) => `sum(${each}_${sum}) as ${each}_${sum}`)).join(", "),
  );
  const both = COARSE.map(({ name, key }) => {
    const { key: columns } = IDS[name];
    return sql`both_${raw(name)} as materialized (select ${raw(columns)}, ${added}
      from (${side(raw("rollups"), "hour", columns, "f")} union all ${side(raw(name), key[0], columns, "g")}) as sides
      group by ${raw(columns)})`;
  });
  const lines = COARSE.flatMap(({ name }) =>
    sums.map((sum) =>
      raw(`select '${name}.${sum}' as what, ${IDS[name].id} as id, cast(f_${sum} as bigint) as expected,
        cast(g_${sum} as bigint) as found from both_${name} where f_${sum} <> g_${sum}`),
    ),
  );
  const hours = sql`from rollups where ${rangeOf("hour", month)}`;
  const none = raw("cast(0 as bigint)");
  return sql`with ${sql.join(both, sql`, `)}
    ${sql.join(lines, sql` union all `)}
    union all select 'rollups.unsound', cast(user_id as text) || '@' || cast(hour as text), ${none}, cast(1 as bigint)
      ${hours} and (${raw(UNSOUND)})
    union all select ${raw(`'${COUNT}'`)}, '', ${none}, cast(count(*) as bigint) ${hours}
    union all select ${raw(`'${DIGEST}'`)}, '', cast(case when ${isWhole(zone)} then 1 else 0 end as bigint),
      ${digest(sums, month, zone)}`;
}

/** Without a call there may be what the house bore, a failed attempt or a probe; or an error. */
const UNSOUND = `count < 0 or (count = 0 and cost_nanos = 0 and error_count = 0) or error_count < 0 or quota < 0
  or prompt_tokens < 0 or completion_tokens < 0 or use_time_ms < 0 or logged_count < 0 or logged_quota < 0
  or logged_count > count or logged_quota > quota or user_id <= 0 or hour % 3600 <> 0
  or cache_read < 0 or cache_read > cache_input`;

interface Compared {
  rollups: number;
  /** Undefined: the coarse sums were not compared, they are being filled. */
  digest: number | undefined;
}

async function compare(
  db: AuditedDatabase,
  month: Month,
  zone: string,
  differences: Differences,
): Promise<Compared> {
  const figures = await readLines(db, comparison(sumNames(db), month, zone), differences);
  const digested = figures.find(({ what }) => what === DIGEST);
  return {
    rollups: figures.find(({ what }) => what === COUNT)?.found ?? 0,
    digest: digested?.expected === 1 ? digested.found : undefined,
  };
}

async function digestNow(db: AuditedDatabase, month: Month, zone: string): Promise<number> {
  const [found] = await db.bulkReader
    .select({ digest: sql`d.digest`.mapWith(Number) })
    .from(sql`(select ${digest(sumNames(db), month, zone)} as digest) as d`);
  return found?.digest ?? 0;
}

/** The first month from there on that has sums of any kind. */
async function monthFrom(db: AuditedDatabase, from: number, zone: string): Promise<Month | undefined> {
  const day = dayOf(zone, from);
  const times = [["rollups", "hour"], ...COARSE.map(({ name, key }) => [name, key[0]])] as const;
  const found = await db.bulkReader
    .select({ time: sql<string>`d.time`, least: sql<string | null>`d.least` })
    .from(
      sql`(${sql.join(
        times.map(
          ([
            name,
            time,
          ]) => sql`select ${raw(`'${time}'`)} as time, min(${raw(time)}) as least from ${raw(name)}
            where ${raw(time)} >= ${time === "day" ? day : from}`,
        ),
        sql` union all `,
      )}) as d`,
    );
  const days = found.flatMap(({ time, least }) =>
    least === null ? [] : [time === "day" ? Number(least) : dayOf(zone, Number(least))],
  );
  return days.length === 0 ? undefined : monthOf(Math.min(...days), zone);
}

/** The month of a day. */
function monthOf(day: number, zone: string): Month {
  const date = new Date(day * 1000);
  const first = (ahead: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + ahead, 1) / 1000;
  const days = { from: first(0), to: first(1) };
  return { days, hours: { from: hoursOfDay(zone, days.from).from, to: hoursOfDay(zone, days.to).from } };
}

async function zoneOf(db: AuditedDatabase): Promise<string> {
  const { rollupDays } = db.t;
  const [state] = await db.bulkReader.select({ zone: rollupDays.zone }).from(rollupDays);
  return state?.zone ?? "UTC";
}

/** Adds what it finds to the differences. Times default to the machine's. */
export async function auditSums(
  db: AuditedDatabase,
  differences: Differences,
  { isFull = false, isReadOnly = false, nowMs = systemClock.nowMs() }: MonthsOptions,
): Promise<SumsReport> {
  const now = Math.floor(nowMs / 1000);
  const zone = await zoneOf(db);
  const kept = await db.bulkReader.select().from(db.t.auditSums);
  const known = new Map(kept.map(({ month, ...memory }) => [month, memory]));
  // Those that differ are read anyway: they take no other month's turn.
  const [oldest] = kept.filter(({ checkedAt }) => checkedAt > 0).sort((a, b) => a.checkedAt - b.checkedAt);
  const due = oldest && oldest.checkedAt < now - READ_AGAIN_SECONDS ? oldest.month : undefined;
  const report: SumsReport = { read: 0, remembered: 0, rollups: 0 };
  const learned = new Map<number, Memory>();
  const unseen = new Set(known.keys());
  for (let month = await monthFrom(db, 0, zone); month; month = await monthFrom(db, month.hours.to, zone)) {
    const key = month.days.from;
    const memory = known.get(key);
    unseen.delete(key);
    const isTrusted = memory && memory.checkedAt > 0 && !isFull && key !== due;
    if (isTrusted && memory.digest === (await digestNow(db, month, zone))) {
      report.remembered++;
      continue;
    }
    report.read++;
    const before = differences.total;
    const { rollups, digest: found } = await compare(db, month, zone, differences);
    report.rollups += rollups;
    if (differences.total > before) {
      if (memory) learned.set(key, { ...memory, checkedAt: 0 });
    } else if (found !== undefined && month.hours.to + CLOSED_AFTER_SECONDS <= now)
      learned.set(key, { digest: found, checkedAt: now });
  }
  if (!isReadOnly) await rememberMonths(db, db.t.auditSums, learned, [...unseen]);
  return report;
}
