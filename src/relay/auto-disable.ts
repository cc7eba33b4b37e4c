// Takes a channel out of service when its upstream says that key or account no longer work.
// Refuses to act unless the operator switched it on and the channel allows it; only a real change is announced.
import { and, eq } from "drizzle-orm";
import type { Channel } from "../core/channel-rows.ts";
import type { Deps } from "../core/deps.ts";
import { q } from "../db/database.ts";
import { scrub } from "../protocol/classify.ts";
import { ChannelStatus, LogType, Role } from "../shared/enums.ts";
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

type DisableDeps = Pick<Deps, "db" | "options" | "routing" | "ledger" | "logger" | "clock">;

/** Looks at a failed attempt and disables its channel when it must. Never throws. */
export async function disableIfFatal(
  deps: DisableDeps,
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

/** Sets status 3 with reason and time; true when this call made the change. */
export async function disableChannel(deps: DisableDeps, channel: Channel, reason: string): Promise<boolean> {
  const { channels, abilities, users } = deps.db.t;
  const otherInfo = JSON.stringify({
    status_reason: reason,
    status_time: Math.floor(deps.clock.nowMs() / 1000),
  });
  const hasChanged = await deps.db.atomic(function* (tx) {
    const changed = yield* q(
      tx
        .update(channels)
        .set({ status: ChannelStatus.autoDisabled, otherInfo })
        .where(and(eq(channels.id, channel.id), eq(channels.status, ChannelStatus.enabled)))
        .returning({ id: channels.id }),
    );
    if (changed.length === 0) return false;
    yield* q(
      tx
        .update(abilities)
        .set({ enabled: false })
        .where(eq(abilities.channelId, channel.id))
        .returning({ id: abilities.channelId }),
    );
    return true;
  });
  if (!hasChanged) return false;
  await deps.routing.refresh([channel.id]);
  deps.logger.warn("channel disabled", { channel: channel.id, name: channel.name, reason });
  const [root] = await deps.db.orm
    .select({ id: users.id, username: users.username })
    .from(users)
    .where(eq(users.role, Role.root));
  if (root) {
    await deps.ledger.log({
      type: LogType.system,
      userId: root.id,
      username: root.username,
      channelId: channel.id,
      content: `通道「${channel.name}」（#${channel.id}）已被禁用，原因：${reason}`,
    });
  }
  return true;
}
