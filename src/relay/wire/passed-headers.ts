// The client's headers that mean something to upstreams of its own family; everything else stays here.
// Refuses to let one user's names for calls and conversations meet another's: they share the operator's account.
import type { Sealer } from "../../core/kit/seal.ts";

const PLAIN = ["openai-beta"] as const;
/** Names that clients make up, often alike: an upstream would take two users' calls for one. */
const SCOPED = ["idempotency-key", "session_id", "conversation_id"] as const;

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

/** Adds to `headers` what passes. */
export function passHeaders(
  headers: Record<string, string>,
  client: Headers,
  seal: Pick<Sealer, "mac">,
  userId: number,
): void {
  for (const name of PLAIN) {
    const value = client.get(name);
    if (value !== null) headers[name] = value;
  }
  for (const name of SCOPED) {
    const value = client.get(name);
    if (value !== null && value !== "") headers[name] = scopedValue(seal, userId, value);
  }
}
