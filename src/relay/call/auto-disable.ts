// Takes a channel out of service when its upstream says that key or account no longer work; only a real change is
// announced. Refuses to take a client's own words, which upstreams repeat, for what an upstream says of a key.
import type { Channel } from "../../core/channels/rows.ts";
import { disableKey } from "../../core/channels/state.ts";
import type { StateDeps } from "../../core/channels/state.ts";
import { scrub } from "../../protocol/classify.ts";
import type { UpstreamRefusal } from "./attempt.ts";
import { clientSaid } from "./client-words.ts";
import type { ClientWords } from "./client-words.ts";

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

/** What operators take for the end of a key, beside what is plain. */
interface FatalRules {
  statuses: ReadonlySet<number>;
  keywords: readonly string[];
}

function isFatal(
  refusal: UpstreamRefusal,
  client: ClientWords,
  channelType: number,
  { statuses, keywords }: FatalRules,
): boolean {
  if (statuses.has(refusal.status)) return true;
  if (refusal.status === 403 && channelType === FORBIDDEN_IS_FATAL_TYPE) return true;
  if (FATAL_CODES.has(refusal.code) || FATAL_TYPES.has(refusal.type)) return true;
  const message = refusal.message.toLowerCase();
  const found = keywords.flatMap((keyword) => {
    const at = message.indexOf(keyword.toLowerCase());
    // As the upstream writes it, who repeats what it got.
    return at === -1 ? [] : [refusal.message.slice(at, at + keyword.length)];
  });
  return found.length > 0 && !clientSaid(client, found);
}

/**
 * Whether the refusal takes what it refused out of service: the operator wants it, the channel allows it. `client`: who was
 * refused; a keyword that it wrote itself says nothing.
 */
export function mustDisable(
  { options }: Pick<StateDeps, "options">,
  channel: Channel,
  refusal: UpstreamRefusal,
  client: ClientWords,
): boolean {
  if (!channel.autoBan || !options.get("AutomaticDisableChannelEnabled")) return false;
  return isFatal(refusal, client, channel.type, {
    statuses: options.get("AutomaticDisableStatusCodes"),
    keywords: options.get("AutomaticDisableKeywords"),
  });
}

/** Switches the key off because of what its upstream said, and with the last one its channel. Never throws. */
export async function disableFor(
  deps: StateDeps,
  { channel, keyIndex }: { channel: Channel; keyIndex: number },
  refusal: UpstreamRefusal,
): Promise<void> {
  try {
    await disableKey(deps, channel, keyIndex, scrub(refusal.message) || `status code ${refusal.status}`);
  } catch (error) {
    deps.logger.error("key could not be disabled", { channel: channel.id, error: String(error) });
  }
}
