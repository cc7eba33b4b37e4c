// How often one account may get its own proof wrong: one count for every call that says whether a password or a code is right.
// Refuses with 429 `too_many_attempts` and the seconds to wait.
import type { WrongLimit } from "../core/kit/attempt-limit.ts";
import { tooMany } from "../core/kit/site-limits.ts";
import type { SiteLimits } from "../core/kit/site-limits.ts";
import { Failure } from "../shared/failures.ts";

const PROOFS_PER_ACCOUNT = { limit: 10, windowMs: 600_000 };

/** The same count for whoever asks for it. */
export function proofLimit(limits: Pick<SiteLimits, "wrong">): WrongLimit {
  return limits.wrong("proofs-account", PROOFS_PER_ACCOUNT);
}

/** Runs a try that counts only where it is wrong: refused as the caller's fault, or with the one code that says so. */
export async function guessing<T>(
  limit: WrongLimit,
  key: string,
  attempt: () => Promise<T>,
  wrongCode?: string,
): Promise<T> {
  const seconds = await limit.enter(key);
  if (seconds !== undefined) throw tooMany(seconds);
  let isWrong = false;
  try {
    return await attempt();
  } catch (error) {
    isWrong = error instanceof Failure && error.kind === "client" && (wrongCode ?? error.code) === error.code;
    throw error;
  } finally {
    limit.leave(key, isWrong);
  }
}
