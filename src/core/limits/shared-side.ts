// The side of the limit book that all processes are asked by: whether a call that this one lets in may begin, and what a
// refusal of theirs says. Refuses nothing without their answer; the site's rate is this process's share of it then.
import type { Deps } from "../deps.ts";
import { shareOf } from "../kit/node-share.ts";
import type { NodePlace } from "../kit/node-share.ts";
import { refuseUnanswered, wantedTokens } from "./lease.ts";
import type { LimitBook, LimitLease } from "./limits.ts";
import { budgetRefusal, sharedRefusal } from "./refusals.ts";
import type { SharedClaim, SharedLimits } from "./shared-limits.ts";

type SharedSide = Pick<LimitBook, "confirm" | "confirmRate" | "rateHere" | "rateEnded" | "placeBy">;

/** What all processes are asked and told; nothing where the site has no Valkey. */
export function sharedSide(
  deps: Pick<Deps, "options" | "clock">,
  shared: SharedLimits | undefined,
): SharedSide {
  let place: () => NodePlace = () => ({ nodes: 1, rank: 0 });

  function ask(claim: SharedClaim, lease: LimitLease | undefined): Promise<void> | undefined {
    return shared?.ask(claim)?.then((answer) => {
      if (answer?.kind === "granted") return lease?.granted(answer.units, answer.moment);
      if (answer) {
        lease?.cancel();
        throw sharedRefusal(deps, claim, answer);
      }
      try {
        const short = refuseUnanswered(claim.owners, deps.clock.monotonicMs());
        if (short) throw budgetRefusal(deps, short, claim.least);
      } catch (error) {
        lease?.cancel();
        throw error;
      }
    });
  }

  return {
    confirm(request, lease) {
      const owners = lease?.owners() ?? [];
      const { amount, least, tokens } = request;
      // Once for a request, however often it holds.
      const rate = request.rate?.shared === undefined ? request.rate : undefined;
      if (owners.length === 0 && !rate) return undefined;
      return ask(
        {
          owners,
          rate,
          amount: lease?.amount ?? amount,
          least,
          tokens,
          wantedTokens: (limit) => wantedTokens(request, limit),
        },
        lease,
      );
    },
    confirmRate: (rate) =>
      ask({ owners: [], rate, amount: 0, least: 0, tokens: 0, wantedTokens: () => 0 }, undefined),
    rateHere({ rule, userId }) {
      if (!shared || shared.isUp()) return rule;
      const own = (limit: number): number => (limit > 0 ? Math.max(1, shareOf(limit, place(), userId)) : 0);
      return { ...rule, total: own(rule.total), success: own(rule.success) };
    },
    rateEnded: (rate, isSuccess) => shared?.rateEnded(rate, isSuccess),
    placeBy(found) {
      place = found;
    },
  };
}
