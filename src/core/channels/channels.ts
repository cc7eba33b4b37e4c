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
import { sha256Hex } from "../kit/seal.ts";

const IDS_PER_QUERY = 500;
const MAX_NAME_CHARS = 512;

function chunks<T>(list: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < list.length; from += IDS_PER_QUERY)
    parts.push(list.slice(from, from + IDS_PER_QUERY));
  return parts;
}

// --- one channel ---------------------------------------------------------------------------------------------------

function sealedKey(deps: Deps, key: string): Pick<ChannelRow, "keySealed" | "keyHash"> {
  return { keySealed: deps.seal.seal("channel", key), keyHash: sha256Hex(key) };
}

/** One channel for each key of the input; all of them or none. Answers their ids. */
export async function createChannels(deps: Deps, input: ChannelInput): Promise<number[]> {
  checkNewChannel(input);
  const changes = channelChanges(input, undefined);
  const keys = keysOf(input.type ?? 1, input.key ?? "");
  if (keys.length > MAX_KEYS_AT_ONCE) throw refuse("channel_keys_many", { max: MAX_KEYS_AT_ONCE });
  const createdTime = Math.floor(deps.clock.nowMs() / 1000);
  const values = keys.map((key) => ({ ...changes, ...sealedKey(deps, key), createdTime }));
  const { channels } = deps.db.t;
  const ids = await deps.db.atomic(function* (tx) {
    const rows = yield* q(tx.insert(channels).values(values).returning());
    yield* rebuildAbilities(deps.db, tx, rows);
    return rows.map((row) => row.id);
  });
  await deps.routing.refresh(ids);
  return ids;
}

/**
 * Writes the fields that are given (`givenForUpdate`); an empty key keeps the key, which only root may send to another address. A status
 * change by hand clears the recorded reason.
 */
export async function updateChannel(
  deps: Deps,
  id: number,
  input: ChannelInput,
  isRoot = false,
): Promise<ChannelJson> {
  const { channels } = deps.db.t;
  const given = givenForUpdate(input);
  const saved = await deps.db.atomic(function* (tx) {
    const [before] = yield* q(tx.select().from(channels).where(eq(channels.id, id)));
    if (!before) throw refuse("record_missing");
    const changes: Partial<ChannelRow> = channelChanges(given, before);
    const keys = keysOf(changes.type ?? before.type, input.key ?? "");
    if (keys.length > 0) Object.assign(changes, sealedKey(deps, keys.join("\n")));
    else if (!isRoot) checkDestination(deps.seal, before, changes);
    if (changes.status === ChannelStatus.enabled) changes.otherInfo = "";
    if (Object.keys(changes).length === 0) return before;
    const [row] = yield* q(tx.update(channels).set(changes).where(eq(channels.id, id)).returning());
    if (!row) throw refuse("record_missing");
    yield* rebuildAbilities(deps.db, tx, [row]);
    return row;
  });
  await deps.routing.refresh([id]);
  return channelJson(deps, saved);
}

/** A disabled copy with the same key, used nothing yet; answers its id. */
export async function copyChannel(deps: Deps, id: number): Promise<{ id: number }> {
  const { channels } = deps.db.t;
  const copied = await deps.db.atomic(function* (tx) {
    const [source] = yield* q(tx.select().from(channels).where(eq(channels.id, id)));
    if (!source) throw refuse("record_missing");
    const { id: _id, ...fields } = source;
    const values = {
      ...fields,
      name: `${source.name}_copy`.slice(0, MAX_NAME_CHARS),
      status: ChannelStatus.disabled,
      otherInfo: "",
      usedQuota: 0,
      balance: 0,
      balanceUpdatedTime: 0,
      testTime: 0,
      responseTime: 0,
      createdTime: Math.floor(deps.clock.nowMs() / 1000),
    };
    const [row] = yield* q(tx.insert(channels).values(values).returning());
    if (!row) throw refuse("record_missing");
    yield* rebuildAbilities(deps.db, tx, [row]);
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
  const ids = await deps.db.atomic(function* (tx): Steps<number[]> {
    const changed: number[] = [];
    for (const condition of where(tx)) {
      const rows = yield* q(tx.update(channels).set(changes).where(condition).returning());
      yield* rebuildAbilities(deps.db, tx, rows);
      for (const row of rows) changed.push(row.id);
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
