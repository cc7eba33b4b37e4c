// The caller's own request limit as headers of an answer, in the words of the caller's dialect: clients slow down by them.
// An upstream's headers of this kind never pass: they tell of the operator's account.
import type { RateState } from "../../core/kit/rate-limit.ts";
import type { DialectName } from "../../protocol/canonical.ts";

/**
 * Seconds as OpenAI writes them in `x-ratelimit-reset-requests`: "12s", "6m0s", "1h0m0s" (its guide to rate limits,
 * "Rate limits in headers").
 */
function shortDuration(seconds: number): string {
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = `${seconds % 60}s`;
  if (hours > 0) return `${hours}h${minutes}m${rest}`;
  return minutes > 0 ? `${minutes}m${rest}` : rest;
}

/**
 * Sets the headers of the dialect: OpenAI's `x-ratelimit-*-requests` and `-tokens`, Anthropic's
 * `anthropic-ratelimit-requests-*` and `-tokens-*` with the moment in RFC 3339 (its reference, "Rate limits", response
 * headers); Google's clients know none. `nowMs` is the time of day.
 */
export function setRateHeaders(
  headers: Headers,
  dialect: DialectName,
  of: "requests" | "tokens",
  { limit, remaining, resetMs }: RateState,
  nowMs: number,
): void {
  const resetSeconds = Math.ceil(resetMs / 1000);
  if (dialect === "gemini") return;
  if (dialect === "anthropic") {
    const at = new Date((Math.floor(nowMs / 1000) + resetSeconds) * 1000);
    headers.set(`anthropic-ratelimit-${of}-limit`, String(limit));
    headers.set(`anthropic-ratelimit-${of}-remaining`, String(remaining));
    headers.set(`anthropic-ratelimit-${of}-reset`, at.toISOString().replace(".000Z", "Z"));
    return;
  }
  headers.set(`x-ratelimit-limit-${of}`, String(limit));
  headers.set(`x-ratelimit-remaining-${of}`, String(remaining));
  headers.set(`x-ratelimit-reset-${of}`, shortDuration(resetSeconds));
}
