// Recomputes every sum of the tables from what lies beneath it and lists each difference; zero is the only good answer. Rows
// of the log are read by audit-months.ts, those of closed months from time to time only.
// Refuses to mix moments: what is compared is read by one statement, which sees one snapshot, also while calls are settled.
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { isSum } from "../logs/coarse-sums.ts";
import { auditMonths } from "./audit-months.ts";
import type { AuditedDatabase, MonthsOptions } from "./audit-months.ts";
import { rollupColumns } from "./row-columns.ts";

export interface AuditDifference {
  /** Which sum, for example `users.quota`. */
  what: string;
  /** Id of the row, or `user@hour`. */
  id: string;
  expected: number;
  found: number;
}

export interface AuditReport {
  differences: AuditDifference[];
  /** What nodes had in their journals and not yet in the tables when they last entered something. */
  waiting: { nodeId: string; count: number }[];
  /** What operators gave up, by node. */
  skipped: { nodeId: string; count: number }[];
  /** Number of rows looked at, by table. */
  checked: { users: number; tokens: number; channels: number; rollups: number; credits: number };
  /** Months of the log whose rows were read, and those that agree with what was remembered of them. */
  months: { read: number; remembered: number };
}

const HOUR_SECONDS = 3600;

/** What the coarse sums are compared by: the days of one zone cannot be told in SQL alike on both databases. */
const COARSE_CHECKS = [
  { table: "rollups_by_model", key: "hour, model_name", id: "hour || '@' || model_name" },
  { table: "rollups_by_user", key: "user_id", id: "cast(user_id as text)" },
  { table: "rollups_by_token", key: "token_id", id: "cast(token_id as text)" },
  {
    table: "rollups_by_channel",
    key: `model_name, channel_id, "group"`,
    id: `channel_id || '@' || model_name || '@' || "group"`,
  },
] as const;

/** Names of the lines that carry row counts instead of differences. */
const COUNT_PREFIX = "count:";
/** Names of the lines that tell of a node's journal. */
const WAITING = "journal:waiting";
const SKIPPED = "journal:skipped";

function asInteger(value: SQL): SQL {
  return sql`cast(${value} as bigint)`;
}

/** Lines of one check whose expected and found figures differ. */
function check(what: string, id: SQL, expected: SQL, found: SQL, from: SQL): SQL {
  return sql`select ${sql.raw(`'${what}'`)} as what, ${id} as id, ${asInteger(expected)} as expected,
    ${asInteger(found)} as found from ${from} where ${expected} <> ${found}`;
}

function count(table: string): SQL {
  return sql`select ${sql.raw(`'${COUNT_PREFIX}${table}'`)} as what, '' as id, ${asInteger(sql`0`)} as expected,
    ${asInteger(sql`count(*)`)} as found from ${sql.raw(table)}`;
}

/** A text of whole numbers, written alike by both databases. */
function idText(value: SQL): SQL {
  return sql`cast(${value} as text)`;
}

/** What a node's row says besides its mark, where it says anything. */
function ofNodes(what: string, figure: SQL): SQL {
  return sql`select ${sql.raw(`'${what}'`)} as what, node_id as id, ${asInteger(sql`0`)} as expected,
    ${asInteger(figure)} as found from nodes where ${figure} > 0`;
}

/** What plans say of balances: the wallet and what running periods have left; and each period of its credits. */
function planChecks(): SQL[] {
  const zero = (name: string) => sql`coalesce(${sql.raw(name)}, 0)`;
  const id = (name: string) => idText(sql.raw(name));
  const raw = (text: string) => sql.raw(text);
  const open = raw(`users u
    left join (select user_id, sum(quota - used) as rest from plan_periods where closed_at = 0 group by user_id) o
      on o.user_id = u.id
    left join (select user_id, sum(amount) as amount from reservations group by user_id) h on h.user_id = u.id`);
  const periods = raw(`plan_periods p
    left join (select ref, sum(amount) as amount, sum(case when kind = 'plan' then amount else 0 end) as given
      from credits where kind in ('plan', 'plan_end') group by ref) c
      on c.ref = cast(p.user_plan_id as text) || ':' || cast(p.no as text)`);
  return [
    check(
      "users.plan_wallet",
      id("u.id"),
      sql`(case when u.plan_until = 0 then u.plan_wallet
        else u.quota + ${zero("h.amount")} + u.used_quota - u.plan_mark - ${zero("o.rest")} end)`,
      raw("u.plan_wallet"),
      open,
    ),
    // Whoever has a running period is looked at when it ends.
    check(
      "users.plan_until",
      id("u.id"),
      raw("0"),
      raw("(case when o.user_id is not null and u.plan_until = 0 then 1 else 0 end)"),
      open,
    ),
    // A period gives its quota once; when it is over, what it gave less what it took back is what was used in it.
    check("plan_periods.quota", id("p.id"), raw("p.quota"), zero("c.given"), periods),
    check(
      "plan_periods.used",
      id("p.id"),
      raw("(case when p.closed_at = 0 then p.quota else p.used end)"),
      zero("c.amount"),
      periods,
    ),
    check(
      "plan_periods.unsound",
      id("p.id"),
      raw("0"),
      raw("(case when p.used < 0 or p.used > p.quota or p.ends_at <= p.starts_at then 1 else 0 end)"),
      raw("plan_periods p"),
    ),
  ];
}

/** What an imported row's counter has beyond its sums. */
const opening = (kind: string, of: string): string =>
  `left join (select id, used_quota, request_count from openings where kind = '${kind}') o on o.id = ${of}.id`;

/**
 * What the hourly sums come to, by payer and beside the coarse sums, one table each: read once, whatever is compared of them.
 * The coarse sums are grouped with them and not joined: SQLite joins such sides row by row.
 */
function sumsOfRollups(sums: readonly string[]): SQL {
  // Hours before `from_hour` are being filled in; days are compared once all of them are there.
  const isWhole = "where (select max(from_hour) from rollup_days) = 0";
  const side = (from: string, key: string, letter: string): string =>
    `select ${key}, ${["f", "g"].flatMap((each) => sums.map((sum) => `${each === letter ? sum : 0} as ${each}_${sum}`)).join(", ")}
      from ${from} ${isWhole}`;
  const added = ["f", "g"].flatMap((each) => sums.map((sum) => `sum(${each}_${sum}) as ${each}_${sum}`));
  const tables = COARSE_CHECKS.map(
    ({ table, key }) =>
      `both_${table} as materialized (select ${key}, ${added.join(", ")}
        from (${side("rollups", key, "f")} union all ${side(table, key, "g")}) as sides group by ${key})`,
  );
  const payers = ["user", "token", "channel"].map(
    (of) =>
      `by_${of} as materialized (select ${of}_id, sum(quota) as quota, sum(count) as count from rollups group by ${of}_id)`,
  );
  return sql.raw(`with ${[...payers, ...tables].join(", ")} `);
}

/** `sums`: the columns that sums of calls have. */
function statement(sums: readonly string[]): SQL {
  const zero = (name: string) => sql`coalesce(${sql.raw(name)}, 0)`;
  const id = (name: string) => idText(sql.raw(name));
  const raw = (text: string) => sql.raw(text);

  const users = raw(`users u
    left join (select user_id, sum(amount) as amount from credits group by user_id) c on c.user_id = u.id
    left join (select user_id, sum(amount) as amount from reservations group by user_id) h on h.user_id = u.id
    left join by_user r on r.user_id = u.id
    ${opening("user", "u")}`);
  const tokens = raw(`tokens k
    left join (select token_id, sum(amount) as amount from reservations group by token_id) h on h.token_id = k.id
    left join by_token r on r.token_id = k.id
    ${opening("token", "k")}`);
  const channels = raw(`channels n
    left join by_channel r on r.channel_id = n.id
    left join (select channel_id, sum(used_quota) as quota from channel_keys group by channel_id) s
      on s.channel_id = n.id
    ${opening("channel", "n")}`);

  const used = sql`(${zero("r.quota")} + ${zero("o.used_quota")})`;
  const rollupId = sql`${id("r.user_id")} || '@' || ${id("r.hour")}`;
  // Without a call there may be what the house bore, a failed attempt or a probe; or an error.
  const soundRollup = raw(`(case when r.count < 0 or (r.count = 0 and r.cost_nanos = 0 and r.error_count = 0)
    or r.error_count < 0 or r.quota < 0
    or r.prompt_tokens < 0 or r.completion_tokens < 0
    or r.use_time_ms < 0 or r.logged_count < 0 or r.logged_quota < 0 or r.logged_count > r.count
    or r.logged_quota > r.quota or r.user_id <= 0 or r.hour % ${HOUR_SECONDS} <> 0
    or r.cache_read < 0 or r.cache_read > r.cache_input then 1 else 0 end)`);

  // Sessions are some of the hour's calls.
  const affinity = raw(`(select rule || '@' || cast(hour as text) as rule_at_hour,
      case when kept < 0 or switched < 0 or kept + switched > count or cache_read < 0 or cache_read > cache_input
        then 1 else 0 end as wrong from affinity_sums
    union all select 'hour@' || cast(s.hour as text), case when s.count > coalesce(r.count, 0)
        or s.cache_input > coalesce(r.cache_input, 0) or s.cache_read > coalesce(r.cache_read, 0)
        then 1 else 0 end
      from (select hour, sum(count) as count, sum(cache_input) as cache_input, sum(cache_read) as cache_read
        from affinity_sums group by hour) s
      left join (select hour, sum(count) as count, sum(cache_input) as cache_input, sum(cache_read) as cache_read
        from rollups group by hour) r on r.hour = s.hour) a`);

  const checks = sql.join(
    [
      check(
        "users.quota",
        id("u.id"),
        sql`(${zero("c.amount")} - u.used_quota - ${zero("h.amount")})`,
        raw("u.quota"),
        users,
      ),
      ...planChecks(),
      check("users.used_quota", id("u.id"), used, raw("u.used_quota"), users),
      check(
        "users.request_count",
        id("u.id"),
        sql`(${zero("r.count")} + ${zero("o.request_count")})`,
        raw("u.request_count"),
        users,
      ),
      check("tokens.used_quota", id("k.id"), used, raw("k.used_quota"), tokens),
      check(
        "tokens.remain_quota",
        id("k.id"),
        sql`(k.quota_base - k.used_quota - ${zero("h.amount")})`,
        raw("k.remain_quota"),
        tokens,
      ),
      check("channels.used_quota", id("n.id"), used, raw("n.used_quota"), channels),
      check(
        "channel_keys.used_quota",
        id("n.id"),
        used,
        sql`(${zero("s.quota")} + n.gone_keys_quota)`,
        channels,
      ),
      ...COARSE_CHECKS.flatMap(({ table, id: name }) =>
        sums.map((sum) =>
          check(`${table}.${sum}`, raw(name), raw(`f_${sum}`), raw(`g_${sum}`), raw(`both_${table}`)),
        ),
      ),
      check(
        "nodes.mark",
        raw("m.node_id"),
        sql`(m.entered + m.set_aside + m.skipped)`,
        raw("m.mark"),
        raw("nodes m"),
      ),
      check("rollups.unsound", rollupId, raw("0"), soundRollup, raw("rollups r")),
      check("affinity_sums.unsound", raw("a.rule_at_hour"), raw("0"), raw("a.wrong"), affinity),
      ofNodes(WAITING, raw("(journaled - mark)")),
      ofNodes(SKIPPED, raw("skipped")),
      ...["users", "tokens", "channels", "rollups", "credits"].map(count),
    ],
    sql` union all `,
  );
  return sql`${sumsOfRollups(sums)}${checks}`;
}

/** Every column of the schema that sums of calls have, those of later versions too. */
function sumsOf(db: Pick<Database, "t">): string[] {
  return rollupColumns(db.t)
    .filter(({ field }) => isSum(field))
    .map(({ name }) => name.replaceAll('"', ""));
}

/** Works at any moment on a running process's database (on SQLite in the reader's Worker) and offline. */
export async function audit(db: AuditedDatabase, options: MonthsOptions = {}): Promise<AuditReport> {
  const lines = await db.bulkReader
    .select({
      what: sql<string>`d.what`,
      id: sql<string>`d.id`,
      expected: sql`d.expected`.mapWith(Number),
      found: sql`d.found`.mapWith(Number),
    })
    .from(sql`(${statement(sumsOf(db))}) as d`);
  const checked = { users: 0, tokens: 0, channels: 0, rollups: 0, credits: 0 };
  const { differences, ...months } = await auditMonths(db, options);
  const report: AuditReport = { differences, waiting: [], skipped: [], checked, months };
  for (const line of lines) {
    if (line.what.startsWith(COUNT_PREFIX)) {
      checked[line.what.slice(COUNT_PREFIX.length) as keyof typeof checked] = line.found;
    } else if (line.what === WAITING) report.waiting.push({ nodeId: line.id, count: line.found });
    else if (line.what === SKIPPED) report.skipped.push({ nodeId: line.id, count: line.found });
    else report.differences.push(line);
  }
  return report;
}

/** The report as text for a terminal. */
export function formatAudit(report: AuditReport): string {
  const { users, tokens, channels, rollups, credits } = report.checked;
  const journals = [
    ...report.waiting.map(
      ({ nodeId, count: waiting }) => `\nNode ${nodeId}: ${waiting} entries wait in its journal.`,
    ),
    ...report.skipped.map(
      ({ nodeId, count: skipped }) =>
        `\nNode ${nodeId}: ${skipped} entries of its journal were given up by an operator.`,
    ),
  ].join("");
  const { read, remembered } = report.months;
  const looked = `Looked at ${users} users, ${tokens} keys, ${channels} channels, ${credits} credits and ${rollups} hourly sums.
Read the log of ${read} months; ${remembered} closed months are as they were when it was read (--full reads them too).${journals}`;
  if (report.differences.length === 0) return `${looked}\nNo difference: every sum agrees.`;
  const table = [
    ["sum", "row", "expected", "found", "off by"],
    ...report.differences.map((line) => [
      line.what,
      line.id,
      String(line.expected),
      String(line.found),
      String(line.found - line.expected),
    ]),
  ];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0))) ?? [];
  const text = table.map((line) =>
    line
      .map((cell, column) =>
        column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  "),
  );
  return `${looked}\n${report.differences.length} differences:\n\n${text.join("\n")}`;
}
