// Channels: adding, changing, tagging and deleting them.
// Refuses to hand out keys: they go in sealed and no call of this file reads them back.
import { eq, inArray } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import { dropOrphans, rebuildAbilities, repairAbilities } from "./abilities.ts";
import {
  channelChanges,
  checkNewChannel,
  givenForUpdate,
  groupsText,
  keysOf,
  MAX_KEYS_AT_ONCE,
  MAX_KEYS_OF_CHANNEL,
  modelMappingText,
  modelsText,
  tagText,
} from "./input.ts";
import { checkDestination } from "./destination.ts";
import type { ChannelInput } from "./input.ts";
import { channelJson } from "./list.ts";
import type { ChannelJson } from "./list.ts";
import type { ChannelRow } from "./rows.ts";
import type { Deps } from "../deps.ts";
import { noKeyReason } from "./no-key-reason.ts";
import { readChannelInfo } from "./channel-info.ts";
import {
  followKeys,
  insertKeys,
  isAnyOn,
  keyRowsOf,
  lockChannel,
  reviveKeys,
  writeKeys,
} from "./key-rows.ts";

const IDS_PER_QUERY = 500;
const MAX_NAME_CHARS = 512;

function chunks<T>(list: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < list.length; from += IDS_PER_QUERY)
    parts.push(list.slice(from, from + IDS_PER_QUERY));
  return parts;
}

// --- one channel ---------------------------------------------------------------------------------------------------

/** How many states of `channel_info` are for places where no key is. */
export function droppedStates({ routing }: Pick<Deps, "routing">, input: ChannelInput, id = 0): number {
  if (input.channel_info === undefined || !input.key) return 0;
  const type = input.type || (routing.channel(id)?.type ?? 1);
  return readChannelInfo(input.channel_info, keysOf(type, input.key)).dropped;
}

/**
 * Several keys make as many channels, unless `mode` says that they are one channel's; all of them or none. Answers their ids.
 */
export async function createChannels(deps: Deps, input: ChannelInput): Promise<number[]> {
  checkNewChannel(input);
  const texts = keysOf(input.type ?? 1, input.key ?? "");
  const info = readChannelInfo(input.channel_info, texts);
  const changes = channelChanges({ multi_key_mode: info.mode, ...input }, undefined);
  const isOne = input.mode === "multi_to_single" || (!input.mode && info.isMultiKey);
  const max = isOne ? MAX_KEYS_OF_CHANNEL : input.mode === "single" ? 1 : MAX_KEYS_AT_ONCE;
  if (texts.length > max) throw refuse("channel_keys_many", { max });
  const nowS = Math.floor(deps.clock.nowMs() / 1000);
  const parts = isOne ? [info.keys] : info.keys.map((key) => [key]);
  const { db } = deps;
  const { channels } = db.t;
  const ids = await db.atomic(function* (tx) {
    const values = parts.map(() => ({ ...changes, createdTime: nowS }));
    const rows = yield* q(tx.insert(channels).values(values).returning());
    yield* rebuildAbilities(db, tx, rows);
    for (const [at, row] of rows.entries()) {
      yield* insertKeys(db, tx, deps.seal, { channelId: row.id, keys: parts[at] ?? [] });
      yield* followKeys(db, tx, row, { wereOff: false, reason: noKeyReason(deps), nowS });
    }
    return rows.map((row) => row.id);
  });
  await deps.routing.refresh(ids);
  return ids;
}

/**
 * Writes the fields that are given (`givenForUpdate`); an empty key keeps the keys, which only root may send to another address.
 * A status change by hand clears the recorded reason; switched on, keys that went off by themselves are on again.
 */
export async function updateChannel(
  deps: Deps,
  id: number,
  input: ChannelInput,
  isRoot = false,
): Promise<ChannelJson> {
  const { db } = deps;
  const { channels } = db.t;
  const given = givenForUpdate(input);
  const nowS = Math.floor(deps.clock.nowMs() / 1000);
  const saved = await db.atomic(function* (tx) {
    const before = yield* lockChannel(db, tx, id);
    if (!before) throw refuse("record_missing");
    const keysBefore = yield* keyRowsOf(db, tx, id);
    const changes: Partial<ChannelRow> = channelChanges(given, before);
    const texts = keysOf(changes.type ?? before.type, input.key ?? "");
    const how = input.key_mode === "append" ? "append" : "replace";
    const isKept = texts.length === 0 || how === "append";
    if (isKept && !isRoot) checkDestination(deps.seal, before, keysBefore, changes);
    const isSwitchedOn = changes.status === ChannelStatus.enabled;
    if (isSwitchedOn) changes.otherInfo = "";
    if (isSwitchedOn && before.status !== ChannelStatus.enabled) yield* reviveKeys(db, tx, [id], nowS);
    if (texts.length > 0) {
      const { keys } = readChannelInfo(input.channel_info, texts);
      yield* writeKeys(db, tx, deps.seal, { channelId: id, keys, how });
    }
    if (isSwitchedOn && !isAnyOn(yield* keyRowsOf(db, tx, id))) throw refuse("channel_keys_all_off");
    let row = before;
    if (Object.keys(changes).length > 0) {
      const [changed] = yield* q(tx.update(channels).set(changes).where(eq(channels.id, id)).returning());
      if (!changed) throw refuse("record_missing");
      row = changed;
      yield* rebuildAbilities(db, tx, [row]);
    }
    const wereOff = !isAnyOn(keysBefore);
    return yield* followKeys(db, tx, row, { wereOff, reason: noKeyReason(deps), nowS });
  });
  await deps.routing.refresh([id]);
  return channelJson(deps, saved);
}

/** A disabled copy with the same keys, used nothing yet; answers its id. */
export async function copyChannel(deps: Deps, id: number): Promise<{ id: number }> {
  const { channels, channelKeys } = deps.db.t;
  const copied = await deps.db.atomic(function* (tx) {
    const [source] = yield* q(tx.select().from(channels).where(eq(channels.id, id)));
    if (!source) throw refuse("record_missing");
    const { id: _id, ...fields } = source;
    const values = {
      ...fields,
      name: `${source.name}_copy`.slice(0, MAX_NAME_CHARS),
      status: ChannelStatus.disabled,
      otherInfo: "",
      modelDrift: "",
      usedQuota: 0,
      goneKeysQuota: 0,
      balance: 0,
      balanceUpdatedTime: 0,
      testTime: 0,
      responseTime: 0,
      createdTime: Math.floor(deps.clock.nowMs() / 1000),
    };
    const [row] = yield* q(tx.insert(channels).values(values).returning());
    if (!row) throw refuse("record_missing");
    yield* rebuildAbilities(deps.db, tx, [row]);
    const keys = (yield* keyRowsOf(deps.db, tx, id)).map(({ id: _key, ...key }) => ({
      ...key,
      channelId: row.id,
      usedQuota: 0,
      lastUsed: 0,
    }));
    for (const part of chunks(keys))
      yield* q(tx.insert(channelKeys).values(part).returning({ id: channelKeys.id }));
    return row.id;
  });
  await deps.routing.refresh([copied]);
  return { id: copied };
}

// --- several channels ----------------------------------------------------------------------------------------------

/** Unknown ids count as deleted. */
export async function deleteChannels(deps: Deps, ids: readonly number[]): Promise<void> {
  const { channels } = deps.db.t;
  await deps.db.atomic(function* (tx) {
    for (const part of chunks(ids)) {
      yield* q(tx.delete(channels).where(inArray(channels.id, part)).returning({ id: channels.id }));
    }
    yield* dropOrphans(deps.db, tx);
  });
  await deps.routing.refresh(ids);
}

/** Deletes what was disabled by hand or by itself; answers how many. */
export async function deleteDisabledChannels(deps: Deps): Promise<number> {
  const { channels } = deps.db.t;
  const ids = await deps.db.atomic(function* (tx) {
    const rows = yield* q(
      tx
        .delete(channels)
        .where(inArray(channels.status, [ChannelStatus.disabled, ChannelStatus.autoDisabled]))
        .returning({ id: channels.id }),
    );
    yield* dropOrphans(deps.db, tx);
    return rows.map((row) => row.id);
  });
  await deps.routing.refresh(ids);
  return ids.length;
}

/** Changes rows of one condition and what hangs on them; answers the ids that were changed. */
async function changeMany(
  deps: Deps,
  changes: Partial<ChannelRow>,
  where: (tx: Orm) => readonly (SQL | undefined)[],
): Promise<number[]> {
  const { channels } = deps.db.t;
  const nowS = Math.floor(deps.clock.nowMs() / 1000);
  const ids = await deps.db.atomic(function* (tx): Steps<number[]> {
    const changed: number[] = [];
    for (const condition of where(tx)) {
      const rows = yield* q(tx.update(channels).set(changes).where(condition).returning());
      yield* rebuildAbilities(deps.db, tx, rows);
      for (const row of rows) changed.push(row.id);
      if (changes.status !== ChannelStatus.enabled) continue;
      yield* reviveKeys(
        deps.db,
        tx,
        rows.map(({ id }) => id),
        nowS,
      );
      // Whose keys are all off by hand stays off.
      for (const row of rows)
        yield* followKeys(deps.db, tx, row, { wereOff: false, reason: noKeyReason(deps), nowS });
    }
    return changed;
  });
  await deps.routing.refresh(ids);
  return ids;
}

/** Null or an empty text takes the tag away. */
export async function tagChannels(deps: Deps, ids: readonly number[], tag: string | null): Promise<void> {
  const { channels } = deps.db.t;
  const changes = { tag: tagText(tag ?? "") };
  await changeMany(deps, changes, () => chunks(ids).map((part) => inArray(channels.id, part)));
}

export interface TagInput {
  tag: string;
  new_tag?: string | null | undefined;
  priority?: number | null | undefined;
  weight?: number | null | undefined;
  model_mapping?: string | null | undefined;
  models?: string | null | undefined;
  groups?: string | null | undefined;
}

/** Overrides fields of every channel of a tag; what is absent or empty stays, except an empty new name: it dissolves. */
export async function editTag(deps: Deps, input: TagInput): Promise<void> {
  if (input.tag.trim() === "") throw refuse("tag_empty");
  const changes: Partial<ChannelRow> = {};
  if (input.new_tag !== undefined && input.new_tag !== null) changes.tag = tagText(input.new_tag);
  if (input.priority !== undefined && input.priority !== null) changes.priority = input.priority;
  if (input.weight !== undefined && input.weight !== null) changes.weight = input.weight;
  if (input.model_mapping?.trim()) changes.modelMapping = modelMappingText(input.model_mapping);
  if (input.models?.trim()) changes.models = modelsText(input.models);
  if (input.groups?.trim()) changes.group = groupsText(input.groups);
  if (Object.keys(changes).length === 0) return;
  const { channels } = deps.db.t;
  await changeMany(deps, changes, () => [eq(channels.tag, input.tag.trim())]);
}

export async function setTagStatus(deps: Deps, tag: string, isEnabled: boolean): Promise<void> {
  if (tag.trim() === "") throw refuse("params_wrong");
  const { channels } = deps.db.t;
  const changes = isEnabled
    ? { status: ChannelStatus.enabled, otherInfo: "" }
    : { status: ChannelStatus.disabled };
  await changeMany(deps, changes, () => [eq(channels.tag, tag.trim())]);
}

/** Puts the index of abilities right and re-reads every channel; answers how many index rows were wrong. */
export async function fixAbilities(deps: Deps): Promise<number> {
  const repaired = await deps.db.atomic((tx) => repairAbilities(deps.db, tx));
  const { channels } = deps.db.t;
  const rows = await deps.db.orm.select({ id: channels.id }).from(channels);
  await deps.routing.refresh(rows.map((row) => row.id));
  return repaired;
}
