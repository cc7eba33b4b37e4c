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
  /** Models that an enabled channel serves for the group, sorted. */
  modelsOf(group: string): string[];
  /** Models that an enabled channel serves for any group, sorted. */
  enabledModels(): string[];
  groups(): string[];
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

export async function createRouting({ db, seal, logger }: RoutingSources): Promise<Routing> {
  const byId = new Map<number, Channel>();
  /** group -> model -> channels that serve it, unsorted. */
  const index = new Map<string, Map<string, Set<Channel>>>();
  /** Built on first use, dropped when a channel of that model changes. */
  const built = new Map<string, Map<string, readonly Tier[]>>();
  const listeners: ((ids: readonly number[]) => void)[] = [];

  function forEachPlace(channel: Channel, visit: (group: string, model: string) => void): void {
    if (channel.status !== ChannelStatus.enabled) return;
    for (const group of channel.groups) for (const model of channel.models) visit(group, model);
  }

  function remove(channel: Channel): void {
    byId.delete(channel.id);
    forEachPlace(channel, (group, model) => {
      const models = index.get(group);
      const served = models?.get(model);
      served?.delete(channel);
      if (served?.size === 0) models?.delete(model);
      if (models?.size === 0) index.delete(group);
      built.get(group)?.delete(model);
    });
  }

  function add(channel: Channel): void {
    byId.set(channel.id, channel);
    forEachPlace(channel, (group, model) => {
      let models = index.get(group);
      if (!models) index.set(group, (models = new Map()));
      let served = models.get(model);
      if (!served) models.set(model, (served = new Set()));
      served.add(channel);
      built.get(group)?.delete(model);
    });
  }

  function buildTiers(served: ReadonlySet<Channel>): readonly Tier[] {
    const byPriority = new Map<number, TierEntry[]>();
    for (const channel of [...served].sort((a, b) => a.id - b.id)) {
      const entries = byPriority.get(channel.priority) ?? [];
      entries.push({ channel, share: Math.max(0, channel.weight) + SHARE_FLOOR, current: 0 });
      byPriority.set(channel.priority, entries);
    }
    return [...byPriority]
      .sort(([a], [b]) => b - a)
      .map(([priority, entries]): Tier => ({ priority, entries }));
  }

  /** Whether anything changed. A row that reads as before keeps its object, and with it whatever hangs on that. */
  function put(id: number, channel: Channel | undefined): boolean {
    const old = byId.get(id);
    if (old === channel || (old && channel && Bun.deepEquals(old, channel))) return false;
    if (old) remove(old);
    if (channel) add(channel);
    return true;
  }

  function tell(changed: readonly number[]): void {
    if (changed.length > 0) for (const listener of listeners) listener(changed);
  }

  async function readRows(ids: readonly number[]): Promise<void> {
    const { channels } = db.t;
    const changed: number[] = [];
    for (let from = 0; from < ids.length; from += MAX_IDS_PER_QUERY) {
      const part = ids.slice(from, from + MAX_IDS_PER_QUERY);
      const rows = await db.orm.select().from(channels).where(inArray(channels.id, part));
      const found = new Map(rows.map((row) => [row.id, row]));
      for (const id of part) {
        const row = found.get(id);
        if (put(id, row && parseChannel(row, seal))) changed.push(id);
      }
    }
    tell(changed);
  }

  async function reload(): Promise<void> {
    const rows = await db.orm.select().from(db.t.channels);
    const gone = new Set(byId.keys());
    const changed: number[] = [];
    for (const row of rows) {
      gone.delete(row.id);
      if (put(row.id, parseChannel(row, seal))) changed.push(row.id);
    }
    for (const id of gone) if (put(id, undefined)) changed.push(id);
    tell(changed);
  }

  const quietly = (work: Promise<void>): void => {
    work.catch((error: unknown) => logger.warn("channels could not be re-read", { error: String(error) }));
  };

  /** One read at a time: rows that were read before a change never replace those that were read after it. */
  let last: Promise<void> = Promise.resolve();
  function inTurn(read: () => Promise<void>): Promise<void> {
    const next = last.then(read);
    last = next.catch(() => undefined);
    return next;
  }

  await db.onChange("channels", {
    changed: (ids) => quietly(inTurn(() => readRows(ids.map(Number)))),
    lost: () => quietly(inTurn(reload)),
  });
  await inTurn(reload);

  return {
    channel: (id) => byId.get(id),
    channels: () => byId.values(),
    tiers(group, model) {
      const known = built.get(group)?.get(model);
      if (known) return known;
      const served = index.get(group)?.get(model);
      if (!served) return NO_TIERS;
      const tiers = buildTiers(served);
      let models = built.get(group);
      if (!models) built.set(group, (models = new Map()));
      models.set(model, tiers);
      return tiers;
    },
    modelsOf: (group) => [...(index.get(group)?.keys() ?? [])].sort(),
    enabledModels: () => [...new Set([...index.values()].flatMap((models) => [...models.keys()]))].sort(),
    groups: () => [...index.keys()].sort(),
    async refresh(ids) {
      if (ids.length === 0) return;
      await inTurn(() => readRows(ids));
      await db.announce("channels", ids);
    },
    reload: () => inTurn(reload),
    onChange: (listener) => {
      listeners.push(listener);
    },
  };
}
