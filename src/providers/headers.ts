// The headers of an upstream request: the channel's key in the form the provider wants, and what else it asks for.
// Refuses keys that cannot stand in a header; an empty key leaves its header out. Client headers never come through here.
import { Failure } from "../shared/failures.ts";
import { CONVERSATIONS } from "./define.ts";
import type { ExtraHeader, Operation, ProviderRow } from "./define.ts";

const ANTHROPIC_VERSION = "2023-06-01";

export interface UpstreamHead {
  /** The operation the upstream performs. */
  operation: Operation;
  /** One key of the channel; may be empty for servers that ask for none. */
  key: string;
  organization?: string;
  /** The channel's special field. */
  other?: string;
  isStream?: boolean;
  /** The client's, or the one of the body that is sent; absent for multipart bodies (fetch writes it). */
  contentType?: string;
  accept?: string;
  /** The client's own anthropic-version and anthropic-beta. */
  anthropicVersion?: string;
  anthropicBeta?: string;
  /** Public address of this site, for providers that want to know who calls. */
  site?: string;
}

/** A header value of visible ASCII and spaces; anything else could end the header early or is no key. */
function checkedKey(key: string): string {
  const trimmed = key.trim();
  for (let i = 0; i < trimmed.length; i++) {
    const code = trimmed.charCodeAt(i);
    if (code < 0x20 || code > 0x7e)
      throw new Failure("upstream-auth", "channel_key_unusable", { retryable: true });
  }
  return trimmed;
}

function keyHeaders(row: ProviderRow, head: UpstreamHead): Record<string, string> {
  if (row.auth.kind === "adapter") return {};
  const key = checkedKey(head.key);
  if (key === "") return {};
  if (row.auth.kind === "header") return { [row.auth.name]: `${row.auth.prefix ?? ""}${key}` };
  const headers: Record<string, string> = { authorization: `Bearer ${key}` };
  const dialect = row.operations[head.operation]?.dialect;
  if (dialect === "anthropic") headers["x-api-key"] = key;
  if (dialect === "gemini") headers["x-goog-api-key"] = key;
  return headers;
}

function extraValue(extra: ExtraHeader, head: UpstreamHead): string {
  if (extra.when === "stream" && head.isStream !== true) return "";
  const other = head.other?.trim() ?? "";
  return extra.value.replace("{other}", () => other).replace("{site}", () => head.site ?? "");
}

/** All headers of the request, names in lower case. Rows whose auth is an adapter's get everything but the key. */
export function upstreamHeaders(row: ProviderRow, head: UpstreamHead): Record<string, string> {
  const headers = keyHeaders(row, head);
  if (head.contentType) headers["content-type"] = head.contentType;
  const accept = head.accept || (head.isStream === true ? "text/event-stream" : "");
  if (accept !== "") headers["accept"] = accept;
  if (row.sendsOrganization && head.organization) headers["openai-organization"] = head.organization;
  if (row.operations[head.operation]?.dialect === "anthropic") {
    headers["anthropic-version"] = head.anthropicVersion || ANTHROPIC_VERSION;
    if (head.anthropicBeta) headers["anthropic-beta"] = head.anthropicBeta;
  }
  if (head.operation === "realtime") headers["openai-beta"] = "realtime=v1";
  for (const extra of row.headers) {
    const value = extraValue(extra, head);
    if (value !== "") headers[extra.name] = value;
  }
  return headers;
}

/** Those of a question to the provider itself (its models, an account), in the dialect that the row speaks. */
export function ownHeaders(row: ProviderRow, key: string): Record<string, string> {
  return upstreamHeaders(row, {
    operation: CONVERSATIONS.find((name) => row.operations[name]) ?? "chat",
    key,
  });
}
