// What the ledger queues, and the sums of one batch: users, tokens, channels and hours, each touched once.
// Both databases and the journal work on these shapes.
import { LogType } from "../../shared/enums.ts";
import type { CacheUse, LedgerAccounts, RemoteObject, UpstreamCost, UserAccount } from "../deps.ts";
import type { Database } from "../../db/database.ts";
import { errorSumName } from "../logs/coarse-sums.ts";
import type { RollupSum } from "../logs/coarse-sums.ts";
import type { LogRow } from "../logs/rows.ts";

/** An amount that already left the balance in the database, as a row of `reservations`. */
export interface DurableHold {
  key: string;
  amount: number;
  userId: number;
  /** 0 when nothing was taken from the token. */
  tokenId: number;
}

/** One entry of the queue; plain data, because it may stand in a file before it is applied. */
export interface LedgerItem {
  /** A settled call when its type is consume, any other log row else; absent when an amount is only given back. */
  row?: LogRow;
  /** False for a settled call while consume logs are switched off. */
  logged?: boolean;
  /** Closed by this item. */
  hold?: DurableHold;
  /** The channel's key that served the settled call; absent where none did. */
  keyId?: number;
  /** What the provider keeps of the settled call: its row comes to the tables with the charge. */
  object?: RemoteObject;
  /** What the upstream charges for the settled call, or the failed attempt, of `row`; absent: unknown, which is not 0. */
  cost?: UpstreamCost;
  /** What caches of prompts did for the settled call; absent: it had no prompt that could be cached. */
  cache?: CacheUse;
  /** Stands in the place of an entry that an operator gave up: it charges nobody and is counted as skipped. */
  skipped?: true;
}

interface UserSum {
  charge: number;
  count: number;
}

/** What a provider's object is found by, in the order of its primary key. */
export const OBJECT_KEY = ["userId", "kind", "upstreamId"] as const;

/** What calls with one key were charged. */
interface KeySum {
  /** 0: without a key. */
  id: number;
  channelId: number;
  charge: number;
  /** Unix seconds. */
  lastUsed: number;
}

/** An hour's calls that a rule of affinity named, as its row. */
export type AffinitySum = Database["t"]["affinitySums"]["$inferSelect"];

/** What keeps them apart, in the order of the primary key. */
export const AFFINITY_KEY = ["hour", "rule"] as const;

export interface BatchSums {
  users: Map<number, UserSum>;
  tokens: Map<number, { charge: number; accessedTime: number }>;
  channels: Map<number, number>;
  /** In the order of their ids; for each channel one of id 0 where calls were served without a key. */
  keys: KeySum[];
  rollups: RollupSum[];
  /** In the order of their keys: batches of several nodes cannot deadlock. */
  affinity: AffinitySum[];
  logs: LogRow[];
  holds: DurableHold[];
  /** Each once, in the order of their keys: batches of several nodes cannot deadlock. */
  objects: RemoteObject[];
  /** Entries that an operator gave up. */
  skipped: number;
}

export function hourOf(seconds: number): number {
  return seconds - (seconds % 3600);
}

export function sumUp(items: readonly LedgerItem[]): BatchSums {
  const users: BatchSums["users"] = new Map();
  const tokens: BatchSums["tokens"] = new Map();
  const channels: BatchSums["channels"] = new Map();
  const keys = new Map<number, KeySum>();
  const rollups = new Map<string, RollupSum>();
  const logs: LogRow[] = [];
  const holds: DurableHold[] = [];
  let objects: Map<string, RemoteObject> | undefined;
  let affinity: Map<string, AffinitySum> | undefined;
  let skipped = 0;
  for (const { row, logged, hold, object, cost, cache, keyId = 0, skipped: isSkipped } of items) {
    if (hold) holds.push(hold);
    if (object) (objects ??= new Map()).set(OBJECT_KEY.map((name) => object[name]).join(" "), object);
    if (!row) {
      if (isSkipped) skipped++;
      continue;
    }
    if (logged !== false) logs.push(row);
    if (row.type !== LogType.consume) {
      if (cost) addCost(rollupOf(rollups, row), cost);
      if (row.type === LogType.error && logged !== false)
        rollupOf(rollups, row, errorSumName(row)).errorCount++;
      continue;
    }
    const user = users.get(row.userId);
    if (user) {
      user.charge += row.quota;
      user.count++;
    } else users.set(row.userId, { charge: row.quota, count: 1 });

    if (row.tokenId !== 0) {
      const token = tokens.get(row.tokenId);
      if (token) {
        token.charge += row.quota;
        token.accessedTime = Math.max(token.accessedTime, row.createdAt);
      } else tokens.set(row.tokenId, { charge: row.quota, accessedTime: row.createdAt });
    }
    channels.set(row.channelId, (channels.get(row.channelId) ?? 0) + row.quota);
    addToKey(keys, row, keyId);
    const sum = rollupOf(rollups, row);
    addToRollup(sum, row, logged !== false);
    if (cache) {
      addCache(sum, cache);
      if (cache.rule !== undefined) addToRule((affinity ??= new Map()), sum.hour, cache.rule, cache);
    }
    if (!cost) continue;
    addCost(sum, cost);
    sum.costCount++;
    sum.costQuota += row.quota;
  }
  return {
    users,
    tokens,
    channels,
    keys: keys.size > 1 ? [...keys.values()].sort((a, b) => a.id - b.id) : [...keys.values()],
    rollups: [...rollups.values()],
    affinity: affinity ? inOrder(affinity) : NO_AFFINITY,
    logs,
    holds,
    objects: objects ? inOrder(objects) : NO_OBJECTS,
    skipped,
  };
}

/** Calls without a key are summed up under their channel's id, as a negative number. */
function addToKey(keys: Map<number, KeySum>, row: LogRow, keyId: number): void {
  const name = keyId === 0 ? -row.channelId : keyId;
  const sum = keys.get(name);
  if (sum) {
    sum.charge += row.quota;
    sum.lastUsed = Math.max(sum.lastUsed, row.createdAt);
  } else
    keys.set(name, {
      id: keyId,
      channelId: row.channelId,
      charge: row.quota,
      lastUsed: row.createdAt,
    });
}

const NO_OBJECTS: RemoteObject[] = [];

const NO_AFFINITY: AffinitySum[] = [];

function inOrder<Row>(rows: ReadonlyMap<string, Row>): Row[] {
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

function addCache(sum: Pick<RollupSum, "cacheInput" | "cacheRead" | "cacheSaved">, cache: CacheUse): void {
  sum.cacheInput += cache.input;
  sum.cacheRead += cache.read;
  sum.cacheSaved += cache.saved;
}

function addToRule(sums: Map<string, AffinitySum>, hour: number, rule: string, cache: CacheUse): void {
  const key = `${hour} ${rule}`;
  let sum = sums.get(key);
  if (!sum) {
    const nothing = { count: 0, kept: 0, switched: 0, cacheInput: 0, cacheRead: 0, cacheSaved: 0 };
    sums.set(key, (sum = { hour, rule, ...nothing }));
  }
  sum.count++;
  if (cache.state === "kept") sum.kept++;
  if (cache.state === "switched") sum.switched++;
  addCache(sum, cache);
}

/** The sum of the row's hour, begun where it is the first. */
function rollupOf(rollups: Map<string, RollupSum>, row: LogRow, modelName = row.modelName): RollupSum {
  const hour = hourOf(row.createdAt);
  const key = `${hour} ${row.userId} ${row.channelId} ${row.tokenId} ${row.group}\0${modelName}`;
  let sum = rollups.get(key);
  if (!sum) {
    sum = {
      hour,
      userId: row.userId,
      modelName,
      channelId: row.channelId,
      tokenId: row.tokenId,
      group: row.group,
      count: 0,
      quota: 0,
      promptTokens: 0,
      completionTokens: 0,
      useTimeMs: 0,
      loggedCount: 0,
      loggedQuota: 0,
      costNanos: 0,
      costCount: 0,
      costQuota: 0,
      lostNanos: 0,
      cacheInput: 0,
      cacheRead: 0,
      cacheSaved: 0,
      errorCount: 0,
    };
    rollups.set(key, sum);
  }
  return sum;
}

function addCost(sum: RollupSum, { nanos, isLost }: UpstreamCost): void {
  sum.costNanos += nanos;
  if (isLost) sum.lostNanos += nanos;
}

function addToRollup(sum: RollupSum, row: LogRow, logged: boolean): void {
  sum.count++;
  sum.quota += row.quota;
  sum.promptTokens += row.promptTokens;
  sum.completionTokens += row.completionTokens;
  sum.useTimeMs += row.useTimeMs;
  if (logged) {
    sum.loggedCount++;
    sum.loggedQuota += row.quota;
  }
}

/** A user's or key's share of an item, while it is on its way to the tables. */
type Shared = Pick<UserAccount, "reserved" | "pending" | "returning">;

/** From here to the commit memory counts the item. */
export function beginPending(item: LedgerItem, user: Shared, token: Shared | undefined): void {
  const charge = chargeOf(item);
  count(user, charge, item.hold?.amount ?? 0, 1);
  if (token) count(token, charge, heldOfToken(item), 1);
}

/** The item is part of the balance now, or lost: memory lets go of it. */
export function endPending(accounts: LedgerAccounts, item: LedgerItem): void {
  const { row, hold } = item;
  const owner = row?.type === LogType.consume ? row : hold;
  if (!owner) return;
  const charge = chargeOf(item);
  const user = accounts.cachedUser(owner.userId);
  if (user) count(user, charge, hold?.amount ?? 0, -1);
  const token = owner.tokenId === 0 ? undefined : accounts.cachedToken(owner.tokenId);
  if (token) count(token, charge, heldOfToken(item), -1);
}

function chargeOf({ row }: LedgerItem): number {
  return row?.type === LogType.consume ? row.quota : 0;
}

function heldOfToken({ hold }: LedgerItem): number {
  return hold && hold.tokenId !== 0 ? hold.amount : 0;
}

/** Never below 0: an account that was read anew meanwhile does not know the item. */
function count(account: Shared, charge: number, held: number, sign: 1 | -1): void {
  account.pending = Math.max(0, account.pending + sign * charge);
  // The durable amount has left the balance already: what is missing is the rest of the charge, or of the amount.
  if (charge > held) account.reserved = Math.max(0, account.reserved + sign * (charge - held));
  else account.returning = Math.max(0, account.returning + sign * (held - charge));
}
