// The client's address: the socket's, or what a trusted proxy says.
// Refuses forwarded headers from any peer that is not listed in TRUSTED_PROXIES.
import ipaddr from "ipaddr.js";

export type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

export function parseRanges(list: readonly string[]): Range[] {
  return list.map((entry) => {
    if (entry.includes("/")) return ipaddr.parseCIDR(entry);
    const address = ipaddr.process(entry);
    return [address, address.kind() === "ipv4" ? 32 : 128];
  });
}

/** True when the address lies in one of the ranges; anything that is not an address lies in none. */
export function inRanges(address: string, ranges: readonly Range[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some(([range, bits]) => parsed.kind() === range.kind() && parsed.match(range, bits));
}

interface PeerSource {
  requestIP(request: Request): { address: string } | null;
}

/** Of a visitor whose socket is gone: nobody's address, so in nobody's ranges, and one visitor in all limits. */
const UNKNOWN_ADDRESS = "unknown";

/** Some proxies write where the connection came from whole: 203.0.113.9:41234, [2001:db8::1]:443. */
function withoutPort(entry: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
}

/**
 * Walks X-Forwarded-For from the right and takes the first address that is not a trusted proxy, the proxy's own where it wrote
 * something else; X-Real-IP when there is no such header, or its last entry is the same.
 */
export function clientAddress(request: Request, server: PeerSource, trusted: readonly Range[]): string {
  const peer = normalise(server.requestIP(request)?.address ?? UNKNOWN_ADDRESS);
  if (trusted.length === 0 || !inRanges(peer, trusted)) return peer;
  const forwarded = (request.headers.get("x-forwarded-for") ?? "")
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  for (const entry of forwarded.toReversed()) {
    const address = withoutPort(entry);
    // What stands left of a word that says nothing may be the client's own.
    if (!ipaddr.isValid(address)) return peer;
    if (!inRanges(address, trusted)) return normalise(address);
  }
  const real = request.headers.get("x-real-ip")?.trim() ?? "";
  if (!ipaddr.isValid(real)) return peer;
  // Beside it the other header is nobody's word: a proxy that writes the one often lets the other through as the client sent it.
  // Where both say the same the proxy wrote both, of a client within the networks that are trusted.
  const last = forwarded.at(-1);
  return last === undefined || normalise(withoutPort(last)) === normalise(real) ? normalise(real) : peer;
}

/** IPv4 addresses mapped into IPv6 are written as IPv4. */
function normalise(address: string): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
}
