// The side of the limit book that all processes are asked by: whether a call that this one lets in may begin, and what a
// refusal of theirs says. Without their answer what others told last decides, and of the site's rate this process has its share.
// Refuses to take a missing answer for a yes.
import type { Deps } from "../deps.ts";
import { shareOf } from "../kit/node-share.ts";
import type { NodePlace } from "../kit/node-share.ts";
import { refuseUnanswered, wantedTokens } from "./lease.ts";
import type { EnterRequest, LimitBook, LimitLease } from "./limits.ts";
import type { RateRule } from "../kit/rate-limit.ts";
import { budgetRefusal, OPEN_WAIT_MS, rateRefusal, sharedRefusal } from "./refusals.ts";
import type { SharedClaim, SharedLimits } from "./shared-limits.ts";
import type { RateClaim } from "./shared-rates.ts";

type SharedSide = Pick<LimitBook, "confirm" | "confirmRate" | "rateHere" | "rateEnded" | "placeBy">;

/** What all processes are asked and told; nothing where the site has no Valkey. */
export function sharedSide(
  deps: Pick<Deps, "options" | "clock">,
  shared: SharedLimits | undefined,
): SharedSide {
  let place: () => NodePlace = () => ({ nodes: 1, rank: 0 });

  function ask(claim: SharedClaim, lease: LimitLease | undefined): Promise<void> | undefined {
    const found = shared?.ask(claim);
    if (!found) return undefined;
    if (!(found instanceof Promise)) {
      if (found.kind === "granted") lease?.granted(found.units, found.moment);
      return undefined;
    }
    return found.then((answer) => {
      if (answer?.kind === "granted") return lease?.granted(answer.units, answer.moment);
      if (answer) {
        lease?.cancel();
        throw sharedRefusal(deps, claim, answer);
      }
      try {
        if (claim.rate) refuseOverShare(claim.rate);
        const short = refuseUnanswered(claim.owners, deps.clock.monotonicMs());
        if (short) throw budgetRefusal(deps, short, claim.least);
      } catch (error) {
        lease?.cancel();
        throw error;
      }
    });
  }

  function ruleHere({ rule, userId }: RateClaim): RateRule {
    const own = (limit: number): number => (limit > 0 ? Math.max(1, shareOf(limit, place(), userId)) : 0);
    return { ...rule, total: own(rule.total), success: own(rule.success) };
  }

  /** It was let in by the whole rule, because all would be asked. Throws the rate's refusal; it counts nowhere then. */
  function refuseOverShare(rate: RateClaim): void {
    const { here, rule } = rate;
    const own = ruleHere(rate);
    const isOver = (which: "total" | "success"): boolean =>
      own[which] > 0 && (here?.[which] ?? 0) > own[which];
    const which = isOver("total") ? "total" : "success";
    if (!isOver(which)) return;
    shared?.rateEnded(rate, false);
    rate.shared = "refused";
    throw rateRefusal(rule, which, { limit: own[which], retryAfterSeconds: OPEN_WAIT_MS / 1000 });
  }

  /** Of a part of a call only budgets are asked about, as where the call itself wants to hold more. */
  function askBudgets(
    { least, tokens }: Pick<EnterRequest, "least" | "tokens">,
    lease: LimitLease | undefined,
  ): Promise<void> | undefined {
    if (!lease) return undefined;
    const wanted = lease.amount;
    return lease.more(wanted, tokens)?.then((answer) => {
      const units = answer ?? lease.unanswered(wanted);
      if (units >= wanted || (units > 0 && units >= least)) return lease.granted(units, 0);
      const short = lease.owners().find(({ limits }) => limits.budgetQuota > 0);
      lease.cancel();
      if (short) throw budgetRefusal(deps, short, least);
    });
  }

  return {
    confirm(request, lease) {
      if (request.isPart === true) return askBudgets(request, lease);
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
    rateHere: (rate) => (!shared || shared.isUp() ? rate.rule : ruleHere(rate)),
    rateEnded: (rate, isSuccess) => shared?.rateEnded(rate, isSuccess),
    placeBy(found) {
      place = found;
    },
  };
}
