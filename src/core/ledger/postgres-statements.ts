// PostgreSQL's statements for a batch: open reservations closed, sums added, log rows written. Each works on the whole
// batch at once, handed over as one JSON text.
import type { SQL } from "drizzle-orm";
import { fixedQuery, flightOf, q, rawQuery } from "../../db/database.ts";
import type { Database, Orm, Query, RawRow, Steps } from "../../db/database.ts";
import { TokenStatus } from "../../shared/enums.ts";
import { COARSE, dated, DAYS_ROW, isSum } from "../logs/coarse-sums.ts";
import type { DatedSum } from "../logs/coarse-sums.ts";
import type { BatchSums, DurableHold } from "./items.ts";
import {
  addToKnownHour,
  addToKnownRule,
  affinityColumns,
  coarseColumns,
  logColumns,
  namesOf,
  objectColumns,
  replaceKnownObject,
  rollupColumns,
} from "./row-columns.ts";
import type { RowColumn } from "./row-columns.ts";
import type { Figures } from "./store.ts";

/** Runs a statement by hand inside an atomic body. */
export function* rows(tx: Orm, statement: SQL): Steps<RawRow[]> {
  return yield* q(rawQuery(tx, statement));
}

/** Locks the rows in the order of their ids, so that batches and reservations of several nodes cannot deadlock. */
export function* lockRows(
  tx: Orm,
  table: "users" | "tokens" | "channels",
  ids: Iterable<number>,
): Steps<void> {
  const list = [...ids];
  if (list.length > 0) yield* q(lockOf(tx, table, list));
}

/** Tables whose rows a batch locks, in the order in which it does. */
export type LockedTable = "users" | "tokens" | "channels";

export const LOCKED_TABLES: readonly LockedTable[] = ["users", "tokens", "channels"];

/** Takes the ids as $1, a JSON list. */
export function lockText(table: LockedTable): string {
  return `select id from ${table}
      where id = any(array(select value::bigint from json_array_elements_text($1::json)))
      order by id for no key update`;
}

function lockOf(tx: Orm, table: LockedTable, ids: Iterable<number>): Query<RawRow[]> {
  return fixedQuery(tx, lockText(table), [JSON.stringify([...ids])]);
}

/** The texts of the inserts, with the columns of the schema; each takes its rows as one JSON text. */
export interface InsertTexts {
  logs: string;
  /** Of hours and everything coarser; answers the zone whose days these have. */
  rollups: string;
  affinity: string;
  objects: string;
}

export function insertTexts(t: Database["t"]): InsertTexts {
  const ofAffinity = affinityColumns(t);
  const ofObjects = objectColumns(t);
  return {
    logs: insertOf("logs", logColumns(t)),
    rollups: insertOfSums(t),
    affinity: `${insertOf("affinity_sums", ofAffinity)} ${addToKnownRule(ofAffinity)}`,
    objects: `${insertOf("remote_objects", ofObjects)} ${replaceKnownObject(ofObjects)}`,
  };
}

function insertOf<Row>(table: string, columns: readonly RowColumn<Row>[]): string {
  const shape = columns.map(({ field, type }) => `"${field}" ${type}`).join(", ");
  return `insert into ${table} (${namesOf(columns)}) select * from json_to_recordset($1::json) as v(${shape})`;
}

/**
 * Hourly sums and the coarse ones in one statement. It holds the row of `rollup_days` until the commit: who fills the
 * coarse sums anew waits for it, so that no hour is counted twice or not at all. In one order on every node, so that
 * their batches cannot deadlock.
 */
function insertOfSums(t: Database["t"]): string {
  const fine = rollupColumns(t);
  const all = [...fine, { field: "day", name: `"day"`, type: "bigint" } as RowColumn<DatedSum>];
  const quoted = (fields: readonly string[]) => fields.map((field) => `"${field}"`).join(", ");
  const coarse = COARSE.map((table, at) => {
    const { columns, end } = coarseColumns(t, table);
    const values = columns.map(({ field }) => (isSum(field) ? `sum("${field}")` : `"${field}"`)).join(", ");
    const key = quoted(table.key);
    return `c${at} as (insert into ${table.name} (${namesOf(columns)}) select ${values} from v, state
      where v."hour" >= state.from_hour group by ${key} order by ${key} ${end})`;
  });
  // Another zone than the batch was made with stops it where nobody looks at the answer before the commit.
  return `with v as materialized (select * from json_to_recordset($1::json)
      as v(${all.map(({ field, type }) => `"${field}" ${type}`).join(", ")})),
    state as materialized (select zone, from_hour from rollup_days where id = ${DAYS_ROW} for share),
    fine as (insert into rollups (${namesOf(fine)}) select ${quoted(fine.map(({ field }) => field))} from v
      order by 1, 2, 3, 4, 5, 6 ${addToKnownHour(fine)}),
    ${coarse.join(",\n")}
    select zone, ${checked("$2::text = '' or zone = $2::text")} from state`;
}

/** Where the condition does not hold, the statement fails with DIVISION_BY_ZERO, and with it the transaction. */
export function checked(condition: string): string {
  return `1 / (case when ${condition} then 1 else 0 end) as checked`;
}

/** What `checked` fails with. */
export const CHECK_FAILED = "22012";

/** The coarse sums have the days of another zone than this node knew: the batch is made again with its days. */
export class ZoneMoved extends Error {
  constructor(readonly zone: string) {
    super(`days are counted in ${zone} now`);
  }
}

/** A batch as its statements need it. */
export interface Batch {
  sums: BatchSums;
  /** Those of its sums and of its holds. */
  userIds: ReadonlySet<number>;
  tokenIds: ReadonlySet<number>;
  zone: string;
}

/** The statement that moves the node's mark, and what throws where it found the mark elsewhere. */
export interface MarkStep {
  query: Query<RawRow[]>;
  assertMoved: (moved: readonly RawRow[]) => void;
  /** The same statement, which fails with CHECK_FAILED where the mark is elsewhere. */
  checkedQuery: Query<RawRow[]>;
  /** What it takes, $1 and following. */
  values: readonly (string | number)[];
}

/** A transaction stands still no longer than others wait for its rows; through a pooler its session was not told when it began. */
const MAX_STILL_MS = 8000;
const BOUND_STILLNESS = `select set_config('idle_in_transaction_session_timeout', '${MAX_STILL_MS}', true)`;

/**
 * Everything of a batch, for `atomic(…, "at once")`: it fails with CHECK_FAILED where the mark or the zone is another one, and
 * `enterBatch` tells which. Undefined for a batch that closes reservations: which of them still stand is known first there.
 */
export function enterAtOnce(texts: InsertTexts, batch: Batch, mark: (tx: Orm) => MarkStep) {
  if (batch.sums.holds.length > 0) return undefined;
  return function* (tx: Orm): Steps<Figures> {
    const { queries, users, tokens } = chargesOf(tx, texts, batch, { closed: [], expectedZone: batch.zone });
    const all = [
      fixedQuery(tx, BOUND_STILLNESS, []),
      mark(tx).checkedQuery,
      ...locksOf(tx, batch),
      ...queries,
    ];
    const answers = yield* q(flightOf(all));
    const answerTo = (query: Query<RawRow[]> | undefined) =>
      (query && answers[all.indexOf(query)]) ?? NO_ROWS;
    return { users: answerTo(users).map(userOf), tokens: answerTo(tokens).map(tokenOf) };
  };
}

/**
 * Everything of a batch step by step: where amounts had left the balance before, it is known first which of them are given
 * back. Throws ZoneMoved, and what `assertMoved` does.
 */
export function* enterBatch(tx: Orm, texts: InsertTexts, batch: Batch, mark: MarkStep): Steps<Figures> {
  const { sums, zone } = batch;
  const { holds } = sums;
  const first = [fixedQuery(tx, BOUND_STILLNESS, []), mark.query, ...locksOf(tx, batch)];
  const begun = yield* q(flightOf(holds.length > 0 ? [...first, closeHolds(tx, holds)] : first));
  mark.assertMoved(begun[1] ?? []);
  const closed = holds.length > 0 ? (begun.at(-1) ?? []).map(holdOf) : [];
  const { queries, users, tokens, rollups } = chargesOf(tx, texts, batch, { closed, expectedZone: "" });
  const answers = yield* q(flightOf(queries));
  const answerTo = (query: Query<RawRow[]> | undefined) =>
    (query && answers[queries.indexOf(query)]) ?? NO_ROWS;
  const [state] = answerTo(rollups);
  if (state && state.zone !== zone) throw new ZoneMoved(String(state.zone));
  return { users: answerTo(users).map(userOf), tokens: answerTo(tokens).map(tokenOf) };
}

/** What the statements that charge take as one JSON text each, in one order on every node: accounts before what only grows. */
export const LIST_NAMES = [
  "users",
  "tokens",
  "channels",
  "keys",
  "logs",
  "rollups",
  "affinity",
  "objects",
] as const;

type ListName = (typeof LIST_NAMES)[number];

/** Each takes its list as $1; `rollups` also the zone that is expected, empty where nothing fails for another one. */
export function statementTexts({ logs, rollups, affinity, objects }: InsertTexts): Record<ListName, string> {
  return {
    users: CHARGE_USERS,
    tokens: CHARGE_TOKENS,
    channels: CHARGE_CHANNELS,
    keys: CHARGE_KEYS,
    logs,
    rollups,
    affinity,
    objects,
  };
}

/** `closed`: the reservations that are given back. */
export function listsOf(
  { sums, zone }: Batch,
  closed: readonly DurableHold[],
): Record<ListName, readonly unknown[]> {
  return {
    users: userChanges(sums, closed),
    tokens: tokenChanges(sums, closed),
    channels: [...sums.channels].map(([id, charge]) => ({ id, charge })),
    keys: sums.keys,
    logs: sums.logs,
    rollups: sums.rollups.map((sum) => dated(zone, sum)),
    affinity: sums.affinity,
    objects: sums.objects,
  };
}

function chargesOf(
  tx: Orm,
  texts: InsertTexts,
  batch: Batch,
  { closed, expectedZone }: { closed: readonly DurableHold[]; expectedZone: string },
) {
  const statements = statementTexts(texts);
  const lists = listsOf(batch, closed);
  const made = new Map<ListName, Query<RawRow[]>>();
  for (const name of LIST_NAMES) {
    if (lists[name].length === 0) continue;
    const more = name === "rollups" ? [expectedZone] : [];
    made.set(name, fixedQuery(tx, statements[name], [JSON.stringify(lists[name]), ...more]));
  }
  const [users, tokens, rollups] = [made.get("users"), made.get("tokens"), made.get("rollups")];
  return { queries: [...made.values()], users, tokens, rollups };
}

const NO_ROWS: RawRow[] = [];

/** One row of each alone is locked by the statement that charges it, in the same order. */
export function lockedIds({ sums, userIds, tokenIds }: Batch): Record<LockedTable, readonly number[]> {
  const { channels, holds } = sums;
  if (holds.length === 0 && userIds.size <= 1 && tokenIds.size <= 1 && channels.size <= 1)
    return { users: [], tokens: [], channels: [] };
  return { users: [...userIds], tokens: [...tokenIds], channels: [...channels.keys()] };
}

function locksOf(tx: Orm, batch: Batch): Query<RawRow[]>[] {
  const ids = lockedIds(batch);
  return LOCKED_TABLES.filter((table) => ids[table].length > 0).map((table) => lockOf(tx, table, ids[table]));
}

/** Rows that are still open; one that its lease has already returned is charged in full instead. */
function closeHolds(tx: Orm, holds: readonly DurableHold[]): Query<RawRow[]> {
  const text = `delete from reservations
    where request_id in (select value from json_array_elements_text($1::json))
    returning request_id, user_id, token_id, amount`;
  return fixedQuery(tx, text, [JSON.stringify(holds.map((hold) => hold.key))]);
}

export function holdOf(row: RawRow): DurableHold {
  return {
    key: String(row.request_id),
    userId: Number(row.user_id),
    tokenId: Number(row.token_id),
    amount: Number(row.amount),
  };
}

/** What is given back, by user or by token. */
export function givenBack(holds: readonly DurableHold[], of: "userId" | "tokenId"): Map<number, number> {
  const sums = new Map<number, number>();
  for (const hold of holds) if (hold[of] !== 0) sums.set(hold[of], (sums.get(hold[of]) ?? 0) + hold.amount);
  return sums;
}

const CHARGE_USERS = `update users set quota = users.quota - v.take, used_quota = users.used_quota + v.charge,
    request_count = users.request_count + v.count
  from json_to_recordset($1::json) as v(id bigint, take bigint, charge bigint, count bigint)
  where users.id = v.id
  returning users.id, users.quota, users.used_quota, users.request_count`;

function userChanges(sums: BatchSums, closed: readonly DurableHold[]) {
  const back = givenBack(closed, "userId");
  return [...new Set([...sums.users.keys(), ...back.keys()])].map((id) => {
    const { charge, count } = sums.users.get(id) ?? { charge: 0, count: 0 };
    return { id, take: charge - (back.get(id) ?? 0), charge, count };
  });
}

export function userOf(row: RawRow): Figures["users"][number] {
  return {
    id: Number(row.id),
    quota: Number(row.quota),
    usedQuota: Number(row.used_quota),
    requestCount: Number(row.request_count),
  };
}

/** A limited key is exhausted when nothing is left, not even in reservations that may still be given back. */
const CHARGE_TOKENS = `update tokens set remain_quota = tokens.remain_quota - v.take,
    used_quota = tokens.used_quota + v.charge,
    accessed_time = greatest(tokens.accessed_time, v.accessed),
    status = case when not tokens.unlimited_quota and tokens.status = ${TokenStatus.enabled}
      and tokens.remain_quota - v.take + coalesce(
        (select sum(r.amount) from reservations r where r.token_id = tokens.id), 0) <= 0
      then ${TokenStatus.exhausted}::integer else tokens.status end
  from json_to_recordset($1::json) as v(id bigint, take bigint, charge bigint, accessed bigint)
  where tokens.id = v.id
  returning tokens.id, tokens.remain_quota, tokens.used_quota, tokens.status`;

function tokenChanges(sums: BatchSums, closed: readonly DurableHold[]) {
  const back = givenBack(closed, "tokenId");
  return [...new Set([...sums.tokens.keys(), ...back.keys()])].map((id) => {
    const { charge, accessedTime } = sums.tokens.get(id) ?? { charge: 0, accessedTime: 0 };
    return { id, take: charge - (back.get(id) ?? 0), charge, accessed: accessedTime };
  });
}

export function tokenOf(row: RawRow): Figures["tokens"][number] {
  return {
    id: Number(row.id),
    remainQuota: Number(row.remain_quota),
    usedQuota: Number(row.used_quota),
    status: Number(row.status),
  };
}

const CHARGE_CHANNELS = `update channels set used_quota = channels.used_quota + v.charge
    from json_to_recordset($1::json) as v(id bigint, charge bigint)
    where channels.id = v.id`;

/** Whoever deletes a key locks its channel first, as this batch did: what no key takes is the channel's own. */
const CHARGE_KEYS = `with v as materialized (
    select * from json_to_recordset($1::json) as v(id bigint, "channelId" bigint, charge bigint, "lastUsed" bigint)),
  charged as (update channel_keys set used_quota = channel_keys.used_quota + v.charge,
      last_used = greatest(channel_keys.last_used, v."lastUsed")
    from v where channel_keys.id = v.id and channel_keys.channel_id = v."channelId"
    returning channel_keys.id)
  update channels set gone_keys_quota = channels.gone_keys_quota + gone.charge
    from (select "channelId", sum(charge)::bigint as charge from v where id not in (select id from charged) group by 1) as gone
    where channels.id = gone."channelId"`;
