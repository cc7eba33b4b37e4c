// What an attempt failed with, without the key that its upstream was asked with: upstreams repeat it, whatever their status.
// Refuses to leave that to whoever reads an answer: every failure of an attempt passes here before it is told, kept or logged.
import { Failure } from "../../shared/failures.ts";
import { withoutKeys } from "../../shared/without-keys.ts";
import { AttemptFailure } from "./attempt.ts";

export function keylessFailure(failure: Failure, key: string): Failure {
  return failure.reworded((text) => withoutKeys(text, [key]));
}

/** What asking an upstream threw, likewise. */
export function keyless(thrown: unknown, key: string): unknown {
  if (thrown instanceof Failure) return keylessFailure(thrown, key);
  if (!(thrown instanceof AttemptFailure)) return thrown;
  const { failure, verdict, refusal, usage } = thrown;
  const clean = (text: string): string => withoutKeys(text, [key]);
  const said = refusal && {
    status: refusal.status,
    message: clean(refusal.message),
    type: clean(refusal.type),
    code: clean(refusal.code),
  };
  const kept = new AttemptFailure(keylessFailure(failure, key), verdict, said);
  kept.usage = usage;
  return kept;
}
