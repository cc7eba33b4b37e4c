// Recomputes every sum of the tables from what lies beneath it and lists each difference; zero is the only good answer. Rows
// of the log are read by audit-months.ts, hourly sums by audit-sums.ts, those of closed months from time to time only.
// Refuses to mix moments: what is compared is read by one statement, which sees one snapshot, also while calls are settled.
import { sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { Differences, readLines } from "./audit-lines.ts";
import { auditMonths } from "./audit-months.ts";
import type { AuditedDatabase, MonthsOptions } from "./audit-months.ts";
import { auditSums } from "./audit-sums.ts";

export interface AuditDifference {
  /** Which sum, for example `users.quota`. */
  what: string;
  /** Id of the row, or `user@hour`. */
  id: string;
  expected: number;
  found: number;
}

export interface AuditReport {
  /** The first that were found, and how many there are. */
  differences: AuditDifference[];
  total: number;
  /** What nodes had in their journals and not yet in the tables when they last entered something. */
  waiting: { nodeId: string; count: number }[];
  /** What operators gave up, by node. */
  skipped: { nodeId: string; count: number }[];
  /** Number of rows looked at, by table; of the hourly sums those of months that were read. */
  checked: { users: number; tokens: number; channels: number; rollups: number; credits: number };
  /** Months of the log whose rows were read, and those that agree with what was remembered of them. */
  months: { read: number; remembered: number };
  /** The same of the hourly sums, in months of the site's zone. */
  sums: { read: number; remembered: number };
}

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
 * What the sums come to by payer: of the coarse ones, which audit-sums.ts compares with the hourly ones; of the hourly ones while
 * the coarse ones are being filled.
 */
function sumsOfPayers(): SQL {
  const isWhole = "(select coalesce(max(from_hour), 1) from rollup_days) = 0";
  const side = (of: string, from: string, whether: string) =>
    `select ${of}_id, sum(quota) as quota, sum(count) as count from ${from} where ${whether} group by ${of}_id`;
  const payers = ["user", "token", "channel"].map(
    (of) =>
      `by_${of} as materialized (${side(of, `rollups_by_${of}`, isWhole)} union all ${side(of, "rollups", `not ${isWhole}`)})`,
  );
  const columns = "hour, sum(count) as count, sum(cache_input) as cache_input, sum(cache_read) as cache_read";
  const hours = ["rollups_by_model", "rollups"].map(
    (from) =>
      `select ${columns} from ${from} where ${from === "rollups" ? "not " : ""}${isWhole}
        and hour in (select hour from affinity_sums) group by hour`,
  );
  return sql.raw(`with ${payers.join(", ")}, by_hour as materialized (${hours.join(" union all ")}) `);
}

function statement(): SQL {
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
  // Sessions are some of the hour's calls.
  const affinity = raw(`(select rule || '@' || cast(hour as text) as rule_at_hour,
      case when kept < 0 or switched < 0 or kept + switched > count or cache_read < 0 or cache_read > cache_input
        then 1 else 0 end as wrong from affinity_sums
    union all select 'hour@' || cast(s.hour as text), case when s.count > coalesce(r.count, 0)
        or s.cache_input > coalesce(r.cache_input, 0) or s.cache_read > coalesce(r.cache_read, 0)
        then 1 else 0 end
      from (select hour, sum(count) as count, sum(cache_input) as cache_input, sum(cache_read) as cache_read
        from affinity_sums group by hour) s
      left join by_hour r on r.hour = s.hour) a`);

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
      check(
        "nodes.mark",
        raw("m.node_id"),
        sql`(m.entered + m.set_aside + m.skipped)`,
        raw("m.mark"),
        raw("nodes m"),
      ),
      check("affinity_sums.unsound", raw("a.rule_at_hour"), raw("0"), raw("a.wrong"), affinity),
      ofNodes(WAITING, raw("(journaled - mark)")),
      ofNodes(SKIPPED, raw("skipped")),
      ...["users", "tokens", "channels", "credits"].map(count),
    ],
    sql` union all `,
  );
  return sql`${sumsOfPayers()}${checks}`;
}

/** Works at any moment on a running process's database (on SQLite in the reader's Worker) and offline. */
export async function audit(db: AuditedDatabase, options: MonthsOptions = {}): Promise<AuditReport> {
  const differences = new Differences(options.mostDifferences);
  const lines = await readLines(db, statement(), differences);
  const { rollups, ...sums } = await auditSums(db, differences, options);
  const months = await auditMonths(db, differences, options);
  const checked = { users: 0, tokens: 0, channels: 0, rollups, credits: 0 };
  const { list, total } = differences;
  const report: AuditReport = { differences: list, total, waiting: [], skipped: [], checked, months, sums };
  for (const line of lines) {
    if (line.what.startsWith(COUNT_PREFIX)) {
      checked[line.what.slice(COUNT_PREFIX.length) as keyof typeof checked] = line.found;
    } else if (line.what === WAITING) report.waiting.push({ nodeId: line.id, count: line.found });
    else report.skipped.push({ nodeId: line.id, count: line.found });
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
  const { sums } = report;
  const looked = `Looked at ${users} users, ${tokens} keys, ${channels} channels, ${credits} credits and ${rollups} hourly sums.
Read the hourly sums of ${sums.read} months; of ${sums.remembered} closed months the coarse sums are as they were when it was read.
Read the log of ${read} months; ${remembered} closed months are as they were when it was read (--full reads all of them).${journals}`;
  if (report.total === 0) return `${looked}\nNo difference: every sum agrees.`;
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
  const listed = report.differences.length;
  const which = report.total > listed ? `, the first ${listed}` : "";
  return `${looked}\n${report.total} differences${which}:\n\n${text.join("\n")}`;
}
