// What an administrator does with single keys of a channel: looked at, switched on and off, rested, named, capped, deleted,
// tested. Refuses to leave a channel without a key, and to show any.
import { and, eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import { KeyStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { deleteKeys, followKeys, isAnyOn, keyRowsOf, lockChannel, setKeyStates } from "./key-rows.ts";
import { noKeyReason } from "./no-key-reason.ts";
import { keyStates } from "./list.ts";
import type { KeyStateJson } from "./list.ts";
import type { Channel, ChannelKeyRow } from "./rows.ts";

type ManageDeps = Pick<Deps, "db" | "clock" | "options" | "routing" | "keyring" | "caps">;

/** A key by its id, or by its place. */
export interface KeyChoice {
  key_id?: number | null | undefined;
  key_index?: number | null | undefined;
}

export interface KeyPage {
  keys: KeyStateJson[];
  total: number;
  page: number;
  page_size: number;
  total_pages: number;
  enabled_count: number;
  manual_disabled_count: number;
  auto_disabled_count: number;
  /** † Of those that are on, how many rest on this node, and until when the first of them does (Unix seconds; 0 = none rests). */
  resting_count: number;
  resting_until: number;
}

const DEFAULT_PAGE_SIZE = 50;
const LONGEST_REST_MINUTES = 1440;

/** Pages count from 1; `status` leaves out the others. */
export async function keyPage(
  deps: ManageDeps,
  channel: Channel,
  query: { page?: number | null; page_size?: number | null; status?: number | null },
): Promise<KeyPage> {
  const all = await keyStates(deps, channel);
  const keys = query.status ? all.filter(({ status }) => status === query.status) : all;
  const size = query.page_size || DEFAULT_PAGE_SIZE;
  const page = query.page || 1;
  const count = (status: number): number => all.filter((key) => key.status === status).length;
  const resting = all.filter((key) => key.status === KeyStatus.on && key.rests_until > 0);
  return {
    keys: keys.slice((page - 1) * size, page * size),
    total: keys.length,
    page,
    page_size: size,
    total_pages: Math.ceil(keys.length / size),
    enabled_count: count(KeyStatus.on),
    manual_disabled_count: count(KeyStatus.off),
    auto_disabled_count: count(KeyStatus.autoOff),
    resting_count: resting.length,
    resting_until: resting.length === 0 ? 0 : Math.min(...resting.map((key) => key.rests_until)),
  };
}

/** Its place in the channel as it is now. */
export function keyPlace(channel: Channel, { key_id: id, key_index: index }: KeyChoice): number {
  const place = id ? channel.keyRows.findIndex((key) => key.id === id) : (index ?? -1);
  if (!channel.keyRows[place]?.id) throw refuse("channel_key_missing");
  return place;
}

/** Changes keys under the channel's lock; the channel follows, and this node and the others hear of it. */
async function change(
  deps: ManageDeps,
  channel: Channel,
  body: (tx: Orm, keys: readonly ChannelKeyRow[], nowS: number) => Steps<number>,
): Promise<number> {
  const nowS = Math.floor(deps.clock.nowMs() / 1000);
  const reason = noKeyReason(deps);
  const changed = await deps.db.atomic(function* (tx) {
    const row = yield* lockChannel(deps.db, tx, channel.id);
    if (!row) throw refuse("record_missing");
    const keys = yield* keyRowsOf(deps.db, tx, channel.id);
    const count = yield* body(tx, keys, nowS);
    yield* followKeys(deps.db, tx, row, { wereOff: !isAnyOn(keys), reason, nowS });
    return count;
  });
  await deps.routing.refresh([channel.id]);
  return changed;
}

/** Switches keys on or off by hand; undefined: all of them. Answers how many changed. */
export async function switchKeys(
  deps: ManageDeps,
  channel: Channel,
  choice: KeyChoice | undefined,
  isOn: boolean,
): Promise<number> {
  const { on, off, autoOff } = KeyStatus;
  const place = choice && keyPlace(channel, choice);
  const only = place === undefined ? undefined : channel.keyRows[place]?.id;
  const changed = await change(deps, channel, (tx, keys, nowS) => {
    const ids = keys.map(({ id }) => id).filter((id) => only === undefined || id === only);
    const state = { status: isOn ? on : off, reason: "", statusTime: nowS };
    return setKeyStates(deps.db, tx, ids, state, isOn ? [off, autoOff] : [on, autoOff]);
  });
  if (isOn)
    for (const index of channel.keyRows.keys())
      if (place === undefined || place === index) deps.keyring.wakeWhole(channel, index);
  return changed;
}

/** Deletes one key, or all that are off; one stays. Answers how many went. */
export function removeKeys(
  deps: ManageDeps,
  channel: Channel,
  choice: KeyChoice | undefined,
): Promise<number> {
  const only = choice && channel.keyRows[keyPlace(channel, choice)]?.id;
  return change(deps, channel, function* (tx, keys) {
    const gone = keys.filter(({ id, status }) =>
      only === undefined ? status !== KeyStatus.on : id === only,
    );
    if (gone.length === keys.length) throw refuse("channel_key_last");
    yield* deleteKeys(
      deps.db,
      tx,
      channel.id,
      gone.map(({ id }) => id),
    );
    return gone.length;
  });
}

export interface KeyEdit {
  label?: string | null | undefined;
  max_concurrency?: number | null | undefined;
  rpm_limit?: number | null | undefined;
  tpm_limit?: number | null | undefined;
}

/** Writes what is given of a key's name and caps. */
export async function editKey(
  deps: ManageDeps,
  channel: Channel,
  choice: KeyChoice,
  edit: KeyEdit,
): Promise<void> {
  const { channelKeys: t } = deps.db.t;
  const id = channel.keyRows[keyPlace(channel, choice)]?.id ?? 0;
  const changes: Partial<ChannelKeyRow> = {};
  if (typeof edit.label === "string") {
    const label = edit.label.trim();
    if (channel.keys.some((key) => key !== "" && label.includes(key)))
      throw new Failure("client", "params_wrong", { param: "label" });
    changes.label = label;
  }
  if (typeof edit.max_concurrency === "number") changes.maxConcurrency = edit.max_concurrency;
  if (typeof edit.rpm_limit === "number") changes.rpmLimit = edit.rpm_limit;
  if (typeof edit.tpm_limit === "number") changes.tpmLimit = edit.tpm_limit;
  if (Object.keys(changes).length === 0) return;
  await change(deps, channel, function* (tx) {
    const rows = yield* q(
      tx
        .update(t)
        .set(changes)
        .where(and(eq(t.id, id), eq(t.channelId, channel.id)))
        .returning({ id: t.id }),
    );
    return rows.length;
  });
}

/** Rests a key on this node for so many minutes; 0 wakes it. */
export function restByHand(
  { keyring, clock }: Pick<Deps, "keyring" | "clock">,
  channel: Channel,
  choice: KeyChoice,
  minutes: number,
): void {
  const index = keyPlace(channel, choice);
  keyring.wakeWhole(channel, index);
  const restMs = Math.min(minutes, LONGEST_REST_MINUTES) * 60_000;
  if (restMs > 0)
    keyring.rest(
      channel,
      index,
      { reason: "by_hand", restMs, detail: "", untilUpstream: true },
      clock.monotonicMs(),
    );
}
