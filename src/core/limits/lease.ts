// A call's place under the limits of its key and user: what it takes when it begins, and gives back at its end.
// Refuses before it takes anything; a place is given back once.
import type { Clock } from "../deps.ts";
import { MINUTE_MS } from "./minute.ts";
import type { OwnerUse } from "./owner-use.ts";
import type { EnterRequest, LimitLease } from "./limits.ts";
import { limitRefusal, OPEN_WAIT_MS } from "./refusals.ts";
import type { SharedLimits } from "./shared-limits.ts";

/** A call that the limit may not take whole goes alone, unless its prompt is too long already. */
export function wantedTokens(
  { promptTokens, tokens }: Pick<EnterRequest, "promptTokens" | "tokens">,
  tpmLimit: number,
): number {
  if (tokens <= tpmLimit) return Math.max(1, tokens);
  return promptTokens <= tpmLimit ? tpmLimit : tpmLimit + 1;
}

/** Throws `key_limit_exceeded`. */
export function refuseOverLimit(
  owner: OwnerUse,
  request: Pick<EnterRequest, "promptTokens" | "tokens">,
  nowMs: number,
): void {
  const { limits, beside: elsewhere } = owner;
  const { maxConcurrency, rpmLimit, tpmLimit } = limits;
  if (maxConcurrency > 0 && owner.calls + elsewhere.calls >= maxConcurrency)
    throw limitRefusal(owner, { limit: "max_concurrency", max: maxConcurrency, waitMs: OPEN_WAIT_MS });
  if (rpmLimit > 0 && owner.requests.sum(nowMs) + elsewhere.requests >= rpmLimit) {
    const waitMs = owner.requests.waitMs(Math.max(0, rpmLimit - 1 - elsewhere.requests), nowMs);
    throw limitRefusal(owner, { limit: "rpm_limit", max: rpmLimit, waitMs: waitMs || OPEN_WAIT_MS });
  }
  if (tpmLimit === 0) return;
  const beside = owner.openTokens + elsewhere.tokens;
  const settled = owner.tokens.sum(nowMs);
  const wanted = wantedTokens(request, tpmLimit);
  if (settled + beside + wanted <= tpmLimit) return;
  const isTooLong = wanted > tpmLimit;
  const waitMs = isTooLong ? MINUTE_MS : owner.tokens.waitMs(tpmLimit - beside - wanted, nowMs);
  throw limitRefusal(owner, {
    limit: "tpm_limit",
    max: tpmLimit,
    isTooLong,
    waitMs: Math.min(MINUTE_MS, waitMs || OPEN_WAIT_MS),
  });
}

/**
 * Of calls that are counted already, where the others could not be asked: what they told last decides. Throws
 * `key_limit_exceeded`; answers whose budget is passed.
 */
export function refuseUnanswered(owners: readonly OwnerUse[], nowMs: number): OwnerUse | undefined {
  for (const owner of owners) {
    const { limits, elsewhere } = owner;
    const { maxConcurrency, rpmLimit, tpmLimit } = limits;
    const refusal = (limit: "max_concurrency" | "rpm_limit" | "tpm_limit", max: number) =>
      limitRefusal(owner, { limit, max, waitMs: OPEN_WAIT_MS });
    if (maxConcurrency > 0 && owner.calls + elsewhere.calls > maxConcurrency)
      throw refusal("max_concurrency", maxConcurrency);
    if (rpmLimit > 0 && owner.requests.sum(nowMs) + elsewhere.requests > rpmLimit)
      throw refusal("rpm_limit", rpmLimit);
    // What others have open is in their figure; a call that is alone may be larger than the limit.
    const tokens = owner.tokens.sum(nowMs) + elsewhere.tokens;
    const isAlone = tokens === 0 && owner.calls === 1;
    if (tpmLimit > 0 && !isAlone && tokens + owner.openTokens > tpmLimit)
      throw refusal("tpm_limit", tpmLimit);
  }
  return owners.find((owner) => owner.freeUnanswered() < 0);
}

export interface LeaseDeps {
  clock: Pick<Clock, "monotonicMs">;
  /** Told of each owner whose spending has grown. */
  look: (owner: OwnerUse) => void;
  /** Who is asked for all processes; undefined: nobody. */
  shared: SharedLimits | undefined;
}

interface Place {
  owner: OwnerUse;
  /** Of its request in the minute; undefined where none counts: the call was open before its limit was. */
  moment: number | undefined;
}

/** Takes a place with each owner; what the budgets leave was looked at. */
export function leaseOf(
  owners: readonly OwnerUse[],
  { amount, tokens, isPart = false }: Pick<EnterRequest, "amount" | "tokens" | "isPart">,
  deps: LeaseDeps,
): LimitLease {
  const nowMs = deps.clock.monotonicMs();
  const allowed = owners.reduce((least, owner) => Math.min(least, Math.max(0, owner.free())), amount);
  const lease = emptyLease(allowed, tokens, deps, isPart);
  for (const owner of owners) lease.join(owner, isPart ? undefined : owner.requests.add(1, nowMs));
  return lease;
}

/** Of a call that nothing limits yet: whoever is limited later joins. `isPart`: of a part of a call, which is none itself. */
export function emptyLease(
  amount: number,
  tokens: number,
  { clock, look, shared }: LeaseDeps,
  isPart = false,
): LimitLease {
  const calls = isPart ? 0 : 1;
  const places: Place[] = [];
  let held = amount;
  let open = tokens;
  let isOver = false;
  let allowed = amount;
  /** Of the server on which it was counted for all processes; 0: nowhere. */
  let sharedMoment = 0;
  const owners = (): OwnerUse[] => places.map(({ owner }) => owner);
  const leave = (): void => {
    isOver = true;
    for (const { owner } of places) {
      owner.calls -= calls;
      owner.held -= held;
      owner.openTokens -= open;
    }
  };
  return {
    get amount() {
      return allowed;
    },
    owners,
    granted(units, moment) {
      sharedMoment = moment;
      if (units >= allowed) return;
      this.change(units - allowed);
      allowed = units;
    },
    more: (units, tokensMore) => (isOver ? undefined : shared?.more(owners(), units, tokensMore)),
    free: () => places.reduce((least, { owner }) => Math.min(least, owner.free()), Infinity),
    unanswered: (units) =>
      places.reduce(
        (least, { owner }) => Math.max(0, Math.min(least, units + owner.freeUnanswered())),
        units,
      ),
    join(owner, moment) {
      if (isOver || places.some((place) => place.owner === owner)) return;
      places.push({ owner, moment });
      owner.calls += calls;
      owner.held += held;
      owner.openTokens += open;
    },
    change(units, more = 0) {
      if (isOver) return;
      held += units;
      open += more;
      for (const { owner } of places) {
        owner.held += units;
        owner.openTokens += more;
      }
    },
    end(used, units) {
      if (isOver) return;
      leave();
      const endMs = clock.monotonicMs();
      for (const { owner } of places) {
        if (used > 0) owner.tokens.add(used, endMs);
        look(owner);
      }
      shared?.ended(owners(), { tokens: used, units });
    },
    cancel() {
      if (isOver) return;
      leave();
      for (const { owner, moment } of places) if (moment !== undefined) owner.requests.takeBack(1, moment);
      if (sharedMoment > 0) shared?.undo(owners(), sharedMoment);
      else if (isPart) shared?.ended(owners(), { tokens: 0, units: 0 });
    },
  };
}
