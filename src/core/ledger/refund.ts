// Taking a charge back: the reversal of one settled call, on every sum that it raised.
// Refuses to give back what was never charged, and to give it back in parts.
import { and, asc, between, eq, getTableColumns, gte, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { LogType, TokenStatus } from "../../shared/enums.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { hourOf } from "./items.ts";
import { COARSE, dated, isSum } from "../logs/coarse-sums.ts";
import type { RollupSum } from "../logs/coarse-sums.ts";
import { heldState } from "../logs/coarse-state.ts";
import { CLEARED_MARK } from "../logs/statistics.ts";

/** One settled call, as its task remembers it. */
export interface SettledCall {
  requestId: string;
  userId: number;
  /** 0 = no key was charged. */
  tokenId: number;
  channelId: number;
  modelName: string;
  group: string;
  /** Of the channel's key that served it; 0: none, or not known. */
  keyId: number;
  /** What it was charged, whole units above 0. */
  quota: number;
  /** Start of the hour whose sums have the charge, Unix seconds; 0 = not known. */
  settledHour: number;
}

const HOUR_SECONDS = 3600;

/**
 * The hour whose sums have the charge; undefined when it is in no table. Rows of earlier versions do not know it: call
 * this before the transaction, and hand what it finds to `refundSteps`. `submittedAt`: Unix seconds.
 */
export async function settledHourOf(
  db: Database,
  call: SettledCall,
  submittedAt: number,
): Promise<number | undefined> {
  if (call.settledHour > 0) return call.settledHour;
  const { logs, rollups } = db.t;
  const [row] = await db.orm
    .select({ createdAt: logs.createdAt })
    .from(logs)
    .where(
      and(eq(logs.requestId, call.requestId), eq(logs.type, LogType.consume), gte(logs.quota, call.quota)),
    )
    .limit(1);
  if (row) return hourOf(row.createdAt);
  // Without a log row: the charge followed its submission at once.
  const from = hourOf(submittedAt);
  const [sum] = await db.orm
    .select({ hour: rollups.hour })
    .from(rollups)
    .where(
      and(
        between(rollups.hour, from, from + HOUR_SECONDS),
        sumOfCall(db, call),
        gte(rollups.quota, call.quota),
      ),
    )
    .orderBy(asc(rollups.hour))
    .limit(1);
  return sum?.hour;
}

function sumOfCall(db: Database, call: SettledCall): SQL | undefined {
  const { rollups } = db.t;
  return and(
    eq(rollups.userId, call.userId),
    eq(rollups.modelName, call.modelName),
    eq(rollups.channelId, call.channelId),
    eq(rollups.tokenId, call.tokenId),
    eq(rollups.group, call.group),
  );
}

/**
 * Lowers user, key, channel and the hourly sum by the charge and marks the call's log row as given back, all inside the
 * caller's transaction. False when the settlement is not in these tables (yet): nothing was changed then. The balance
 * needs no credit: it is what was credited less what was used. `hour` is what settledHourOf found. Every row is found by
 * its key: all streams of an embedded database stand still meanwhile. Call usersCharged and tokenCharged after the commit.
 */
export function* refundSteps(db: Database, tx: Orm, call: SettledCall, hour: number): Steps<boolean> {
  const { logs, marks, rollups, users, tokens, channels, channelKeys } = db.t;
  const { quota } = call;
  const [row] = yield* q(
    tx
      .select({ id: logs.id, other: logs.other, quota: logs.quota })
      .from(logs)
      .where(and(eq(logs.requestId, call.requestId), eq(logs.type, LogType.consume), gte(logs.quota, quota))),
  );
  const logged = row ? quota : 0;
  const left = sql`${rollups.loggedQuota} - ${logged}`;
  // No upstream bills a task that came to nothing. Where no row says what it cost, the cost stays, and its revenue goes.
  const nanos = row ? costIn(row.other) : undefined;
  const earned = nanos === undefined ? sql`${rollups.costQuota}` : sql`${rollups.costQuota} - ${quota}`;
  const [cleared] = row
    ? []
    : yield* q(tx.select({ before: marks.value }).from(marks).where(eq(marks.key, CLEARED_MARK)));
  // Without a row of its own the charge must be among those that left none: another call's is not given back.
  const isUnlogged =
    row || hour < (cleared?.before ?? 0)
      ? undefined
      : gte(sql`${rollups.quota} - ${rollups.loggedQuota}`, quota);
  const sumBefore = tx
    .select()
    .from(rollups)
    .where(and(eq(rollups.hour, hour), sumOfCall(db, call)));
  const [before] = yield* q(db.kind === "postgres" ? sumBefore.for("update") : sumBefore);
  const [after] = yield* q(
    tx
      .update(rollups)
      .set({
        quota: sql`${rollups.quota} - ${quota}`,
        costQuota: sql`case when ${earned} > ${rollups.quota} - ${quota} then ${rollups.quota} - ${quota} else ${earned} end`,
        costNanos: sql`${rollups.costNanos} - ${nanos ?? 0}`,
        // A row that was cleared is still counted here: no more may be logged than was charged.
        loggedQuota: sql`case when ${left} > ${rollups.quota} - ${quota} then ${rollups.quota} - ${quota} else ${left} end`,
      })
      .where(and(eq(rollups.hour, hour), sumOfCall(db, call), gte(rollups.quota, quota), isUnlogged))
      .returning(),
  );
  if (!before || !after) return false;
  yield* changeCoarse(db, tx, before, after);
  if (row) {
    yield* q(
      tx
        .update(logs)
        .set({ quota: row.quota - quota, other: withRefund(row.other, quota) })
        .where(eq(logs.id, row.id))
        .returning({ id: logs.id }),
    );
  }
  yield* q(
    tx
      .update(users)
      .set({ quota: sql`${users.quota} + ${quota}`, usedQuota: sql`${users.usedQuota} - ${quota}` })
      .where(eq(users.id, call.userId))
      .returning({ id: users.id }),
  );
  yield* q(
    tx
      .update(tokens)
      .set({
        remainQuota: sql`${tokens.remainQuota} + ${quota}`,
        usedQuota: sql`${tokens.usedQuota} - ${quota}`,
        // A key that this very charge used up can be used again.
        status: sql`case when ${tokens.status} = ${TokenStatus.exhausted} and ${tokens.remainQuota} + ${quota} > 0
          then ${TokenStatus.enabled} else ${tokens.status} end`,
      })
      .where(eq(tokens.id, call.tokenId))
      .returning({ id: tokens.id }),
  );
  yield* q(
    tx
      .update(channels)
      .set({ usedQuota: sql`${channels.usedQuota} - ${quota}` })
      .where(eq(channels.id, call.channelId))
      .returning({ id: channels.id }),
  );
  const ofKey = yield* q(
    tx
      .update(channelKeys)
      .set({ usedQuota: sql`${channelKeys.usedQuota} - ${quota}` })
      .where(and(eq(channelKeys.id, call.keyId), eq(channelKeys.channelId, call.channelId)))
      .returning({ id: channelKeys.id }),
  );
  // The key is gone: what it used is counted with its channel.
  if (ofKey.length === 0)
    yield* q(
      tx
        .update(channels)
        .set({ goneKeysQuota: sql`${channels.goneKeysQuota} - ${quota}` })
        .where(eq(channels.id, call.channelId))
        .returning({ id: channels.id }),
    );
  return true;
}

/** What the call cost its operator, as its row says it. */
function costIn(other: string): number | undefined {
  const info = jsonObject(other)?.["admin_info"];
  const nanos =
    typeof info === "object" && info !== null && "cost_nanos" in info ? info.cost_nanos : undefined;
  return typeof nanos === "number" && Number.isSafeInteger(nanos) && nanos >= 0 ? nanos : undefined;
}

function withRefund(other: string, quota: number): string {
  try {
    const value = JSON.parse(other === "" ? "{}" : other) as Record<string, unknown>;
    return JSON.stringify({ ...value, refunded: quota });
  } catch {
    return JSON.stringify({ refunded: quota });
  }
}

/** The coarse sums follow an hour's, where they have the hour already. */
function* changeCoarse(db: Database, tx: Orm, before: RollupSum, after: RollupSum): Steps<void> {
  const state = yield* heldState(db, tx, "share");
  if (!state || after.hour < state.fromHour) return;
  const values = dated(state.zone, after);
  const changes = Object.keys(after)
    .filter(isSum)
    .map((field) => [field, after[field] - before[field]] as const)
    .filter(([, change]) => change !== 0);
  for (const { table, key } of COARSE) {
    const columns = getTableColumns(db.t[table] as PgTable) as Record<string, PgColumn>;
    const of = (field: string) => columns[field] as PgColumn;
    yield* q(
      tx
        .update(db.t[table] as PgTable)
        .set(Object.fromEntries(changes.map(([field, change]) => [field, sql`${of(field)} + ${change}`])))
        .where(and(...key.map((field) => eq(of(field), values[field]))))
        .returning({ quota: of("quota") }),
    );
  }
}
