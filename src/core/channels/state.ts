// What happens to a channel by itself: taken out of service, brought back, tested, its balance read.
// Refuses to touch channels that an administrator switched off; only a real change is announced.
import { and, eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { ChannelStatus, KeyStatus } from "../../shared/enums.ts";
import { withoutKeys } from "../../shared/without-keys.ts";
import { followKeys, isAnyOn, keyRowsOf, lockChannel, setKeyStates } from "./key-rows.ts";
import type { Channel } from "./rows.ts";
import type { Deps, InboxCause } from "../deps.ts";
import { logNotice } from "../users/notify.ts";
import type { NotifyDeps } from "../users/notify.ts";
import { channelDisabledNotice, channelEnabledNotice } from "../users/notice-texts.ts";
import type { Sentence } from "../logs/sentences.ts";

/** A key that went off is tried again after so long; each try in vain doubles it, up to the longest. */
const FIRST_PROBE_SECONDS = 300;
export const LONGEST_PROBE_SECONDS = 6 * 3600;
/** Of what an upstream said, as far as the inbox repeats it. */
const MOST_REASON = 500;

export type StateDeps = NotifyDeps & Pick<Deps, "routing" | "options" | "keyring">;

/** Seconds until a key that is off is tried, after so many tries in vain. */
export function probeWaitSeconds(probes: number): number {
  return Math.min(FIRST_PROBE_SECONDS * 2 ** Math.min(probes, 20), LONGEST_PROBE_SECONDS);
}

/** Tries in vain that still count of a key; a call that it served since it was switched on ends them. */
function* countedProbes(db: Database, tx: Orm, id: number): Steps<number> {
  const { channelKeys: t } = db.t;
  const [row] = yield* q(
    tx
      .select({ probes: t.probes, lastUsed: t.lastUsed, statusTime: t.statusTime })
      .from(t)
      .where(eq(t.id, id)),
  );
  return row && row.lastUsed <= row.statusTime ? row.probes : 0;
}

/** Moves the channel from one status to another, abilities included; false when it was not in the first. */
async function changeStatus(
  deps: StateDeps,
  channel: Pick<Channel, "id">,
  from: number,
  to: number,
  otherInfo: string,
): Promise<boolean> {
  const { channels, abilities } = deps.db.t;
  const hasChanged = await deps.db.atomic(function* (tx) {
    const changed = yield* q(
      tx
        .update(channels)
        .set({ status: to, otherInfo })
        .where(and(eq(channels.id, channel.id), eq(channels.status, from)))
        .returning({ id: channels.id }),
    );
    if (changed.length === 0) return false;
    yield* q(
      tx
        .update(abilities)
        .set({ enabled: to === ChannelStatus.enabled })
        .where(eq(abilities.channelId, channel.id))
        .returning({ id: abilities.channelId }),
    );
    return true;
  });
  if (hasChanged) await deps.routing.refresh([channel.id]);
  return hasChanged;
}

/**
 * Sets status 3 with reason and time; true when this call made the change. A reason in an upstream's words is a text, one in
 * our own a sentence in each language; the row keeps it in the site's.
 */
export async function disableChannel(
  deps: StateDeps,
  channel: Channel,
  why: string | Sentence,
): Promise<boolean> {
  const sentence = typeof why === "string" ? { zh: why, en: why } : why;
  const reason = sentence[deps.options.get("site.language")];
  const otherInfo = JSON.stringify({
    status_reason: reason,
    status_time: Math.floor(deps.clock.nowMs() / 1000),
  });
  const { enabled, autoDisabled } = ChannelStatus;
  if (!(await changeStatus(deps, channel, enabled, autoDisabled, otherInfo))) return false;
  await tellDisabled(deps, channel, sentence);
  return true;
}

async function tellDisabled(deps: StateDeps, channel: Channel, sentence: Sentence): Promise<void> {
  const reason = sentence[deps.options.get("site.language")];
  deps.logger.warn("channel disabled", { channel: channel.id, name: channel.name, reason });
  const type = `channel_update_${channel.id}_${ChannelStatus.autoDisabled}`;
  deps.inbox.raise(disabledCause(channel, sentence));
  await logNotice(deps, channelDisabledNotice(channel, type, sentence));
}

async function tellEnabled(deps: StateDeps, channel: Channel): Promise<void> {
  deps.logger.info("channel enabled", { channel: channel.id, name: channel.name });
  await logNotice(
    deps,
    channelEnabledNotice(channel, `channel_update_${channel.id}_${ChannelStatus.enabled}`),
  );
}

/**
 * Switches one key off by itself, and the channel with it where it was the last that was on; true when this call made the
 * change. Of a channel without a key row it is the channel that goes off.
 */
export async function disableKey(
  deps: StateDeps,
  channel: Channel,
  index: number,
  why: string,
): Promise<boolean> {
  const key = channel.keyRows[index];
  const reason = withoutKeys(why, channel.keys).slice(0, MOST_REASON);
  if (!key || key.id === 0) return disableChannel(deps, channel, reason);
  const nowS = Math.floor(deps.clock.nowMs() / 1000);
  const outcome = await deps.db.atomic(function* (tx) {
    const row = yield* lockChannel(deps.db, tx, channel.id);
    const probes = yield* countedProbes(deps.db, tx, key.id);
    const nextProbe = nowS + probeWaitSeconds(probes);
    const state = { status: KeyStatus.autoOff, reason, statusTime: nowS, probes, nextProbe };
    if (!row || (yield* setKeyStates(deps.db, tx, [key.id], state, [KeyStatus.on])) === 0) return undefined;
    const after = yield* followKeys(deps.db, tx, row, { wereOff: false, reason, nowS });
    return { isChannelOff: after.status !== row.status };
  });
  if (!outcome) return false;
  await deps.routing.refresh([channel.id]);
  deps.logger.warn("key disabled", { channel: channel.id, name: channel.name, key: key.id, reason });
  if (outcome.isChannelOff) await tellDisabled(deps, channel, { zh: reason, en: reason });
  return true;
}

/**
 * A key that went off by itself works again; with the first one its channel is back. True when this call made the change.
 * `served`: a call shows it. What only seemed to work is one more try in vain until it has served a call: where it goes off
 * before, it waits longer than the last time.
 */
export async function reviveKey(
  deps: StateDeps,
  channel: Channel,
  index: number,
  { served }: { served: boolean },
): Promise<boolean> {
  const key = channel.keyRows[index];
  if (!key || key.id === 0) return reviveChannel(deps, channel);
  const nowS = Math.floor(deps.clock.nowMs() / 1000);
  const outcome = await deps.db.atomic(function* (tx) {
    const row = yield* lockChannel(deps.db, tx, channel.id);
    if (!row) return undefined;
    const rows = yield* keyRowsOf(deps.db, tx, channel.id);
    const wereOff = !isAnyOn(rows);
    const before = rows.find(({ id }) => id === key.id)?.probes ?? 0;
    const probes = served ? 0 : before + 1;
    const state = { status: KeyStatus.on, reason: "", statusTime: nowS, probes };
    if ((yield* setKeyStates(deps.db, tx, [key.id], state, [KeyStatus.autoOff])) === 0) return undefined;
    const after = yield* followKeys(deps.db, tx, row, { wereOff, reason: "", nowS });
    return { isChannelOn: after.status !== row.status };
  });
  if (!outcome) return false;
  await deps.routing.refresh([channel.id]);
  deps.logger.info("key enabled", { channel: channel.id, name: channel.name, key: key.id });
  if (outcome.isChannelOn) await tellEnabled(deps, channel);
  return true;
}

/** What the inbox keeps of a channel that was disabled by itself. */
function disabledCause({ id, name }: Channel, { zh, en }: Sentence): InboxCause {
  const reason = zh.slice(0, MOST_REASON);
  return {
    kind: "channel",
    subject: String(id),
    params: { name, reason, reason_en: en.slice(0, MOST_REASON) },
  };
}

/**
 * Brings a channel back that was disabled by itself; true when this call made the change. The inbox hears of it as of every
 * change of a channel.
 */
export async function reviveChannel(deps: StateDeps, channel: Channel): Promise<boolean> {
  const { enabled, autoDisabled } = ChannelStatus;
  if (!(await changeStatus(deps, channel, autoDisabled, enabled, ""))) return false;
  await tellEnabled(deps, channel);
  return true;
}

/** Records when a channel was tested and how long it took. */
export async function recordTest(deps: Pick<Deps, "db" | "clock">, id: number, ms: number): Promise<void> {
  const { channels } = deps.db.t;
  const responseTime = Math.min(Math.max(0, Math.round(ms)), 2_000_000_000);
  await deps.db.orm
    .update(channels)
    .set({ testTime: Math.floor(deps.clock.nowMs() / 1000), responseTime })
    .where(eq(channels.id, id));
}

export async function recordBalance(
  deps: Pick<Deps, "db" | "clock">,
  id: number,
  balance: number,
): Promise<void> {
  const { channels } = deps.db.t;
  await deps.db.orm
    .update(channels)
    .set({ balance, balanceUpdatedTime: Math.floor(deps.clock.nowMs() / 1000) })
    .where(eq(channels.id, id));
}
