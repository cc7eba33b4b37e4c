// Whoever took long to send a body is judged anew when it is there: meanwhile the key may have been deleted, its owner disabled, and
// the money spent on another node. Refuses to count such a call twice to its request rate.
import type { Deps } from "../../core/deps.ts";
import type { Visitors } from "../../http/visitors.ts";
import { ACCEPTED, admitCaller, checkAddress } from "./admission.ts";
import type { AdmissionDeps, Caller } from "./admission.ts";

/** What is known of a caller is as old as that anyway: so long another node's change may be unheard of. */
const SLOW_BODY_MS = 1000;

/** Whether a body that was begun then (milliseconds of the steady clock) took so long that its caller must be judged anew. */
export function isSlow({ clock }: Pick<Deps, "clock">, beganMs: number): boolean {
  return clock.monotonicMs() - beganMs > SLOW_BODY_MS;
}

/**
 * The caller of a request whose body is there, as of now; `caller` where the body came at once, which costs a look at the clock.
 * Throws what a call that began now would be refused with; its model and its balance are looked at later, as always.
 */
export function callerAfter(
  deps: AdmissionDeps,
  visitors: Pick<Visitors, "addressOf">,
  { request, caller, beganMs }: { request: Request; caller: Caller; beganMs: number },
): Caller | Promise<Caller> {
  return isSlow(deps, beganMs) ? admitAnew(deps, visitors, request) : caller;
}

async function admitAnew(
  deps: AdmissionDeps,
  visitors: Pick<Visitors, "addressOf">,
  request: Request,
): Promise<Caller> {
  const caller = await admitCaller(deps, request, ACCEPTED);
  checkAddress(caller, request, visitors);
  return caller;
}
