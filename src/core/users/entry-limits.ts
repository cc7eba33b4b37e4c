// How often one address may ask for letters, register and try codes. What counts per e-mail stands in auth-flows.ts, what
// counts for signing in in sign-in.ts.
// Refuses with 429 `too_many_attempts`; RATE_LIMIT_TRUSTED and CRITICAL_RATE_LIMIT* hold here as for every limit per address.
import type { AskedLimit } from "../kit/shared-attempts.ts";
import { tooMany } from "../kit/site-limits.ts";
import type { SiteLimits } from "../kit/site-limits.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Several limits as one: all of them, or none counts. */
interface EntryLimit {
  /** Counts one try. Rejects when there were too many. */
  take(address: string): Promise<void>;
  giveBack(address: string): void;
}

export interface EntryLimits {
  /** Codes and reset links together. */
  letters: EntryLimit;
  registering: EntryLimit;
  /** Accounts that came to be. */
  accounts: EntryLimit;
  /** Codes and reset links that are wrong. */
  proofs: EntryLimit;
}

function together(limits: readonly AskedLimit[]): EntryLimit {
  return {
    async take(address) {
      const taken: AskedLimit[] = [];
      for (const limit of limits) {
        const seconds = await limit.take(address);
        if (seconds === undefined) taken.push(limit);
        else {
          for (const each of taken) each.giveBack(address);
          throw tooMany(seconds);
        }
      }
    },
    giveBack(address) {
      for (const limit of limits) limit.giveBack(address);
    },
  };
}

export function createEntryLimits(limits: Pick<SiteLimits, "perAddress">): EntryLimits {
  const of = (name: string, ...rules: { count: number; windowMs: number }[]): EntryLimit =>
    together(rules.map((rule) => limits.perAddress(`${name}-${rule.windowMs / MINUTE_MS}`, rule)));
  return {
    letters: of("letters", { count: 10, windowMs: 10 * MINUTE_MS }, { count: 40, windowMs: 24 * HOUR_MS }),
    registering: of("registering", { count: 30, windowMs: 10 * MINUTE_MS }),
    accounts: of("accounts", { count: 20, windowMs: HOUR_MS }),
    proofs: of("proofs", { count: 20, windowMs: 10 * MINUTE_MS }),
  };
}
