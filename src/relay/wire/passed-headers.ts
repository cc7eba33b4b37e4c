// The client's headers that mean something to upstreams of its own family; everything else stays here.
// Refuses to let one user's names for calls and conversations meet another's: they share the operator's account.
import type { Sealer } from "../../core/kit/seal.ts";
import type { DialectName } from "../../protocol/canonical.ts";
import { openTurnState, TURN_STATE } from "./turn-state.ts";

const PLAIN = ["openai-beta"] as const;
/** Names that clients make up, often alike: an upstream would take two users' calls for one. */
const SCOPED = ["idempotency-key", "session_id", "conversation_id"] as const;

/** What Codex says of its session beside (0.169); towards the Responses API only. */
const CODEX = [
  "session-id",
  "thread-id",
  "thread_id",
  "x-client-request-id",
  "originator",
  "x-codex-beta-features",
  "x-codex-turn-metadata",
  "x-codex-window-id",
  "x-codex-parent-thread-id",
  "x-openai-subagent",
] as const;
/** What Claude Code says of its session (2.1), beside the version and the beta names. */
const CLAUDE_CODE = ["x-claude-code-session-id", "x-app"] as const;

/** Longest value of the session headers that a provider of its own asks for (OpenRouter's documentation). */
const MAX_SESSION_CHARS = 256;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A UUID of version 4 (RFC 9562) of the first 16 of these bytes. */
function uuidOf(bytes: Buffer): string {
  const own = Buffer.from(bytes.subarray(0, 16));
  own.writeUInt8((own.readUInt8(6) & 0x0f) | 0x40, 6);
  own.writeUInt8((own.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = own.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/**
 * The value as this user's alone: HMAC of user and value, a UUID where it was one. Alike on every node and after every
 * start, so that a repeated call is known and a session keeps its cache.
 */
export function scopedValue(seal: Pick<Sealer, "mac">, userId: number, value: string): string {
  const isUuid = UUID.test(value);
  const mac = seal.mac(`${userId} ${isUuid ? value.toLowerCase() : value}`);
  return isUuid ? uuidOf(mac) : mac.toString("hex");
}

/** Between whom headers pass. */
export interface HeaderPath {
  seal: Sealer;
  userId: number;
  channelId: number;
  key: string;
  client: DialectName;
  upstream: DialectName;
  /** Names that this provider asks for besides, whatever the dialects. */
  own: readonly string[];
}

/** Adds to `headers` what passes. */
export function passHeaders(headers: Record<string, string>, client: Headers, path: HeaderPath): void {
  for (const name of path.own) {
    const value = client.get(name);
    if (value !== null && value !== "" && value.length <= MAX_SESSION_CHARS) headers[name] = value;
  }
  if (path.client.startsWith("openai") && path.upstream.startsWith("openai")) {
    pass(headers, client, PLAIN);
    for (const name of SCOPED) {
      const value = client.get(name);
      if (value !== null && value !== "") headers[name] = scopedValue(path.seal, path.userId, value);
    }
  }
  if (path.client !== path.upstream) return;
  if (path.client === "anthropic") pass(headers, client, CLAUDE_CODE);
  if (path.client !== "openai-responses") return;
  pass(headers, client, CODEX);
  const state = client.get(TURN_STATE);
  const own = state === null ? undefined : openTurnState(path, state);
  if (own !== undefined) headers[TURN_STATE] = own;
}

function pass(headers: Record<string, string>, client: Headers, names: readonly string[]): void {
  for (const name of names) {
    const value = client.get(name);
    if (value !== null) headers[name] = value;
  }
}
