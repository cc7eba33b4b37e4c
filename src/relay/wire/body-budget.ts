// What the large bodies of relayed calls hold together, from their first byte until their answer is known.
// Refuses more than the process bears, and one account's share beyond half of it: a key must not fill the memory with
// bodies that it never ends, and not keep others from sending theirs.
import type { Visitors } from "../../http/visitors.ts";
import { Failure } from "../../shared/failures.ts";

/** Times the largest body an operator allows; half of it for one account. */
const BODIES = 8;

/** Follows a body while it is read. */
export interface BodyWatch {
  /** It keeps its pace: the connection may live on. */
  alive(request: Request): void;
  /** So many more bytes of an account's body are held. Throws `bodies_busy`. */
  grow(request: Request, owner: number, bytes: number): void;
}

export interface BodyBudget extends BodyWatch {
  /** Nothing of the request's body is needed any more; also for requests that never had a large one. */
  done(request: Request): void;
}

export function createBodyBudget(visitors: Pick<Visitors, "alive">, maxBodyBytes: () => number): BodyBudget {
  const held = new Map<Request, { owner: number; bytes: number }>();
  const byOwner = new Map<number, number>();
  let all = 0;

  return {
    alive: (request) => visitors.alive(request),
    grow(request, owner, bytes) {
      const limit = BODIES * maxBodyBytes();
      const owned = (byOwner.get(owner) ?? 0) + bytes;
      if (all + bytes > limit || owned > limit / 2)
        throw new Failure("limit", "bodies_busy", { type: "rate_limit_error", retryAfterSeconds: 5 });
      all += bytes;
      byOwner.set(owner, owned);
      const entry = held.get(request);
      if (entry) entry.bytes += bytes;
      else held.set(request, { owner, bytes });
    },
    done(request) {
      if (held.size === 0) return;
      const entry = held.get(request);
      if (!entry) return;
      held.delete(request);
      all -= entry.bytes;
      const left = (byOwner.get(entry.owner) ?? 0) - entry.bytes;
      if (left > 0) byOwner.set(entry.owner, left);
      else byOwner.delete(entry.owner);
    },
  };
}
