// The rows of a channel's keys: written, put in order, counted with their channel when they go; and what their states make
// of the channel's own. Everything here runs inside the transaction of whoever changes the channel.
import { and, asc, eq, inArray, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Sealer } from "../kit/seal.ts";
import { sha256Hex } from "../kit/seal.ts";
import { rebuildAbilities } from "./abilities.ts";
import { MAX_KEYS_OF_CHANNEL } from "./input.ts";
import type { ChannelKeyRow, ChannelRow } from "./rows.ts";

/** What becomes of the keys that a channel has when others are sent. */
export type KeyWrite = "append" | "replace";

/** A key as it is about to be written; its state by default that of a new one. */
export interface NewKey extends Partial<Pick<ChannelKeyRow, "status" | "reason" | "statusTime" | "label">> {
  text: string;
}

const ROWS_PER_QUERY = 500;

function chunks<T>(list: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < list.length; from += ROWS_PER_QUERY)
    parts.push(list.slice(from, from + ROWS_PER_QUERY));
  return parts;
}

/** Holds the channel's row until the end of the transaction: settlements wait, and then find what stands. Undefined: gone. */
export function* lockChannel(db: Database, tx: Orm, id: number): Steps<ChannelRow | undefined> {
  const { channels } = db.t;
  const [row] = yield* q(
    tx
      .update(channels)
      .set({ goneKeysQuota: sql`${channels.goneKeysQuota}` })
      .where(eq(channels.id, id))
      .returning(),
  );
  return row;
}

/** By their places. */
export function* keyRowsOf(db: Database, tx: Orm, channelId: number): Steps<ChannelKeyRow[]> {
  const { channelKeys } = db.t;
  return yield* q(
    tx
      .select()
      .from(channelKeys)
      .where(eq(channelKeys.channelId, channelId))
      .orderBy(asc(channelKeys.pos), asc(channelKeys.id)),
  );
}

/** For a channel that has none yet; equal texts count once. */
export function* insertKeys(
  { t }: Database,
  tx: Orm,
  seal: Sealer,
  { channelId, keys, from = 0 }: { channelId: number; keys: readonly NewKey[]; from?: number },
): Steps<void> {
  const rows = keys.map(({ text, ...state }, at) => ({
    ...state,
    channelId,
    pos: from + at,
    keySealed: seal.seal("channel", text),
    keyHash: sha256Hex(text),
  }));
  for (const part of chunks(rows))
    yield* q(tx.insert(t.channelKeys).values(part).returning({ id: t.channelKeys.id }));
}

/** Deletes keys of a channel that is locked; what they used stays with it. Moves the others up. */
export function* deleteKeys(db: Database, tx: Orm, channelId: number, gone: readonly number[]): Steps<void> {
  const { channels, channelKeys } = db.t;
  let used = 0;
  for (const part of chunks(gone)) {
    const rows = yield* q(
      tx
        .delete(channelKeys)
        .where(and(eq(channelKeys.channelId, channelId), inArray(channelKeys.id, part)))
        .returning({ usedQuota: channelKeys.usedQuota }),
    );
    for (const { usedQuota } of rows) used += usedQuota;
  }
  if (used !== 0)
    yield* q(
      tx
        .update(channels)
        .set({ goneKeysQuota: sql`${channels.goneKeysQuota} + ${used}` })
        .where(eq(channels.id, channelId))
        .returning({ id: channels.id }),
    );
  const left = yield* keyRowsOf(db, tx, channelId);
  yield* putInOrder(db, tx, left);
}

function* putInOrder({ t }: Database, tx: Orm, rows: readonly ChannelKeyRow[]): Steps<void> {
  for (const [pos, row] of rows.entries())
    if (row.pos !== pos)
      yield* q(
        tx
          .update(t.channelKeys)
          .set({ pos })
          .where(eq(t.channelKeys.id, row.id))
          .returning({ id: t.channelKeys.id }),
      );
}

/** Writes the keys that are sent into a channel that is locked: a key that it had keeps its row, and with it its state. */
export function* writeKeys(
  db: Database,
  tx: Orm,
  seal: Sealer,
  { channelId, keys, how }: { channelId: number; keys: readonly NewKey[]; how: KeyWrite },
): Steps<void> {
  const before = yield* keyRowsOf(db, tx, channelId);
  const known = new Map(before.map((row) => [row.keyHash, row]));
  const sent = new Map(keys.map((key) => [sha256Hex(key.text), key]));
  const fresh = [...sent].filter(([hash]) => !known.has(hash)).map(([, key]) => key);
  const kept = how === "append" ? before : [...sent.keys()].flatMap((hash) => known.get(hash) ?? []);
  if (kept.length + fresh.length > MAX_KEYS_OF_CHANNEL)
    throw refuse("channel_keys_many", { max: MAX_KEYS_OF_CHANNEL });
  const keptIds = new Set(kept.map(({ id }) => id));
  yield* deleteKeys(
    db,
    tx,
    channelId,
    before.filter(({ id }) => !keptIds.has(id)).map(({ id }) => id),
  );
  yield* insertKeys(db, tx, seal, { channelId, keys: fresh, from: kept.length });
  if (how === "append") return;
  // In the order in which they were sent.
  const places = new Map([...sent.keys()].map((hash, at) => [hash, at]));
  const all = yield* keyRowsOf(db, tx, channelId);
  yield* putInOrder(
    db,
    tx,
    all.toSorted((a, b) => (places.get(a.keyHash) ?? 0) - (places.get(b.keyHash) ?? 0)),
  );
}

/** A new state of single keys; what was counted of probes is over unless `probes` says otherwise. */
export function* setKeyStates(
  { t }: Database,
  tx: Orm,
  ids: readonly number[],
  state: Pick<ChannelKeyRow, "status" | "reason" | "statusTime"> &
    Partial<Pick<ChannelKeyRow, "nextProbe" | "probes">>,
  from: readonly number[],
): Steps<number> {
  const { channelKeys } = t;
  let changed = 0;
  for (const part of chunks(ids)) {
    const rows = yield* q(
      tx
        .update(channelKeys)
        .set({ nextProbe: 0, probes: 0, ...state })
        .where(and(inArray(channelKeys.id, part), inArray(channelKeys.status, [...from])))
        .returning({ id: channelKeys.id }),
    );
    changed += rows.length;
  }
  return changed;
}

/** Keys that went off by themselves are on again: somebody switched their channel on. */
export function* reviveKeys(
  { t }: Database,
  tx: Orm,
  channelIds: readonly number[],
  nowS: number,
): Steps<void> {
  const { channelKeys } = t;
  for (const part of chunks(channelIds))
    yield* q(
      tx
        .update(channelKeys)
        .set({ status: KeyStatus.on, reason: "", statusTime: nowS, probes: 0, nextProbe: 0 })
        .where(and(inArray(channelKeys.channelId, part), eq(channelKeys.status, KeyStatus.autoOff)))
        .returning({ id: channelKeys.id }),
    );
}

/** Whether any of them is on; a channel without keys is asked without one. */
export function isAnyOn(keys: readonly Pick<ChannelKeyRow, "status">[]): boolean {
  return keys.length === 0 || keys.some(({ status }) => status === KeyStatus.on);
}

/**
 * The channel follows its keys: off by itself (3) when none of them is on, on again with the first that is. `wereOff`: none was
 * before. Answers the row as it is now, abilities included.
 */
export function* followKeys(
  db: Database,
  tx: Orm,
  channel: ChannelRow,
  { wereOff, reason, nowS }: { wereOff: boolean; reason: string; nowS: number },
): Steps<ChannelRow> {
  const { channels } = db.t;
  const isOn = isAnyOn(yield* keyRowsOf(db, tx, channel.id));
  const { enabled, autoDisabled } = ChannelStatus;
  let changes: Partial<ChannelRow> | undefined;
  if (channel.status === enabled && !isOn)
    changes = {
      status: autoDisabled,
      otherInfo: JSON.stringify({ status_reason: reason, status_time: nowS }),
    };
  if (channel.status === autoDisabled && isOn && wereOff) changes = { status: enabled, otherInfo: "" };
  if (!changes) return channel;
  const [row] = yield* q(tx.update(channels).set(changes).where(eq(channels.id, channel.id)).returning());
  if (!row) return channel;
  yield* rebuildAbilities(db, tx, [row]);
  return row;
}
