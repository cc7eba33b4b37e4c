// Where sessions stay, shared by nodes through Valkey: a binding is read there when a node does not know it, and written behind
// the call that made it. Valkey may be away, emptied or wrong at any time: a binding is a wish, and each node keeps its own.
// Refuses names of sessions and keys of channels: it holds a keyed hash, and SHA-256 of the key.
import { randomBytes } from "node:crypto";
import { valkeyScript } from "../../db/valkey.ts";
import type { Valkey, ValkeyScript } from "../../db/valkey.ts";

/** What nodes tell each other of a binding. */
export interface SharedBinding {
  channelId: number;
  /** SHA-256 (hex) of the key. */
  keyHash: string;
  /** Proofs of another account stand in its conversation. */
  isMixed: boolean;
  /** Its lifetime after each call, in milliseconds. */
  ttlMs: number;
  rule: string;
}

/** A binding as it was found, and for how many milliseconds it is still in force. */
export interface FoundBinding extends SharedBinding {
  leftMs: number;
}

/** A binding that another node may have made meanwhile stands, unless the session has left it. */
type WriteMode = "found" | "moved";

export interface SharedAffinity {
  /** Undefined, at once or after some milliseconds: nobody knows. Places are those of `ids`. */
  find(
    ids: readonly string[],
    late: (found: (FoundBinding | undefined)[]) => void,
  ): Promise<(FoundBinding | undefined)[] | undefined> | undefined;
  /**
   * Writes it for so long; nobody waits. `other` hears of the one that stands in its place. `moved`: the session has left what
   * stood there, and nodes that keep it forget it.
   */
  write(
    id: string,
    binding: SharedBinding,
    options: { leftMs: number; mode: WriteMode; other: (found: FoundBinding) => void },
  ): void;
  /** Rules by the ids of what is bound on any node; undefined: Valkey does not answer. */
  list(): Promise<Map<string, string> | undefined>;
  /** Has every node forget all of it, or what is of one rule. Ids of what was forgotten; undefined: Valkey does not answer. */
  clear(rule: string | undefined): Promise<Set<string> | undefined>;
}

export interface AffinityListener {
  /** Another node has moved the session. */
  moved(id: string): void;
  /** Answers the ids of what was forgotten. */
  cleared(rule: string | undefined): Iterable<string>;
  /** Some of this may have passed unheard. */
  gap(): void;
}

const KEYS = "aff:";
const CHANNEL = "affinity";
/** A step holds up the server for some tenths of a millisecond. */
const SCAN_COUNT = 250;
/** A step that has come too late is asked again so often. */
const MOST_ASKED = 3;

/** Text and remaining time of each key. */
const FIND = valkeyScript(`local found = {}
for at, key in ipairs(KEYS) do
  found[2 * at - 1] = redis.call('GET', key) or ''
  found[2 * at] = redis.call('PTTL', key)
end
return found`);

/**
 * Channel and key are the first two words: where others stand, and the session has not left them, they are answered. Where the
 * same stand, the third word stays 1: a node that has not heard of the proofs of another account does not undo them.
 */
const WRITE = valkeyScript(`local before = redis.call('GET', KEYS[1])
if before and ARGV[3] == 'found'
  and string.match(before, '^%S+ %S+') ~= string.match(ARGV[1], '^%S+ %S+') then
  return {before, redis.call('PTTL', KEYS[1])}
end
local text = ARGV[1]
if before and ARGV[3] == 'found' and string.match(before, '^%S+ %S+ 1 ') then
  text = string.gsub(text, '^(%S+ %S+) 0 ', '%1 1 ')
end
redis.call('SET', KEYS[1], text, 'PX', ARGV[2])
return {}`);

/** One step of a walk over all keys that begin so: where to go on, then ids and texts by turns. */
const SCAN = valkeyScript(`local step = redis.call('SCAN', ARGV[1], 'MATCH', KEYS[1] .. '*', 'COUNT', ARGV[2])
local found = {step[1]}
for _, key in ipairs(step[2]) do
  local text = redis.call('GET', key)
  if text then
    found[#found + 1] = string.sub(key, #KEYS[1] + 1)
    found[#found + 1] = text
  end
end
return found`);

const REMOVE = valkeyScript(`return redis.call('DEL', unpack(KEYS))`);

/** Five words; the last one is the rule, which may have spaces. */
function textOf({ channelId, keyHash, isMixed, ttlMs, rule }: SharedBinding): string {
  return `${channelId} ${keyHash || "-"} ${isMixed ? 1 : 0} ${Math.round(ttlMs)} ${rule}`;
}

/** Undefined for what is none of ours: whoever else writes there decides nothing. */
export function bindingIn(text: unknown): SharedBinding | undefined {
  const found =
    typeof text === "string" ? /^(\d{1,15}) (-|[0-9a-f]{64}) ([01]) (\d{1,12}) (.*)$/s.exec(text) : null;
  if (!found) return undefined;
  const [, channelId, keyHash = "", isMixed, ttlMs, rule = ""] = found;
  return {
    channelId: Number(channelId),
    keyHash: keyHash === "-" ? "" : keyHash,
    isMixed: isMixed === "1",
    ttlMs: Number(ttlMs),
    rule,
  };
}

function foundIn(text: unknown, leftMs: unknown): FoundBinding | undefined {
  const binding = bindingIn(text);
  return binding && typeof leftMs === "number" && leftMs > 0 ? { ...binding, leftMs } : undefined;
}

function foundAll(answer: unknown): (FoundBinding | undefined)[] {
  if (!Array.isArray(answer)) return [];
  return Array.from({ length: answer.length / 2 }, (_, at) => foundIn(answer[2 * at], answer[2 * at + 1]));
}

export function createSharedAffinity(valkey: Valkey, listener: AffinityListener): SharedAffinity {
  /** Who tells it; the node itself knows already. */
  const self = randomBytes(6).toString("hex");
  const tell = (what: string, of: string): void => valkey.publish(CHANNEL, `${self} ${what} ${of}`);

  valkey.subscribe(
    CHANNEL,
    (text) => {
      const [, by, what, of = ""] = /^(\S+) (\S+) (.*)$/s.exec(text) ?? [];
      if (by === self) return;
      if (what === "moved") listener.moved(of);
      // What was written here and arrived behind the removal goes, too: on this connection it comes before this.
      if (what === "all") void remove(listener.cleared(undefined));
      if (what === "rule") void remove(listener.cleared(of));
    },
    () => listener.gap(),
  );

  /** What an administrator waits for is asked more than once; undefined: Valkey is away. */
  async function askedAgain(script: ValkeyScript, keys: readonly string[], args: readonly string[]) {
    let answer: unknown;
    for (let at = 0; at < MOST_ASKED && answer === undefined; at++)
      answer = await valkey.run(script, keys, args);
    return answer;
  }

  /** False: it was not answered to its end. */
  async function remove(ids: Iterable<string>): Promise<boolean> {
    const keys = Array.from(ids, (id) => KEYS + id);
    for (let at = 0; at < keys.length; at += SCAN_COUNT)
      if ((await askedAgain(REMOVE, keys.slice(at, at + SCAN_COUNT), [])) === undefined) return false;
    return true;
  }

  /** Calls `each` with what is found of every step; false: it was not answered to its end. */
  async function walk(each: (id: string, binding: SharedBinding) => void): Promise<boolean> {
    let cursor = "0";
    do {
      const step: unknown = await askedAgain(SCAN, [KEYS], [cursor, String(SCAN_COUNT)]);
      if (!Array.isArray(step)) return false;
      cursor = String(step[0]);
      for (let at = 1; at < step.length; at += 2) {
        const binding = bindingIn(step[at + 1]);
        if (binding) each(String(step[at]), binding);
      }
    } while (cursor !== "0");
    return true;
  }

  return {
    find(ids, late) {
      const keys = ids.map((id) => KEYS + id);
      return valkey
        .run<unknown>(FIND, keys, [], (answer) => late(foundAll(answer)))
        ?.then((answer) => (answer === undefined ? undefined : foundAll(answer)));
    },
    write(id, binding, { leftMs, mode, other }) {
      const told = (answer: unknown): void => {
        const found = Array.isArray(answer) ? foundIn(answer[0], answer[1]) : undefined;
        if (found) other(found);
      };
      const words = [textOf(binding), Math.max(1, Math.round(leftMs)), mode];
      void valkey.run<unknown>(WRITE, [KEYS + id], words, told)?.then(told);
      // Behind the write, on the same connection: whoever looks because of it finds what is new.
      if (mode === "moved") tell("moved", id);
    },
    async list() {
      const rules = new Map<string, string>();
      return (await walk((id, { rule }) => rules.set(id, rule))) ? rules : undefined;
    },
    async clear(rule) {
      if (rule === undefined) tell("all", "");
      else tell("rule", rule);
      const gone = new Set<string>();
      const isWhole = await walk((id, binding) => {
        if (rule === undefined || binding.rule === rule) gone.add(id);
      });
      return isWhole && (await remove(gone)) ? gone : undefined;
    },
  };
}
