// PostgreSQL's statements for a batch: open reservations closed, sums added, log rows written. Each works on the whole
// batch at once, handed over as one JSON text.
import type { SQL } from "drizzle-orm";
import { sql } from "drizzle-orm";
import { q, rawQuery } from "../../db/database.ts";
import type { Database, Orm, RawRow, Steps } from "../../db/database.ts";
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
  const list = JSON.stringify([...ids]);
  if (list === "[]") return;
  yield* rows(
    tx,
    sql`select id from ${sql.identifier(table)}
      where id = any(array(select value::bigint from json_array_elements_text(${list}::json)))
      order by id for no key update`,
  );
}

/** The inserts, with the columns of the schema. */
export interface RowInserts {
  logs(rows: BatchSums["logs"]): SQL;
  /** Of hours and everything coarser; answers the zone whose days these have. */
  rollups(rows: readonly DatedSum[]): SQL;
  affinity(rows: BatchSums["affinity"]): SQL;
  objects(rows: BatchSums["objects"]): SQL;
}

export function rowInserts(t: Database["t"]): RowInserts {
  const ofLogs = logColumns(t);
  const ofObjects = objectColumns(t);
  const logs = insertOf("logs", ofLogs);
  const objects = insertOf("remote_objects", ofObjects);
  const ofAffinity = affinityColumns(t);
  const affinity = insertOf("affinity_sums", ofAffinity);
  const added = sql.raw(addToKnownRule(ofAffinity));
  const newest = sql.raw(replaceKnownObject(ofObjects));
  return {
    logs: (list) => logs(list),
    rollups: insertOfSums(t),
    affinity: (list) => sql`${affinity(list)} ${added}`,
    objects: (list) => sql`${objects(list)} ${newest}`,
  };
}

function insertOf<Row>(table: string, columns: readonly RowColumn<Row>[]): (list: readonly Row[]) => SQL {
  const begin = sql.raw(`insert into ${table} (${namesOf(columns)}) select * from json_to_recordset(`);
  const shape = sql.raw(`::json) as v(${columns.map(({ field, type }) => `"${field}" ${type}`).join(", ")})`);
  return (list) => sql`${begin}${JSON.stringify(list)}${shape}`;
}

/**
 * Hourly sums and the coarse ones in one statement. It holds the row of `rollup_days` until the commit: who fills the
 * coarse sums anew waits for it, so that no hour is counted twice or not at all. In one order on every node, so that
 * their batches cannot deadlock.
 */
function insertOfSums(t: Database["t"]): RowInserts["rollups"] {
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
  const begin = sql.raw("with v as materialized (select * from json_to_recordset(");
  const rest = sql.raw(`::json) as v(${all.map(({ field, type }) => `"${field}" ${type}`).join(", ")})),
    state as materialized (select zone, from_hour from rollup_days where id = ${DAYS_ROW} for share),
    fine as (insert into rollups (${namesOf(fine)}) select ${quoted(fine.map(({ field }) => field))} from v
      order by 1, 2, 3, 4, 5, 6 ${addToKnownHour(fine)}),
    ${coarse.join(",\n")}
    select zone from state`);
  return (list) => sql`${begin}${JSON.stringify(list)}${rest}`;
}

/** The coarse sums have the days of another zone than this node knew: the batch is made again with its days. */
export class ZoneMoved extends Error {
  constructor(readonly zone: string) {
    super(`days are counted in ${zone} now`);
  }
}

/** Everything of a batch but the mark. The ids are those of its sums and of its holds. Throws ZoneMoved. */
export function* enterSums(
  tx: Orm,
  inserts: RowInserts,
  sums: BatchSums,
  { userIds, tokenIds, zone }: { userIds: Iterable<number>; tokenIds: Iterable<number>; zone: string },
): Steps<Figures> {
  yield* lockRows(tx, "users", userIds);
  yield* lockRows(tx, "tokens", tokenIds);
  yield* lockRows(tx, "channels", sums.channels.keys());
  const closed = yield* closeHolds(tx, sums.holds);
  const figures = {
    users: yield* chargeUsers(tx, sums, closed),
    tokens: yield* chargeTokens(tx, sums, closed),
  };
  yield* chargeChannels(tx, sums);
  yield* chargeKeys(tx, sums);
  if (sums.logs.length > 0) yield* rows(tx, inserts.logs(sums.logs));
  if (sums.rollups.length > 0) {
    const [state] = yield* rows(tx, inserts.rollups(sums.rollups.map((sum) => dated(zone, sum))));
    if (state && state.zone !== zone) throw new ZoneMoved(String(state.zone));
  }
  if (sums.affinity.length > 0) yield* rows(tx, inserts.affinity(sums.affinity));
  if (sums.objects.length > 0) yield* rows(tx, inserts.objects(sums.objects));
  return figures;
}

/** Rows that are still open; one that its lease has already returned is charged in full instead. */
function* closeHolds(tx: Orm, holds: DurableHold[]): Steps<DurableHold[]> {
  if (holds.length === 0) return [];
  const keys = JSON.stringify(holds.map((hold) => hold.key));
  const found = yield* rows(
    tx,
    sql`delete from reservations
      where request_id in (select value from json_array_elements_text(${keys}::json))
      returning request_id, user_id, token_id, amount`,
  );
  return found.map(holdOf);
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
export function givenBack(holds: DurableHold[], of: "userId" | "tokenId"): Map<number, number> {
  const sums = new Map<number, number>();
  for (const hold of holds) if (hold[of] !== 0) sums.set(hold[of], (sums.get(hold[of]) ?? 0) + hold.amount);
  return sums;
}

function* chargeUsers(tx: Orm, sums: BatchSums, closed: DurableHold[]): Steps<Figures["users"]> {
  const back = givenBack(closed, "userId");
  const changes = [...new Set([...sums.users.keys(), ...back.keys()])].map((id) => {
    const { charge, count } = sums.users.get(id) ?? { charge: 0, count: 0 };
    return { id, take: charge - (back.get(id) ?? 0), charge, count };
  });
  if (changes.length === 0) return [];
  const found = yield* rows(
    tx,
    sql`update users set quota = users.quota - v.take, used_quota = users.used_quota + v.charge,
        request_count = users.request_count + v.count
      from json_to_recordset(${JSON.stringify(changes)}::json)
        as v(id bigint, take bigint, charge bigint, count bigint)
      where users.id = v.id
      returning users.id, users.quota, users.used_quota, users.request_count`,
  );
  return found.map((row) => ({
    id: Number(row.id),
    quota: Number(row.quota),
    usedQuota: Number(row.used_quota),
    requestCount: Number(row.request_count),
  }));
}

/** A limited key is exhausted when nothing is left, not even in reservations that may still be given back. */
function* chargeTokens(tx: Orm, sums: BatchSums, closed: DurableHold[]): Steps<Figures["tokens"]> {
  const back = givenBack(closed, "tokenId");
  const changes = [...new Set([...sums.tokens.keys(), ...back.keys()])].map((id) => {
    const { charge, accessedTime } = sums.tokens.get(id) ?? { charge: 0, accessedTime: 0 };
    return { id, take: charge - (back.get(id) ?? 0), charge, accessed: accessedTime };
  });
  if (changes.length === 0) return [];
  const found = yield* rows(
    tx,
    sql`update tokens set remain_quota = tokens.remain_quota - v.take, used_quota = tokens.used_quota + v.charge,
        accessed_time = greatest(tokens.accessed_time, v.accessed),
        status = case when not tokens.unlimited_quota and tokens.status = ${TokenStatus.enabled}
          and tokens.remain_quota - v.take + coalesce(
            (select sum(r.amount) from reservations r where r.token_id = tokens.id), 0) <= 0
          then ${TokenStatus.exhausted}::integer else tokens.status end
      from json_to_recordset(${JSON.stringify(changes)}::json)
        as v(id bigint, take bigint, charge bigint, accessed bigint)
      where tokens.id = v.id
      returning tokens.id, tokens.remain_quota, tokens.used_quota, tokens.status`,
  );
  return found.map((row) => ({
    id: Number(row.id),
    remainQuota: Number(row.remain_quota),
    usedQuota: Number(row.used_quota),
    status: Number(row.status),
  }));
}

function* chargeChannels(tx: Orm, sums: BatchSums): Steps<void> {
  const changes = [...sums.channels].map(([id, charge]) => ({ id, charge }));
  if (changes.length === 0) return;
  yield* rows(
    tx,
    sql`update channels set used_quota = channels.used_quota + v.charge
      from json_to_recordset(${JSON.stringify(changes)}::json) as v(id bigint, charge bigint)
      where channels.id = v.id`,
  );
}

/** Whoever deletes a key locks its channel first, as this batch did: what no key takes is the channel's own. */
function* chargeKeys(tx: Orm, { keys }: BatchSums): Steps<void> {
  if (keys.length === 0) return;
  const found = yield* rows(
    tx,
    sql`update channel_keys set used_quota = channel_keys.used_quota + v.charge,
        last_used = greatest(channel_keys.last_used, v."lastUsed")
      from json_to_recordset(${JSON.stringify(keys)}::json)
        as v(id bigint, "channelId" bigint, charge bigint, "lastUsed" bigint)
      where channel_keys.id = v.id and channel_keys.channel_id = v."channelId"
      returning channel_keys.id`,
  );
  if (found.length === keys.length) return;
  const known = new Set(found.map(({ id }) => Number(id)));
  const gone = new Map<number, number>();
  for (const { id, channelId, charge } of keys)
    if (!known.has(id)) gone.set(channelId, (gone.get(channelId) ?? 0) + charge);
  const changes = [...gone].map(([id, charge]) => ({ id, charge }));
  yield* rows(
    tx,
    sql`update channels set gone_keys_quota = channels.gone_keys_quota + v.charge
      from json_to_recordset(${JSON.stringify(changes)}::json) as v(id bigint, charge bigint)
      where channels.id = v.id`,
  );
}
