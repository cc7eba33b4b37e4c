// What a caller hears whom a budget or a limit of key or account refuses: which one, how much, and when it opens again.
import { Failure } from "../../shared/failures.ts";
import type { LimitNumber } from "../../shared/key-limits.ts";
import { offsetSeconds } from "../../shared/local-time.ts";
import { shortQuotaText } from "../../shared/money.ts";
import type { Deps, TokenAccount, UserAccount } from "../deps.ts";
import { quotaDisplay } from "../options/store.ts";
import type { RateRule } from "../kit/rate-limit.ts";
import type { OwnerUse } from "./owner-use.ts";
import type { SharedClaim, SharedRefused } from "./shared-limits.ts";

/** An open call may end at any time. */
export const OPEN_WAIT_MS = 1000;
/** Open calls end within seconds. */
const HELD_RETRY_SECONDS = 2;

/** A moment as the site's clock shows it: 2026-11-28 00:00. */
function siteTime(seconds: number, zone: string): string {
  const local = new Date((seconds + offsetSeconds(zone, seconds * 1000)) * 1000);
  return local.toISOString().slice(0, 16).replace("T", " ");
}

/** Whose limit it is, in a word that tells nobody's secret. */
function ownerName({ kind, account }: Pick<OwnerUse, "kind" | "account">): string {
  return kind === "token" ? (account as TokenAccount).masked : (account as UserAccount).username;
}

/** `least` is what the call needs: without the open calls it may fit. */
export function budgetRefusal(
  { options, clock }: Pick<Deps, "options" | "clock">,
  owner: OwnerUse,
  least: number,
): Failure {
  const { budgetQuota } = owner.limits;
  const spent = owner.spent();
  const zone = options.get("site.time_zone");
  const display = quotaDisplay(options);
  const end = owner.period?.end ?? 0;
  const isOnlyHeld = budgetQuota - spent > 0 && budgetQuota - spent >= least;
  return new Failure("limit", "budget_exceeded", {
    ...(isOnlyHeld ? { variant: "held" } : {}),
    params: {
      name: ownerName(owner),
      budget: shortQuotaText(budgetQuota, display),
      used: shortQuotaText(spent, display),
      at: siteTime(end, zone),
      zone,
    },
    retryAfterSeconds: isOnlyHeld ? HELD_RETRY_SECONDS : Math.max(1, Math.ceil(end - clock.nowMs() / 1000)),
    data: { limit: "budget_quota", resets_at: end },
  });
}

interface LimitRefusal {
  limit: LimitNumber;
  max: number;
  waitMs: number;
  /** The prompt alone has more tokens than the minute. */
  isTooLong?: boolean;
}

/** `waitMs`: until one call more may begin, if nothing else comes. */
export function limitRefusal(
  owner: OwnerUse,
  { limit, max, waitMs, isTooLong = false }: LimitRefusal,
): Failure {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new Failure("limit", "key_limit_exceeded", {
    variant: isTooLong ? "tpm_size" : limit,
    params: { name: ownerName(owner), limit, max, seconds },
    retryAfterSeconds: seconds,
    data: { limit },
  });
}

/** Which of the site's two rates, and when it opens again. */
export function rateRefusal(
  rule: RateRule,
  which: "total" | "success",
  { limit, retryAfterSeconds }: { limit: number; retryAfterSeconds: number },
): Failure {
  return new Failure("limit", which === "total" ? "rate_limit_total" : "rate_limit_success", {
    params: { minutes: rule.windowMs / 60_000, limit },
    retryAfterSeconds,
  });
}

const NUMBERS = { requests: "rpm_limit", calls: "max_concurrency", tokens: "tpm_limit" } as const;
const MAXIMA = { rpm_limit: "rpmLimit", max_concurrency: "maxConcurrency", tpm_limit: "tpmLimit" } as const;

/** What all processes together refuse, in the words of one. */
export function sharedRefusal(
  deps: Pick<Deps, "options" | "clock">,
  { rate, least }: Pick<SharedClaim, "rate" | "least">,
  { owner, why, waitMs }: SharedRefused,
): Failure {
  const openWaitMs = waitMs || OPEN_WAIT_MS;
  if (!owner || why === "success") {
    const rule = rate?.rule ?? { windowMs: openWaitMs, total: 0, success: 0 };
    const which = why === "success" ? "success" : "total";
    return rateRefusal(rule, which, { limit: rule[which], retryAfterSeconds: Math.ceil(openWaitMs / 1000) });
  }
  if (why === "budget") return budgetRefusal(deps, owner, least);
  const limit = NUMBERS[why];
  return limitRefusal(owner, { limit, max: owner.limits[MAXIMA[limit]], waitMs: openWaitMs });
}
