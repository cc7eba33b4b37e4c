// A log of any size in either database, with its sums: what `bun run bench rows` measures and a test asks the planners about.
// Refuses a database that is in use: the log's indexes are taken away while the rows come in.
import { sql } from "drizzle-orm";
import type { Sql } from "postgres";
import { buildCoarse } from "../src/core/ledger/coarse-build.ts";
import { coarseState } from "../src/core/logs/coarse-state.ts";
import { END_OF_TIME, HOUR_SECONDS } from "../src/core/logs/filter.ts";
import { ensureLogParts } from "../src/core/logs/retention.ts";
import type { Deps } from "../src/core/deps.ts";

const DAY = 24 * HOUR_SECONDS;
/** The rows lie in so many days before now. */
export const DAYS = 90;
export const USERS = 2000;
export const MODELS = 60;
const CHANNELS = 30;
const ROWS_PER_STATEMENT = 500_000;

type FillDeps = Pick<Deps, "db" | "clock" | "options">;

/** A statement by hand on either database. */
export async function statement({ db }: Pick<Deps, "db">, text: string): Promise<void> {
  if (db.client) db.client.run(text);
  else await (db.orm as unknown as { $client: Sql }).$client.unsafe(text, [], { prepare: false });
}

/** The indexes of the log that are no key: they are quicker made at the end. */
async function indexesOf({ db }: Pick<Deps, "db">): Promise<{ name: string; sql: string }[]> {
  if (db.client)
    return db.client
      .query<{ name: string; sql: string }, []>(
        "select name, sql from sqlite_master where type = 'index' and tbl_name = 'logs' and sql is not null",
      )
      .all();
  const rows = await (db.orm as unknown as { $client: Sql }).$client.unsafe(
    "select indexname as name, indexdef as sql from pg_indexes where tablename = 'logs' and indexdef not like '%UNIQUE%'",
  );
  // PostgreSQL tells a partitioned table's index without those of its parts.
  return rows.map((row) => ({
    name: String(row["name"]),
    sql: String(row["sql"]).replace(" ON ONLY ", " ON "),
  }));
}

/** The whole numbers i from one to another. */
function numbers(isPostgres: boolean, from: number, to: number): string {
  return isPostgres
    ? `generate_series(${from}::bigint, ${to}::bigint) as series(i)`
    : `(with recursive series(i) as (select ${from} union all select i + 1 from series where i < ${to}) select i from series where true)`;
}

const ofCalls = (column: string) => `sum(case when type = 2 then ${column} else 0 end)`;

/** The hourly sums of all calls and errors of the log, where there are none yet: one hour after the other, as calls write them. */
export async function addHourlySums(deps: Pick<Deps, "db">): Promise<void> {
  await statement(
    deps,
    `insert into rollups (hour, user_id, model_name, channel_id, token_id, "group", count, quota, prompt_tokens,
      completion_tokens, use_time_ms, logged_count, logged_quota, error_count)
    select created_at - created_at % 3600 as h, user_id,
      case when type = 5 and channel_id = 0 then '' else model_name end, channel_id, token_id, "group", ${ofCalls("1")},
      ${ofCalls("quota")}, ${ofCalls("prompt_tokens")}, ${ofCalls("completion_tokens")}, ${ofCalls("use_time_ms")},
      ${ofCalls("1")}, ${ofCalls("quota")}, sum(case when type = 5 then 1 else 0 end)
    from logs where type in (2, 5) group by 1, 2, 3, 4, 5, 6 order by h`,
  );
}

/** Fills log and sums; `tell` hears what is done. Users, models and channels are used unevenly, as they are. */
export async function fillLog(deps: FillDeps, rows: number, tell: (text: string) => void): Promise<void> {
  const { db, clock } = deps;
  const isPostgres = db.kind === "postgres";
  const now = Math.floor(clock.nowMs() / 1000);
  const start = now - DAYS * DAY;
  for (let at = start; at < now + 31 * DAY; at += 28 * DAY)
    await ensureLogParts({ db, clock: { ...clock, nowMs: () => at * 1000 } });
  const people = numbers(isPostgres, 1, USERS);
  await statement(
    deps,
    `insert into users (id, username) select i, 'user-' || i from ${people} where i not in (select id from users)`,
  );
  await statement(
    deps,
    `insert into tokens (id, user_id, name, key_hash, key_sealed)
      select i, i / 2, 'a key of user ' || (i / 2), 'bench-' || i, '' from ${numbers(isPostgres, 2, 2 * USERS + 1)}`,
  );
  const indexes = await indexesOf(deps);
  for (const { name } of indexes) await statement(deps, `drop index "${name}"`);
  const padded = isPostgres ? "lpad(i::text, 12, '0')" : "printf('%012d', i)";
  const isStream = isPostgres ? "(i % 2 = 0)" : "i % 2";
  // Two numbers of 0 to 2^32 - 1 for each row, the same in every run.
  const mixed = (times: number, shift: number) => `((i + ${shift}) * ${times} % 4294967296)`;
  const [a, b] = [mixed(2654435761, 1), mixed(2246822519, 7)];
  const skewed = (most: number) => `(1 + (${a} % ${most}) * (${b} / 7 % ${most}) / ${most})`;
  // Each model is served by three channels.
  const channel = `(1 + (${skewed(MODELS)} * 7 + ${b} / 3 % 3 * 11) % ${CHANNELS})`;
  for (let from = 0; from < rows; from += ROWS_PER_STATEMENT) {
    const to = Math.min(rows, from + ROWS_PER_STATEMENT) - 1;
    const series = numbers(isPostgres, from, to);
    await statement(
      deps,
      `insert into logs (created_at, type, user_id, channel_id, token_id, quota, prompt_tokens, completion_tokens,
        use_time_ms, is_stream, request_id, model_name, username, token_name, "group", content, other)
      select ${start} + i * ${DAYS * DAY} / ${rows}, case when i % 40 = 7 then 5 when i % 1000 = 3 then 1 else 2 end,
        ${skewed(USERS)}, ${channel}, ${skewed(USERS)} * 2 + ${a} / 5 % 2,
        case when i % 40 = 7 or i % 1000 = 3 then 0 else ${a} % 5000 end, ${a} % 3000, ${b} % 900, ${b} % 20000, ${isStream},
        'bench-' || ${padded}, 'model-' || ${skewed(MODELS)}, 'user-' || ${skewed(USERS)}, 'key of ' || ${skewed(USERS)},
        case ${a} / 11 % 3 when 0 then 'default' when 1 then 'vip' else 'team' end,
        '模型倍率 1.00，补全倍率 4.00，分组倍率 1.00', ${FILLER}
      from ${series}`,
    );
    tell(`${to + 1} rows`);
  }
  for (const { sql: text } of indexes) await statement(deps, text);
  tell("indexes");
  await addHourlySums(deps);
  tell("hourly sums");
  const { rollupDays } = db.t;
  await db.orm
    .update(rollupDays)
    .set({ fromHour: END_OF_TIME })
    .where(sql`true`);
  // A clock that stands still: nobody else is served meanwhile, so that steps may be long.
  const still = { ...clock, monotonicMs: () => 0 };
  await buildCoarse({ ...deps, clock: still }, async () => {});
  if ((await coarseState(db))?.fromHour !== 0) throw new Error("the coarse sums are not there");
  if (isPostgres) await statement(deps, "vacuum analyze");
  tell("coarse sums");
}

/** As long as the row's own details are. */
const FILLER = `'{"model_ratio":1,"group_ratio":1,"completion_ratio":4,"frt":412,"cost":{"table":"0123456789abcdef","unit":500000},"attempts":[{"channel":7,"ms":1834,"status":200}],"admin_info":{"use_channel":["7"],"channel_name":"upstream number seven"},"upstream_dialect":"openai"}'`;
