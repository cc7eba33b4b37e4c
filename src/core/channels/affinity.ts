// The one store of stickiness: which channel and key a session, or a stored response, belongs to. In memory of each node, which
// asks the others by Valkey where it knows nothing (shared-affinity.ts); what must be found again (a provider's stored responses)
// stands in `remote_objects` besides, and is read from there.
// Refuses to keep what a session is called: names go in as keyed hashes.
import type { Deps, RemoteObject } from "../deps.ts";
import { findRemoteObject } from "./remote-objects.ts";
import { createSharedAffinity } from "./shared-affinity.ts";
import type { FoundBinding, SharedAffinity } from "./shared-affinity.ts";

/**
 * `must`: this account or nobody, it stores what the call goes on from. `own`: it made proofs that the call brings back; elsewhere
 * they are taken out. `prefer`: it has the prompt in its cache.
 */
export type Strength = "must" | "own" | "prefer";

/** A session's name, as far as it keeps it apart from others. */
interface AffinityName {
  userId: number;
  /** The group whose channels serve it. */
  group: string;
  /** "" where the rule binds a session for all its models. */
  model: string;
  /** "" where rules share their bindings. */
  rule: string;
  value: string;
}

export interface Binding {
  channelId: number;
  /** SHA-256 (hex) of the key. */
  keyHash: string;
  strength: Strength;
  rule: string;
  ttlMs: number;
  /** On the steady clock. */
  untilMs: number;
  /** Calls that it served. */
  times: number;
  /** Proofs of another account stand in its conversation: this one has said so. */
  isMixed: boolean;
  /** Of what must be found again. */
  object: RemoteObject | undefined;
  use: BindingUse;
  /** When other nodes were told, on the steady clock, and whether of its mixed proofs; undefined: they were not. */
  told: { atMs: number; isMixed: boolean } | undefined;
}

/** What is there of a binding at first. */
type NewBinding = Omit<Binding, "untilMs" | "times" | "object" | "use" | "told">;

/** What a binding's calls used, as their upstreams said. */
interface BindingUse {
  /** Calls that were served, and those that read something from a cache. */
  total: number;
  hit: number;
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  /** Unix seconds; 0: none yet. */
  lastSeenAt: number;
}

/** The binding that a log row tells of. */
interface AskedUsage {
  rule_name?: string | undefined;
  /** Taken for older clients: a fingerprint is of one group. */
  using_group?: string | undefined;
  key_fp?: string | undefined;
}

/** The same on the wire, in the family's words. */
interface AffinityUsage {
  rule_name: string;
  using_group: string;
  key_fp: string;
  hit: number;
  total: number;
  /** Its lifetime after each call. */
  window_seconds: number;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  cached_tokens: number;
  prompt_cache_hit_tokens: number;
  last_seen_at: number;
}

interface AffinityStats {
  /** Bindings in memory of this node, and where `isShared` those of all others. */
  total: number;
  max: number;
  /** By rule, what comes by itself included. */
  byRule: Record<string, number>;
  /** Other nodes' are known: Valkey has answered. */
  isShared: boolean;
}

interface Cleared {
  /** How many bindings were forgotten. */
  deleted: number;
  /** On all nodes, not on this one alone. */
  isShared: boolean;
}

export interface AffinityStore {
  /** HMAC of the name: the id of its binding, 32 hex digits. */
  idOf(name: AffinityName): string;
  /** Nothing is bound: where nothing is to choose either, nobody need be asked about. */
  isEmpty(): boolean;
  find(id: string, nowMs: number): Binding | undefined;
  /** Other nodes may know of bindings. */
  readonly isShared: boolean;
  /** Where none of these is bound here, what other nodes know is found afterwards. Undefined: nothing is waited for. */
  recall(ids: readonly string[], nowMs: number): Promise<void> | undefined;
  /** The id of the session with this fingerprint, as log rows tell it; undefined: it is bound nowhere. */
  idWith(fingerprint: string, nowMs: number): Promise<string | undefined>;
  /** Puts it in force, for `ttlMs` from now on. */
  bind(id: string, binding: NewBinding, nowMs: number): void;
  /** It served again; `slides`: its time begins anew. */
  keep(id: string, binding: Binding, nowMs: number, slides: boolean): void;
  /** What a provider stores, as it was settled. */
  remember(row: RemoteObject): void;
  /**
   * What a provider stores for the user under this id, whether or not its time is over; a promise where the database has to be
   * asked. Throws 503 while that is away.
   */
  stored(
    userId: number,
    kind: string,
    upstreamId: string,
  ): RemoteObject | undefined | Promise<RemoteObject | undefined>;
  /** What a call of the binding used; without effect where it is gone. */
  used(id: string, use: Pick<BindingUse, "promptTokens" | "completionTokens" | "cachedTokens">): void;
  /** Of the binding with this fingerprint; zeros where there is none. */
  usage(asked: AskedUsage, nowMs: number): AffinityUsage;
  stats(nowMs: number): Promise<AffinityStats>;
  /** Forgets bindings of sessions, all or those of one rule, here at once; what must be found again is read anew. */
  clear(rule?: string): Promise<Cleared>;
}

/** The rule under which stored responses are counted. */
export const STORED_RULE = "stored-response";
const ID_CHARS = 32;
/** Other nodes are told of a time that goes on when so much of it has passed: not with each call. */
const TELL_SHARE = 1 / 10;
/** Of an id, what log rows tell. */
export const FINGERPRINT_CHARS = 8;

function noUse(): BindingUse {
  return { total: 0, hit: 0, promptTokens: 0, completionTokens: 0, cachedTokens: 0, lastSeenAt: 0 };
}

export function createAffinityStore({
  db,
  valkey,
  clock,
  options,
  seal,
}: Pick<Deps, "db" | "valkey" | "clock" | "options" | "seal">): AffinityStore {
  const most = (): number => options.get("channel_affinity_setting.max_entries");
  const memory = createMemory(most);
  const { bindings, put } = memory;
  const nodes = valkey && createNodeTalk(valkey, memory, () => clock.monotonicMs());
  /** Ids of providers are short, plain and nobody's secret; users do not find each other's. */
  const objectId = (userId: number, kind: string, upstreamId: string): string =>
    `${userId} ${kind} ${upstreamId}`;

  function remember(row: RemoteObject): void {
    const nowMs = clock.monotonicMs();
    const ttlMs = row.expiresAt * 1000 - clock.nowMs();
    put(
      objectId(row.userId, row.kind, row.upstreamId),
      {
        channelId: row.channelId,
        keyHash: row.keyHash,
        strength: "must",
        rule: STORED_RULE,
        ttlMs,
        untilMs: nowMs + ttlMs,
        times: 1,
        isMixed: false,
        object: row,
        use: noUse(),
        told: undefined,
      },
      nowMs,
    );
  }

  return {
    idOf({ userId, group, model, rule, value }) {
      const name = JSON.stringify(["affinity", userId, group, model, rule, value]);
      return seal.mac(name).toString("hex").slice(0, ID_CHARS);
    },
    isEmpty: () => bindings.size === 0,
    find: memory.find,
    isShared: nodes !== undefined,
    recall(ids, nowMs) {
      if (!nodes || ids.some((id) => memory.find(id, nowMs))) return undefined;
      return nodes.recall(ids);
    },
    async idWith(fingerprint, nowMs) {
      const isMeant = ([id, { untilMs, object }]: [string, Binding]): boolean =>
        id.startsWith(fingerprint) && untilMs > nowMs && object === undefined;
      const known = bindings.entries().find(isMeant)?.[0];
      return known ?? (await nodes?.shared.list())?.keys().find((id) => id.startsWith(fingerprint));
    },
    bind(id, binding, nowMs) {
      const wasBound = memory.find(id, nowMs) !== undefined;
      const made = fresh(binding, nowMs + binding.ttlMs);
      put(id, made, nowMs);
      nodes?.tell(id, made, { nowMs, mode: wasBound ? "moved" : "found" });
    },
    keep(id, binding, nowMs, slides) {
      binding.times++;
      if (slides) binding.untilMs = nowMs + binding.ttlMs;
      put(id, binding, nowMs);
      if (nodes?.mustHear(binding, nowMs, slides)) nodes.tell(id, binding, { nowMs, mode: "found" });
    },
    remember,
    stored(userId, kind, upstreamId) {
      const id = objectId(userId, kind, upstreamId);
      const known = bindings.get(id)?.object;
      if (!known) {
        return findRemoteObject({ db }, userId, kind, upstreamId).then((found) => {
          if (found) remember(found);
          return found;
        });
      }
      remember(known);
      return known;
    },
    used(id, { promptTokens, completionTokens, cachedTokens }) {
      const use = bindings.get(id)?.use;
      if (!use) return;
      use.total++;
      if (cachedTokens > 0) use.hit++;
      use.promptTokens += promptTokens;
      use.completionTokens += completionTokens;
      use.cachedTokens += cachedTokens;
      use.lastSeenAt = Math.floor(clock.nowMs() / 1000);
    },
    usage: (asked, nowMs) => usageIn(bindings, asked, nowMs),
    async stats(nowMs) {
      return statsOf(bindings, await nodes?.shared.list(), { max: most(), nowMs });
    },
    async clear(rule) {
      const cleared = memory.clear(rule);
      const others = await nodes?.shared.clear(rule);
      return { deleted: cleared.union(others ?? new Set()).size, isShared: others !== undefined };
    },
  };
}

function fresh(binding: NewBinding, untilMs: number): Binding {
  return { ...binding, untilMs, times: 1, object: undefined, use: noUse(), told: undefined };
}

interface Memory {
  /** The longest unused first. */
  bindings: Map<string, Binding>;
  find: (id: string, nowMs: number) => Binding | undefined;
  put: (id: string, binding: Binding, nowMs: number) => void;
  /** Ids of what was forgotten. */
  clear: (rule: string | undefined) => Set<string>;
}

function createMemory(most: () => number): Memory {
  const bindings = new Map<string, Binding>();
  return {
    bindings,
    find(id, nowMs) {
      const found = bindings.get(id);
      if (!found) return undefined;
      if (found.untilMs > nowMs) return found;
      bindings.delete(id);
      return undefined;
    },
    put(id, binding, nowMs) {
      bindings.delete(id);
      bindings.set(id, binding);
      // At most two go for one that comes: those whose time is over stand in front sooner or later.
      for (let turn = 0; turn < 2; turn++) {
        const [first] = bindings;
        if (!first || (bindings.size <= most() && first[1].untilMs > nowMs)) return;
        bindings.delete(first[0]);
      }
    },
    clear(rule) {
      const cleared = new Set<string>();
      for (const [id, binding] of bindings) {
        if (rule !== undefined && binding.rule !== rule) continue;
        bindings.delete(id);
        cleared.add(id);
      }
      return cleared;
    },
  };
}

interface NodeTalk {
  shared: SharedAffinity;
  recall(ids: readonly string[]): Promise<void> | undefined;
  /** Other nodes were never told of it, long ago, or less than is known by now. */
  mustHear(binding: Binding, nowMs: number, slides: boolean): boolean;
  tell(id: string, binding: Binding, how: { nowMs: number; mode: "found" | "moved" }): void;
}

/** What of the bindings other nodes are told, and what is taken from them. */
function createNodeTalk(
  valkey: NonNullable<Deps["valkey"]>,
  { bindings, put, find, clear }: Memory,
  monotonicMs: () => number,
): NodeTalk {
  /** What others were told before may not be what stands there now. */
  let isSureFromMs = -Infinity;
  const shared = createSharedAffinity(valkey, {
    moved: (id) => void bindings.delete(id),
    cleared: (rule) => clear(rule),
    gap() {
      isSureFromMs = monotonicMs();
    },
  });

  function take(id: string, { leftMs, ...found }: FoundBinding): void {
    const nowMs = monotonicMs();
    const taken = fresh({ ...found, strength: "prefer" }, nowMs + leftMs);
    taken.told = { atMs: nowMs, isMixed: found.isMixed };
    put(id, taken, nowMs);
  }
  /** Whoever was bound here meanwhile stays. */
  const takeNew = (ids: readonly string[], found: readonly (FoundBinding | undefined)[]): void =>
    found.forEach((binding, at) => {
      const id = ids[at];
      if (binding && id !== undefined && !find(id, monotonicMs())) take(id, binding);
    });

  return {
    shared,
    recall: (ids) =>
      shared.find(ids, (found) => takeNew(ids, found))?.then((found) => takeNew(ids, found ?? [])),
    mustHear({ told, ttlMs, isMixed }, nowMs, slides) {
      if (!told || told.isMixed !== isMixed || told.atMs < isSureFromMs) return true;
      return slides && nowMs - told.atMs >= ttlMs * TELL_SHARE;
    },
    tell(id, binding, { nowMs, mode }) {
      binding.told = { atMs: nowMs, isMixed: binding.isMixed };
      const other = (found: FoundBinding): void => {
        if (bindings.get(id) === binding) take(id, found);
      };
      if (!valkey.state().isUp) binding.told = undefined;
      else shared.write(id, binding, { leftMs: binding.untilMs - nowMs, mode, other });
    },
  };
}

function statsOf(
  bindings: ReadonlyMap<string, Binding>,
  others: ReadonlyMap<string, string> | undefined,
  { max, nowMs }: { max: number; nowMs: number },
): AffinityStats {
  const rules = new Map(others);
  for (const [id, { rule, untilMs }] of bindings) if (untilMs > nowMs) rules.set(id, rule);
  const byRule: Record<string, number> = {};
  for (const rule of rules.values()) byRule[rule] = (byRule[rule] ?? 0) + 1;
  return { total: rules.size, max, byRule, isShared: others !== undefined };
}

function usageIn(
  bindings: ReadonlyMap<string, Binding>,
  { rule_name: rule = "", using_group: group = "", key_fp: fingerprint = "" }: AskedUsage,
  nowMs: number,
): AffinityUsage {
  const isMeant = (id: string, binding: Binding): boolean =>
    id.startsWith(fingerprint) && binding.rule === rule && binding.untilMs > nowMs;
  const found =
    fingerprint.length === FINGERPRINT_CHARS
      ? bindings.entries().find(([id, binding]) => isMeant(id, binding))
      : undefined;
  const { use = noUse(), ttlMs = 0 } = found?.[1] ?? {};
  return {
    rule_name: rule,
    using_group: group,
    key_fp: fingerprint,
    hit: use.hit,
    total: use.total,
    window_seconds: Math.round(ttlMs / 1000),
    prompt_tokens: use.promptTokens,
    completion_tokens: use.completionTokens,
    total_tokens: use.promptTokens + use.completionTokens,
    cached_tokens: use.cachedTokens,
    prompt_cache_hit_tokens: use.cachedTokens,
    last_seen_at: use.lastSeenAt,
  };
}
