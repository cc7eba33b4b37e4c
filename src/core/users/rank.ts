// Who may act on whose account, by rank.
// Refuses the own rank and higher ones, the own account among them; root passes.
import { Role } from "../../shared/enums.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import { refuse } from "../../shared/failures.ts";

/** Throws `code` unless the actor's rank is above the target's. */
export function assertOutranks(actor: { role: number }, target: { role: number }, code: FailureCode): void {
  if (actor.role < Role.root && target.role >= actor.role) throw refuse(code);
}
