// How often the wrong tries of an account were forgiven: they go on counting under another name, which all processes must know
// by which the tries are counted together. The count stands where the locks stand, in the Valkey, and is lost with them.
// Refuses to forget: without Valkey, or without its answer, what this process knows counts.
import { valkeyScript } from "../../db/valkey.ts";
import type { Deps } from "../deps.ts";

type ForgivenDeps = Pick<Deps, "db" | "valkey">;

/** Longer than any window or rest of a sign-in's limits: after that there is nothing left to forgive. */
const KEPT_MS = 24 * 3_600_000;
/** An answer that came too late is asked for again, a word that was not heard is said again. */
const [MOST_ASKED, AGAIN_MS, MOST_AGAIN] = [3, 250, 8];

const FORGIVE = valkeyScript(`local count = redis.call("INCR", KEYS[1])
redis.call("PEXPIRE", KEYS[1], ARGV[1])
return count`);
const FORGIVEN = valkeyScript(`return tonumber(redis.call("GET", KEYS[1]) or "0")`);

const keyOf = (userId: number): string => `forgiven:${userId}`;

/** By the database, of which a process may have several in tests. */
const known = new WeakMap<object, Map<number, number>>();

function knownOf({ db }: ForgivenDeps): Map<number, number> {
  const counts = known.get(db) ?? new Map<number, number>();
  known.set(db, counts);
  return counts;
}

/** What wrong tries have locked opens, on every process; here at once, elsewhere when Valkey has heard of it. */
export function forgiveWrongTries(deps: ForgivenDeps, userId: number): void {
  const counts = knownOf(deps);
  counts.set(userId, (counts.get(userId) ?? 0) + 1);
  if (deps.valkey) void tell(deps.valkey, userId);
}

/** Said twice it forgives twice, which does no harm. */
async function tell(valkey: NonNullable<Deps["valkey"]>, userId: number): Promise<void> {
  for (let at = 0; at < MOST_AGAIN; at++) {
    if ((await valkey.run(FORGIVE, [keyOf(userId)], [KEPT_MS])) !== undefined) return;
    await new Promise((resolve) => void setTimeout(resolve, AGAIN_MS).unref());
  }
}

/** How often so far; the same on all processes while Valkey answers. */
export async function forgivenCount(deps: ForgivenDeps, userId: number): Promise<number> {
  const { valkey } = deps;
  const counts = knownOf(deps);
  for (let at = 0; valkey && at < MOST_ASKED; at++) {
    const count = await valkey.run<number>(FORGIVEN, [keyOf(userId)], []);
    if (count === undefined) continue;
    if (count > 0) counts.set(userId, count);
    else counts.delete(userId);
    return count;
  }
  return counts.get(userId) ?? 0;
}
