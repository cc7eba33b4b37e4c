// The index of what each channel serves, kept beside the channel rows inside the same transaction.
// Refuses absurdly large ones; callers lock the channel row first, so that two rebuilds of one channel never meet.
import { eq, notInArray } from "drizzle-orm";
import type { Schema } from "../../../drizzle/schema.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { q } from "../../db/database.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import { namesOf } from "./input.ts";
import type { ChannelRow } from "./rows.ts";

type AbilityRow = Schema["abilities"]["$inferSelect"];

const ROWS_PER_INSERT = 1000;

/** Rows that one write may index; the product of models, groups and keys grows faster than people think. */
const MAX_INDEXED = 100_000;

function abilitiesOf(row: ChannelRow): AbilityRow[] {
  const models = namesOf(row.models);
  return namesOf(row.group).flatMap((group) =>
    models.map((model) => ({
      group,
      model,
      channelId: row.id,
      enabled: row.status === ChannelStatus.enabled,
      priority: row.priority,
      weight: row.weight,
      tag: row.tag,
    })),
  );
}

function* insertAll(db: Database, tx: Orm, rows: AbilityRow[]): Steps<void> {
  const { abilities } = db.t;
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    const part = rows.slice(from, from + ROWS_PER_INSERT);
    yield* q(tx.insert(abilities).values(part).returning({ id: abilities.channelId }));
  }
}

/** Replaces the rows of these channels by what the channels say now. */
export function* rebuildAbilities(db: Database, tx: Orm, channels: readonly ChannelRow[]): Steps<void> {
  const { abilities } = db.t;
  for (const { id } of channels) {
    yield* q(tx.delete(abilities).where(eq(abilities.channelId, id)).returning({ id: abilities.channelId }));
  }
  const count = (row: ChannelRow): number => namesOf(row.models).length * namesOf(row.group).length;
  const total = channels.reduce((sum, row) => sum + count(row), 0);
  if (total > MAX_INDEXED) throw refuse("channel_index_large", { max: MAX_INDEXED });
  yield* insertAll(db, tx, channels.flatMap(abilitiesOf));
}

/** Removes rows of channels that are gone; answers how many. */
export function* dropOrphans(db: Database, tx: Orm): Steps<number> {
  const { abilities, channels, channelKeys } = db.t;
  yield* q(
    tx
      .delete(channelKeys)
      .where(notInArray(channelKeys.channelId, tx.select({ id: channels.id }).from(channels)))
      .returning({ id: channelKeys.id }),
  );
  const gone = yield* q(
    tx
      .delete(abilities)
      .where(notInArray(abilities.channelId, tx.select({ id: channels.id }).from(channels)))
      .returning({ id: abilities.channelId }),
  );
  return gone.length;
}

function line(row: AbilityRow): string {
  return JSON.stringify([
    row.group,
    row.model,
    row.channelId,
    row.enabled,
    row.priority,
    row.weight,
    row.tag,
  ]);
}

/** Puts the whole index right; answers how many rows were missing, left over or wrong. */
export function* repairAbilities(db: Database, tx: Orm): Steps<number> {
  const { abilities, channels } = db.t;
  const orphans = yield* dropOrphans(db, tx);
  const rows = yield* q(tx.select().from(channels));
  const found = new Map<number, Set<string>>();
  for (const row of yield* q(tx.select().from(abilities))) {
    const lines = found.get(row.channelId) ?? new Set();
    found.set(row.channelId, lines.add(line(row)));
  }
  let repaired = orphans;
  for (const row of rows) {
    const has = found.get(row.id) ?? new Set<string>();
    const wanted = new Set(abilitiesOf(row).map(line));
    const wrong = wanted.symmetricDifference(has).size;
    if (wrong === 0) continue;
    repaired += wrong;
    yield* rebuildAbilities(db, tx, [row]);
  }
  return repaired;
}
