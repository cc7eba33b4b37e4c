// Repeated attempts as all processes of a site count them together, through its Valkey: plain ones, and those of which only the
// wrong ones count. Each process asks its own limit first; where Valkey is away, that one decides alone, by its part of the whole.
// Refuses to hold who is limited: a name there is a keyed hash.
import { randomBytes } from "node:crypto";
import { valkeyScript } from "../../db/valkey.ts";
import type { Valkey, ValkeyScript } from "../../db/valkey.ts";
import type { AttemptLimit, WrongLimit, WrongRule } from "./attempt-limit.ts";
import type { Sealer } from "./seal.ts";

/** As `AttemptLimit`, where others may have to be asked. */
export interface AskedLimit {
  take(key: string): Promise<number | undefined>;
  giveBack(key: string): void;
}

export interface SharedAttempts {
  /** What of a limit this process has by itself: all of it, and its part while nobody can be asked, one at least. */
  limitHere(limit: number): number;
  /** Both: the limit of that name, kept together. `local` is this process's own, asked first and where nobody answers. */
  limit(name: string, rule: { limit: number; windowMs: number }, local: AttemptLimit): AskedLimit;
  wrong(name: string, rule: WrongRule, local: WrongLimit): WrongLimit;
}

/** Each attempt stands there by itself; with more than these a process counts alone. */
const MOST_ATTEMPTS = 4096;
/** A process that ends without a word holds its open attempts for so long; the slowest one asks a server elsewhere. */
const OPEN_MS = 60_000;
/** Whose places are all taken by attempts elsewhere looks again so often, and is told to come back after so long. */
const [BUSY_MS, MOST_BUSY_MS] = [50, 5000];
/** No call waits here, and what is guessed must not slip by: a late answer is asked for again. */
const MOST_ASKED = 3;
/** A word that was not heard is said again. */
const [AGAIN_MS, MOST_AGAIN] = [250, 8];

const NOW = `local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function text(number) return string.format("%.0f", number) end
local limit, windowMs = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", text(now - windowMs))
local function waitMs()
  local first = redis.call("ZRANGE", KEYS[1], 0, 0, "WITHSCORES")
  return first[2] and math.max(1, tonumber(first[2]) + windowMs - now) or 1
end
`;

/** ARGV: limit, window, a name of the attempt. Milliseconds to wait, 0 where it was counted. Asked twice it counts once. */
const TAKE = valkeyScript(`${NOW}
if redis.call("ZSCORE", KEYS[1], ARGV[3]) then return 0 end
if redis.call("ZCARD", KEYS[1]) >= limit then return waitMs() end
redis.call("ZADD", KEYS[1], text(now), ARGV[3])
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return 0`);

/** The newest one: which of them succeeded makes no difference. */
const GIVE_BACK = valkeyScript(`redis.call("ZPOPMAX", KEYS[1]) return 1`);

/**
 * KEYS: wrong ones, open ones, the rest. ARGV: limit, window, milliseconds of the rest or 0, a name of the attempt, how long it may
 * be open. Milliseconds to wait; 0: it is let in; -1: attempts whose outcome is open have all the places. Asked
 * twice it takes one.
 */
const ENTER = valkeyScript(`${NOW}
if redis.call("ZSCORE", KEYS[2], ARGV[4]) then return 0 end
local rest = redis.call("PTTL", KEYS[3])
if rest > 0 then return rest end
local left = limit - redis.call("ZCARD", KEYS[1])
if ARGV[3] ~= "0" then left = math.max(left, 1) end
if left <= 0 then return waitMs() end
redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", text(now))
if redis.call("ZCARD", KEYS[2]) >= left then return -1 end
redis.call("ZADD", KEYS[2], text(now + ARGV[5]), ARGV[4])
redis.call("PEXPIRE", KEYS[2], ARGV[5])
return 0`);

/** ARGV as above, with "1" for a wrong one in the last place. Said twice it counts once. */
const LEAVE = valkeyScript(`${NOW}
redis.call("ZREM", KEYS[2], ARGV[4])
if ARGV[5] == "1" then
  redis.call("ZADD", KEYS[1], text(now), ARGV[4])
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
  if ARGV[3] ~= "0" and redis.call("ZCARD", KEYS[1]) >= limit then redis.call("SET", KEYS[3], "1", "PX", ARGV[3]) end
end
return 1`);

const inSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));
/** Keeps no process alive. */
const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms).unref());

type Words = readonly (string | number)[];

/** Undefined: it is away. */
async function ask(
  valkey: Valkey,
  script: ValkeyScript,
  keys: readonly string[],
  words: Words,
): Promise<number | undefined> {
  let answer: number | undefined;
  for (let at = 0; at < MOST_ASKED && answer === undefined; at++)
    answer = await valkey.run<number>(script, keys, words);
  return answer;
}

/** `processes`: how many live. */
export function createSharedAttempts(
  valkey: Valkey,
  seal: Pick<Sealer, "mac">,
  processes: () => number,
): SharedAttempts {
  const self = randomBytes(6).toString("base64url");
  let serial = 0;
  const named = (): string => `${self}${(serial++).toString(36)}`;
  const keyOf = (name: string, key: string): string =>
    `try:${name}:${seal
      .mac(JSON.stringify(["attempt", name, key]))
      .toString("hex")
      .slice(0, 32)}`;

  return {
    // Where it does not divide, what is guessed is less likely to slip by than somebody to be kept out: down.
    limitHere: (limit) => (valkey.isUp() ? limit : Math.max(1, Math.floor(limit / processes()))),
    limit(name, { limit, windowMs }, local) {
      if (limit > MOST_ATTEMPTS) return alone(local);
      return {
        async take(key) {
          const seconds = local.take(key);
          if (seconds !== undefined) return seconds;
          const waitMs = await ask(valkey, TAKE, [keyOf(name, key)], [limit, windowMs, named()]);
          if (waitMs === undefined || waitMs === 0) return undefined;
          local.giveBack(key);
          return inSeconds(waitMs);
        },
        giveBack(key) {
          local.giveBack(key);
          void valkey.run(GIVE_BACK, [keyOf(name, key)], []);
        },
      };
    },
    wrong: (name, rule, local) =>
      rule.limit > MOST_ATTEMPTS
        ? local
        : new SharedWrong({ valkey, rule, local, named, keyOf: (key) => keyOf(name, key) }),
  };
}

/** A limit that only this process keeps, with the same words. */
export function alone(local: AttemptLimit): AskedLimit {
  return { take: (key) => Promise.resolve(local.take(key)), giveBack: (key) => local.giveBack(key) };
}

interface SharedWrongSettings {
  valkey: Valkey;
  rule: WrongRule;
  local: WrongLimit;
  named: () => string;
  keyOf: (key: string) => string;
}

class SharedWrong implements WrongLimit {
  /** Names of open attempts, by key: whichever ends, one of them is free. */
  readonly #open = new Map<string, string[]>();

  constructor(readonly settings: SharedWrongSettings) {}

  async enter(key: string): Promise<number | undefined> {
    const { valkey, rule, local, named } = this.settings;
    const seconds = await local.enter(key);
    if (seconds !== undefined) return seconds;
    const name = named();
    const words = [rule.limit, rule.windowMs, rule.restMs ?? 0, name, OPEN_MS];
    for (let busyMs = 0; ; busyMs += BUSY_MS) {
      const waitMs = await ask(valkey, ENTER, this.#keys(key), words);
      // An answer that came too late may have taken a place: it is given back like any other one.
      if (waitMs === undefined || waitMs === 0) {
        this.#open.set(key, [...(this.#open.get(key) ?? []), name]);
        return undefined;
      }
      if (waitMs > 0 || busyMs >= MOST_BUSY_MS) {
        local.leave(key, false);
        return waitMs > 0 ? inSeconds(waitMs) : 1;
      }
      await pause(BUSY_MS);
    }
  }

  leave(key: string, isWrong: boolean): void {
    const { rule, local, named } = this.settings;
    local.leave(key, isWrong);
    const [name = named(), ...others] = this.#open.get(key) ?? [];
    if (others.length > 0) this.#open.set(key, others);
    else this.#open.delete(key);
    const words = [rule.limit, rule.windowMs, rule.restMs ?? 0, name, isWrong ? 1 : 0];
    void this.#tell(this.#keys(key), words);
  }

  async #tell(keys: readonly string[], words: Words): Promise<void> {
    for (let at = 0; at < MOST_AGAIN; at++) {
      if ((await this.settings.valkey.run(LEAVE, keys, words)) !== undefined) return;
      await pause(AGAIN_MS);
    }
  }

  #keys(key: string): string[] {
    const name = this.settings.keyOf(key);
    return [name, `${name}:o`, `${name}:r`];
  }
}
