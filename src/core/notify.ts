// Notices to the operator: what happened to a channel, that a run is finished. In the log always, by webhook when set.
// Refuses to flood: two notices of a kind in ten minutes, and to let a webhook that fails disturb what it tells of.
import { createHmac } from "node:crypto";
import { eq } from "drizzle-orm";
import { LogType, Role } from "../shared/enums.ts";
import type { Deps, UserAccount } from "./deps.ts";

export interface Notice {
  /** Groups notices for the limit, and tells webhooks what it is: `channel_update_<id>_<status>`, `channel_test`. */
  type: string;
  title: string;
  content: string;
  channelId?: number;
}

export type NotifyDeps = Pick<Deps, "db" | "accounts" | "ledger" | "logger" | "clock" | "guard">;

const WINDOW_MS = 600_000;
const PER_WINDOW = 2;
const WEBHOOK_TIMEOUT_MS = 5000;
const WEBHOOK_ANSWER_BYTES = 64 * 1024;
/** Kinds remembered for the limit; the oldest make room. */
const MAX_KINDS = 10_000;

const sent = new WeakMap<object, Map<string, number[]>>();

function isTooMany(deps: NotifyDeps, type: string): boolean {
  let kinds = sent.get(deps.ledger);
  if (!kinds) sent.set(deps.ledger, (kinds = new Map()));
  const nowMs = deps.clock.nowMs();
  const recent = (kinds.get(type) ?? []).filter((atMs) => nowMs - atMs < WINDOW_MS);
  if (recent.length >= PER_WINDOW) return true;
  recent.push(nowMs);
  kinds.delete(type);
  kinds.set(type, recent);
  const [oldest] = kinds.keys();
  if (kinds.size > MAX_KINDS && oldest !== undefined) kinds.delete(oldest);
  return false;
}

export async function rootAccount(deps: Pick<Deps, "db" | "accounts">): Promise<UserAccount | undefined> {
  const { users } = deps.db.t;
  const [root] = await deps.db.orm
    .select({ id: users.id })
    .from(users)
    .where(eq(users.role, Role.root))
    .limit(1);
  return root && deps.accounts.user(root.id);
}

/** Lower-case hex HMAC-SHA256 of the body, as receivers of these webhooks check it. */
export function webhookSignature(secret: string, body: string): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

async function callWebhook(deps: NotifyDeps, root: UserAccount, notice: Notice): Promise<void> {
  const { notify_type: kind, webhook_url: url, webhook_secret: secret } = root.setting;
  if (kind !== "webhook" || url === undefined || url === "") return;
  const { type, title, content } = notice;
  const body = JSON.stringify({ type, title, content, timestamp: Math.floor(deps.clock.nowMs() / 1000) });
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (secret) headers["x-webhook-signature"] = webhookSignature(secret, body);
  const limits = { maxBytes: WEBHOOK_ANSWER_BYTES, timeoutMs: WEBHOOK_TIMEOUT_MS };
  const answer = await deps.guard(url, { method: "POST", headers, body, ...limits });
  if (answer.status < 200 || answer.status > 299) throw new Error(`webhook answered ${answer.status}`);
}

/** Tells the root user. Resolves when the log has it and the webhook was tried; never throws. */
export async function notifyRoot(deps: NotifyDeps, notice: Notice): Promise<void> {
  try {
    const root = await rootAccount(deps);
    if (!root) return;
    await deps.ledger.log({
      type: LogType.system,
      userId: root.id,
      username: root.username,
      content: notice.content,
      ...(notice.channelId === undefined ? {} : { channelId: notice.channelId }),
    });
    if (!isTooMany(deps, notice.type)) await callWebhook(deps, root, notice);
  } catch (error) {
    deps.logger.warn("notice could not be sent", { type: notice.type, error: String(error) });
  }
}
