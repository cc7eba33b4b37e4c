// The most that one call may cost: what its caller says in a header, or the key's own cap, whichever is lower.
// Refuses a cap that cannot be read, and a call that its cap does not pay, before anybody is paid.
import type { Deps } from "../../core/deps.ts";
import { quotaDisplay } from "../../core/options/store.ts";
import { Failure } from "../../shared/failures.ts";
import { MAX_QUOTA, shortQuotaText } from "../../shared/money.ts";
import type { Caller } from "./admission.ts";

/** Dollars with at most six decimals. */
const MAX_COST_HEADER = "x-max-cost";
/** Whole units of quota. */
const MAX_QUOTA_HEADER = "x-max-quota";

const DOLLARS = /^(\d{1,9})(?:\.(\d{1,6}))?$/;
const UNITS = /^\d{1,16}$/;
const MICROS_PER_DOLLAR = 1e6;

function malformed(header: string): Failure {
  return new Failure("client", "max_cost_invalid", { params: { header }, param: header });
}

/** Dollars as text, in whole units that do not pass them; exact, because both are whole numbers of millionths. */
function unitsOf(text: string, quotaPerUnit: number): number {
  const [, whole, decimals = ""] = DOLLARS.exec(text) ?? [];
  if (whole === undefined) throw malformed("X-Max-Cost");
  const micros = Number(whole) * MICROS_PER_DOLLAR + Number(decimals.padEnd(6, "0"));
  return Math.min(Math.floor((micros * quotaPerUnit) / MICROS_PER_DOLLAR), MAX_QUOTA);
}

/**
 * Units that the call may cost at most; undefined: nobody set a cap. 0 in a header is a cap of nothing: an agent that has
 * nothing left must not be served without any; 0 in a key means that it has none. Throws a Failure `max_cost_invalid`.
 */
export function capOf(
  headers: Headers,
  { token }: Pick<Caller, "token">,
  quotaPerUnit: number,
): number | undefined {
  const cost = headers.get(MAX_COST_HEADER);
  const quota = headers.get(MAX_QUOTA_HEADER);
  const ofKey = token && token.maxQuota > 0 ? token.maxQuota : undefined;
  if (cost === null && quota === null) return ofKey;
  let cap = ofKey ?? Infinity;
  if (cost !== null) cap = Math.min(cap, unitsOf(cost.trim(), quotaPerUnit));
  if (quota !== null) {
    const text = quota.trim();
    const units = Number(text);
    if (!UNITS.test(text) || units > MAX_QUOTA) throw malformed("X-Max-Quota");
    cap = Math.min(cap, units);
  }
  return cap;
}

/** The call would cost `needed` units at least, and its cap is below that. Every dialect has its own word for 402. */
export function overCap(options: Deps["options"], needed: number, cap: number): Failure {
  const display = { ...quotaDisplay(options), inCurrency: true };
  const text = (units: number): string => `${shortQuotaText(units, display).slice(1)}`;
  const least = Math.min(Math.ceil(needed), MAX_QUOTA);
  return new Failure("quota", "max_cost_exceeded", {
    status: 402,
    type: "insufficient_quota",
    params: { needed: text(least), neededQuota: least, cap: text(cap), capQuota: cap },
  });
}
