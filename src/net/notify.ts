// Notices on their way out: by e-mail through the operator's server, or to a webhook that a user typed.
// Refuses webhooks on closed networks that nobody opened to them: they go through the guard or the operator's worker.
import { createHmac } from "node:crypto";
import { refuse } from "../shared/failures.ts";
import type { Outbound } from "./worker.ts";

export interface Notice {
  /** Groups notices for the limit, and tells webhooks what it is: `channel_update_<id>_<status>`, `quota_exceed`. */
  type: string;
  title: string;
  content: string;
  /** How a letter says it; absent: by the content's lines. */
  letter?: { lines: readonly string[]; links: readonly { label: string; url: string }[] };
  /** The figures in the content, for receivers that write their own words. */
  values?: readonly string[];
}

export interface Webhook {
  url: string;
  /** Empty: the body is not signed. */
  secret: string;
  /** Closed networks that it may lie in all the same. */
  allow: readonly string[];
}

const WEBHOOK_TIMEOUT_MS = 5000;
const WEBHOOK_ANSWER_BYTES = 64 * 1024;

/** Lower-case hex HMAC-SHA256 of the body, as receivers of these webhooks check it. */
function webhookSignature(secret: string, body: string): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

/**
 * Resolves when the receiver answered 2xx; `nowMs` is the time of day in Unix milliseconds. Throws Failures
 * `webhook_answered` and those of the guard.
 */
export async function callWebhook(
  outbound: Outbound,
  { url, secret, allow }: Webhook,
  notice: Notice,
  nowMs: number,
): Promise<void> {
  const { type, title, content, values } = notice;
  const timestamp = Math.floor(nowMs / 1000);
  const body = JSON.stringify({ type, title, content, ...(values ? { values } : {}), timestamp });
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (secret !== "") headers["X-Webhook-Signature"] = webhookSignature(secret, body);
  // Receivers behind a worker know the field's older proof too.
  const workerHeaders: Record<string, string> = secret === "" ? {} : { Authorization: `Bearer ${secret}` };
  const limits = { maxBytes: WEBHOOK_ANSWER_BYTES, timeoutMs: WEBHOOK_TIMEOUT_MS, allow };
  const answer = await outbound(url, { method: "POST", headers, workerHeaders, body, ...limits });
  if (answer.status < 200 || answer.status > 299) throw refuse("webhook_answered", { status: answer.status });
}
