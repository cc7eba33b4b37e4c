// The embedded database's statements for a batch, prepared once: the rows of the log, and what the sums change.
import type { Database as BunSqlite, Statement } from "bun:sqlite";
import type { Database } from "../../db/database.ts";
import { TokenStatus } from "../../shared/enums.ts";
import { COARSE, coarsen, dated, DAYS_ROW } from "../logs/coarse-sums.ts";
import type { CoarseState, RollupSum } from "../logs/coarse-sums.ts";
import type { BatchSums } from "./items.ts";
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

type Bindings = (string | number | boolean)[];

export type SqliteStatements = ReturnType<typeof prepareStatements>;

export function prepareStatements(client: BunSqlite, t: Database["t"]) {
  const ofLogs = logColumns(t);
  const ofRollups = rollupColumns(t);
  const ofAffinity = affinityColumns(t);
  const ofObjects = objectColumns(t);
  const insert = (table: string, columns: readonly RowColumn<never>[], end = "") =>
    client.prepare<unknown, Bindings>(
      `insert into ${table} (${namesOf(columns)}) values (${columns.map(() => "?").join(", ")}) ${end}`,
    );
  return {
    begin: client.prepare("begin immediate"),
    commit: client.prepare("commit"),
    insertLog: rowWriter(insert("logs", ofLogs), ofLogs),
    chargeUser: client.prepare<Figures["users"][number], number[]>(
      `update users set quota = quota - ?1, used_quota = used_quota + ?1, request_count = request_count + ?2
       where id = ?3
       returning id, quota, used_quota as usedQuota, request_count as requestCount`,
    ),
    chargeToken: client.prepare<Figures["tokens"][number], number[]>(
      `update tokens set remain_quota = remain_quota - ?1, used_quota = used_quota + ?1,
         accessed_time = max(accessed_time, ?2),
         status = case when unlimited_quota = 0 and status = ${TokenStatus.enabled} and remain_quota - ?1 <= 0
           then ${TokenStatus.exhausted} else status end
       where id = ?3
       returning id, remain_quota as remainQuota, used_quota as usedQuota, status`,
    ),
    chargeChannel: client.prepare("update channels set used_quota = used_quota + ?1 where id = ?2"),
    chargeKey: client.prepare(
      `update channel_keys set used_quota = used_quota + ?1, last_used = max(last_used, ?2)
       where id = ?3 and channel_id = ?4`,
    ),
    chargeGoneKey: client.prepare("update channels set gone_keys_quota = gone_keys_quota + ?1 where id = ?2"),
    addRollup: rowWriter(insert("rollups", ofRollups, addToKnownHour(ofRollups)), ofRollups),
    coarseState: client.prepare<CoarseState, []>(
      `select zone, from_hour as fromHour from rollup_days where id = ${DAYS_ROW}`,
    ),
    addCoarse: COARSE.map((table) => {
      const { columns, end } = coarseColumns(t, table);
      return { table, add: rowWriter(insert(table.name, columns, end), columns) };
    }),
    addAffinity: rowWriter(insert("affinity_sums", ofAffinity, addToKnownRule(ofAffinity)), ofAffinity),
    putObject: rowWriter(insert("remote_objects", ofObjects, replaceKnownObject(ofObjects)), ofObjects),
    moveMark: client.prepare(
      `update nodes set mark = ?1, journaled = ?2, entered = entered + ?3, set_aside = set_aside + ?4,
         skipped = skipped + ?5
       where node_id = ?6 and incarnation = ?7 and mark = ?8`,
    ),
  };
}

/** Runs the statement with a row's values in the columns' order. */
function rowWriter<Row>(
  statement: Statement<unknown, Bindings>,
  columns: readonly RowColumn<Row>[],
): (row: Row) => void {
  const fields = columns.map(({ field }) => field);
  // One list for all rows: the values are taken over before the next row comes.
  const values: Bindings = fields.map(() => 0);
  return (row) => {
    for (let at = 0; at < fields.length; at++) values[at] = row[fields[at] as keyof Row] as Bindings[number];
    statement.run(...values);
  };
}

/** Everything of a batch but the mark; call inside the transaction. */
export function enterSums(statements: SqliteStatements, sums: BatchSums): Figures {
  const figures: Figures = { users: [], tokens: [] };
  for (const row of sums.logs) statements.insertLog(row);
  for (const [id, sum] of sums.users) {
    const user = statements.chargeUser.get(sum.charge, sum.count, id);
    if (user) figures.users.push(user);
  }
  for (const [id, sum] of sums.tokens) {
    const token = statements.chargeToken.get(sum.charge, sum.accessedTime, id);
    if (token) figures.tokens.push(token);
  }
  for (const [id, charge] of sums.channels) if (charge > 0) statements.chargeChannel.run(charge, id);
  for (const { id, channelId, charge, lastUsed } of sums.keys) {
    // A key that was deleted while it served: its channel was charged all the same.
    const isKnown = id !== 0 && statements.chargeKey.run(charge, lastUsed, id, channelId).changes > 0;
    if (!isKnown && charge > 0) statements.chargeGoneKey.run(charge, channelId);
  }
  for (const sum of sums.rollups) statements.addRollup(sum);
  if (sums.rollups.length > 0) enterCoarse(statements, sums.rollups);
  for (const sum of sums.affinity) statements.addAffinity(sum);
  for (const object of sums.objects) statements.putObject(object);
  return figures;
}

/** Hours that the coarse sums do not have yet are brought in by who fills them. */
function enterCoarse({ coarseState, addCoarse }: SqliteStatements, sums: readonly RollupSum[]): void {
  const state = coarseState.get();
  if (!state) return;
  const rows = sums.filter(({ hour }) => hour >= state.fromHour).map((sum) => dated(state.zone, sum));
  for (const { table, add } of addCoarse) for (const row of coarsen(rows, table)) add(row);
}
