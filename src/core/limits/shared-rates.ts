// The site's request rate over all processes: which requests of whom are under way here, and what the others are told of them.
// Refuses to decide: it is asked about together with the limits of key and user (shared-limits.ts).
import type { RateRule } from "../kit/rate-limit.ts";
import type { AskedOwner, ToldOwner } from "../kit/shared-scripts.ts";
import { NO_ASKED, NO_TOLD } from "../kit/shared-scripts.ts";
import type { SharedWire } from "../kit/shared-wire.ts";
import { MINUTE_MS } from "./minute.ts";

/** A request under the site's rate; one for each that counts. */
export interface RateClaim {
  readonly rule: RateRule;
  readonly userId: number;
  /**
   * What all processes know of it. `open`: it takes the place of a success until its end; `counted`: as a request, and no
   * more; `refused`: it counts nowhere. Absent: nothing.
   */
  shared?: "open" | "counted" | "refused";
  /** Requests and successes of the user that this process knew of when it let it in, this one counted. */
  here?: { total: number; success: number };
}

export interface SharedRates {
  asked(claim: RateClaim): AskedOwner;
  /** It was asked about: whoever asks next has it counted. */
  begin(claim: RateClaim): void;
  /** It was refused, by its rate or by something else. */
  refuse(claim: RateClaim, isOwn: boolean): void;
  /** Once for each that was admitted here; one that nobody was asked about is counted. */
  end(claim: RateClaim, isSuccess: boolean): void;
  /** The server may know nothing of what is under way here. */
  forget(): void;
  /** Tells what the server may not know; answers whether something is under way. */
  repeat(most: number): boolean;
}

/** Requests of one user that are under way here, and what was told last; undefined: it may be anything. */
interface OpenRate {
  calls: number;
  told: number | undefined;
}

const keyOf = (userId: number): string => `lim:rate:${userId}`;

export function createSharedRates(wire: SharedWire): SharedRates {
  const rates = new Map<number, OpenRate>();

  function asked({ rule, userId }: RateClaim): AskedOwner {
    const { windowMs, total, success } = rule;
    const calls = rates.get(userId)?.calls ?? 0;
    return { ...NO_ASKED, key: keyOf(userId), windowMs, maxRequests: total, maxSuccesses: success, calls };
  }

  function begin(claim: RateClaim): void {
    claim.shared = "open";
    const open = rates.get(claim.userId);
    if (!open) rates.set(claim.userId, { calls: 1, told: 1 });
    else {
      open.calls += 1;
      open.told = open.calls;
    }
  }

  /** Answers how many are left. */
  function leave(userId: number): number {
    const open = rates.get(userId);
    if (!open) return 0;
    open.calls -= 1;
    open.told = open.calls;
    if (open.calls <= 0) rates.delete(userId);
    return open.calls;
  }

  const missed = (userId: number) => (): void => {
    const open = rates.get(userId);
    if (open) open.told = undefined;
    else rates.set(userId, { calls: 0, told: undefined });
  };

  return {
    asked,
    begin,
    refuse(claim, isOwn) {
      leave(claim.userId);
      // Who was asked about meanwhile had this one among those that are open.
      missed(claim.userId)();
      claim.shared = isOwn ? "refused" : "counted";
    },
    end(claim, isSuccess) {
      const { rule, userId, shared } = claim;
      if (shared === undefined) {
        // It never came so far as to be asked about.
        void wire.ask("count", [asked(claim)], { units: 0, least: 0, tokens: 0 });
        if (!isSuccess) return;
      } else if (shared !== "open") return;
      else leave(userId);
      claim.shared = "counted";
      const calls = rates.get(userId)?.calls ?? 0;
      const { windowMs, success: maxSuccesses } = rule;
      const successes = isSuccess ? 1 : 0;
      wire.tell(
        [{ ...NO_TOLD, key: keyOf(userId), windowMs, successes, maxSuccesses, calls }],
        missed(userId),
      );
    },
    forget() {
      for (const open of rates.values()) open.told = undefined;
    },
    repeat(most) {
      const late: [number, ToldOwner][] = [];
      for (const [userId, open] of rates) {
        const { calls } = open;
        if (open.told === calls || late.length >= most) continue;
        open.told = calls;
        if (calls === 0) rates.delete(userId);
        late.push([userId, { ...NO_TOLD, key: keyOf(userId), windowMs: MINUTE_MS, calls }]);
      }
      const told = late.map(([, owner]) => owner);
      if (told.length > 0)
        wire.tell(told, () => {
          for (const [userId] of late) missed(userId)();
        });
      return rates.size > 0;
    },
  };
}
