// Reads of what belongs to an API key, by whoever shows the key: which key it is, or why nothing is shown. A used-up or
// expired key may still be read: its holder wants to know just that.
import { createAttemptLimit } from "../core/kit/attempt-limit.ts";
import { tooMany } from "../core/kit/site-limits.ts";
import type { Deps, TokenAccount } from "../core/deps.ts";
import { Failure } from "../shared/failures.ts";
import type { SessionSettings } from "./session.ts";

/** Reads by one key, and guesses at keys from one address. */
const PER_MINUTE = 60;
const MINUTE_MS = 60_000;
/** Pages of other sites ask with the key alone; no cookie is read there. */
export const ANY_SITE = { "access-control-allow-origin": "*" };

/** `key` without `sk-`. Answers the failure to show where there is no such key, or where it asks too often. */
export type KeyReader = (key: string, address: string) => Promise<TokenAccount | Failure>;

/** Only keys that nobody has count for the address. */
export function createKeyReader(
  { accounts, clock }: Pick<Deps, "accounts" | "clock">,
  limits: SessionSettings["limits"],
): KeyReader {
  const perKey = createAttemptLimit(PER_MINUTE, MINUTE_MS, () => clock.monotonicMs());
  const guesses = limits.perAddress("key-guesses", { count: PER_MINUTE, windowMs: MINUTE_MS });
  return async (key, address) => {
    const guessWait = await guesses.take(address);
    if (guessWait !== undefined) return tooMany(guessWait);
    const token = key === "" ? undefined : await accounts.tokenByKey(key);
    if (!token || token.user.deleted) return new Failure("auth", "token_invalid");
    guesses.giveBack(address);
    const wait = perKey.take(String(token.id));
    return wait === undefined ? token : tooMany(wait);
  };
}
