// Takes a channel out of service when its upstream says that key or account no longer work.
// Refuses to act unless the operator switched it on and the channel allows it; only a real change is announced.
import type { Channel } from "../../core/channels/rows.ts";
import { disableChannel } from "../../core/channels/state.ts";
import type { StateDeps } from "../../core/channels/state.ts";
import { scrub } from "../../protocol/classify.ts";
import type { UpstreamRefusal } from "./attempt.ts";

const FATAL_CODES: ReadonlySet<string> = new Set([
  "invalid_api_key",
  "account_deactivated",
  "billing_not_active",
]);
const FATAL_TYPES: ReadonlySet<string> = new Set([
  "insufficient_quota",
  "insufficient_user_quota",
  "authentication_error",
  "permission_error",
  "forbidden",
]);
/** Gemini answers 403 for a bad key. */
const FORBIDDEN_IS_FATAL_TYPE = 24;

export function isFatal(refusal: UpstreamRefusal, channelType: number, keywords: readonly string[]): boolean {
  if (refusal.status === 401) return true;
  if (refusal.status === 403 && channelType === FORBIDDEN_IS_FATAL_TYPE) return true;
  if (FATAL_CODES.has(refusal.code) || FATAL_TYPES.has(refusal.type)) return true;
  const message = refusal.message.toLowerCase();
  return message !== "" && keywords.some((keyword) => message.includes(keyword.toLowerCase()));
}

/** Looks at a failed attempt and disables its channel when it must. Never throws. */
export async function disableIfFatal(
  deps: StateDeps,
  channel: Channel,
  refusal: UpstreamRefusal,
): Promise<void> {
  try {
    if (!channel.autoBan || !deps.options.get("AutomaticDisableChannelEnabled")) return;
    if (!isFatal(refusal, channel.type, deps.options.get("AutomaticDisableKeywords"))) return;
    await disableChannel(deps, channel, scrub(refusal.message) || `status code ${refusal.status}`);
  } catch (error) {
    deps.logger.error("channel could not be disabled", { channel: channel.id, error: String(error) });
  }
}
