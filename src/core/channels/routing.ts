// Which channels serve a model for a group: an in-memory index built from the channel rows, the only source of truth.
// Refuses to read anything else than those rows; every write to them must call refresh.
import { inArray } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { parseChannel } from "./rows.ts";
import type { Channel } from "./rows.ts";
import type { Logger } from "../deps.ts";
import type { Sealer } from "../kit/seal.ts";

export interface TierEntry {
  readonly channel: Channel;
  /** Share inside its tier: weight + 10, so that weight 0 still takes part. */
  readonly share: number;
  /** Running value of the smooth weighted round robin; the picker's. */
  current: number;
}

/** Channels of one priority, for one model in one group. */
export interface Tier {
  readonly priority: number;
  readonly entries: readonly TierEntry[];
}

export interface Routing {
  /** Any status; undefined for unknown and deleted ones. */
  channel(id: number): Channel | undefined;
  channels(): Iterable<Channel>;
  /** Enabled channels by descending priority; empty when nobody serves it. */
  tiers(group: string, model: string): readonly Tier[];
  /** Whether any channel of the group has the model, enabled or not. */
  knows(group: string, model: string): boolean;
  /** Models that an enabled channel serves for the group, sorted. */
  modelsOf(group: string): string[];
  /** Models that an enabled channel serves for any group, sorted. */
  enabledModels(): string[];
  groups(): string[];
  /** Some channel has a cap, or a key that is off: which key may be asked is no matter of turns alone. */
  hasLimits(): boolean;
  /** Call after each committed write of these rows (also deletions): re-reads them and tells other nodes. */
  refresh(ids: readonly number[]): Promise<void>;
  /** Re-reads every row. */
  reload(): Promise<void>;
  /** Called with the channels that really changed, after the snapshot has them. */
  onChange(listener: (ids: readonly number[]) => void): void;
}

const SHARE_FLOOR = 10;
const NO_TIERS: readonly Tier[] = [];
const MAX_IDS_PER_QUERY = 500;

export interface RoutingSources {
  db: Database;
  seal: Sealer;
  logger: Logger;
}

/** The channels by id, and by group and model for those that are enabled. */
interface ChannelIndex {
  readonly byId: Map<number, Channel>;
  /** group -> model -> channels that serve it, unsorted. */
  readonly served: Map<string, Map<string, Set<Channel>>>;
  /** Built on first use, dropped when a channel of that model changes. */
  readonly tiers: Map<string, Map<string, readonly Tier[]>>;
  /** group -> models of channels that are not enabled: made on first use, dropped with every change. */
  off: Map<string, Set<string>> | undefined;
  /** Made on first use, dropped with every change. */
  hasLimits: boolean | undefined;
}

function forEachPlace(channel: Channel, visit: (group: string, model: string) => void): void {
  if (channel.status !== ChannelStatus.enabled) return;
  eachPlace(channel, visit);
}

function eachPlace(channel: Channel, visit: (group: string, model: string) => void): void {
  for (const group of channel.groups) for (const model of channel.models) visit(group, model);
}

function removeChannel({ byId, served, tiers }: ChannelIndex, channel: Channel): void {
  byId.delete(channel.id);
  forEachPlace(channel, (group, model) => {
    const models = served.get(group);
    const channels = models?.get(model);
    channels?.delete(channel);
    if (channels?.size === 0) models?.delete(model);
    if (models?.size === 0) served.delete(group);
    tiers.get(group)?.delete(model);
  });
}

function addChannel({ byId, served, tiers }: ChannelIndex, channel: Channel): void {
  byId.set(channel.id, channel);
  forEachPlace(channel, (group, model) => {
    let models = served.get(group);
    if (!models) served.set(group, (models = new Map()));
    let channels = models.get(model);
    if (!channels) models.set(model, (channels = new Set()));
    channels.add(channel);
    tiers.get(group)?.delete(model);
  });
}

/** Whether anything changed. A row that reads as before keeps its object, and with it whatever hangs on that. */
function putChannel(index: ChannelIndex, id: number, channel: Channel | undefined): boolean {
  const old = index.byId.get(id);
  if (old === channel || (old && channel && Bun.deepEquals(old, channel))) return false;
  if (old) removeChannel(index, old);
  if (channel) addChannel(index, channel);
  index.off = undefined;
  index.hasLimits = undefined;
  return true;
}

/** Asked for models that nobody serves: made-up names cost a look-up each, whatever the number of channels. */
function isOff(index: ChannelIndex, group: string, model: string): boolean {
  if (!index.off) {
    const off = new Map<string, Set<string>>();
    for (const channel of index.byId.values()) {
      if (channel.status === ChannelStatus.enabled) continue;
      eachPlace(channel, (at, name) => {
        const models = off.get(at);
        if (models) models.add(name);
        else off.set(at, new Set([name]));
      });
    }
    index.off = off;
  }
  return index.off.get(group)?.has(model) === true;
}

function tiersOf({ served, tiers }: ChannelIndex, group: string, model: string): readonly Tier[] {
  const known = tiers.get(group)?.get(model);
  if (known) return known;
  const channels = served.get(group)?.get(model);
  if (!channels) return NO_TIERS;
  const built = buildTiers(channels);
  let models = tiers.get(group);
  if (!models) tiers.set(group, (models = new Map()));
  models.set(model, built);
  return built;
}

function buildTiers(channels: ReadonlySet<Channel>): readonly Tier[] {
  const byPriority = new Map<number, TierEntry[]>();
  for (const channel of [...channels].sort((a, b) => a.id - b.id)) {
    const entries = byPriority.get(channel.priority) ?? [];
    entries.push({ channel, share: Math.max(0, channel.weight) + SHARE_FLOOR, current: 0 });
    byPriority.set(channel.priority, entries);
  }
  return [...byPriority]
    .sort(([a], [b]) => b - a)
    .map(([priority, entries]): Tier => ({ priority, entries }));
}

/** Behind the id of a channel that is switched off, or gone, in what nodes announce. */
const OFF = "!";

const wordOf = (id: number, channel: Channel | undefined): string =>
  `${id}${channel?.status === ChannelStatus.enabled ? "" : OFF}`;

const idIn = (word: string): number => Number.parseInt(word, 10);

/** Who hears that a channel is off asks it no more, however long its row takes, which says the rest. Answers which were on. */
function switchOff(index: ChannelIndex, words: readonly string[]): number[] {
  return words
    .filter((word) => word.endsWith(OFF))
    .flatMap((word) => {
      const id = idIn(word);
      const channel = index.byId.get(id);
      if (channel?.status !== ChannelStatus.enabled) return [];
      return putChannel(index, id, { ...channel, status: ChannelStatus.disabled }) ? [id] : [];
    });
}

export async function createRouting({ db, seal, logger }: RoutingSources): Promise<Routing> {
  const index: ChannelIndex = {
    byId: new Map(),
    served: new Map(),
    tiers: new Map(),
    off: undefined,
    hasLimits: undefined,
  };
  const { byId, served } = index;
  const listeners: ((ids: readonly number[]) => void)[] = [];

  function notify(changed: readonly number[]): void {
    if (changed.length > 0) for (const listener of listeners) listener(changed);
  }

  async function readRows(ids: readonly number[]): Promise<void> {
    const { channels, channelKeys } = db.t;
    const changed: number[] = [];
    for (let from = 0; from < ids.length; from += MAX_IDS_PER_QUERY) {
      const part = ids.slice(from, from + MAX_IDS_PER_QUERY);
      const rows = await db.orm.select().from(channels).where(inArray(channels.id, part));
      const keyRows = await db.orm.select().from(channelKeys).where(inArray(channelKeys.channelId, part));
      const found = new Map(rows.map((row) => [row.id, row]));
      const keysOf = Map.groupBy(keyRows, ({ channelId }) => channelId);
      for (const id of part) {
        const row = found.get(id);
        if (putChannel(index, id, row && parseChannel(row, keysOf.get(id) ?? [], seal))) changed.push(id);
      }
    }
    notify(changed);
  }

  async function readAll(): Promise<void> {
    const rows = await db.orm.select().from(db.t.channels);
    const keysOf = Map.groupBy(await db.orm.select().from(db.t.channelKeys), ({ channelId }) => channelId);
    const gone = new Set(byId.keys());
    const changed: number[] = [];
    for (const row of rows) {
      gone.delete(row.id);
      if (putChannel(index, row.id, parseChannel(row, keysOf.get(row.id) ?? [], seal))) changed.push(row.id);
    }
    for (const id of gone) if (putChannel(index, id, undefined)) changed.push(id);
    notify(changed);
  }

  const told = (work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) => {
      logger.warn("channels could not be re-read", { error: String(error) });
      throw error;
    });

  /** One read at a time: rows that were read before a change never replace those that were read after it. */
  let last: Promise<void> = Promise.resolve();
  function inTurn(read: () => Promise<void>): Promise<void> {
    const next = last.then(read);
    last = next.catch(() => undefined);
    return next;
  }

  await db.onChange("channels", {
    changed(words) {
      notify(switchOff(index, words));
      return told(inTurn(() => readRows(words.map(idIn))));
    },
    lost: () => told(inTurn(readAll)),
  });
  await inTurn(readAll);

  return {
    channel: (id) => byId.get(id),
    channels: () => byId.values(),
    tiers: (group, model) => tiersOf(index, group, model),
    knows: (group, model) => served.get(group)?.has(model) === true || isOff(index, group, model),
    modelsOf: (group) => [...(served.get(group)?.keys() ?? [])].sort(),
    enabledModels: () => [...new Set([...served.values()].flatMap((models) => [...models.keys()]))].sort(),
    groups: () => [...served.keys()].sort(),
    hasLimits: () =>
      (index.hasLimits ??= byId.values().some(({ isCapped, areAllOn }) => isCapped || !areAllOn)),
    async refresh(ids) {
      if (ids.length === 0) return;
      await inTurn(() => readRows(ids));
      await db.announce(
        "channels",
        ids.map((id) => wordOf(id, byId.get(id))),
      );
    },
    reload: () => inTurn(readAll),
    onChange: (listener) => {
      listeners.push(listener);
    },
  };
}
